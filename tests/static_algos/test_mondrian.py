import doctest
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from microdata import Cancelled, Category, GuaranteeError, InfeasibleError, Number, PersonSource, Schema, Table
from privacy import BetaLikeness, Groups, KAnonymity, Model, check
from static_algos import STATIC_ALGORITHMS, Mondrian, disclosure_for, mondrian
from static_algos.mondrian import mondrian_classes
from tests.worlds import CITIES, DEBT, ILLNESS, QUASI, guarantees, random_table, tables


def of_rows(quasi: Any, values: Any, sensitive: Any = (), held: Any = None, persons: Any = None) -> Any:
    rows = len(values)
    return Table(
        Schema(PersonSource.ROW if persons is None else "person", quasi, sensitive),
        np.arange(rows) if persons is None else np.array(persons),
        np.array(values, np.float64),
        np.array(held, np.int32).reshape(rows, len(sensitive)) if sensitive else np.empty((rows, 0), np.int32),
    )


def groups_of(table: Any, classes: Any) -> Any:
    classes = np.asarray(classes)
    return Groups.of(table.schema, table.persons, table.sensitive, classes, int(classes.max(initial=-1)) + 1)


def partition_of(publication: Any) -> Any:
    """The classes as sets of row numbers."""
    return {frozenset(np.flatnonzero(publication.classes == one).tolist()) for one in range(len(publication.boxes))}


class ByHand:
    """Strict Mondrian once more: one part at a time, rows in lists, no kernels."""

    def __init__(self, table: Any, models: Any) -> None:
        self.table, self.models, self.quasi = table, models, table.schema.quasi
        self.classes: set[Any] = set()
        self.visit(list(range(len(table))))

    def visit(self, rows: Any) -> None:
        columns = [one for one in range(len(self.quasi)) if len(set(self.cells(rows, one))) > 1]
        for column in sorted(columns, key=lambda one: -self.loss(rows, one)):
            parts = self.cut(rows, column)
            labels = np.full(len(self.table), -1)
            labels[parts[0]], labels[parts[1]] = 0, 1
            if check(self.models, groups_of(self.table, labels)).all():
                self.visit(parts[0])
                self.visit(parts[1])
                return
        self.classes.add(frozenset(rows))

    def cells(self, rows: Any, column: Any) -> Any:
        one, values = self.quasi[column], [float(self.table.quasi[row, column]) for row in rows]
        if isinstance(one, Number) and one.step is not None:
            return [math.floor((value - one.low) / one.step) for value in values]
        return values

    def loss(self, rows: Any, column: Any) -> Any:
        one, values = self.quasi[column], self.cells(rows, column)
        if isinstance(one, Category):
            node = one.hierarchy.lca(min(values), max(values))
            return one.hierarchy.leaf_count[node] / one.size
        width = (max(values) - min(values)) * (one.step or 1)
        return min(width, one.high - one.low) / (one.high - one.low)

    def together(self, rows: Any, column: Any) -> Any:
        """First and last value that a cut must not separate from the median."""
        one, values = self.quasi[column], sorted(self.cells(rows, column))
        median = values[len(values) // 2]
        if isinstance(one, Number):
            return median, median
        tree = one.hierarchy
        top = int(tree.lca(values[0], values[-1]))
        children = [node for node in range(len(tree.labels)) if tree.parent[node] == top]
        child = next(node for node in children if tree.first[node] <= median <= tree.last[node])
        return tree.first[child], tree.last[child]

    def cut(self, rows: Any, column: Any) -> Any:
        first, last = self.together(rows, column)
        cells = dict(zip(rows, self.cells(rows, column), strict=True))
        options = [[row for row in rows if cells[row] < first], [row for row in rows if cells[row] <= last]]
        options = [left for left in options if 0 < len(left) < len(rows)]
        left = min(options, key=lambda left: abs(2 * len(left) - len(rows)))
        return left, [row for row in rows if row not in left]


def anonymized(table: Any, **given: Any) -> Any:
    """The publication and its models, or None where the guarantee is refused."""
    algorithm = Mondrian(**given)
    try:
        return algorithm.anonymize(table), algorithm.models(table.schema)
    except InfeasibleError:
        return None


@settings(max_examples=120)
@given(tables(), guarantees)
def test_strict_cuts_are_those_made_by_hand(table: Any, guarantee: Any) -> None:
    done = anonymized(table, cuts="strict", **guarantee)
    if done is None:
        assert not check(
            Mondrian(**guarantee).parameters._models(table.schema), groups_of(table, [0] * len(table))
        ).all()
    else:
        publication, models = done
        assert partition_of(publication) == ByHand(table, models).classes


@settings(max_examples=120)
@given(tables(), guarantees, st.sampled_from(["strict", "relaxed"]))
def test_classes_cover_their_rows_and_keep_the_guarantee(table: Any, guarantee: Any, cuts: Any) -> None:
    done = anonymized(table, cuts=cuts, **guarantee)
    if done is not None:
        publication, models = done
        assert publication.suppressed == 0
        assert publication.sizes.min() > 0
        assert publication.boxes.cover(table.quasi, publication.classes).all()
        assert check(models, groups_of(table, publication.classes)).all()


@given(tables(most_rows=40), st.integers(1, 5))
def test_strict_keeps_equal_rows_together(table: Any, k: int) -> None:
    done = anonymized(table, cuts="strict", k=k)
    if done is not None:
        seen: dict[Any, Any] = {}
        for row, one in zip(map(tuple, table.quasi), done[0].classes, strict=True):
            assert seen.setdefault(row, one) == one


def test_relaxed_divides_equal_values_where_a_side_would_be_too_small() -> None:
    table = of_rows((QUASI[0],), [[20]] * 8 + [[50], [60]])
    assert len(Mondrian(k=4, cuts="strict").anonymize(table).boxes) == 1
    publication = Mondrian(k=4, cuts="relaxed").anonymize(table)
    assert sorted(publication.sizes) == [4, 6]
    assert publication.loss < 1


def test_the_widest_range_is_cut_first() -> None:
    quasi = (Number("a", 0, 100), Number("b", 0, 10))
    table = of_rows(quasi, [[0, 0], [30, 8], [0, 8], [30, 0]])
    assert partition_of(Mondrian(k=2).anonymize(table)) == {frozenset({0, 3}), frozenset({1, 2})}
    weighted = Table(Schema(PersonSource.ROW, quasi, weights=(9, 1)), table.persons, table.quasi, table.sensitive)
    assert partition_of(Mondrian(k=2).anonymize(weighted)) == {frozenset({0, 2}), frozenset({1, 3})}


def test_categories_are_cut_between_subtrees() -> None:
    # The median leaf is Madrid; cutting there would leave a part of Europe on both sides.
    leaves = [CITIES.codes[one] for one in ("paris", "lyon", "madrid", "madrid", "tokyo", "kyoto")]
    table = of_rows((Category("city", CITIES),), [[leaf] for leaf in leaves])
    assert partition_of(Mondrian(k=2, cuts="strict").anonymize(table)) == {
        frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5}),
    }  # fmt: skip


def test_no_cut_goes_through_a_step() -> None:
    table = of_rows((Number("pay", 0, 100, step=50),), [[1], [2], [30], [40], [60], [70]])
    assert partition_of(Mondrian(k=1, cuts="strict").anonymize(table)) == {frozenset({0, 1, 2, 3}), frozenset({4, 5})}


def test_k_counts_persons() -> None:
    ages = [[20], [21], [22], [60], [61], [62]]
    table = of_rows((QUASI[0],), ages, persons=[1, 1, 1, 2, 2, 2])
    assert len(Mondrian(k=2).anonymize(table).boxes) == 1
    with pytest.raises(InfeasibleError) as refusal:
        Mondrian(k=3).anonymize(table)
    assert (refusal.value.parameter, refusal.value.nearest) == ("k", 2)


@given(tables(most_rows=50), st.integers(1, 4))
def test_batches_do_not_change_the_result(table: Any, k: int) -> None:
    whole = anonymized(table, cuts="strict", k=k, l=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mondrian, "BATCH", 7)
        small = anonymized(table, cuts="strict", k=k, l=2)
    assert (whole is None) == (small is None)
    if whole and small:
        assert partition_of(whole[0]) == partition_of(small[0])


def test_t_has_an_effect() -> None:
    table = random_table(2_000, 1, sensitive=(ILLNESS,))
    counts = [len(Mondrian(t=t, k=2).anonymize(table).boxes) for t in (0.02, 0.05, 0.2, 0.5)]
    assert counts == sorted(set(counts))


@pytest.mark.parametrize("beta", [0.5, 2, 6])
def test_disclosure_for_beta_implies_likeness(beta: Any) -> None:
    table = random_table(3_000, 2, sensitive=(ILLNESS,))
    delta = disclosure_for(beta, np.bincount(table.sensitive[:, 0]))
    publication = Mondrian(disclosure=delta).anonymize(table)
    assert len(publication.boxes) > 1
    assert check([BetaLikeness(beta)], groups_of(table, publication.classes)).all()


@pytest.mark.parametrize("asked", [{"t": 0.1}, {"beta": 1}, {"l": {"entropy": 2}}, {"disclosure": 0.9}, {"alpha": 0.5}])
def test_a_split_test_that_always_agrees_is_caught(monkeypatch: pytest.MonkeyPatch, asked: Any) -> None:
    table = random_table(300, 3, sensitive=(ILLNESS,))
    Mondrian(k=2, **asked).anonymize(table)
    monkeypatch.setattr(mondrian._Work, "allowed", lambda work, bounds: np.ones(len(bounds), bool))
    with pytest.raises(GuaranteeError, match="fails in"):
        Mondrian(k=2, **asked).anonymize(table)


def test_counting_rows_as_persons_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(300, 4, persons=40)
    monkeypatch.setattr(mondrian, "count_persons", lambda codes, column, begin, end, *_: (end - begin, end - begin))
    with pytest.raises(GuaranteeError, match="k-anonymity"):
        Mondrian(k=5).anonymize(table)


def test_a_share_that_the_whole_table_exceeds_is_infeasible() -> None:
    table = of_rows((QUASI[0],), [[20], [20], [20], [60]], persons=[1, 1, 1, 2])
    with pytest.raises(InfeasibleError, match="max_share") as refused:
        Mondrian(k=1, max_share=0.5).anonymize(table)
    assert refused.value.nearest == 0.75


@dataclass(frozen=True)
class MostRows(Model):
    """No class has more rows than this: a model that does not survive merging."""

    rows: int

    name = "most-rows"
    parameter = "guarantee"
    survives_merging = False
    survives_adding = False
    more_is_safer = False

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        return groups.rows.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        return groups.rows <= self.rows


def test_parts_may_meet_a_model_that_the_whole_table_does_not_meet() -> None:
    table = of_rows((QUASI[0],), [[20], [21], [60], [61]])
    classes, count = mondrian_classes(table, [KAnonymity(2), MostRows(2)])
    assert (classes.tolist(), count) == ([0, 0, 1, 1], 2)


def test_a_model_that_neither_the_table_nor_two_parts_meet_is_infeasible() -> None:
    table = of_rows((QUASI[0],), [[20], [20], [20], [60]])
    with pytest.raises(InfeasibleError, match="neither the whole table nor two parts"):
        mondrian_classes(table, [KAnonymity(2), MostRows(1)])


def test_progress_counts_rows_and_cancels() -> None:
    table = random_table(500, 5)
    seen = []
    Mondrian(k=3).anonymize(table, progress=lambda *given: seen.append(given))
    assert seen[0] == ("cutting", 0, 500)
    assert seen[-1] == ("cutting", 500, 500)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)

    def stop(phase: Any, done: Any, total: Any) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Mondrian(k=3).anonymize(table, progress=stop)


def test_numbers_may_be_sensitive() -> None:
    table = random_table(400, 6, sensitive=(DEBT,))
    publication = Mondrian(beta={"range": {"beta": 3, "width": 2}}).anonymize(table)
    assert len(publication.boxes) > 1


def test_it_is_in_the_catalogue_with_its_documentation() -> None:
    entry = STATIC_ALGORITHMS["mondrian"]
    assert entry.algorithm is Mondrian
    models = {"k", "l", "alpha", "t", "beta", "disclosure", "max_share"}
    categories = {"p", "p_categories", "alpha_weight", "max_category_share"}
    assert models | categories | {"cuts"} == set(entry.parameters.model_fields)
    assert doctest.testmod(mondrian).failed == 0

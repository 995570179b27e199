from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, GuaranteeError, Hierarchy, InfeasibleError, Number, PersonSource, Schema, Table
from static_algos import Datafly, datafly
from static_algos.datafly import cells_of
from tests.worlds import CITIES, random_table, tables


def partition_of(classes: Any) -> Any:
    return {frozenset(np.flatnonzero(classes == one).tolist()) for one in set(classes.tolist())}


def codes_of(table: Any) -> Any:
    """What a column tells apart: values, or the cells of a step."""
    codes = table.quasi.copy()
    for column, one in enumerate(table.schema.quasi):
        if isinstance(one, Number) and one.step is not None:
            last = np.ceil((one.high - one.low) / one.step - 1e-9) - 1
            codes[:, column] = np.minimum(np.floor((codes[:, column] - one.low) / one.step), last)
    return codes


class PrefixTree:
    """Datafly's tree as it was published: nodes with counts, like children merged, and only then the next level."""

    def __init__(self, rows: Any, order: Any, k: int) -> None:
        self.k, self.stars = k, 0
        self.groups: set[Any] = set()
        root: Any = {}
        for number, row in enumerate(rows):
            node = root
            for column in order:
                node = node.setdefault(float(row[column]), {})
            node.setdefault("rows", []).append(number)
        self.enforce(root, len(order))

    def count(self, node: Any) -> int:
        return len(node["rows"]) if "rows" in node else sum(self.count(child) for child in node.values())

    def merged(self, one: Any, other: Any) -> Any:
        if "rows" in other:
            return {"rows": one.get("rows", []) + other["rows"]}
        for value, child in other.items():
            one[value] = self.merged(one.get(value, {}), child)
        return one

    def enforce(self, node: Any, depth: int) -> None:
        if depth == 0:
            self.groups.add(frozenset(node["rows"]))
            return
        counts = {value: self.count(child) for value, child in sorted(node.items())}
        under = [value for value, count in counts.items() if count < self.k]
        together = sum(counts[value] for value in under)
        if 0 < together < self.k:
            under.append(min((value for value in counts if value not in under), key=lambda value: counts[value]))
        star: Any = {}
        for value in under:
            star = self.merged(star, node.pop(value))
        if under:
            self.stars += self.count(star)
            node["*"] = star
        for child in node.values():
            self.enforce(child, depth - 1)


@given(tables(40), st.integers(1, 6), st.randoms())
@settings(max_examples=60, deadline=None)
def test_as_the_prefix_tree_says(table: Any, k: int, random: Any) -> None:
    table = Table(
        Schema(PersonSource.ROW, table.schema.quasi), np.arange(len(table)), table.quasi, table.sensitive[:, :0]
    )
    if len(table) < k:
        return
    order = random.sample(range(table.quasi.shape[1]), table.quasi.shape[1])
    tree = PrefixTree(codes_of(table), order, k)
    cells = cells_of(table, k, "suppress")
    done = cells.along(order)
    assert partition_of(cells.published(done, order).classes) == tree.groups
    assert done.suppressed == tree.stars


def by_rows(codes: Any, persons: Any, order: Any, k: int) -> Any:
    """The same with blocks of row numbers, for persons with several rows."""

    def people(rows: Any) -> int:
        return len({int(persons[row]) for row in rows})

    blocks = [list(range(len(codes)))]
    for column in order:
        parts = []
        for block in blocks:
            split: dict[float, list[int]] = {}
            for row in sorted(block, key=lambda row: codes[row, column]):
                split.setdefault(codes[row, column], []).append(row)
            pool = [row for part in split.values() if people(part) < k for row in part]
            large = [part for part in split.values() if people(part) >= k]
            if pool and people(pool) < k:
                smallest = min(large, key=people)
                large.remove(smallest)
                pool += smallest
            parts += [part for part in [*large, pool] if part]
        blocks = parts
    return {frozenset(block) for block in blocks}


@given(tables(40), st.integers(1, 5), st.randoms())
@settings(max_examples=60, deadline=None)
def test_persons_are_counted_not_rows(table: Any, k: int, random: Any) -> None:
    if len(np.unique(table.persons)) < k:
        return
    order = random.sample(range(table.quasi.shape[1]), table.quasi.shape[1])
    cells = cells_of(table, k, "suppress")
    found = partition_of(cells.published(cells.along(order), order).classes)
    assert found == by_rows(codes_of(table), table.persons, order, k)


@given(tables(60), st.integers(1, 6), st.sampled_from(["suppress", "generalize"]))
@settings(max_examples=60, deadline=None)
def test_the_search_knows_the_loss_that_is_published(table: Any, k: int, recode: Any) -> None:
    if len(np.unique(table.persons)) < k:
        return
    cells = cells_of(table, k, recode)
    order = cells.by_distinct_values()
    done = cells.along(order)
    publication = cells.published(done, order)
    assert publication.loss * len(table) == pytest.approx(cells.loss(done), abs=1e-9)
    assert min(Counter(publication.classes.tolist()).values()) >= k
    assert publication.boxes.cover(table.quasi, publication.classes).all()


def of_cities(leaves: Any) -> Any:
    column = np.array([[CITIES.codes[leaf]] for leaf in leaves], np.float64)
    schema = Schema(PersonSource.ROW, (Category("city", CITIES),))
    return Table(schema, np.arange(len(leaves)), column, np.empty((len(leaves), 0), np.int32))


def shown(publication: Any) -> Any:
    boxes = publication.boxes.widened()
    nodes = CITIES.lca(boxes.lo[:, 0], boxes.hi[:, 0])
    return [CITIES.labels[nodes[one]] for one in publication.classes]


def test_a_value_climbs_only_as_far_as_it_must() -> None:
    table = of_cities(["paris", "lyon", "tokyo", "kyoto", "madrid", "madrid"])
    assert shown(Datafly(k=2, recode="generalize").anonymize(table)) == ["france"] * 2 + ["asia"] * 2 + ["madrid"] * 2
    assert shown(Datafly(k=2).anonymize(table)) == ["world"] * 4 + ["madrid"] * 2


def test_a_small_pool_takes_in_a_small_part_rather_than_climb() -> None:
    # Lyon is alone. In France it takes in two of Paris; climbing to find company would cost more.
    few = of_cities(["lyon", "paris", "paris", "tokyo", "tokyo", "tokyo", "tokyo"])
    assert shown(Datafly(k=2, recode="generalize").anonymize(few)) == ["france"] * 3 + ["tokyo"] * 4
    # Beside many of Paris it climbs, and shares Europe with one of Madrid.
    many = of_cities(["lyon", "madrid", *["paris"] * 40])
    assert shown(Datafly(k=2, recode="generalize").anonymize(many)) == ["europe"] * 2 + ["paris"] * 40


def test_flat_hierarchies_leave_nothing_but_suppression() -> None:
    quasi = tuple(Category(name, Hierarchy.flat("abcdefgh")) for name in ("one", "other", "third"))
    table = random_table(200, 5, quasi, ())
    for k in (2, 5, 20):
        suppressed, climbed = (Datafly(k=k, recode=recode).anonymize(table) for recode in ("suppress", "generalize"))
        assert climbed.loss <= suppressed.loss
        assert len(climbed.boxes) >= 1


def test_an_order_names_every_column_once() -> None:
    table = random_table(30, 1, sensitive=())
    for wrong in (["age"], ["age", "age", "city", "pay", "sex", "score", "narrow"], ["nothing"]):
        with pytest.raises(InfeasibleError) as refusal:
            Datafly(k=2, order=wrong).anonymize(table)
        assert refusal.value.parameter == "order"


def test_a_partition_that_breaks_the_guarantee_does_not_leave(monkeypatch: Any) -> None:
    def single_rows(rows: Any, *_given: Any) -> Any:
        count = len(rows)
        return rows, np.arange(count + 1), np.zeros(count, np.int64), np.zeros(count, np.int8), count, 0, 0.0

    monkeypatch.setattr(datafly, "refine", single_rows)
    with pytest.raises(GuaranteeError):
        Datafly(k=2).anonymize(random_table(30, 1, random_table(1, 1).schema.quasi[:1], ()))

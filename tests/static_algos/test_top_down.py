"""Top-down recoding: every step by an oracle that goes node by node, and what single rows and halves do."""

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Cancelled,
    Category,
    GuaranteeError,
    Hierarchy,
    InfeasibleError,
    Number,
    PersonSource,
    Schema,
    Table,
)
from privacy import Groups, check
from static_algos import Mondrian, TopDown, top_down
from static_algos.recoding import recodings
from tests.worlds import ILLNESS, QUASI, guarantees, random_table, tables


def holds(table: Any, models: Any, rows: Any) -> bool:
    labels = np.full(len(table), -1)
    labels[list(rows)] = 0
    groups = Groups.of(table.schema, table.persons, table.sensitive, labels, 1)
    return bool(rows) and bool(check(models, groups)[0])


@settings(max_examples=50, deadline=None)
@given(tables(most_rows=50), guarantees)
def test_classes_cover_their_rows_and_keep_the_guarantee(table: Any, guarantee: Any) -> None:
    algorithm = TopDown(**guarantee)
    try:
        publication = algorithm.anonymize(table)
    except InfeasibleError:
        # Only the whole table may be the reason: with it as one class there is always a result.
        models = algorithm.parameters._models(table.schema)
        assert not holds(table, tuple(models), range(len(table))) or not algorithm.models(table.schema)
        return
    assert publication.suppressed == 0
    assert publication.boxes.cover(table.quasi, publication.classes).all()
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    assert check(algorithm.models(table.schema), groups).all()


class ByHand:
    """Once more for k alone and single persons, without repairs: one node at a time, rows in lists."""

    def __init__(self, table: Any, k: int) -> None:
        self.k, self.recoded = k, recodings(table, 3, {}, quantiles=True)
        self.classes: set[Any] = set()
        self.visit(list(range(len(table))), [len(one.levels) - 1 for one in self.recoded], frozenset())

    def parts(self, rows: Any, a: int, level: int) -> Any:
        found: dict[int, list[int]] = {}
        one = self.recoded[a]
        for row in rows:
            found.setdefault(int(one.levels[level].group[one.codes[row]]), []).append(row)
        return list(found.values())

    def visit(self, rows: Any, above: Any, frozen: Any) -> None:
        levels = [self.settled(rows, a, level) for a, level in enumerate(above)]
        best = self.best(rows, levels, frozen)
        if best is None:
            self.classes.add(frozenset(rows))
            return
        _, a, good, rest = best
        self.repair(good, rest)
        for part in good:
            self.visit(part, [level - (b == a) for b, level in enumerate(levels)], frozen)
        if rest:
            self.visit(rest, levels, frozen | {a})

    def settled(self, rows: Any, a: int, level: int) -> int:
        while level and len(self.parts(rows, a, level - 1)) == 1:
            level -= 1
        return level

    def best(self, rows: Any, levels: Any, frozen: Any) -> Any:
        best: Any = None
        for a in range(len(levels)):
            if not levels[a] or a in frozen or len(rows) < 2 * self.k:
                continue
            parts = self.parts(rows, a, levels[a] - 1)
            good = [part for part in parts if len(part) >= self.k]
            rest = [row for part in parts if len(part) < self.k for row in part]
            lack = max(self.k - len(rest), 0) if rest else 0
            key = (sum(map(len, good)) - lack, -len(good), -a)
            if good and key[0] > 0 and (best is None or key > best[0]):
                best = (key, a, good, rest)
        return best

    def repair(self, good: Any, rest: Any) -> None:
        while rest and len(rest) < self.k and good:
            giving = max(good, key=lambda part: (len(part), max(part)))
            spare = [part for part in good if len(part) > self.k]
            if spare:
                giving = max(spare, key=lambda part: (len(part), max(part)))
                give = min(self.k - len(rest), len(giving) - self.k)
                for row in sorted(giving)[-give:]:
                    giving.remove(row)
                    rest.append(row)
            else:
                giving = min(good, key=len)
                good.remove(giving)
                rest += giving


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(5, 60), st.integers(1, 5), st.integers(1, 3))
def test_classes_are_those_of_one_node_at_a_time(seed: int, rows: int, k: int, width: int) -> None:
    """Sizes and their number; which rows of equal parts give up first is not promised."""
    table = random_table(rows, seed, QUASI[:width], ())
    if rows < k:
        return
    publication = TopDown(k=k, height=3, prefer="rows").anonymize(table)
    by_hand = ByHand(table, k).classes
    own = {frozenset(np.flatnonzero(publication.classes == one).tolist()) for one in range(len(publication.boxes))}
    if publication.details["held_back"] == 0:
        assert own == by_hand
    assert len(own) <= rows // k


def test_single_rows_stay_behind_instead_of_whole_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(600, 5, QUASI[:4], (ILLNESS,))
    helped = TopDown(k=6, l=2).anonymize(table)
    monkeypatch.setattr(top_down, "MOST_TRIES", 0)
    alone = TopDown(k=6, l=2).anonymize(table)
    assert 0 < helped.details["held_back"] < alone.details["held_back"]  # type: ignore[operator]
    assert helped.loss < alone.loss


def test_rows_that_would_not_go_deeper_stay_behind_first() -> None:
    """A lone part lacks a row: it comes from the part that cannot be parted, though another one is larger."""
    tree = Hierarchy.from_mapping({"*": {"A": ["a1", "a2"], "B": ["b1", "b2"], "C": ["c1", "c2"]}})
    leaves = np.repeat([0, 1, 2, 3, 4, 5], [3, 3, 2, 2, 1, 1]).astype(np.float64)[:, None]
    schema = Schema(PersonSource.ROW, (Category("place", tree),))
    table = Table(schema, np.arange(12), leaves, np.empty((12, 0), np.int32))
    for order in (np.arange(12), np.arange(12)[::-1]):
        published = TopDown(k=3, prefer="rows").anonymize(table.take(order))
        assert sorted(published.sizes.tolist()) == [3, 3, 3, 3]


def test_numbers_are_halved_by_their_rows_and_the_report_says_so() -> None:
    rows = np.concatenate([np.arange(20), np.array([1000.0])])[:, None]
    schema = Schema(PersonSource.ROW, (Number("pay", 0, 10_000),))
    table = Table(schema, np.arange(21), rows, np.empty((21, 0), np.int32))
    publication = TopDown(k=5).anonymize(table)
    assert sorted(publication.sizes.tolist()) == [5, 5, 5, 6]
    assert publication.details["levels_by_quantiles"] == ["pay"]
    given = TopDown(k=5, widths={"pay": [10, 100]}).anonymize(table)
    assert given.details["levels_by_quantiles"] == []
    assert given.boxes.hi.max() == 1000


def test_halves_are_nested_and_as_even_as_can_be() -> None:
    table = random_table(200, 1, (Number("score", -1, 1), Number("step", 0, 50, step=8)), ())
    for one in recodings(table, 5, {}, quantiles=True):
        assert len(one.levels[-1].lo) == 1
        for finer, coarser in zip(one.levels, one.levels[1:], strict=False):
            above = np.full(len(finer.lo), -1)
            above[finer.group] = coarser.group
            assert (above[finer.group] == coarser.group).all()
        halves = np.bincount(one.levels[-2].group[one.codes])
        heaviest = np.bincount(one.codes).max()
        assert abs(int(halves[0]) - int(halves[1])) <= heaviest


def test_a_search_that_believes_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(300, 5, sensitive=(ILLNESS,))
    monkeypatch.setattr(top_down, "check", lambda models, groups: np.ones(len(groups), bool))
    with pytest.raises(GuaranteeError, match="fails in"):
        TopDown(k=5).anonymize(table)


def test_it_competes_with_mondrian() -> None:
    table = random_table(1_000, 7, QUASI[:4], (ILLNESS,))
    asked: dict[str, Any] = {"k": 8, "l": 2}
    ours, theirs = (TopDown(**asked, prefer=prefer).anonymize(table).loss for prefer in ("loss", "rows"))
    assert ours < 1.2 * Mondrian(**asked).anonymize(table).loss
    assert ours < theirs


def test_progress_cancels() -> None:
    def stop(now: Any, done: Any, total: Any) -> None:
        assert 0 <= done <= total
        if done:
            raise Cancelled

    with pytest.raises(Cancelled):
        TopDown(k=3).anonymize(random_table(200, 8), progress=stop)


def test_documentation() -> None:
    assert doctest.testmod(top_down).failed == 0

"""The three searches over one lattice: what they find is what looking at every combination by itself finds."""

import contextlib
import doctest
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import GuaranteeError, InfeasibleError, Number
from privacy import Groups, check
from static_algos import (
    Incognito,
    LatticeSearch,
    Samarati,
    along,
    full_domain,
    lattice,
    minimal_generalizations,
    samarati,
    strategies,
    strategy_count,
)
from static_algos.recoding import recodings
from tests.static_algos.test_incognito import by_hand, minimal_of
from tests.worlds import ILLNESS, QUASI, guarantees, random_table, tables


def levels_of(minimal: Any) -> Any:
    return {tuple(one["levels"].values()) for one in minimal}


@settings(max_examples=60)
@given(tables(most_rows=40), guarantees, st.integers(0, 12), st.integers(1, 2))
def test_three_searches_find_the_same(table: Any, guarantee: Any, spare: int, height: int) -> None:
    asked = {**guarantee, "max_suppressed": spare, "height": height}
    try:
        models = LatticeSearch(**asked).models(table.schema)
    except InfeasibleError:
        return
    found = by_hand(table, models, height, min(spare, len(table)))
    lowest = min(map(sum, found), default=None)
    if not found:
        for search in (LatticeSearch, Samarati, Incognito):
            with pytest.raises(InfeasibleError):
                search(**asked).anonymize(table)
        return
    minimal = minimal_of(found)
    least = minimal_generalizations(table, models, max_suppressed=spare, height=height)
    assert {one.levels for one in least} == minimal
    assert [one.loss for one in least] == pytest.approx(sorted(found[node] for node in minimal))
    published = LatticeSearch(**asked).anonymize(table)
    assert levels_of(published.details["minimal"]) == minimal
    assert published.details["loss"] == pytest.approx(min(found[node] for node in minimal))
    assert levels_of(Incognito(**asked, choose="minimal").anonymize(table).details["minimal"]) == minimal
    for one in (LatticeSearch(**asked, choose="height"), Samarati(**asked)):
        chosen = one.anonymize(table)
        levels = tuple(chosen.details["levels"].values())  # type: ignore[attr-defined]
        assert sum(levels) == lowest
        assert chosen.details["loss"] == pytest.approx(min(found[node] for node in found if sum(node) == lowest))
        assert chosen.suppressed <= spare


def test_halving_looks_at_less_than_all_heights() -> None:
    table = random_table(300, 4)
    nodes = math.prod(len(one.levels) for one in recodings(table, 4, {}))
    assert Samarati(k=5).anonymize(table).details["looked_at"] < nodes / 2  # type: ignore[operator]
    assert LatticeSearch(k=5).anonymize(table).details["looked_at"] < nodes / 4  # type: ignore[operator]


@pytest.mark.parametrize("search", [LatticeSearch, Samarati])
@pytest.mark.parametrize("asked", [{"k": 5}, {"t": 0.1}])
def test_a_search_that_believes_everything_is_caught(monkeypatch: pytest.MonkeyPatch, search: Any, asked: Any) -> None:
    table = random_table(300, 5, sensitive=(ILLNESS,))
    monkeypatch.setattr(full_domain, "check", lambda models, groups: np.ones(len(groups), bool))
    with pytest.raises(GuaranteeError, match="fails in"):
        search(**asked).anonymize(table)


def test_what_is_not_inherited_is_not_pruned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With suppression a model that more rows can break is lost further up; climbing by it misses solutions."""
    missed = 0
    for seed in range(40):
        table = random_table(24, seed, QUASI[:2], (ILLNESS,))
        asked: dict[str, Any] = {"l": {"frequency": 2}, "max_suppressed": 3, "height": 2}
        models = LatticeSearch(**asked).models(table.schema)
        minimal = minimal_of(by_hand(table, models, 2, 3))
        assert {one.levels for one in minimal_generalizations(table, models, max_suppressed=3, height=2)} == minimal
        with monkeypatch.context() as context:
            for model in models:
                context.setattr(type(model), "survives_adding", True)
            believed = minimal_generalizations(table, models, max_suppressed=3, height=2)
            missed += {one.levels for one in believed} != minimal
    assert missed, "the check above cannot fail"


def test_both_ways_to_say_how_many_are_refused_together() -> None:
    with pytest.raises(InfeasibleError) as error:
        LatticeSearch(k=2, suppression=0.1, max_suppressed=3)
    assert error.value.parameter == "max_suppressed"


@pytest.mark.parametrize("width", [1e-300, 1e300, 5e-324])
def test_absurd_widths_are_refused_or_work(width: float) -> None:
    table = random_table(30, 1, (Number("score", -1, 1), Number("age", 0, 99, integer=True)), ())
    for name in ("score", "age"):
        with contextlib.suppress(InfeasibleError):
            assert LatticeSearch(k=2, widths={name: [width]}).anonymize(table).suppressed == 0


def test_absurd_heights_are_refused() -> None:
    for search in (LatticeSearch, Samarati, Incognito):
        with pytest.raises(InfeasibleError) as error:
            search(k=2, height=10**12)
        assert (error.value.parameter, error.value.nearest) == ("height", 32)


@pytest.mark.parametrize("heights", [(1, 2), (2, 2), (1, 1, 1), (0, 3), (2, 1, 2)])
def test_strategies_are_counted(heights: Any) -> None:
    every = list(strategies(heights))
    assert len(every) == len(set(every)) == strategy_count(heights)
    for way in every:
        assert way[0] == (0,) * len(heights)
        assert way[-1] == tuple(heights)
        assert [sum(node) for node in way] == list(range(sum(heights) + 1))


def test_what_holds_along_a_strategy_is_what_holds_in_the_lattice() -> None:
    table = random_table(60, 3, QUASI[:2], (ILLNESS,))
    models = LatticeSearch(k=3, l=2).models(table.schema)
    heights = [len(one.levels) - 1 for one in recodings(table, 2, {})]
    found = by_hand(table, models, 2, 0)
    for way in itertools.islice(strategies(heights), 12):
        walk = along(table, way, models, height=2)
        assert walk.height == next(number for number, node in enumerate(way) if node in found)
        assert all(sum(sizes) == 60 for sizes in walk.sizes)


def test_a_strategy_has_no_gaps() -> None:
    table = random_table(20, 3, QUASI[:2], (ILLNESS,))
    with pytest.raises(InfeasibleError):
        along(table, [(0, 0), (1, 1)], LatticeSearch(k=2).models(table.schema), height=1)


def test_groups_without_rows_have_no_persons() -> None:
    """A label that no row has is a class of nobody, for models as well."""
    table = random_table(9, 1, persons=3)
    groups = Groups.of(table.schema, table.persons, table.sensitive, np.zeros(9, np.int32), 2)
    assert check(LatticeSearch(k=1).models(table.schema), groups).tolist() == [True, False]


def test_documentation() -> None:
    for module in (lattice, samarati):
        assert doctest.testmod(module).failed == 0

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Category, InfeasibleError, Number
from static_algos import recoding
from static_algos.recoding import default_widths, recodings
from tests.worlds import CITIES, QUASI, random_table


def only(attribute: Any, values: Any, height: int = 4, **widths: Any) -> Any:
    """The recoding of one column."""
    table = random_table(len(values), 0, (attribute,), ())
    table.quasi[:, 0] = values
    return recodings(table, height, widths)[0]


def intervals(recoding: Any, level: Any) -> Any:
    """What each row is published as."""
    chosen = recoding.levels[level]
    group = chosen.group[recoding.codes]
    return list(zip(chosen.lo[group].tolist(), chosen.hi[group].tolist(), strict=True))


@given(st.sampled_from(QUASI), st.integers(0, 2**32), st.integers(1, 6))
def test_levels_cover_and_nest(attribute: Any, seed: int, height: int) -> None:
    table = random_table(50, seed, (attribute,), ())
    recoding = recodings(table, height, {})[0]
    finer = None
    for level in recoding.levels:
        group = level.group[recoding.codes]
        assert (level.lo[group] <= table.quasi[:, 0]).all()
        assert (table.quasi[:, 0] <= level.hi[group]).all()
        pairs = set(zip(range(50) if finer is None else finer, group, strict=True))
        assert len(pairs) == len({one for one, _ in pairs}), "a level tears a group of the one before apart"
        finer = group
    top = recoding.levels[-1]
    low, high = (0, attribute.size - 1) if isinstance(attribute, Category) else (attribute.low, attribute.high)
    assert (top.lo.tolist(), top.hi.tolist()) == ([low], [high])


def test_a_category_climbs_by_height_so_that_short_branches_wait() -> None:
    recoding = only(Category("city", CITIES), np.arange(CITIES.size))
    named = [
        [CITIES.labels[CITIES.lca(lo, hi)] for lo, hi in intervals(recoding, level)]
        for level in range(len(recoding.levels))
    ]
    assert named == [
        ["paris", "lyon", "madrid", "tokyo", "kyoto", "oz"],
        ["france", "france", "madrid", "asia", "asia", "oz"],
        ["europe", "europe", "europe", "asia", "asia", "oz"],
        ["world"] * 6,
    ]


def test_whole_numbers_have_intervals_that_do_not_touch() -> None:
    recoding = only(Number("age", 17, 90, integer=True), [17, 26, 27, 90], age=[10, 20])
    assert intervals(recoding, 1) == [(17, 26), (17, 26), (27, 36), (87, 90)]
    assert intervals(recoding, 2) == [(17, 36), (17, 36), (17, 36), (77, 90)]
    assert len(recoding.levels) == 4


def test_the_end_of_a_continuous_domain_belongs_to_the_last_interval() -> None:
    recoding = only(Number("score", 0, 1), [0, 0.49, 0.5, 1], score=[0.5])
    assert intervals(recoding, 1) == [(0, 0.5), (0, 0.5), (0.5, 1), (0.5, 1)]


def test_a_step_is_the_finest_level() -> None:
    recoding = only(Number("pay", 0, 100, step=10), [1, 9, 11, 100], pay=[20])
    assert intervals(recoding, 0) == [(0, 10), (0, 10), (10, 20), (90, 100)]
    assert intervals(recoding, 1) == [(0, 20), (0, 20), (0, 20), (80, 100)]


@pytest.mark.parametrize(
    ("attribute", "height", "widths"),
    [
        (Number("a", 0, 16, integer=True), 4, [3, 6, 12]),
        (Number("a", 0, 4, integer=True), 4, [2, 4]),
        (Number("a", 0, 1, integer=True), 4, []),
        (Number("a", 0, 1), 4, [0.125, 0.25, 0.5]),
        (Number("a", 0, 1), 1, []),
        (Number("a", 5, 5), 4, []),
        (Number("a", 0, 100, step=10), 3, [30, 60]),
    ],
)
def test_default_widths_double(attribute: Any, height: int, widths: Any) -> None:
    assert default_widths(attribute, height) == widths


@pytest.mark.parametrize(
    ("widths", "nearest"), [({"age": [10, 25]}, 20), ({"age": [0.5]}, 1), ({"pay": [10]}, None), ({"city": [2]}, None)]
)
def test_widths_that_do_not_fit_are_refused(widths: Any, nearest: Any) -> None:
    table = random_table(5, 0, QUASI[:2], ())
    with pytest.raises(InfeasibleError, match="widths") as refusal:
        recodings(table, 4, widths)
    assert refusal.value.nearest == nearest


def test_documentation() -> None:
    assert doctest.testmod(recoding).failed == 0

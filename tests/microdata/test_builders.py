"""Hierarchies made for people: nested, complete, in order, and as the docs say."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Category,
    HierarchyError,
    Schema,
    date_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
    quantile_hierarchy,
)
from tests.one_key import encode_events


def covers(label: Any, tree: Any) -> Any:
    """The numbers that a label such as [5,9] says it covers."""
    ends = [float(end) for end in label.strip("[]").split(",")]
    return [leaf for leaf in tree.leaves if ends[0] <= float(leaf) <= ends[-1]]


def says_what_it_covers(tree: Any) -> Any:
    return all(
        covers(label, tree) == list(tree.leaves[tree.first[node] : tree.last[node] + 1])
        for node, label in enumerate(tree.labels)
    )


@given(
    st.integers(-50, 50),
    st.integers(0, 60),
    st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True).map(sorted),
)
def test_intervals_of_any_widths_nest(low: int, count: int, widths: Any) -> None:
    tree = interval_hierarchy(low, low + count, widths)
    assert list(tree.leaves) == [str(number) for number in range(low, low + count + 1)]
    assert says_what_it_covers(tree)


def test_multiples_give_even_intervals() -> None:
    rows = interval_hierarchy(0, 99, [5, 10, 50]).rows()
    assert rows[0] == ["0", "[0,4]", "[0,9]", "[0,49]", "[0,99]"]
    assert rows[67] == ["67", "[65,69]", "[60,69]", "[50,99]", "[0,99]"]


def test_awkward_widths_take_whole_finer_intervals() -> None:
    assert interval_hierarchy(17, 90, [5, 12, 30]).rows()[20] == ["37", "[37,41]", "[32,41]", "[17,56]", "[17,90]"]


def test_decimal_steps_fall_on_the_right_side_of_borders() -> None:
    tree = interval_hierarchy(0, 1, [0.3], step=0.1)
    assert tree.leaves == ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1")
    assert [row[1] for row in tree.rows()] == ["[0,0.2]"] * 3 + ["[0.3,0.5]"] * 3 + ["[0.6,0.8]"] * 3 + ["[0.9,1]"] * 2


@given(
    st.lists(st.integers(-9, 9) | st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=3, unique=True).map(lambda levels: sorted(levels, reverse=True)),
)
def test_quantiles_nest_and_hold_all_values(values: Any, levels: Any) -> None:
    tree = quantile_hierarchy(values, levels)
    assert {float(leaf) for leaf in tree.leaves} == {float(value) for value in values}
    assert says_what_it_covers(tree)
    tops = {row[-2] for row in tree.rows() if len(row) > 1} - set(tree.leaves)
    assert len(tops) <= levels[-1] or len(levels) > 1


def test_quantiles_share_the_values_evenly() -> None:
    tree = quantile_hierarchy(range(1, 101), levels=[10, 2])
    assert tree.rows()[99] == ["100", "[91,100]", "[51,100]", "[1,100]"]
    assert all(len(row) == 4 for row in tree.rows())


@given(st.dates(date(1999, 1, 1), date(2030, 1, 1)), st.integers(0, 500))
def test_days_climb_to_their_year(start: Any, length: int) -> None:
    end = start + timedelta(length)
    tree = date_hierarchy(start, end.isoformat())
    assert tree.size == length + 1
    for offset, row in enumerate(tree.rows()):
        day = start + timedelta(offset)
        full = [f"{day}", f"{day:%Y-%m}", f"{day.year}-Q{(day.month - 1) // 3 + 1}", f"{day.year}", "*"]
        assert row == full


def test_coarser_dates() -> None:
    assert date_hierarchy("2023-11-05", "2024-02-01", ["month", "year"]).rows()[2] == ["2024-01", "2024", "*"]


@given(st.lists(st.text("0123AB ", min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=30))
def test_prefixes_keep_what_they_say(values: Any) -> None:
    tree = prefix_hierarchy(values, keep=[3, 1])
    assert set(tree.leaves) == {value.strip() for value in values}
    for node, label in enumerate(tree.labels):
        below = tree.leaves[tree.first[node] : tree.last[node] + 1]
        assert all(leaf.startswith(label.rstrip("*")) for leaf in below)


def test_postcodes() -> None:
    assert prefix_hierarchy(["53711", "53712", "10115"]).rows()[1] == ["53711", "537**", "53***", "5****", "*****"]
    assert prefix_hierarchy(["AB1", "AB12", "C"], keep=[2]).rows() == [
        ["AB1", "AB*", "*"],
        ["AB12", "AB*", "*"],
        ["C", "C*", "*"],
    ]


def test_levels_with_one_node_are_kept() -> None:
    """The number of levels must not depend on the values: `purpose` divides a degree among them."""
    assert prefix_hierarchy(["4350", "4351"], keep=[3, 2, 1]).rows()[0] == ["4350", "435*", "43**", "4***", "****"]
    assert date_hierarchy("2024-05-05", "2024-05-05").rows() == [
        ["2024-05-05", "2024-05", "2024-Q2", "2024", "*"],
    ]


def test_built_leaves_are_what_values_encode_to() -> None:
    quasi = (
        Category("age", interval_hierarchy(0, 10, [5])),
        Category("day", date_hierarchy("2024-01-01", "2024-01-31")),
        Category("zip", prefix_hierarchy(["53711", "53712"])),
    )
    encoded = encode_events(Schema("id", quasi), [b'{"id": 1, "age": 7, "day": "2024-01-31", "zip": 53712}'])
    assert encoded.table.quasi.tolist() == [[7, 30, 1]]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: interval_hierarchy(0, 10, [10, 5]), "widths must be positive and ascending"),
        (lambda: interval_hierarchy(0, 10, []), "widths"),
        (lambda: interval_hierarchy(0, 10, [0]), "widths"),
        (lambda: quantile_hierarchy([]), "at least one value"),
        (lambda: quantile_hierarchy([1, float("nan")]), "finite"),
        (lambda: quantile_hierarchy([1], [2, 4]), "descending"),
        (lambda: date_hierarchy("2024-02-01", "2024-01-01"), "start must not be after end"),
        (lambda: date_hierarchy("01.02.2024", "2024-01-01"), "2024-01-31"),
        (lambda: date_hierarchy("2024-01-01", "2024-01-02", ["week"]), "levels must be of day, month, quarter, year"),
        (lambda: date_hierarchy("2024-01-01", "2024-01-02", ["year", "day"]), "in this order"),
        (lambda: prefix_hierarchy([]), "at least one value"),
        (lambda: prefix_hierarchy(["a", " "]), "none that is empty"),
        (lambda: prefix_hierarchy(["a"], [1, 2]), "descending"),
        (lambda: prefix_hierarchy(["a"], [0]), "positive"),
    ],
)
def test_what_cannot_be_built(build: Any, said: str) -> None:
    with pytest.raises(HierarchyError, match=said):
        build()

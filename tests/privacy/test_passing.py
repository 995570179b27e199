"""Models of rows that leave one by one, against oracles written from the definitions; and edges that only widen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import GuaranteeError, InfeasibleError, Number, Schema, example_table
from privacy import ChanceOfK, Edges, Groups, Passing, ZAnonymity, audit
from privacy.counting import most_combinations

SCHEMA = Schema("person", (Number("x", 0, 9), Number("y", 0, 9)))


@st.composite
def passings(draw: Any) -> Any:
    """Rows with gaps between positions and a clock that is never set back; entries with boxes around their rows."""
    seed = draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    rows, entries = draw(st.integers(1, 60)), draw(st.integers(0, 25))
    quasi = random.integers(0, 5, (rows, 2)).astype(float)
    own = random.integers(0, rows, entries)
    wide = random.integers(0, 3, (2, entries, 2))
    return Passing(
        positions=np.cumsum(random.integers(1, 4, rows)),
        times=np.cumsum(random.random(rows)),
        persons=random.integers(0, 12, rows),
        quasi=quasi,
        own=own,
        lo=quasi[own] - wide[0],
        hi=quasi[own] + wide[1],
    )


def one_row() -> Any:
    one = np.ones(1, np.int64)
    return Groups(one, one, one, ())


def in_box(passing: Any, entry: int, row: int) -> Any:
    return (passing.lo[entry] <= passing.quasi[row]).all() and (passing.quasi[row] <= passing.hi[entry]).all()


@settings(max_examples=60)
@given(passings(), st.integers(1, 8), st.integers(1, 60), st.sampled_from([None, 0.5, 3.0, 50.0]))
def test_z_counts_the_persons_who_passed(passing: Any, z: int, tuples: int, seconds: Any) -> None:
    model = ZAnonymity(z, tuples, seconds)
    found = model.company(passing)
    for entry, own in enumerate(passing.own.tolist()):
        persons = {
            int(passing.persons[row])
            for row in range(own + 1)
            if passing.positions[own] - passing.positions[row] < tuples
            and (seconds is None or passing.times[own] - passing.times[row] < seconds)
            and in_box(passing, entry, row)
        }
        assert found[entry] == min(len(persons), z)
    assert np.array_equal(model.holds(model.judged(passing)), found >= z)


@settings(max_examples=60)
@given(passings(), st.integers(1, 4), st.integers(1, 9), st.integers(8, 80))
def test_a_chance_of_k_counts_persons_side_by_side(passing: Any, k: int, pane: int, tuples: int) -> None:
    values = (2, 3)
    model = ChanceOfK(k, 0.5, 10**6, values, tuples, pane)
    found = model.company(passing)
    for entry, own in enumerate(passing.own.tolist()):
        end = passing.positions[own] // pane * pane
        window = [row for row, position in enumerate(passing.positions) if end - tuples <= position < end]
        last = {int(passing.persons[row]): row for row in window}
        inside = [
            sum(bool(passing.lo[entry, c] <= passing.quasi[row, c] <= passing.hi[entry, c]) for row in last.values())
            for c in range(2)
        ]
        enough = all(one >= max(k, len(last) / share) for one, share in zip(inside, values, strict=True))
        assert found[entry] == (min(inside) if enough else 0)


def test_a_clock_that_is_set_back_makes_no_row_younger() -> None:
    times = np.array([0.0, 100.0, 1.0, 2.0])
    one = np.zeros((4, 2))
    passing = Passing(np.arange(4), times, np.arange(4), one, np.array([3]), one[:1], one[:1])
    assert ZAnonymity(4, 10, 5.0).company(passing).tolist() == [3]


def test_what_k_of_the_people_do_not_allow_is_refused() -> None:
    allowed = int(most_combinations(1000, 5, 0.1))
    assert ChanceOfK(5, 0.1, 1000, (allowed,), 160, 10).asked == 5
    with pytest.raises(InfeasibleError) as error:
        ChanceOfK(5, 0.1, 1000, (allowed + 1,), 160, 10)
    assert error.value.parameter == "universe"


def test_it_is_never_called_k_anonymity() -> None:
    model = ChanceOfK(5, 0.1, 1000, (2, 3), 160, 10)
    assert "k-anonymity" not in f"{model.name} {model.label} {model.basis(one_row())}"
    assert "chance" in model.label


@pytest.mark.parametrize("model", [ZAnonymity(3, 10), ChanceOfK(2, 0.1, 1000, (1, 1, 1, 1), 160, 10)])
def test_without_a_window_nothing_can_be_said(model: Any) -> None:
    with pytest.raises(GuaranteeError, match="window"):
        model.holds(one_row())
    table = example_table(20)
    with pytest.raises(InfeasibleError, match="does not show when its rows came"):
        audit(table, None, [model])  # type: ignore[arg-type]


def sides(*ends: Any) -> Any:
    """Boxes with these sides in x, and all of y."""
    lo, hi = np.array([[low, 0.0] for low, _ in ends]), np.array([[high, 9.0] for _, high in ends])
    return lo, hi


def test_edges_only_widen() -> None:
    edges = Edges(SCHEMA)
    assert edges.widen(*sides((0, 9), (0, 3), (3, 6), (0, 3))).tolist() == [True] * 4
    assert edges.widen(*sides((0, 6))).tolist() == [True]
    # Cut, or narrower again.
    assert edges.widen(*sides((2, 4), (0, 3), (5, 8), (6, 9), (0, 9))).tolist() == [False, False, False, True, True]


def test_a_single_value_is_not_beside_an_interval_that_ends_with_it() -> None:
    edges = Edges(SCHEMA)
    assert edges.widen(*sides((2, 5), (5, 5))).tolist() == [True, False]


def test_rows_on_the_edges_of_boxes_count_on_both_sides_and_cost_no_more_than_a_little() -> None:
    """On the edges of very many columns a row counts once, which is too little and never too much."""
    for columns, found in ((3, 2), (30, 1)):
        quasi = np.full((2, columns), 5.0)
        quasi[1] = 2.0
        box = np.zeros((1, columns)), np.full((1, columns), 5.0)
        above = np.full((1, columns), 5.0), np.full((1, columns), 9.0)
        passing = Passing(
            np.arange(2),
            np.zeros(2),
            np.arange(2),
            quasi,
            np.array([1, 1]),
            np.concatenate([box[0], above[0]]),
            np.concatenate([box[1], above[1]]),
        )
        assert ZAnonymity(2, 10).company(passing).tolist()[0] == found


def alone_at(passing: Any, row: int) -> Any:
    """The same rows; this one is published, with the box from 0 to 9."""
    box = np.zeros((1, 2)), np.full((1, 2), 9.0)
    return Passing(passing.positions, passing.times, passing.persons, passing.quasi, np.array([row]), *box)


def test_a_window_has_as_many_positions_and_seconds_as_it_says() -> None:
    rows = Passing(
        positions=np.array([10, 11, 12, 13]),
        times=np.array([0.0, 1.0, 2.0, 3.0]),
        persons=np.array([1, 9, 9, 9]),
        quasi=np.full((4, 2), 5.0),
        own=np.empty(0, np.int64),
        lo=np.empty((0, 2)),
        hi=np.empty((0, 2)),
    )
    last = alone_at(rows, 3)
    assert [int(ZAnonymity(2, tuples).company(last)[0]) for tuples in (3, 4)] == [1, 2]
    assert [int(ZAnonymity(2, 10, seconds).company(last)[0]) for seconds in (3.0, 3.5)] == [1, 2]
    assert int(ZAnonymity(1, 10).company(last)[0]) == 1, "no more than z are counted"

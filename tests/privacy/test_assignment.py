"""Published rows and the rows of an original that they can have come from."""

import numpy as np
import pytest

from privacy import assign


def world(seed: int) -> tuple[np.ndarray, ...]:
    """An original of 60 rows with few contents, of which 50 are published in random order, each in a box around it."""
    random = np.random.default_rng(seed)
    contents, quasi = random.integers(0, 4, 60), random.integers(0, 8, (60, 2)).astype(float)
    true = random.permutation(60)[:50]
    lo, hi = quasi[true] - random.integers(0, 4, (50, 2)), quasi[true] + random.integers(0, 4, (50, 2))
    return contents, quasi, true, lo, hi


@pytest.mark.parametrize("seed", range(8))
def test_each_row_has_its_own_in_its_box_with_its_contents(seed: int) -> None:
    contents, quasi, true, lo, hi = world(seed)
    found = assign(contents, quasi, contents[true], lo, hi)
    placed = found.rows >= 0
    rows = found.rows[placed]
    assert len(np.unique(rows)) == len(rows)
    assert (contents[rows] == contents[true][placed]).all()
    assert ((lo[placed] <= quasi[rows]) & (quasi[rows] <= hi[placed])).all()
    assert placed.mean() >= 0.96, "one that is taken is given up for another"
    for row in range(50):
        fits = [
            one
            for one in range(60)
            if contents[one] == contents[true[row]] and all(lo[row] <= quasi[one]) and all(quasi[one] <= hi[row])
        ]
        assert found.certain[row] == (len(fits) == 1)
        assert not found.certain[row] or found.rows[row] in {-1, true[row]}


def test_rare_contents_give_the_truth() -> None:
    _, quasi, true, lo, hi = world(1)
    found = assign(np.arange(60), quasi, true, lo, hi)
    assert (found.rows == true).all()
    assert found.certain.all()


def test_a_row_that_was_taken_is_given_up_for_another() -> None:
    """The wide box comes first and takes the earliest row, which is the only one of the narrow box."""
    quasi = np.array([[1.0], [2.0]])
    found = assign(np.zeros(2, int), quasi, np.zeros(2, int), np.array([[0.0], [1.0]]), np.array([[9.0], [1.0]]))
    assert found.rows.tolist() == [1, 0]


def test_what_cannot_have_come_from_it_has_no_row() -> None:
    found = assign(np.zeros(1, int), np.zeros((1, 1)), np.array([0, 1]), np.ones((2, 1)), np.ones((2, 1)))
    assert found.rows.tolist() == [-1, -1]

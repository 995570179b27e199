"""Published rows and the rows of an original that they can have come from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from load_tests.generators import ADULT_MISSING, real_adult
from microdata import published_of, read_table
from privacy import assign
from service.policy import load_policy
from static_algos import Burel, Mondrian, Sabre, TopDown

ADULT = Path(__file__).parents[2] / "examples" / "adult"


def most_placed(contents: Any, quasi: Any, published: Any, lo: Any, hi: Any) -> int:
    """An independent judge: the value of a maximum flow over all edges, each row by itself."""
    rows, count = len(contents), len(published)
    fits = (published[:, None] == contents) & ((lo[:, None] <= quasi) & (quasi <= hi[:, None])).all(axis=2)
    boxes, points = np.nonzero(fits)
    source, sink = rows + count, rows + count + 1
    begin = np.concatenate([np.full(count, source), rows + boxes, np.arange(rows)])
    end = np.concatenate([rows + np.arange(count), points, np.full(rows, sink)])
    graph = csr_array((np.ones(len(begin), np.int32), (begin, end)), shape=(sink + 1, sink + 1))
    return int(maximum_flow(graph, source, sink).flow_value)


def check(contents: Any, quasi: Any, published: Any, classes: Any, lo: Any, hi: Any) -> Any:
    found = assign(contents, quasi, published, classes, lo, hi)
    placed = found.rows >= 0
    rows, lo, hi = found.rows[placed], lo[classes], hi[classes]
    assert len(np.unique(rows)) == len(rows), "each has its own"
    assert (contents[rows] == published[placed]).all()
    assert ((lo[placed] <= quasi[rows]) & (quasi[rows] <= hi[placed])).all()
    assert placed.sum() == most_placed(contents, quasi, published, lo, hi)
    fits = (published[:, None] == contents) & ((lo[:, None] <= quasi) & (quasi <= hi[:, None])).all(axis=2)
    assert (found.certain == (fits.sum(axis=1) == 1)).all()
    return found


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 60),
    classes=st.integers(1, 12),
    kinds=st.integers(1, 4),
    values=st.integers(1, 8),
    width=st.integers(0, 4),
    changed=st.sampled_from((0, 0, 1, 5)),
)
def test_as_many_rows_are_placed_as_an_independent_flow_places(
    seed: Any, rows: Any, classes: Any, kinds: Any, values: Any, width: Any, changed: Any
) -> None:
    random = np.random.default_rng(seed)
    contents, quasi = random.integers(0, kinds, rows), random.integers(0, values, (rows, 2)).astype(float)
    own = random.integers(0, classes, rows)
    lo, hi = np.full((classes, 2), 9.0), np.full((classes, 2), -9.0)
    np.minimum.at(lo, own, quasi)
    np.maximum.at(hi, own, quasi)
    lo, hi = lo - random.integers(0, width + 1, lo.shape), hi + random.integers(0, width + 1, hi.shape)
    true = random.permutation(rows)[: random.integers(0, rows + 1)]
    published = contents[true]
    published[:changed] = random.integers(0, kinds + 1, len(published[:changed]))
    found = check(contents, quasi, published, own[true], lo, hi)
    assert changed or (found.rows >= 0).all(), "a genuine release is explained"


def test_rare_contents_give_the_truth() -> None:
    random = np.random.default_rng(1)
    quasi, true = random.integers(0, 8, (60, 2)).astype(float), random.permutation(60)[:50]
    found = check(np.arange(60), quasi, true, np.arange(50), quasi[true] - 1, quasi[true] + 1)
    assert (found.rows == true).all()
    assert found.certain.all()


def test_a_chain_of_boxes_is_placed_from_its_end() -> None:
    """Each box fits two rows, of which the next one needs the second; only the last row is free."""
    quasi = np.arange(300.0)[:, None]
    lo, hi = quasi[:-1].copy(), quasi[:-1] + 1
    lo, hi = np.concatenate([lo, [[0.0]]]), np.concatenate([hi, [[0.0]]])
    nothing = np.zeros(300, int)
    found = check(nothing, quasi, nothing, np.arange(300), lo, hi)
    assert found.rows.tolist() == [*range(1, 300), 0]


def test_what_cannot_have_come_from_it_has_no_row() -> None:
    found = check(
        np.zeros(1, int), np.zeros((1, 1)), np.array([0, 1]), np.zeros(2, int), np.ones((1, 1)), np.ones((1, 1))
    )
    assert found.rows.tolist() == [-1, -1]
    nobody = assign(
        np.zeros(0, int), np.zeros((0, 1)), np.zeros(2, int), np.zeros(2, int), np.ones((1, 1)), np.ones((1, 1))
    )
    assert nobody.rows.tolist() == [-1, -1]


RELEASES = {
    "mondrian": Mondrian(k=10),
    "top_down": TopDown(k=10),
    "sabre": Sabre(t=0.3, k=10),
    "burel": Burel(beta=2.0),
}


def judged(table: Any, algorithm: Any) -> None:
    """Publish a table, place all of its rows, and once two sensitive values have changed places, not all of them."""
    publication = algorithm.anonymize(table, seed=1)
    shown = published_of(publication)
    random, own = np.random.default_rng(2), np.flatnonzero(publication.classes >= 0)
    own = random.permutation(own)
    contents, classes = table.sensitive[:, 0].astype(np.int64), publication.classes[own]
    given = table.quasi, contents[own], classes, shown.boxes.lo, shown.boxes.hi
    assert (assign(contents, *given).rows >= 0).all()


@pytest.mark.parametrize("name", RELEASES)
def test_every_row_of_a_release_is_placed(name: str) -> None:
    table = read_table(ADULT / "people.csv", load_policy(ADULT / "policy.yaml").schema).table
    judged(table, RELEASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_every_row_of_a_release_of_adult_is_placed(name: str) -> None:
    quasi = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
    data = real_adult(quasi, ("occupation",))
    if data is None:
        assert "not there" in ADULT_MISSING
        return
    judged(data.table(30_162), RELEASES[name])

"""The benchmark of linked rows, at a size that is quick."""

from pathlib import Path

import numpy as np

from load_tests import stream_linking
from load_tests.stream_linking import COLUMNS, attacked, compare, draw, lines_of, returning, write_between
from load_tests.stream_quality import Outcome
from microdata import Number, PersonSource, Schema, Table
from stream_algos import Release

BEGIN, END = "<!-- linking -->", "<!-- /linking -->"


def test_candidates_by_hand() -> None:
    """The victim leaves with 0 … 20, which holds three persons, and with 10 … 30, which leaves two of them."""
    schema = Schema("person", (Number("age", 0, 100),))
    persons, ages = np.array([7, 8, 9, 7]), np.array([[10.0], [15], [5], [10]])
    empty = Release.empty(1)
    left = {"ids": np.arange(2, dtype=np.uint64), "lo": np.array([[0.0], [10]]), "hi": np.array([[20.0], [30]])}
    left |= {"starts": np.array([0, 1, 2]), "members": np.array([0, 3]), "reused": np.zeros(2, bool)}
    left |= {"windows": np.full((2, 2), -1), "suppressed": np.array([1, 2]), "decided": np.array([3, 3])}
    left |= {name: np.empty(0) for name in ("given_up", "company", "parents")}
    release = Release(**{**vars(empty), **left})
    found = attacked(Outcome(Table(schema, persons, ages, np.empty((4, 0), np.int32)), release, 0.0, {}))
    assert found == {"one box": 3, "all boxes": 2, "least": 2, "below k": 1, "identified": 0}


def test_everybody_comes_as_often() -> None:
    schema = Schema(PersonSource.ROW, (Number("age", 0, 100),))
    table = Table(schema, np.arange(3), np.array([[1.0], [2], [3]]), np.empty((3, 0), np.int32))
    again = returning(table, 4)
    assert np.bincount(again.persons).tolist() == [4, 4, 4]
    assert np.array_equal(again.quasi[:, 0], again.persons + 1)


def test_only_cohorts_withstand(tmp_path: Path) -> None:
    rows = compare([(300, 6)], [8], ["cohorts", "CASTLE"])
    cohorts, castle = rows
    assert tuple(cohorts) == COLUMNS
    assert cohorts["least"] >= stream_linking.K
    assert cohorts["below k"] == 0
    assert castle["below k"] > 0.1
    draw(rows, tmp_path)
    assert "fewer than k" in (tmp_path / "linking.svg").read_text()
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        write_between("linking", lines_of(rows), page)
    begin, *table, end = page.read_text().splitlines()
    assert (begin, end, table[0], table[-1], len(table)) == ("before", "after", BEGIN, END, 6)
    assert "| 300 × 6 | 8 | CASTLE |" in page.read_text()

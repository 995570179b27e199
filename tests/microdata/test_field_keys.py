"""Fields as keys: equal exactly where the values are, whatever the format, and nothing of a value is left in them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import DataError, field_keys, read_fields
from microdata.field_keys import MOST_FIELDS, FieldGatherer
from microdata.sketch import ERROR, KEPT

VALUES = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["a", "b", "ab", "ba", ""]))


def same(keys: Any) -> Any:
    """Which rows are alike, as the number of the first one that is."""
    return np.unique(keys, return_index=True)[1][np.unique(keys, return_inverse=True)[1].ravel()].tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=30), st.integers(1, 5))
def test_keys_are_equal_exactly_where_values_are(values: Any, chunk: int) -> None:
    gatherer = FieldGatherer()
    for start in range(0, len(values), chunk):
        gatherer.add(pa.table({"field": pa.array(values[start : start + chunk], pa.string())}))
    made = gatherer.fields()
    # pyarrow trims what Unicode calls white space, as Python does but for four separators of old files.
    shown = ["" if value is None else value.strip("\x1c\x1d\x1e\x1f") and value.strip() for value in values]
    assert same(made.keys[0]) == [shown.index(value) for value in shown]
    assert made.missing == (shown.count(""),)


def test_formats_and_types_read_alike(tmp_path: Path) -> None:
    rows = [{"age": 5, "when": "2024-01-31", "deep": {"x": 1}}, {"age": 5, "deep": {"x": 2}}, {"age": 7, "deep": None}]
    lines = tmp_path / "some.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows) + "not json\n")
    table = pa.table({"age": [5.0, 5.0, float("nan")], "when": ["x", None, ""], "list": [[1], [2], []]})
    pq.write_table(table, tmp_path / "some.parquet")
    (tmp_path / "some.csv").write_text(",age,when\n0, 5,x\n1,5,\n2,,\n")
    made = read_fields(lines)
    assert (made.names, made.missing, made.misshapen) == (("age", "when", "deep.x"), (0, 2, 1), 1)
    assert [same(keys) for keys in made.keys] == [[0, 0, 2], [0, 1, 1], [0, 1, 2]]
    made = read_fields(tmp_path / "some.parquet")
    assert (made.names, made.missing, made.not_read) == (("age", "when"), (1, 2), ("list",))
    assert [same(keys) for keys in made.keys] == [[0, 0, 2], [0, 1, 1]]
    made = read_fields(tmp_path / "some.csv")
    assert (made.names, made.missing) == (("age", "when"), (1, 2))


def test_whole_numbers_of_several_types_are_the_same_value() -> None:
    gatherer = FieldGatherer()
    for column in ([5, 6], ["5", "x"], [5.0, 5.5]):
        gatherer.add(pa.table({"mixed": column}))
    assert same(gatherer.fields().keys[0]) == [0, 1, 0, 3, 0, 5]


def test_points_in_time_are_more_than_their_days() -> None:
    gatherer = FieldGatherer()
    gatherer.add(pa.table({"at": pa.array([0, 1, 0], pa.timestamp("s"))}))
    assert same(gatherer.fields().keys[0]) == [0, 1, 0]


def test_a_run_has_its_own_secrets(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("one,two\na,a\nb,b\n")
    first, second = read_fields(path), read_fields(path)
    every = np.concatenate([*first.keys, *second.keys])
    assert len(np.unique(every)) == len(every), "neither runs nor fields can be compared by their keys"


def test_what_is_kept_is_bounded_by_rows_and_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.csv"
    path.write_text("one,two\n" + "a,b\n" * 10)
    monkeypatch.setattr(field_keys, "MOST_CELLS", 20)
    assert (len(read_fields(path)), read_fields(path).whole) == (10, True)
    monkeypatch.setattr(field_keys, "MOST_CELLS", 19)
    assert (len(read_fields(path)), read_fields(path).whole) == (9, False)


def test_reading_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("one\n" + "a\n" * 10)
    made = read_fields(path, rows=4)
    assert (len(made), made.whole) == (4, False)
    assert read_fields(path, rows=10).whole
    wide = {f"f{number}": [1] for number in range(MOST_FIELDS + 1)}
    with pytest.raises(DataError, match=f"more than {MOST_FIELDS} fields"):
        FieldGatherer().add(pa.table(wide))
    path.write_text("17,3\n1,2\n")
    with pytest.raises(DataError, match="header"):
        read_fields(path)


def test_a_chunk_without_rows_adds_none() -> None:
    gathered = FieldGatherer()
    gathered.add(pa.table({"age": pa.array([], pa.int64())}))
    gathered.add(pa.table({"age": [None, 3, 3, None]}).slice(1))
    gathered.add(pa.table({"age": ["", " 3 ", None]}))
    found = gathered.fields()
    assert found.missing == (3,)
    keys = found.keys[0].tolist()
    assert keys[0] == keys[1] == keys[4]
    assert keys[2] == keys[3] == keys[5] != keys[0]


def test_rows_that_are_not_kept_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.csv"
    path.write_text("one,two\n" + "".join(f"{row % 7},{row if row % 5 else ''}\n" for row in range(100)))
    assert read_fields(path).counted is None, "they were all kept"
    monkeypatch.setattr(field_keys, "MOST_ROWS", 30)
    made = read_fields(path)
    assert (len(made), made.whole, made.counted and made.counted.rows) == (30, False, 100)
    # A row without a value has one more, as where all rows are looked at.
    assert made.counted == field_keys.Counted(100, (7, 81), (0.0, 0.0), (0, 20))
    assert read_fields(path, rows=40).counted is None, "who asks for so many rows does not wait for the rest"


def test_beyond_what_a_sketch_keeps_the_error_is_told() -> None:
    gathered = FieldGatherer()
    rows = KEPT + 5
    gathered.add(pa.table({"few": ["a"] * rows, "many": range(rows)}), keep=False)
    gathered.add(pa.table({"few": ["b"], "many": [0]}))
    counted = gathered.fields().counted
    assert counted is not None
    assert (counted.rows, counted.distinct[0], counted.errors) == (rows + 1, 2, (0.0, ERROR))
    assert counted.distinct[1] == pytest.approx(rows, rel=3 * ERROR)

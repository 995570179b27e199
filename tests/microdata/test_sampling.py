"""Samples: the first rows with all their columns."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microdata import DataError, read_sample

ROWS = [{"id": "a", "age": 31, "where": {"city": "Rome"}}, {"id": "b", "age": 50, "where": {"city": "Oslo"}}]


@pytest.mark.parametrize("text", ["id,age\na,31\nb,50\n", "id;age\r\na;31\r\nb;50\r\n", "\ufeffid\tage\na\t31\nb\t50"])
def test_csv_cells_are_texts(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert read_sample(tmp_path / "t.csv").columns.to_pydict() == {"id": ["a", "b"], "age": ["31", "50"]}


def test_other_formats_keep_their_types(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with gzip.open(tmp_path / "t.jsonl.gz", "wt") as file:
        file.write('{"id": "a", "age": 31, "where": {"city": "Rome"}}\nnot json\n\n')
        file.write('{"id": "b", "age": 50, "where": {"city": "Oslo"}}\n')
    for name in ("t.parquet", "t.arrow", "t.jsonl.gz"):
        assert read_sample(tmp_path / name).columns.to_pylist() == ROWS
        assert read_sample(tmp_path / name, rows=1).columns.to_pylist() == ROWS[:1]


def test_mixed_json_values_become_texts(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": "x", "b": 123456789012345678901234567890}\n')
    assert read_sample(tmp_path / "t.jsonl").columns.to_pydict()["a"] == ["1", "x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty"),
        ("id,age\n", "no rows"),
        ("39,Private\n40,Public\n", "does not read like a header"),
        ("name,name\n1,2\n", "there twice"),
        ("name,\n1,2\n", "does not read like a header"),
    ],
)
def test_what_is_no_sample_is_refused_without_a_value(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=expected) as caught:
        read_sample(tmp_path / "t.csv")
    assert "Private" not in str(caught.value)

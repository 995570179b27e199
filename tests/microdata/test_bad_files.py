"""Bad input is answered clearly: what is wrong, where, and never with a value."""

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microdata import (
    Category,
    DataError,
    Hierarchy,
    Number,
    PersonSource,
    Schema,
    read_batches,
    read_table,
    table_from_frame,
)

SCHEMA = Schema("id", (Number("age", 0, 120, integer=True), Category("sex", Hierarchy.flat(["F", "M"]))))
HEAD = b"id,age,sex\n"
GOOD = HEAD + b"Anna Secret,30,F\n" * 3000
SECRET = "Secret"


def parquet(table: Any) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


TABLE = pa.table({"id": ["Anna Secret"], "age": [30], "sex": ["F"]})
UNREADABLE = "damaged, cut off, or something else"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"\n  \n", "the file is empty"),
        ("t.csv", b"\xef\xbb\xbf", "the file is empty"),
        ("t.csv", b"\xc2\xa0\n", "the file is empty"),
        ("t.csv", HEAD, "no rows after the header"),
        ("t.csv", HEAD.strip(), "no rows after the header"),
        ("t.csv", b"id:age:sex\nSecret:30:F\n", "none of the declared columns .* one of the delimiters"),
        ("t.csv", b"Secret,30,F\nSecret,31,F\n", "none of the declared columns .* needed is a header"),
        ("t.csv", b"id,age,age,sex\nSecret,1,1,F\n", "column 'age' is there 2 times"),
        (
            "t.csv",
            b"id,sex,other\nSecret,F,1\n",
            "columns are missing, given columns 'id', 'sex', 'other':\nage: is missing",
        ),
        ("t.csv", HEAD + b"Secret,30,Secret\n", r"sex: not a leaf of the hierarchy in 1 row \(1\)"),
        ("t.csv", HEAD + b"a,30,F\nb,130,F\n", r"age: outside the declared domain in 1 row \(2\)"),
        ("t.csv", HEAD + b"a,NaN,F\nb,inf,F\n", r"age: not a finite number in 2 rows \(1, 2\)"),
        ("t.csv", HEAD + b"a,1.5,F\n", r"age: not a whole number in 1 row \(1\)"),
        ("t.csv", HEAD + b"a,30,F\nb,Secret,F\n,32,F\n", r"(?s)id: missing value.*\(3\).*age: not a number .*\(2\)"),
        ("t.csv", HEAD + b"a,30\nb,30,F,1\nc,30,F\n", r"\(record\): another number of cells .* 2 rows \(1, 2\)"),
        ("t.csv", HEAD + b"a,30,\xff\n", r"sex: not UTF-8 text in 1 row \(1\)"),
        ("t.csv", b"id,age,s\xffex\na,30,F\n", "the header is not UTF-8 text"),
        ("t.csv", "id,age,sex\nSecret,30,F\n".encode("utf-16"), "not UTF-8 text: there are NUL bytes"),
        ("t.csv", HEAD + b"a,30," + b"Secret" * 2_900_000 + b"\n", "a row is longer than 4 MB"),
        ("t.csv", HEAD + b'a,30,"Secret\n' + b"b,30,F\n" * 1_300_000, "a quote that never ends"),
        ("t.csv.gz", GOOD, UNREADABLE),
        ("t.csv.gz", gzip.compress(GOOD + random.Random(1).randbytes(9999).hex().encode(), mtime=0)[:-500], UNREADABLE),
        ("t.parquet", b"", UNREADABLE),
        ("t.parquet", b"Secret" * 100, UNREADABLE),
        ("t.parquet", parquet(TABLE)[:-40], UNREADABLE),
        ("t.parquet", parquet(TABLE)[:20] + bytes(40) + parquet(TABLE)[60:], UNREADABLE),
        (
            "t.parquet",
            parquet(TABLE.drop_columns(["sex"])),
            "columns are missing, given columns 'id', 'age':\nsex: is missing",
        ),
        ("t.parquet", parquet(TABLE.slice(0, 0)), "there are no rows"),
        ("t.arrow", b"", UNREADABLE),
        ("t.arrow", b"Secret" * 100, UNREADABLE),
        ("t.jsonl", b"", "there are no rows"),
        ("t.jsonl", b'[{"id": "Secret"}]', "a JSON array; needed is one object per line"),
        ("t.jsonl", b'{"id": "Secret"\n', r"\(record\): not JSON in 1 row \(1\)"),
        ("t.jsonl", b'{"id": 1, "age": "Secret", "sex": 5}\n', r"(?s)age: not a number .*sex: not a leaf"),
        ("t.jsonl", b'{"id": 1, "age": [30], "sex": true}\n', r"(?s)age: wrong type .*sex: not a leaf"),
        ("t.xlsx", b"Secret", r"t\.xlsx: unknown kind of file; known endings are \.csv"),
        ("t.parquet.gz", b"", "unknown kind of file"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: Any, said: Any) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        read_table(path, SCHEMA)
    message = str(caught.value)
    assert message.startswith(name)
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_table(tmp_path / "none.csv", SCHEMA)
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        read_table(tmp_path / "dir.csv", SCHEMA)


def test_names_for_another_number_of_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Secret,30,F,x\n")
    with pytest.raises(DataError, match="the first row has 4 cells, so many names are needed, given 3 of them"):
        read_table(tmp_path / "t.csv", SCHEMA, columns=["id", "age", "sex"])
    with pytest.raises(DataError, match="sex: is missing"):
        read_table(tmp_path / "t.csv", SCHEMA, columns=["id", "age", "x", "y"])


def test_tables_have_no_record_keys(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(GOOD)
    with pytest.raises(DataError, match="person from record keys"):
        list(read_batches(tmp_path / "t.csv", Schema(PersonSource.KEY, SCHEMA.quasi)))


def test_dropping_rows_needs_rows_that_stay(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(HEAD + b"a,x,F\n")
    with pytest.raises(DataError, match="1 row is refused"):
        read_table(tmp_path / "t.csv", SCHEMA, on_refused="drop")


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (5, "expected a data frame or an Arrow table, given int"),
        (TABLE.drop_columns(["age"]), "age: is missing"),
        (TABLE.slice(0, 0), "frame: there are no rows"),
        (TABLE.set_column(1, "age", pa.array([999])), "frame: 1 row is refused"),
    ],
)
def test_bad_frames(frame: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        table_from_frame(frame, SCHEMA)

"""Files and frames in every format, read whole and in batches."""

import gzip
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Cancelled,
    Category,
    DataError,
    Hierarchy,
    Number,
    PersonSource,
    Reason,
    Schema,
    decode,
    delimited,
    read_batches,
    read_sample,
    read_table,
    sources,
    table_from_frame,
    write_table,
)

SCHEMA = Schema(
    "id",
    (Number("age", 0, 120, integer=True), Category("sex", Hierarchy.flat(["F", "M"]))),
    (Category("ill", Hierarchy.flat(["flu", "cold, bad"])),),
    ("shop",),
)
ROWS = pa.table(
    {
        "id": ["a", "b", "a"],
        "age": [30, 41, 52],
        "sex": ["F", "M", "F"],
        "ill": ["flu", "cold, bad", "flu"],
        "shop": ["x", "y\nz", "x"],
        "secret": ["s1", "s2", "s3"],
    }
)
CSV = 'id,age,sex,ill,shop,secret\na,30,F,flu,x,s1\nb,41,M,"cold, bad","y\nz",s2\na,52,F,flu,x,s3\n'
HEADERLESS = {"columns": ["id", "age", "sex", "ill", "shop"]}


def check(encoded: Any) -> None:
    table = encoded.table
    assert table.quasi.tolist() == [[30, 0], [41, 1], [52, 0]]
    assert table.sensitive.tolist() == [[0], [1], [0]]
    assert table.persons[0] == table.persons[2] != table.persons[1]
    assert table.public.to_pydict() == {"shop": ["x", "y\nz", "x"]}
    assert encoded.rows.tolist() == [0, 1, 2]
    assert not len(encoded.refusals)


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\x0b", "\x1e"], ids=ascii)
def test_only_line_feeds_and_carriage_returns_end_the_header(tmp_path: Path, character: str) -> None:
    """Python's lines also end elsewhere, but no row of a CSV file does."""
    (tmp_path / "t.csv").write_text(CSV.replace("secret", f"sec{character}ret"), encoding="utf-8")
    check(read_table(tmp_path / "t.csv", SCHEMA))
    assert read_sample(tmp_path / "t.csv").columns.column_names[-1] == f"sec{character}ret"


def write(path: Any, kind: Any) -> None:
    if kind == "parquet":
        pq.write_table(ROWS, path)
    elif kind in {"arrow", "stream"}:
        make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, make(file, ROWS.schema) as writer:
            writer.write_table(ROWS)
    else:
        frame = pl.from_arrow(ROWS)
        text = frame.write_ndjson() if kind == "json" else CSV  # type: ignore[union-attr]
        content = text.encode()
        path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.csv", "csv"),
        ("T.CSV.gz", "csv"),
        ("t.jsonl", "json"),
        ("t.ndjson.gz", "json"),
        ("t.json", "json"),
        ("t.parquet", "parquet"),
        ("t.pq", "parquet"),
        ("t.arrow", "arrow"),
        ("t.feather", "arrow"),
        ("t.ipc", "stream"),
    ],
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, kind: str) -> None:
    write(tmp_path / name, kind)
    check(read_table(tmp_path / name, SCHEMA))
    check(read_table(str(tmp_path / name), SCHEMA, on_refused="drop"))


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "change", [str, lambda text: "\ufeff" + text, lambda text: "\n\n" + text.replace("\n", "\r\n")]
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_csv_dialects(tmp_path: Path, mark: str, change: Any, end: str) -> None:
    text = "id,age,sex,ill,shop\na,30,F,flu,x\nb,41,M,flu,".replace(",", mark) + '"y,;\t|"' + end
    (tmp_path / "t.csv").write_text(change(text), newline="")
    encoded = read_table(tmp_path / "t.csv", SCHEMA)
    assert encoded.table.quasi.tolist() == [[30, 0], [41, 1]]
    assert encoded.table.public.column("shop").to_pylist() == ["x", "y,;\t|"]  # type: ignore[union-attr]


def test_uci_adult_style_without_a_header_and_with_spaces(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text("a, 30, F, flu, x\nb, 41, M, flu, y z\n\n")
    encoded = read_table(tmp_path / "adult.data", SCHEMA, **HEADERLESS)  # type: ignore[arg-type]
    assert encoded.table.quasi.tolist() == [[30, 0], [41, 1]]
    assert encoded.table.public.column("shop").to_pylist() == ["x", "y z"]  # type: ignore[union-attr]
    (tmp_path / "spaced.csv").write_text("id, age, sex, ill, shop\na, 30, F, flu, x\nb, \xff, M, flu, y z\n", "latin-1")
    encoded = read_table(tmp_path / "spaced.csv", SCHEMA, on_refused="drop")
    assert encoded.table.quasi.tolist() == [[30, 0]]
    assert encoded.refusals.counts() == {("age", Reason.NOT_UTF8): 1}


def test_undeclared_columns_may_be_anything(tmp_path: Path) -> None:
    content = b"x,id,x,age,sex,,ill,shop\n\xff,a,,30,F,1,flu,x\n" + b"y" * 100_000 + b",b,,41,M,2,flu,y\n"
    (tmp_path / "t.csv").write_bytes(content)
    assert read_table(tmp_path / "t.csv", SCHEMA).table.quasi.tolist() == [[30, 0], [41, 1]]


@given(
    rows=st.lists(st.sampled_from(["a,30,F,flu,x", "a,30,F,flu", "a,30,F,flu,x,y", "a,999,F,flu,x", ""]), min_size=1)
)
def test_row_numbers_count_every_row_that_is_not_empty(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "numbered.csv"
    path.write_text("id,age,sex,ill,shop\n" + "\n".join(rows) + "\na,30,F,flu,x\n")
    filled = [row for row in [*rows, "a,30,F,flu,x"] if row]
    encoded = read_table(path, SCHEMA, on_refused="drop")
    assert encoded.rows.tolist() == [number for number, row in enumerate(filled) if row == "a,30,F,flu,x"]
    refused = {number: Reason.OUT_OF_DOMAIN for number, row in enumerate(filled) if "999" in row}
    refused |= {number: Reason.WRONG_SHAPE for number, row in enumerate(filled) if row.count(",") != 4}
    assert dict(zip(encoded.refusals.rows.tolist(), encoded.refusals.reasons.tolist(), strict=True)) == refused


def test_row_numbers_hold_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "ROW_LIMIT", 300)
    lines = [f"p{number},{number % 100},F,flu,x" for number in range(500)]
    lines[123] = "short"
    lines[400] = "p,999,F,flu,x"
    (tmp_path / "t.csv").write_text("id,age,sex,ill,shop\n" + "\n".join(lines))
    parts = list(read_batches(tmp_path / "t.csv", SCHEMA, on_refused="drop"))
    assert len(parts) > 10
    accepted = np.concatenate([part.rows for part in parts])
    assert accepted.tolist() == [number for number in range(500) if number not in {123, 400}]
    ages = np.concatenate([part.table.quasi[:, 0] for part in parts])
    assert (ages == accepted % 100).all()
    assert read_table(tmp_path / "t.csv", SCHEMA, on_refused="drop").refusals.rows.tolist() == [123, 400]
    with pytest.raises(DataError, match=r"1 row is refused.*\n\(record\).*\(124\)"):
        list(read_batches(tmp_path / "t.csv", SCHEMA))


def test_lines_and_batches_of_other_formats_are_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_BLOCK", 100)
    monkeypatch.setattr(sources, "ROWS", 3)
    events = [f'{{"id":{n},"age":{n},"sex":"F","ill":"flu","shop":"é"}}' for n in range(20)]
    events[7] = "{"
    (tmp_path / "t.jsonl").write_text("\n\n".join(events), "utf-8")
    encoded = read_table(tmp_path / "t.jsonl", SCHEMA, on_refused="drop")
    assert encoded.refusals.rows.tolist() == [7]
    assert (encoded.table.quasi[:, 0] == encoded.rows).all()
    table = pa.table({"id": range(20), "age": range(20), "sex": ["F"] * 20, "ill": ["flu"] * 20, "shop": [None] * 20})
    pq.write_table(table, tmp_path / "t.parquet")
    assert len(list(read_batches(tmp_path / "t.parquet", SCHEMA))) == 7
    encoded = read_table(tmp_path / "t.parquet", SCHEMA)
    assert (encoded.table.quasi[:, 0] == encoded.rows).all()


def test_public_types_may_differ_between_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_BLOCK", 60)
    values = ["1", "2.5", '"x"', "null"]
    events = [f'{{"id":1,"age":1,"sex":"F","ill":"flu","shop":{value}}}' for value in values]
    (tmp_path / "t.jsonl").write_text("\n".join(events))
    public = read_table(tmp_path / "t.jsonl", SCHEMA).table.public
    assert public.column("shop").to_pylist() == ["1", "2.5", "x", None]  # type: ignore[union-attr]


def test_progress_grows_to_the_end_and_may_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (delimited, sources):
        monkeypatch.setattr(module, "ROW_LIMIT", 300)
    (tmp_path / "t.csv").write_text("id,age,sex,ill,shop\n" + "a,30,F,flu,x\n" * 200)
    told = []
    read_table(tmp_path / "t.csv", SCHEMA, progress=lambda *news: told.append(news))
    assert [news[1] for news in told] == sorted(news[1] for news in told)
    assert all(phase == "read" and done <= total for phase, done, total in told)
    assert told[-1] == ("read", 200, 200)
    assert all(150 < total < 250 for _, _, total in told), "the size of the file tells how many rows there are about"

    def stop(phase: Any, done: Any, total: Any) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        read_table(tmp_path / "t.csv", SCHEMA, progress=stop)


@pytest.mark.parametrize("frame", [ROWS, ROWS.to_pandas(), pl.from_arrow(ROWS), ROWS.to_batches()[0]])
def test_frames(frame: Any) -> None:
    check(table_from_frame(frame, SCHEMA))


def test_frames_with_categoricals_and_odd_indexes() -> None:
    frame = ROWS.to_pandas()
    frame["sex"] = frame["sex"].astype("category")
    frame.index = pd.Index([7, 7, 7])
    check(table_from_frame(frame, SCHEMA))
    check(table_from_frame(pl.from_arrow(ROWS).with_columns(pl.col("sex").cast(pl.Categorical)), SCHEMA))  # type: ignore[union-attr]


def test_frames_that_mix_types() -> None:
    frame = pd.DataFrame(
        {
            "id": ["a", 1, 2.5, True, pd.NA],
            "age": [30, "x", float("nan"), None, np.int64(5)],
            "sex": ["F"] * 5,
            "ill": ["flu"] * 5,
            "shop": [1, "a", None, [1], "b"],
        },
        dtype=object,
    )
    encoded = table_from_frame(frame, SCHEMA, on_refused="drop")
    assert encoded.rows.tolist() == [0]
    assert encoded.refusals.counts() == {
        ("id", Reason.WRONG_TYPE): 2,
        ("id", Reason.MISSING): 1,
        ("age", Reason.NOT_A_NUMBER): 1,
        ("age", Reason.NOT_FINITE): 1,
        ("age", Reason.MISSING): 1,
    }


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.parquet", "t.arrow"])
def test_tables_are_written_and_read_again(tmp_path: Path, name: str) -> None:
    table = table_from_frame(ROWS, SCHEMA).table
    write_table(table, tmp_path / name)
    own_rows = Schema(PersonSource.ROW, SCHEMA.quasi, SCHEMA.sensitive, SCHEMA.public)
    again = read_table(tmp_path / name, own_rows).table
    assert decode(again).to_pylist() == decode(table).to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@given(
    st.lists(
        st.tuples(st.integers(0, 120), st.sampled_from(["F", "M"]), st.text(st.characters(codec="utf-8"), max_size=5)),
        min_size=1,
        max_size=12,
    )
)
def test_any_public_text_survives_csv_and_json(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    ages, sexes, shops = zip(*rows, strict=True)
    frame = pa.table({"id": ages, "age": ages, "sex": sexes, "ill": ["flu"] * len(rows), "shop": shops})
    table = table_from_frame(frame, SCHEMA).table
    own_rows = Schema(PersonSource.ROW, SCHEMA.quasi, SCHEMA.sensitive, SCHEMA.public)
    for name in ("any.jsonl", "any.csv"):
        path = tmp_path_factory.getbasetemp() / name
        write_table(table, path)
        again = read_table(path, own_rows).table
        assert again.quasi.tolist() == table.quasi.tolist()
        assert again.public.column("shop").to_pylist() == list(shops)  # type: ignore[union-attr]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_lines_may_end_as_on_any_machine(tmp_path: Path, end: str, ending: str) -> None:
    rows = ["id,age", "a,5", "b,6"] if ending == "csv" else ['{"id": "a", "age": 5}', '{"id": "b", "age": 6}']
    path = tmp_path / f"table.{ending}"
    path.write_bytes("".join(row + end for row in rows).encode())
    assert read_table(path, Schema("id", (Number("age", 0, 9),))).table.quasi[:, 0].tolist() == [5, 6]


def test_who_has_read_a_csv_waits_until_the_threads_of_arrow_hold_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that lets go of Python's objects while the process ends kills it."""
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    real, held = pa_csv.open_csv, []

    def slow(*given: Any, parse_options: Any, **more: Any) -> Any:
        handler = parse_options.invalid_row_handler
        held.append(weakref.ref(handler))
        threading.Thread(target=lambda handler: time.sleep(0.3), args=[handler]).start()
        return real(*given, parse_options=parse_options, **more)

    monkeypatch.setattr(pa_csv, "open_csv", slow)
    assert len(read_table(path, SCHEMA).table.quasi) == 3
    assert [each() for each in held] == [None]


def test_an_unfinished_read_of_a_csv_waits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV + "c,1,F,flu,x,s1\n" * 1000)
    real, held = delimited._parse_options, []

    def noted(*given: Any) -> Any:
        options = real(*given)
        held.append(weakref.ref(options.invalid_row_handler))
        return options

    monkeypatch.setattr(delimited, "_parse_options", noted)
    batches: Any = read_batches(path, SCHEMA)
    next(batches)
    batches.close()
    assert [each() for each in held] == [None]

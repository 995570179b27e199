"""Texts that a spreadsheet would run, in files that people open."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import (
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    read_published,
    write_published,
)
from microdata.lines import _escaped, unescaped

LABELS = ["=cmd()", "@SUM(A1)", "+1+1", "-x", "'=quoted", "-5", "plain"]


def publication() -> Any:
    labels = Category("city", Hierarchy.flat(LABELS, root="=any"))
    schema = Schema(PersonSource.ROW, (Number("age", -9, 9, integer=True),), (labels,), ("note",))
    rows = len(LABELS)
    table = Table(
        schema,
        np.arange(rows),
        np.full((rows, 1), -5.0),
        np.arange(rows, dtype=np.int32)[:, None],
        pa.table({"note": LABELS}),
    )
    return Publication.of(table, np.zeros(rows, np.int64))


@pytest.mark.parametrize("formulas", ["escape", "keep"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_what_is_escaped_is_read_back(tmp_path: Path, ending: str, formulas: str) -> None:
    path = tmp_path / f"safe.{ending}"
    write_published(publication(), path, formulas=formulas)  # type: ignore[arg-type]
    read = read_published(path, publication().table.schema, formulas=formulas)  # type: ignore[arg-type]
    assert sorted(read.sensitive[:, 0]) == [*range(len(LABELS))]
    assert sorted(read.public.column("note").to_pylist()) == sorted(LABELS)  # type: ignore[union-attr]


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    write_published(publication(), tmp_path / "safe.csv")
    cells = [cell for line in (tmp_path / "safe.csv").read_text().splitlines()[1:] for cell in line.split(",")]
    assert {"'=cmd()", "'@SUM(A1)", "'+1+1", "'-x", "''=quoted", "-5", "plain"} <= set(cells)
    assert not [cell for cell in cells if cell[0] in "=+@" or (cell[0] == "-" and cell != "-5")]


@given(st.lists(st.text(alphabet="'=+-@\t\r 1a.e", max_size=6)))
def test_nothing_is_lost(texts: Any) -> None:
    given_texts = pa.array(texts, pa.string())
    assert unescaped(_escaped(given_texts)).to_pylist() == texts

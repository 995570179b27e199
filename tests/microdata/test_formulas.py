"""Texts that a spreadsheet would run, in files that people open."""

import csv
import unicodedata
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

LABELS = ["=cmd()", "@SUM(A1)", "+1+1", "-x", "'=quoted", "-5", "plain", "\uff1d1+1", "\uff20SUM(A1)", "\u2212x"]
"""Beginnings of formulas, also in full width; and texts that are none."""
NOTES = [*LABELS[:5], "\ufeff=1+1", "\u00a0=1+1", " =1+1", "\u200b+1", "\t=1"]
"""Beginnings of formulas behind spaces and invisible characters, which a public text may have."""
NOTE = "=cmd|' /C calc'!A0"


def publication() -> Any:
    labels = Category("city", Hierarchy.flat(LABELS, root="=any"))
    schema = Schema(PersonSource.ROW, (Number("age", -9, 9, integer=True),), (labels,), (NOTE,))
    rows = len(LABELS)
    table = Table(
        schema,
        np.arange(rows),
        np.full((rows, 1), -5.0),
        np.arange(rows, dtype=np.int32)[:, None],
        pa.table({NOTE: NOTES}),
    )
    return Publication.of(table, np.zeros(rows, np.int64))


@pytest.mark.parametrize("formulas", ["escape", "keep"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "parquet"])
def test_what_is_escaped_is_read_back(tmp_path: Path, ending: str, formulas: str) -> None:
    path = tmp_path / f"safe.{ending}"
    write_published(publication(), path, formulas=formulas)  # type: ignore[arg-type]
    read = read_published(path, publication().table.schema, formulas=formulas)  # type: ignore[arg-type]
    assert sorted(read.sensitive[:, 0]) == [*range(len(LABELS))]
    assert sorted(read.public.column(NOTE).to_pylist()) == sorted(NOTES)  # type: ignore[union-attr]


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    """The header included; judged by the first visible character in its usual width."""
    write_published(publication(), tmp_path / "safe.csv")
    with (tmp_path / "safe.csv").open(newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert {"'=cmd()", "'@SUM(A1)", "'+1+1", "'-x", "''=quoted", "-5", "plain", f"'{NOTE}"} <= set(cells)
    visible = [unicodedata.normalize("NFKC", cell).strip().strip("\ufeff\u200b") for cell in cells]
    assert not [cell for cell in visible if cell[:1] in {"=", "+", "@", "-", "\u2212"} and cell != "-5"]


@given(st.lists(st.text(alphabet="'=+-@\t\r\n \uff1d\ufeff\u00a01a.e", max_size=6)))
def test_nothing_is_lost(texts: Any) -> None:
    given_texts = pa.array(texts, pa.string())
    assert unescaped(_escaped(given_texts)).to_pylist() == texts

"""The UCI Adult data, where `shared/data/adult` stands beside the repository or above it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from load_tests.generators.adult_like import PEER_QUASI
from load_tests.generators.dataset import PERSON, Dataset, Rows, choose, integer
from microdata import Attribute, Category, Hierarchy, Schema

COLUMNS = [
    "age",
    "workclass",
    "final-weight",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "salary",
]
ADULT_ROWS = 30_162
"""Rows without a missing value."""
ADULT_ALL_ROWS = 32_561
ADULT_MISSING = "the UCI Adult data is not there: shared/data/adult is neither beside the repository nor above it"


def real_adult(
    quasi: Sequence[str] = PEER_QUASI,
    sensitive: Sequence[str] = (),
    *,
    categories: Literal["hierarchy", "number"] = "hierarchy",
    missing: Literal["drop", "value"] = "drop",
) -> Dataset | None:
    """The 30,162 rows without missing values, in their order; None where the data is not there (see `ADULT_MISSING`).

    With `missing` as a value all 32,561 rows: a category then has one more, `?`, below its root.

    Categories of quasi-identifiers come with the hierarchies of the data set, or as plain numbers: the position of the
    label in alphabetical order, as peers without hierarchies take them. `table` and `arrow` give the first rows.
    """
    folder = adult_folder()
    if folder is None:
        return None
    columns = _columns(folder, complete=missing == "drop")
    kept = [name for name in quasi if name not in sensitive]
    as_numbers = kept if categories == "number" else []
    attributes = {name: _attribute(folder, name, columns[name], plain=name in as_numbers) for name in COLUMNS}
    schema = Schema(PERSON, choose(attributes, kept), choose(attributes, sensitive))
    codes = {name: _codes(attributes[name], columns[name]) for name in (*kept, *sensitive)}

    def draw(rows: int, _seed: int) -> Rows:
        if rows > (most := len(columns["age"])):
            raise ValueError(f"Adult has {most} rows, {rows} were asked for")
        return np.arange(rows, dtype=np.int64), {name: column[:rows] for name, column in codes.items()}

    return Dataset("adult", schema, draw)


def adult_folder() -> Path | None:
    """Where the data is."""
    places = (above / "shared" / "data" / "adult" for above in Path(__file__).resolve().parents)
    return next((place for place in places if (place / "adult.data").is_file()), None)


@cache
def _columns(folder: Path, *, complete: bool) -> dict[str, NDArray[Any]]:
    """Every column, without the rows that miss a value if so asked; labels stripped of their leading space."""
    read = pyarrow.csv.read_csv(
        folder / "adult.data",
        read_options=pyarrow.csv.ReadOptions(column_names=COLUMNS),
        convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string())),
    )
    text = {name: pc.utf8_trim_whitespace(read[name]).to_numpy(zero_copy_only=False) for name in COLUMNS}
    kept = np.logical_and.reduce([column != "?" for column in text.values()]) | (not complete)
    return {name: _numbers(column[kept]) for name, column in text.items()}


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.int64) if str(column[0]).isdigit() else column


def _attribute(folder: Path, name: str, column: NDArray[Any], *, plain: bool) -> Attribute:
    if column.dtype != object:
        return integer(name, int(column.min()), int(column.max()))
    if plain:
        return integer(name, 0, len(np.unique(column)) - 1)
    path = folder / f"hierarchy_{name}.csv"
    tree = Hierarchy.from_csv(path) if path.exists() else Hierarchy.flat(np.unique(column))
    if "?" in column and "?" not in tree.codes:
        tree = Hierarchy.from_rows([*tree.rows(), ["?", tree.labels[0]]])
    return Category(name, tree)


def _codes(attribute: Attribute, column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype != object:
        return column
    labels, positions = np.unique(column, return_inverse=True)
    if isinstance(attribute, Category):
        return np.array([attribute.hierarchy.codes[label] for label in labels])[positions]
    return positions

"""Small invented tables with everything that a table can have: for checks, warm-ups and documentation.

Nothing in them is about anybody. Values are few, so that ties are common; sensitive ones lean on the first column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microdata.hierarchy import Hierarchy
from microdata.schema import Attribute, Category, Number, PersonSource, Schema
from microdata.sensitivity import Sensitivity
from microdata.table import Table

_CITIES = Hierarchy.from_mapping(
    {"world": {"europe": {"france": ["paris", "lyon"], "spain": ["madrid"]}, "asia": ["tokyo", "kyoto"], "oz": None}}
)
_ILLNESSES = Hierarchy.from_mapping({"any": {"lungs": ["flu", "asthma", "sars"], "gut": ["ulcer", "colic"]}})

EXAMPLE_QUASI: tuple[Attribute, ...] = (
    Number("age", 17, 90, integer=True),
    Category("city", _CITIES),
    Number("pay", 0, 100, step=8),
    Category("sex", Hierarchy.flat(["female", "male"])),
)
EXAMPLE_SENSITIVE: tuple[Attribute, ...] = (
    Category("illness", _ILLNESSES, sensitivity=Sensitivity((("sars", "ulcer"), ("asthma",), ("flu", "colic")))),
    Number("debt", 0, 6, integer=True, sensitivity=Sensitivity((((5, 6),), ((3, 4),), ((0, 1), 2)))),
)


def example_table(
    rows: int = 64,
    seed: int = 1,
    quasi: Sequence[Attribute] = EXAMPLE_QUASI,
    sensitive: Sequence[Attribute] = EXAMPLE_SENSITIVE,
    persons: int | None = None,
) -> Table:
    """A table of so many rows; every row another person, or drawn from a number of `persons`.

    >>> len(example_table(8))
    8
    """
    random = np.random.default_rng(seed)
    columns = [_column(one, rows, random) for one in quasi]
    lean = np.argsort(np.argsort(columns[0], kind="stable")) / max(rows, 1)
    values = [
        np.clip((random.random(rows) * 0.7 + lean * 0.3) * (one.size or 0), 0, (one.size or 1) - 1).astype(np.int32)
        for one in sensitive
    ]
    return Table(
        Schema(PersonSource.ROW if persons is None else "person", tuple(quasi), tuple(sensitive)),
        np.arange(rows) if persons is None else random.integers(0, persons, rows),
        np.stack(columns, axis=1).astype(np.float64),
        np.stack(values, axis=1) if values else np.empty((rows, 0), np.int32),
    )


def _column(attribute: Attribute, rows: int, random: np.random.Generator) -> NDArray[np.float64]:
    if isinstance(attribute, Category):
        return random.integers(0, attribute.size or 1, rows).astype(np.float64)
    assert isinstance(attribute, Number)
    steps = random.integers(0, 25, rows)
    if attribute.integer:
        return np.minimum(attribute.low + 3 * steps, attribute.high)
    return attribute.low + steps / 24 * (attribute.high - attribute.low)

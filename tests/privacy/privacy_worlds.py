"""Random small tables for the tests of the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Schema
from privacy import Groups


@st.composite
def trees(draw: Any, most_leaves: int = 8) -> Any:
    """Trees of any shape, single children included."""
    labels = iter(f"n{number}" for number in range(1_000))

    def grow(leaves: Any, depth: Any) -> Any:
        if leaves == 1 and (depth == 0 or draw(st.booleans())):
            return None
        if depth == 0:
            return [next(labels) for _ in range(leaves)]
        cuts = sorted(draw(st.sets(st.integers(1, leaves - 1), max_size=3))) if leaves > 1 else []
        sizes = [high - low for low, high in zip([0, *cuts], [*cuts, leaves], strict=True)]
        return {next(labels): grow(size, depth - 1) for size in sizes}

    leaves = draw(st.integers(1, most_leaves))
    below = grow(leaves, draw(st.integers(1, 3)))
    return Hierarchy.from_mapping({"root": below if below is not None else [next(labels)]})


def schema_of(tree: Hierarchy, low: int = 1, size: int = 6, grid: float = 1.0) -> Schema:
    number = Number("pay", low, low + (size - 1) * grid, step=grid)
    return Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),), (Category("illness", tree), number))


@dataclass(frozen=True)
class World:
    schema: Schema
    persons: np.ndarray
    sensitive: np.ndarray
    classes: np.ndarray
    count: int

    @property
    def references(self) -> Any:
        return [
            np.bincount(self.sensitive[:, column], minlength=attribute.size)  # type: ignore[arg-type]
            for column, attribute in enumerate(self.schema.sensitive)
        ]

    @property
    def groups(self) -> Groups:
        return Groups.of(self.schema, self.persons, self.sensitive, self.classes, self.count)

    def regrouped(self, classes: Any, count: Any) -> Groups:
        """Other classes of the same table."""
        return Groups.of(self.schema, self.persons, self.sensitive, np.asarray(classes), count, self.references)

    def members(self, one: Any) -> Any:
        return np.flatnonzero(self.classes == one)


@st.composite
def worlds(draw: Any, most_rows: int = 24, most_classes: int = 4) -> Any:
    """A table with repeated persons and suppressed rows, every class filled."""
    schema = schema_of(
        draw(trees()), low=draw(st.integers(1, 4)), size=draw(st.integers(1, 7)), grid=draw(st.sampled_from([1, 0.5]))
    )
    count = draw(st.integers(1, most_classes))
    rows = draw(st.integers(count, most_rows))
    whole = st.integers(-1, count - 1)
    classes = [*range(count), *(draw(whole) for _ in range(rows - count))]
    column = [[draw(st.integers(0, attribute.size - 1)) for attribute in schema.sensitive] for _ in range(rows)]  # type: ignore[operator]
    persons = [draw(st.integers(0, 9)) for _ in range(rows)]
    return World(schema, np.array(persons), np.array(column, np.int32), np.array(classes), count)


def counted(schema_attribute: Any, reference: Any, *classes: Any) -> Groups:
    """Groups of one sensitive attribute from counts: the reference's and each class's, one row per person."""
    schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (schema_attribute,))
    values = np.concatenate([np.repeat(np.arange(len(one)), one) for one in classes]).astype(np.int32)
    labels = np.repeat(np.arange(len(classes)), [sum(one) for one in classes])
    return Groups.of(schema, np.arange(len(values)), values[:, None], labels, len(classes), [np.array(reference)])

"""Tables in memory: encoded columns, one array per role.

Numbers are kept as they are, categories as leaf indexes, so every quasi-identifier is a number line. Persons are opaque
64-bit codes; two persons may, with negligible chance, share a code, which only ever makes a count of persons smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata.persons import count_persons
from microdata.schema import Schema


@dataclass(frozen=True, eq=False)
class Table:
    """Encoded rows of one schema."""

    schema: Schema
    persons: NDArray[np.int64]
    """Code of the person of each row."""
    quasi: NDArray[np.float64]
    """Rows × quasi-identifiers: the number itself, or the index of the leaf."""
    sensitive: NDArray[np.int32]
    """Rows × sensitive attributes: the index of the value on its grid, or of the leaf."""
    public: pa.Table | None = None
    """Public columns, in the order of the schema."""
    rejected: int = 0
    """Rows of the file or frame that fail validation, so that they are not in the table."""

    def __post_init__(self) -> None:
        rows = len(self.persons)
        assert self.quasi.shape == (rows, len(self.schema.quasi))
        assert self.sensitive.shape == (rows, len(self.schema.sensitive))
        assert self.public is None or self.public.num_rows == rows

    def __len__(self) -> int:
        return len(self.persons)

    @cached_property
    def people(self) -> int:
        """How many persons there are."""
        return count_persons(self.persons)

    def take(self, rows: NDArray[Any]) -> Table:
        """The rows at these indexes (or where this mask is true), in this order."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        public = None if self.public is None else self.public.take(pa.array(index))
        return Table(self.schema, self.persons[index], self.quasi[index], self.sensitive[index], public)

    @property
    def nbytes(self) -> int:
        """Bytes of the encoded columns."""
        public = 0 if self.public is None else self.public.nbytes
        return int(self.persons.nbytes + self.quasi.nbytes + self.sensitive.nbytes + public)

    @staticmethod
    def concat(tables: list[Table]) -> Table:
        """Tables of one schema, one after the other."""
        first = tables[0]
        publics = [table.public for table in tables if table.public is not None]
        return Table(
            first.schema,
            np.concatenate([table.persons for table in tables]),
            np.concatenate([table.quasi for table in tables]),
            np.concatenate([table.sensitive for table in tables]),
            concat_public(publics) if publics else None,
            sum(table.rejected for table in tables),
        )


def concat_public(tables: list[pa.Table]) -> pa.Table:
    """Public columns one below the other; as text where parts disagree about the type."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        texts = [(name, pa.string()) for name in tables[0].column_names]
        return pa.concat_tables([table.cast(pa.schema(texts)) for table in tables])

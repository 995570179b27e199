"""From codes back to values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata.schema import Attribute, Category, Number
from microdata.table import Table


def decode(table: Table) -> pa.Table:
    """The values of encoded rows as Arrow columns; persons are codes for good and left out.

    >>> from microdata import Category, Hierarchy, Number, PersonKey, Schema, encode
    >>> schema = Schema("id", (Number("age", 0, 120, integer=True), Category("sex", Hierarchy.flat(["F", "M"]))))
    >>> rows = pa.table({"id": ["a", "b"], "age": [31, 50], "sex": ["F", "M"]})
    >>> decode(encode(schema, rows, person_key=PersonKey.random()).table).to_pylist()
    [{'age': 31, 'sex': 'F'}, {'age': 50, 'sex': 'M'}]
    """
    columns: dict[str, pa.Array] = {}
    for position, attribute in enumerate(table.schema.quasi):
        values = table.quasi[:, position]
        columns[attribute.name] = (
            number_column(attribute, values)
            if isinstance(attribute, Number)
            else all_values(attribute).take(pa.array(values.astype(np.int64)))
        )
    for position, attribute in enumerate(table.schema.sensitive):
        columns[attribute.name] = all_values(attribute).take(pa.array(table.sensitive[:, position]))
    if table.public is not None:
        columns |= {name: table.public.column(name) for name in table.public.column_names}
    return pa.table(columns)


def all_values(attribute: Attribute) -> pa.Array:
    """Every value of a domain, at the position that is its code."""
    if isinstance(attribute, Category):
        return pa.array(attribute.hierarchy.leaves, pa.string())
    return number_column(attribute, attribute.values())


def number_column(attribute: Number, values: NDArray[np.float64]) -> pa.Array:
    """Numbers as integers where they are declared so."""
    return pa.array(values.astype(np.int64) if attribute.integer else values)

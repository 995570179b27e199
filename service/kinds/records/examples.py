"""The example that each algorithm declares, as a table and a policy."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import csv

from microdata import Attribute, Category, Number, Table, decode
from service.kinds.records.embedding import nested_tree
from service.policy.data import Example
from static_algos import STATIC_ALGORITHMS

BEGINNING = """\
# Every class: at least 5 persons, and jobs distributed like those of the whole table.
name: people
schema:
  person: person
  quasi:
    age:  {type: number, min: 17, max: 90, integer: true}
    sex:  {type: category, hierarchy: {Person: [Female, Male]}}
  sensitive:
    job:  {type: category, hierarchy: {Any: [Craft, Office, Sales, Service]}}
guarantee: {algorithm: sabre, k: 5, t: 0.2}
"""
"""A policy for somebody who begins to write one."""


def examples() -> Iterator[Example]:
    """One for every algorithm."""
    for entry in STATIC_ALGORITHMS:
        table = entry.algorithm.example_data()
        guarantee = {"algorithm": entry.name, **entry.algorithm.example}
        yield Example({"name": "warm-up", "schema": _schema(table), "guarantee": guarantee}, _text(table))


def _text(table: Table) -> str:
    written = BytesIO()
    csv.write_csv(decode(table).append_column("person", pa.array(table.persons)), written)
    return written.getvalue().decode()


def _schema(table: Table) -> dict[str, Any]:
    """The schema of a table, as a policy says it."""
    return {
        "person": "person",
        "quasi": {one.name: _attribute(one) for one in table.schema.quasi},
        "sensitive": {one.name: _attribute(one) for one in table.schema.sensitive},
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    sensitivity = attribute.sensitivity and {"sensitivity": attribute.sensitivity.categories}
    if isinstance(attribute, Category):
        return {"type": "category", "hierarchy": nested_tree(attribute.hierarchy), **(sensitivity or {})}
    assert isinstance(attribute, Number)
    return {
        "type": "number",
        "min": attribute.low,
        "max": attribute.high,
        "integer": attribute.integer,
        "step": attribute.step,
        **(sensitivity or {}),
    }

"""Load or compile every kernel that a job may need before its process takes one: afterwards nobody waits for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow import csv

from microdata import Attribute, Category, Hierarchy, Number, Table, decode, silent
from service.jobs.work import Task, work
from static_algos import STATIC_ALGORITHMS, Entry, StaticAlgorithm

_MOST_COLUMNS = 100
_MOST_BYTES = 1 << 24

log = logging.getLogger(__name__)


def warm_up() -> None:
    """Anonymize and audit the example that each algorithm declares.

    One that cannot do its own example says so and keeps nobody waiting: the others are ready.
    """
    for entry in STATIC_ALGORITHMS:
        try:
            _try(entry)
        except Exception as error:  # noqa: BLE001 - whatever somebody's algorithm raises
            log.warning("%s could not do its own example: %s: %s", entry.name, type(error).__name__, error)


def _try(entry: Entry[StaticAlgorithm]) -> None:
    """The example of an algorithm, as a job."""
    table = entry.algorithm.example_data()
    guarantee = {"algorithm": entry.name, **entry.algorithm.example}
    policy = json.dumps({"name": "warm-up", "schema": _schema(table), "guarantee": guarantee})
    with TemporaryDirectory(prefix="portcullis-warm-up-") as folder:
        original, result = Path(folder, "table.csv"), Path(folder, "result.csv")
        columns = decode(table)
        csv.write_csv(columns.append_column("person", pa.array(table.persons)), original)
        inputs = {"table": str(original)}
        work(Task("anonymize", policy, inputs, folder, _MOST_COLUMNS, _MOST_BYTES), silent)
        inputs = {"published": str(result), "original": str(original)}
        work(Task("audit", policy, inputs, folder, _MOST_COLUMNS, _MOST_BYTES), silent)


def _schema(table: Table) -> dict[str, Any]:
    """The schema of a table, as a policy says it."""
    return {
        "person": "person",
        "quasi": {one.name: _attribute(one) for one in table.schema.quasi},
        "sensitive": {one.name: _attribute(one) for one in table.schema.sensitive},
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    if isinstance(attribute, Category):
        return {"type": "category", "hierarchy": _nested(attribute.hierarchy)}
    assert isinstance(attribute, Number)
    return {
        "type": "number",
        "min": attribute.low,
        "max": attribute.high,
        "integer": attribute.integer,
        "step": attribute.step,
    }


def _nested(tree: Hierarchy) -> dict[str, Any]:
    below: list[dict[str, Any]] = [{} for _ in tree.labels]
    for node in range(len(tree.labels) - 1, 0, -1):  # parents stand before their children
        below[tree.parent[node]][tree.labels[node]] = below[node] or None
    return {tree.labels[0]: below[0]}

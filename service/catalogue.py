"""All catalogues as plain data: for the command line, the HTTP API, the console's forms and the docs."""

from __future__ import annotations

from typing import Any, Literal

from service.kinds import DataKind, data_kinds
from static_algos import Entry


def algorithm_catalogue() -> list[dict[str, Any]]:
    """Every algorithm with what it runs on, what it guarantees, and the JSON schema of its parameters."""
    kinds = data_kinds()
    tables = [_described(kind, entry, "table") for kind in kinds for entry in kind.algorithms]
    streams = [_described(kind, entry, "stream") for kind in kinds for entry in kind.engines]
    return sorted([*tables, *streams], key=lambda entry: (entry["runs_on"] == "stream", entry["name"]))


def _described(kind: DataKind, entry: Entry[Any], runs_on: Literal["table", "stream"]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "data": kind.name,
        "runs_on": runs_on,
        "summary": entry.summary,
        "guarantees": [model.name for model in entry.algorithm.guarantees],
        "parameters": entry.parameters.model_json_schema(),
    }

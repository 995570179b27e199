"""Both catalogues as plain data: for the command line, the HTTP API, the console's forms and the docs."""

from __future__ import annotations

from typing import Any, Literal

from static_algos import STATIC_ALGORITHMS, Entry, StaticAlgorithm
from stream_algos import STREAM_ALGORITHMS, Engine


def algorithm_catalogue() -> list[dict[str, Any]]:
    """Every algorithm with what it runs on, what it guarantees, and the JSON schema of its parameters."""
    tables = (_described(entry, "table") for entry in STATIC_ALGORITHMS)
    streams = (_described(entry, "stream") for entry in STREAM_ALGORITHMS)
    return sorted([*tables, *streams], key=lambda entry: (entry["runs_on"] == "stream", entry["name"]))


def _described(entry: Entry[StaticAlgorithm] | Entry[Engine], runs_on: Literal["table", "stream"]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "runs_on": runs_on,
        "summary": entry.summary,
        "guarantees": [model.name for model in entry.algorithm.guarantees],
        "parameters": entry.parameters.model_json_schema(),
    }

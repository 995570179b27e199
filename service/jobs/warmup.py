"""Load or compile every kernel that a job may need before its process takes one: afterwards nobody waits for it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from microdata import silent
from service.jobs.work import Task, work
from static_algos import STATIC_ALGORITHMS

_ROWS = 64
_ITEMS = ("lamp", "book", "tea")
_ASKED = {"k": 2, "l": 2, "t": 0.9, "beta": 9}
"""As many models as an algorithm takes, each so that an invented table can satisfy it."""


def warm_up() -> None:
    """Anonymize an invented table with every algorithm, and audit a result."""
    with TemporaryDirectory(prefix="portcullis-warm-up-") as folder:
        table, out = Path(folder, "table.csv"), Path(folder)
        rows = (f"{row},{row % 40},{'ab'[row % 2]},{_ITEMS[row % 3]}\n" for row in range(_ROWS))
        table.write_text("id,age,city,item\n" + "".join(rows), encoding="utf-8")
        for entry in STATIC_ALGORITHMS:
            asked = {name: value for name, value in _ASKED.items() if name in entry.parameters.model_fields}
            policy = _policy({"algorithm": entry.name, **asked})
            work(Task("anonymize", policy, {"table": str(table)}, folder, len(_ASKED), _ROWS**3), silent)
        inputs = {"published": str(out / "result.csv"), "original": str(table)}
        work(Task("audit", policy, inputs, folder, len(_ASKED), _ROWS**3), silent)


def _policy(guarantee: dict[str, Any]) -> str:
    schema = {
        "person": "id",
        "quasi": {
            "age": {"type": "number", "min": 0, "max": 99, "integer": True},
            "city": {"type": "category", "hierarchy": {"Any": ["a", "b"]}},
        },
        "sensitive": {"item": {"type": "category", "hierarchy": {"Any": list(_ITEMS)}}},
    }
    return json.dumps({"name": "warm-up", "schema": schema, "guarantee": guarantee})

"""Load or compile every kernel that a job may need before its process takes one: afterwards nobody waits for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from microdata import silent
from service.jobs.work import Task, work
from service.kinds import Example, data_kinds

log = logging.getLogger(__name__)

_MOST_COLUMNS = 1_000
_MOST_BYTES = 1 << 24


def warm_up() -> None:
    """Anonymize and audit the examples of every kind of data."""
    for kind in data_kinds():
        for example in kind.examples():
            try:
                try_example(example)
            except Exception as error:  # noqa: BLE001 - who needs it finds out; who does not is not kept waiting
                asked = example.policy["guarantee"]["algorithm"]
                log.warning("%s could not do its own example: %s: %s", asked, type(error).__name__, error)


def try_example(example: Example) -> None:
    """An example, as jobs."""
    policy = json.dumps(example.policy)
    with TemporaryDirectory(prefix="portcullis-warm-up-") as folder:
        table, result = Path(folder, "table.csv"), Path(folder, "result.csv")
        table.write_text(example.table, encoding="utf-8")
        given: Any = {"out": folder, "by": "warm-up", "most_columns": _MOST_COLUMNS, "most_bytes": _MOST_BYTES}
        work(Task("anonymize", policy, {"table": str(table)}, **given), silent)
        inputs = {"published": str(result), "original": str(table)}
        work(Task("audit", policy, inputs, **given), silent)

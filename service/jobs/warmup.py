"""Load or compile every kernel that a job may need before its process takes one: afterwards nobody waits for it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory

from microdata import silent
from service.jobs.work import Task, work
from service.kinds import DataKind, data_kinds

log = logging.getLogger(__name__)

_MOST_COLUMNS = 1_000
_MOST_BYTES = 1 << 24


def warm_up() -> None:
    """Anonymize the examples of every kind of data, and audit a result of each."""
    for kind in data_kinds():
        try:
            _warm_up(kind)
        except Exception as error:  # noqa: BLE001 - who needs it finds out; who does not is not kept waiting
            log.warning("the examples of data %r cannot be run: %s", kind.name, type(error).__name__)


def _warm_up(kind: DataKind) -> None:
    with TemporaryDirectory(prefix="portcullis-warm-up-") as folder:
        table, policy = Path(folder, "table.csv"), None
        for example in kind.examples():
            table.write_text(example.table, encoding="utf-8")
            policy = json.dumps(example.policy)
            work(Task("anonymize", policy, {"table": str(table)}, folder, _MOST_COLUMNS, _MOST_BYTES), silent)
        if policy is not None:
            inputs = {"published": str(Path(folder, "result.csv")), "original": str(table)}
            work(Task("audit", policy, inputs, folder, _MOST_COLUMNS, _MOST_BYTES), silent)

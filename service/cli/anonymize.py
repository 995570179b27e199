"""`portcullis anonymize`: one table, no server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from service.cli.findings import say_verdict
from service.cli.options import Overwrite, Report, ReportPage, Seed, warn_of_seed
from service.cli.output import progress_bar, say_written, warn
from service.cli.targets import check_targets
from service.policy import load_policy


def anonymize(
    table: Annotated[Path, typer.Argument(help="Table to anonymize: CSV, Parquet, JSON lines or Arrow.")],
    policy: Annotated[Path, typer.Option(help="Policy with an algorithm for tables.")],
    out: Annotated[Path, typer.Option(help="Where to write the published table; the ending says the format.")],
    report: Report = None,
    html: ReportPage = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Anonymize a table. It is audited before anything is written: exit status 3 if that ever failed."""
    warn_of_seed(seed)
    targets = {"--out": out, "--report": report, "--html": html}
    check_targets({"the table": table, "the policy": policy}, targets, overwrite=overwrite)
    loaded = load_policy(policy)
    kind, started = loaded.data, time.monotonic()
    with progress_bar() as progress:
        result = kind.anonymize(loaded, table, seed=seed, progress=progress)
        seconds, seeded = time.monotonic() - started, seed is not None
        # Made before anything is written, so that a run that cannot be reported on leaves nothing behind.
        made = kind.report(loaded, result, seconds=seconds, repeatable=seeded) if report or html else None
        kind.write(loaded, result, out, seed=seed, progress=progress)
    if made and report:
        report.write_text(made.model_dump_json(indent=2), encoding="utf-8")
    if made and html:
        html.write_text(kind.page(made), encoding="utf-8")
    for warning in result.warnings:
        warn(f"warning: {warning}")
    say_verdict(result.verdict)
    say_written(out, seconds, report, html)

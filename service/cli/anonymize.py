"""`portcullis anonymize`: one table, no server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from microdata import words, write_published
from service.cli.findings import say_audit
from service.cli.options import Overwrite, Report, ReportPage, Seed, warn_of_seed
from service.cli.output import progress_bar, say_written, warn
from service.cli.targets import check_targets
from service.policy import load_policy
from service.report import report_html
from service.tables import anonymize_table, report_on


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
    started = time.monotonic()
    with progress_bar() as progress:
        result = anonymize_table(loaded, table, seed=seed, progress=progress)
        seconds = time.monotonic() - started
        # Made before anything is written, so that a run that cannot be reported on leaves nothing behind.
        made = report_on(loaded, result, seconds=seconds, repeatable=seed is not None) if report or html else None
        write_published(result.publication, out, words=words(seed), progress=progress, formulas=loaded.table.formulas)
    if made and report:
        report.write_text(made.model_dump_json(indent=2), encoding="utf-8")
    if made and html:
        html.write_text(report_html(made), encoding="utf-8")
    if len(result.refusals):
        warn(f"warning: refused rows were left out\n{result.refusals.describe()}")
    say_audit(result.audit)
    say_written(out, seconds, report, html)

"""`portcullis audit`: an independent check of something published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import privacy
from microdata import read_published, read_table
from service.cli.findings import say_audit
from service.cli.output import progress_bar, say_json, warn
from service.exit_status import GUARANTEE_FAILED
from service.policy import load_policy
from service.tables import failures


def audit(
    original: Annotated[Path, typer.Argument(help="The table that was anonymized: CSV, Parquet, JSON lines or Arrow.")],
    published: Annotated[Path, typer.Argument(help="What was published of it, by Portcullis or by others.")],
    policy: Annotated[Path, typer.Option(help="Policy that says what must hold; its algorithm is not run.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Check a published table against its original and a policy. Exit status 1 when a guarantee fails."""
    loaded = load_policy(policy)
    with progress_bar() as progress:
        reading = read_table(original, loaded.schema, on_refused=loaded.table.on_refused, progress=progress)
        result = privacy.audit(
            reading.table, read_published(published, loaded.schema, formulas=loaded.table.formulas), loaded.models()
        )
    if as_json:
        say_json(result.as_dict())
    else:
        say_audit(result)
    if not result.holds:
        # With several rows per person, what is published cannot prove how many persons stand behind a class.
        verdict = (
            "is not shown to hold, going by the fewest persons" if result.persons == "at least" else "does not hold"
        )
        warn(f"the guarantee {verdict}: {failures(result)}")
        raise typer.Exit(GUARANTEE_FAILED)

"""`portcullis audit`: an independent check of something published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.findings import say_verdict
from service.cli.output import progress_bar, say_json, warn
from service.exit_status import GUARANTEE_FAILED, NOT_SHOWN
from service.policy import load_policy


def audit(
    original: Annotated[Path, typer.Argument(help="The table that was anonymized: CSV, Parquet, JSON lines or Arrow.")],
    published: Annotated[Path, typer.Argument(help="What was published of it, by Portcullis or by others.")],
    policy: Annotated[Path, typer.Option(help="Policy that says what must hold; its algorithm is not run.")],
    links: Annotated[
        Path | None,
        typer.Option(
            help="What `portcullis anonymize --links` or `replay --links` kept of it: persons are counted exactly then."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Check a published table against its original and a policy.

    Exit status 1 when a guarantee fails, 4 when the published file does not tell enough to show that all of them hold.
    """
    loaded = load_policy(policy)
    if links and not loaded.data.keeps_links:
        raise typer.BadParameter(f"{loaded.data.name} have no links: leave it out", param_hint="--links")
    basis = {"original": original} | ({"links": links} if links else {})
    with progress_bar() as progress:
        verdict = loaded.data.audit(loaded, published, basis, progress=progress)
    if as_json:
        say_json(verdict.data)
    else:
        say_verdict(verdict)
    if verdict.outcome == "not shown":
        warn(f"the guarantee is not shown to hold: {verdict.failures}")
        if links is None and loaded.data.keeps_links:
            warn("the owner of the original can count persons: anonymize with --links, then audit with --links")
        raise typer.Exit(NOT_SHOWN)
    if not verdict.holds:
        warn(f"the guarantee does not hold: {verdict.failures}")
        raise typer.Exit(GUARANTEE_FAILED)

"""`portcullis audit`: an independent check of something published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.findings import say_verdict
from service.cli.output import progress_bar, say_json, warn
from service.exit_status import GUARANTEE_FAILED
from service.policy import load_policy


def audit(
    original: Annotated[Path, typer.Argument(help="The table that was anonymized: CSV, Parquet, JSON lines or Arrow.")],
    published: Annotated[Path, typer.Argument(help="What was published of it, by Portcullis or by others.")],
    policy: Annotated[Path, typer.Option(help="Policy that says what must hold; its algorithm is not run.")],
    links: Annotated[
        Path | None,
        typer.Option(
            help="What `portcullis replay --links` kept of it: then persons are counted, and k over time too."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Check a published table against its original and a policy. Exit status 1 when a guarantee fails."""
    loaded = load_policy(policy)
    if links and loaded.kind != "stream":
        raise typer.BadParameter("only what a stream left behind is checked with links", param_hint="--links")
    basis = {"original": original} | ({"links": links} if links else {})
    with progress_bar() as progress:
        verdict = loaded.data.audit(loaded, published, basis, progress=progress)
    if as_json:
        say_json(verdict.data)
    else:
        say_verdict(verdict)
    if not verdict.holds:
        warn(f"the guarantee {verdict.doubt}: {verdict.failures}")
        raise typer.Exit(GUARANTEE_FAILED)

"""Options of more than one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from service.cli.output import warn

Report: TypeAlias = Annotated[Path | None, typer.Option(help="Also write the report, as JSON.")]
ReportPage: TypeAlias = Annotated[Path | None, typer.Option(help="Also write the report as one page with plots.")]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")]
Seed: TypeAlias = Annotated[
    int | None, typer.Option(help="Repeatable randomness for tests and experiments: not for release.")
]


def warn_of_seed(seed: int | None) -> None:
    """Whoever knows the seed knows which rows were drawn."""
    if seed is not None:
        warn(f"warning: --seed {seed} makes the result repeatable; it is for experiments, not for release")

"""Where commands write: never over what they read, nor over each other, nor over what is there unless they may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer


def check_targets(sources: Mapping[str, Path], targets: Mapping[str, Path | None], *, overwrite: bool) -> None:
    """A result must not replace what it is made from, nor one result another.

    Files that are there are kept: two publications of the same people tell more than one, so the second is a decision.
    """
    seen = {path.resolve(): name for name, path in sources.items()}
    for option, path in targets.items():
        if path is None:
            continue
        if not path.parent.is_dir():
            raise typer.BadParameter(f"{path.parent} is not a directory", param_hint=option)
        if path.resolve() in seen:
            raise typer.BadParameter(f"{path} is already {seen[path.resolve()]}", param_hint=option)
        if path.is_file() and not overwrite:
            raise typer.BadParameter(
                f"{path} is there already; name another file or add --overwrite", param_hint=option
            )
        seen[path.resolve()] = option

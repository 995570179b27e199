"""What commands print: JSON for programs, tables and progress for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import microdata

PIPE_WIDTH = 120


def say(text: str = "") -> None:
    """One paragraph on stdout."""
    typer.echo(microdata.shown_escaped(text))


def warn(text: str) -> None:
    """One paragraph on stderr."""
    typer.echo(microdata.shown_escaped(text), err=True)


def say_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout; cells are shown as they are, without markup."""
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(Text(microdata.shown_escaped(str(cell))) for cell in row))
    screen = Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    with screen.capture() as drawn:  # rich would end the command itself, and with 1, when nobody reads on
        screen.print(table)
    typer.echo(drawn.get(), nl=False)


def say_written(out: Path, seconds: float, *reports: Path | None) -> None:
    """Where the result and its reports are."""
    made = " and ".join(str(path) for path in reports if path)
    say(f"wrote {out} after {seconds:.1f} s" + (f", and the report to {made}" if made else ""))


@contextmanager
def progress_bar() -> Iterator[microdata.Progress]:
    """A bar with an estimate on stderr, for people only; it goes away when the work is done."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    tasks: dict[str, Any] = {}

    def report(phase: str, done: int, total: int) -> None:
        if phase not in tasks:
            tasks[phase] = bar.add_task(phase, total=total or None)
        bar.update(tasks[phase], completed=done, total=total or None)

    with bar:
        yield report

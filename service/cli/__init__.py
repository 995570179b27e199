"""The command line: one module per command, loaded when it is asked for, so that `--help` answers at once."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from service.cli.commands import COMMANDS, Commands
from service.exit_status import MEANINGS

_STATUSES = "\n".join(f"  {status:<3}  {meaning}" for status, meaning in MEANINGS.items())

app = typer.Typer(
    name="portcullis",
    epilog=f"\b\nExit status:\n{_STATUSES}",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _tell_version(asked: bool) -> None:
    if not asked:
        return
    try:
        typer.echo(f"portcullis {version('portcullis')}")
    except PackageNotFoundError:
        typer.echo("portcullis, run from its source without being installed")
    raise typer.Exit


@app.callback()
def _portcullis(
    _: Annotated[
        bool, typer.Option("--version", help="Tell the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Anonymize data about people while it moves: tables and streams in, classes with a proven guarantee out."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help)(lambda: None)


def main() -> None:
    """Entry point of the `portcullis` command."""
    app()

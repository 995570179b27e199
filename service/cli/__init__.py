"""The command line: one module per command, loaded when it is asked for, so that `portcullis --help` answers at once.

Exit status: 0 done, 1 a guarantee failed, 2 wrong use or bad input, 3 a publication failed its own audit.
"""

from __future__ import annotations

import typer

from service.cli.commands import COMMANDS, Commands

app = typer.Typer(
    name="portcullis",
    help="Anonymize data about people while it moves: tables and streams in, classes with a proven guarantee out.",
    epilog="Exit status: 0 done, 1 a guarantee failed, 2 wrong use or bad input, 3 a publication failed its own audit.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help)(lambda: None)


def main() -> None:
    """Entry point of the `portcullis` command."""
    app()

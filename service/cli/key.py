"""`portcullis key`: make the keys that seal what workers remember of persons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from service.cli.output import say
from service.worker.sealing import add_key

key = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@key.callback()
def _key() -> None:
    """Make the keys that seal what workers remember of persons."""


@key.command(epilog="Example: portcullis key new keys.json")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Key file; it is made if it is not there.")],
    name: Annotated[
        str | None, typer.Option("--id", help="Id of the key; a date and a random part if left out.")
    ] = None,
) -> None:
    """Make a key file, or add a key to one, which seals what is written from then on; older ones open what is there.

    Whoever has the file can read what is remembered of persons; without it nobody can go on with the stream. Keep a
    copy where the topics are not.
    """
    if name is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name):
        raise typer.BadParameter("letters, digits, '.', '_' and '-' are allowed, at most 100", param_hint="--id")
    done = f"added key {{}} to {file}" if file.exists() else f"made key {{}} in {file}"
    say(f"{done.format(add_key(file, name))}, readable by you alone; keep a copy")
    say(f"tell the workers: PORTCULLIS_WORKER_KEY_FILE={file}")

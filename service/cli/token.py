"""`portcullis token`: make bearer tokens for the HTTP service."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from service.api.tokens import Scope, new_token
from service.cli.output import say


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


token = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@token.callback()
def _token() -> None:
    """Make tokens for the HTTP service."""


@token.command(epilog="Example: portcullis token new alice --scope submit --scope read:own --append tokens.jsonl")
def new(
    name: Annotated[str, typer.Argument(help="Whose it is; jobs belong to this name.")],
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may do; may be repeated.")] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Tokens of one group share a ledger of releases; without, the token has its own."),
    ] = None,
    append: Annotated[Path | None, typer.Option(help="Also add it to this tokens file.")] = None,
) -> None:
    """Make a token. It is shown once; the configuration holds only its hash."""
    try:
        text, configured = new_token(name, scope or [Scope.SUBMIT, Scope.READ_OWN], group)
    except ValidationError:
        raise typer.BadParameter(
            "letters, digits, '.', '_' and '-' are allowed, at most 100, a letter or digit first",
            param_hint="NAME, --group",
        ) from None
    line = configured.model_dump_json(exclude_none=True)
    if append is not None:
        with open(append, "a", encoding="utf-8", opener=_private) as file:
            file.write(f"{line}\n")
    say(f"token (keep it, it is not shown again): {text}")
    say(f"line for PORTCULLIS_TOKENS_FILE: {line}")

"""How a command ends when something is wrong: one clear paragraph on stderr, an exit status, never a record value."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module

import typer

from service.exit_status import INTERNAL, READER_GONE, UNAVAILABLE, WRONG_USE, status_of
from service.logs import fault

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}
"""What a machine lacks, whoever asks."""


def answer(error: Exception) -> int | None:
    """Say what went wrong and return the exit status; None for what typer answers itself."""
    if type(error).__module__.startswith(("typer", "click")):
        return None
    if isinstance(error, BrokenPipeError):
        # The reader has had enough, as `head` has; what is left in the buffer must not fail once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    # Only now: the package of the error tree takes a second to load, and help needs none of it.
    ours = import_module("microdata.errors")
    if isinstance(error, ours.PortcullisError):
        typer.echo(f"error: {error}", err=True)
        return status_of(error)
    if isinstance(error, OSError) and (error.filename is not None or error.errno in _FULL):
        where = "" if error.filename is None else f"{error.filename}: "
        typer.echo(f"error: {where}{error.strerror}", err=True)
        return UNAVAILABLE if error.errno in _FULL else WRONG_USE
    if os.environ.get("PORTCULLIS_TRACEBACK") == "1":
        return None
    typer.echo(fault(error), err=True)
    return INTERNAL

"""Outages: what may pass is answered with 503 and `Retry-After`, and says which part is away."""

from __future__ import annotations

import errno
import sqlite3

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.problems import Problem, problem

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_POSTGRES_NO_ROOM = "53100"
_POSTGRES_PASSING = ("08", "53", "57", "25006")
"""Classes of SQLSTATE that pass: no connection, no resources, shut down by somebody, a standby that took over."""
_SQLITE_PASSING = {
    sqlite3.SQLITE_BUSY: "database-locked",
    sqlite3.SQLITE_LOCKED: "database-locked",
    sqlite3.SQLITE_FULL: "disk-full",
    sqlite3.SQLITE_IOERR: "database-unavailable",
    sqlite3.SQLITE_CANTOPEN: "database-unavailable",
    sqlite3.SQLITE_READONLY: "database-unavailable",
}
_DETAILS = {
    "database-locked": "Something else holds the database; try again.",
    "database-unavailable": "Try again when it answers.",
    "disk-full": "Try again when there is room on the service's disk.",
    "files-unavailable": "Try again when the service's data directory can be used.",
}


def outage(error: SQLAlchemyError | OSError) -> Problem | None:
    """The outage behind an error; None where it is a fault of ours."""
    kind = _of_files(error) if isinstance(error, OSError) else _of_database(error)
    return problem(kind, _DETAILS[kind]) if kind else None


def _of_files(error: OSError) -> str:
    return "disk-full" if error.errno in _NO_ROOM else "files-unavailable"


def _of_database(error: SQLAlchemyError) -> str | None:
    if isinstance(error, PoolTimeoutError):
        return "database-unavailable"
    if not isinstance(error, DBAPIError):
        return None
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _SQLITE_PASSING.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
    state = getattr(cause, "sqlstate", None)
    if state == _POSTGRES_NO_ROOM:
        return "disk-full"
    passing = error.connection_invalidated or (state or "08").startswith(_POSTGRES_PASSING)
    return "database-unavailable" if passing else None

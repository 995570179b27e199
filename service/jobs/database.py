"""The service's database: SQLite in a file by default, PostgreSQL by URL; brought up to date when it is opened."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, OperationalError

from microdata import PortcullisError, UnavailableError

_MIGRATION_LOCK = 0x706F7274
"""Any number, the same for every process: only one of them migrates at a time."""


_BUSY_SECONDS = 3
"""How long a statement waits for SQLite's write lock. Submitting a job takes the lock once."""
_CONNECT_SECONDS = 5
"""How long a server may take to accept us, and a connection to come free."""


class DatabaseError(PortcullisError):
    """A database that cannot be opened. Its message holds no password."""


class DatabaseAwayError(DatabaseError, UnavailableError):
    """A database that does not answer; it may do so later."""


def open_database(url: str) -> Engine:
    """An engine for this URL, with the current schema."""
    try:
        kind = make_url(url).get_backend_name()
    except ArgumentError:
        kind = ""
    openers = {"sqlite": _sqlite, "postgresql": _postgresql}
    if kind not in openers:
        raise DatabaseError("database_url: must begin with postgresql:// (or be left out: a file is used then)")
    try:
        engine = openers[kind](url)
    except ModuleNotFoundError as error:
        raise DatabaseError(f"database_url: {error.name} is not installed (extra `postgres`)") from None
    try:
        migrate(engine)
    except OperationalError:
        where = engine.url.render_as_string(hide_password=True)
        raise DatabaseAwayError(f"the database {where} does not answer, or refuses us") from None
    return engine


def migrate(engine: Engine) -> None:
    """Bring the schema up to date; safe when several processes start at once."""
    from alembic import command  # noqa: PLC0415 - it takes half a second to load, and job processes never need it
    from alembic.config import Config  # noqa: PLC0415

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(files("service.jobs").joinpath("migrations")))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _postgresql(url: str) -> Engine:
    given = make_url(url)
    with_driver = given.set(drivername="postgresql+psycopg") if given.drivername == "postgresql" else given
    engine = create_engine(
        with_driver,
        pool_pre_ping=True,
        pool_size=8,
        pool_timeout=_CONNECT_SECONDS,
        connect_args={"connect_timeout": _CONNECT_SECONDS},
    )

    @event.listens_for(engine, "do_connect")
    def _connect(_: Any, __: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        from service.jobs.postgresql import ImpatientConnection  # noqa: PLC0415 - its driver is an extra

        return ImpatientConnection.connect(*arguments, **options)

    return engine


def _keep_private(path: str | None) -> None:
    """Nobody else may read the file, whatever the directory it is in; SQLite's other files take after it."""
    if path and path != ":memory:":
        with suppress(OSError):  # SQLite says better what is wrong
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            os.chmod(path, 0o600)  # noqa: PTH101 - as above


def _sqlite(url: str) -> Engine:
    _keep_private(make_url(url).database)
    # The connection used last: a write makes every other one forget the pages it has read.
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS}, pool_use_lifo=True)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        # Readers do not wait for the writer, and what is deleted is overwritten.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # What writes takes its lock first: two that read and then write would refuse each other.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine

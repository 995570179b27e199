"""What commands there are, and how they are loaded and end."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from service.cli.errors import answer
from service.exit_status import (
    DONE,
    GUARANTEE_FAILED,
    INTERNAL,
    INTERRUPTED,
    NOT_SHOWN,
    PUBLICATION_FAILED,
    REFUSED,
    UNAVAILABLE,
    WRONG_USE,
    told,
)
from service.lean_start import leave_out_what_nobody_asked_for


class Command(NamedTuple):
    """One command: where its function (or group of functions) is, what it does, how it is used and may end."""

    target: str
    help: str
    example: str
    statuses: tuple[int, ...] = (DONE, WRONG_USE)


COMMANDS = {
    "anonymize": Command(
        "service.cli.anonymize:anonymize",
        "Anonymize a table.",
        "portcullis anonymize people.csv --policy policy.yaml --out safe.csv --report report.json",
        (DONE, WRONG_USE, PUBLICATION_FAILED),
    ),
    "audit": Command(
        "service.cli.audit:audit",
        "Check a published table against its original and a policy.",
        "portcullis audit people.csv safe.csv --policy policy.yaml",
        (DONE, GUARANTEE_FAILED, WRONG_USE, NOT_SHOWN),
    ),
    "attack": Command(
        "service.cli.attack:attack",
        "Attack what is already published, as its owner.",
        "portcullis attack policy.yaml --original people.csv --published safe.csv",
        (DONE, GUARANTEE_FAILED, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "evidence": Command(
        "service.cli.evidence:evidence",
        "File what a topic holds, look at what was filed, and check it.",
        "portcullis evidence verify evidence.json --original people.csv --published safe.csv",
        (DONE, GUARANTEE_FAILED, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "risk": Command(
        "service.cli.risk:risk",
        "Find out which fields of a table or topic identify people, and how badly.",
        "portcullis risk people.csv --size 4",
        (DONE, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "policy": Command(
        "service.cli.policy:policy",
        "Check a policy, or propose a first one for a table or a topic.",
        "portcullis policy init people.csv",
        (DONE, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "algorithms": Command(
        "service.cli.algorithms:algorithms",
        "List the algorithms, their parameters and guarantees.",
        "portcullis algorithms --json",
    ),
    "replay": Command(
        "service.cli.replay:replay",
        "Send a file of events through a stream algorithm, without Kafka.",
        "portcullis replay orders.jsonl --policy orders.yaml --out safe.jsonl --report report.json",
        (DONE, WRONG_USE, PUBLICATION_FAILED),
    ),
    "run": Command(
        "service.worker.command:run_command",
        "Run workers for one or more streams.",
        "portcullis run orders.yaml",
        (DONE, WRONG_USE, UNAVAILABLE, INTERNAL, REFUSED),
    ),
    "drain": Command(
        "service.worker.command:drain_command",
        "End a stream and record where a new policy may start.",
        "portcullis drain orders.yaml",
        (DONE, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "forget": Command(
        "service.worker.command:forget_command",
        "Erase persons from what a stream remembers.",
        "portcullis forget visits.yaml --person-file persons.txt",
        (DONE, WRONG_USE, UNAVAILABLE, REFUSED),
    ),
    "serve": Command(
        "service.cli.serve:serve",
        "Serve the HTTP API, its jobs and the console.",
        "portcullis serve --port 8080 --data /var/lib/portcullis",
        (DONE, WRONG_USE, UNAVAILABLE),
    ),
    "token": Command(
        "service.cli.token:token",
        "Make bearer tokens for the HTTP API.",
        "portcullis token new alice --scope submit --scope read:own",
    ),
    "key": Command(
        "service.cli.key:key",
        "Make the keys that seal what workers remember of persons.",
        "portcullis key new keys.json",
    ),
    "broker": Command(
        "service.broker.command:broker_command",
        "Run an embedded Kafka broker for development.",
        "portcullis broker --port 9092",
        (DONE, WRONG_USE, UNAVAILABLE),
    ),
    "demo": Command(
        "service.cli.demo:demo",
        "Show a stream being anonymized, live.",
        "portcullis demo --events 100000 --exit",
        (DONE, GUARANTEE_FAILED, WRONG_USE, UNAVAILABLE),
    ),
}


class Commands(TyperGroup):
    """The group of all commands. It lists them by their table and loads the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, loaded."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; whatever goes wrong becomes an answer and an exit status."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            status = answer(error)
            if status is None:
                raise
            raise typer.Exit(status) from None


def _imported(module: str) -> Any:
    """The module; what modules define is no garbage, and looking for some takes a sixth of the time to import them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()  # nor is it looked at later
        if collects:
            gc.enable()


def load(name: str) -> Any:
    """The command of this name, with its module."""
    command = COMMANDS[name]
    module, _, attribute = command.target.partition(":")
    target = getattr(_imported(module), attribute)
    leave_out_what_nobody_asked_for()
    if isinstance(target, typer.Typer):
        return typer.main.get_command(target)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, epilog=f"Example: {command.example}\n\n{told(command.statuses)}")(target)
    return typer.main.get_command(single)

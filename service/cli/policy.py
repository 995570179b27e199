"""`portcullis policy`: check a policy, or propose a first one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.output import progress_bar, say, say_json, warn
from service.cli.policy_init import init
from service.codec import AVRO, PROTOBUF, registry_of, topic_complaints
from service.exit_status import WRONG_USE
from service.policy import Policy, PolicyError, PolicyProblem, load_policy
from service.policy.data import TableCheck

policy = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@policy.callback()
def _policy() -> None:
    """Check a policy, or propose a first one for a table or a topic."""


@policy.command(epilog="Example: portcullis policy check orders.yaml --table orders.csv")
def check(
    file: Annotated[Path, typer.Argument(help="Policy file, YAML or JSON.")],
    table: Annotated[
        Path | None,
        typer.Option(help="Also look at this table: refused rows, whether the guarantee can be met, public fields."),
    ] = None,
    topic: Annotated[
        bool, typer.Option("--topic", help="Also ask the schema registry for the fields of the input topic.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Say whether a policy can be used, and everything that is wrong with it."""
    try:
        loaded, found = _checked(file, table)
        if topic:
            _check_topic(loaded, file)
    except PolicyError as error:
        if not as_json:
            raise
        say_json({"usable": False, "problems": [problem._asdict() for problem in error.problems]})
        raise typer.Exit(WRONG_USE) from None
    if as_json:
        say_json(_as_json(loaded, found))
    else:
        _say_usable(loaded, found)


def _checked(file: Path, table: Path | None) -> tuple[Policy, TableCheck | None]:
    loaded = load_policy(file)
    if table is None:
        return loaded, None
    with progress_bar() as progress:
        found = loaded.data.check(loaded, table, progress=progress)
    if found.problems:
        raise PolicyError(found.problems, source=f"{file} with {table}")
    return loaded, found


def _check_topic(loaded: Policy, file: Path) -> None:
    """Refuse a policy whose fields are not in the schema of its input topic."""
    stream = loaded.stream
    if stream is None or not {loaded.format.input.type, loaded.format.key_type} & {AVRO, PROTOBUF}:
        reason = "only an input, or keys, of avro or protobuf have a schema to look at"
        raise PolicyError([PolicyProblem("stream.format", reason)], str(file))
    complaints = topic_complaints(loaded.route(registry_of(loaded.route())))
    if complaints:
        problems = [PolicyProblem(f"schema ({name})", complaint) for name, complaint in complaints]
        raise PolicyError(problems, source=f"{file} with topic {stream.input}")


def _as_json(loaded: Policy, found: TableCheck | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "usable": True,
        "problems": [],
        "name": loaded.name,
        "kind": loaded.kind,
        "models": {model.label: model.asked for model in loaded.models()},
        "fingerprint": loaded.fingerprint(),
    }
    if found:
        refused = [one._asdict() for one in found.refused]
        result |= {"rows": found.rows, "refused": refused, "warnings": list(found.warnings)}
    return result


def _say_usable(loaded: Policy, found: TableCheck | None) -> None:
    for warning in found.warnings if found else ():
        warn(f"warning: {warning}")
    use = {"table": "for tables", "stream": "for streams", "audit": "for audits only: it names no algorithm"}
    models = ", ".join(f"{model.label} {model.asked:g}" for model in loaded.models())
    rows = f", {found.rows} rows of the table accepted" if found else ""
    say(f"{loaded.name}: usable {use[loaded.kind]}; guarantees {models}{rows}")
    say(f"fingerprint {loaded.fingerprint()}")


policy.command(epilog="Example: portcullis policy init orders.csv --out orders-policy")(init)

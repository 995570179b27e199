"""`portcullis policy`: check a policy, or propose a first one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from microdata import DataError, InfeasibleError, Sample, Schema, read_fields, read_sample
from service.cli.output import progress_bar, say, say_json, warn
from service.codec import AVRO, PROTOBUF, Route, topic_complaints
from service.exit_status import WRONG_USE
from service.kinds import data_kinds
from service.policy import Policy, PolicyError, PolicyProblem, load_policy, parse_policy
from service.policy.data import Proposal, TableCheck
from service.policy.text import parse_text
from service.registry import Registry, RegistrySettings
from service.risk import Roles, rate, sentence
from service.settings import settings_of

SHARE, SIZE, SETS = 0.2, 3, 3
"""Fields that are named as a reason: what they single out together, how many they are, and how many such sets."""
TRIED = (1, 2, 5)
"""Times the proposed k."""

policy = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@policy.callback()
def _policy() -> None:
    """Check a policy, or propose a first one for a table."""


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
    if stream is None or loaded.format.input.type not in {AVRO, PROTOBUF}:
        reason = "only an input of avro or protobuf has a schema to look at"
        raise PolicyError([PolicyProblem("stream.format", reason)], str(file))
    asked = loaded.format.needs_registry
    registry = Registry(settings_of(RegistrySettings, {})) if asked else None
    complaints = topic_complaints(
        Route(loaded.schema, loaded.format, stream.input, stream.output, stream.emit, loaded.show, registry)
    )
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


@policy.command(epilog="Example: portcullis policy init orders.csv --out orders-policy")
def init(
    table: Annotated[Path, typer.Argument(help="Table to look at: CSV, Parquet, JSON lines or Arrow.")],
    out: Annotated[Path, typer.Option(help="Directory for policy.yaml and its hierarchies.")] = Path(),
    try_out: Annotated[
        bool, typer.Option("--try", help="Also anonymize the table with three choices of k, and tell what each costs.")
    ] = False,
) -> None:
    """Propose a policy for a table: roles, domains and hierarchies, each guess with its reason."""
    sample = read_sample(table)
    proposal = _proposed(sample, table.name.split(".")[0])
    path = proposal.write(out)
    for guess in proposal.guesses:
        say(f"{guess.name}: {guess.role} ({guess.reason})")
    for reason in _identifying(table, load_policy(path), sample.columns.num_rows):
        say(reason)
    if not sample.whole:
        warn(f"looked at the first {sample.columns.num_rows} rows only; policy check --table looks at all of them")
    for warning in proposal.warnings:
        warn(f"warning: {warning}")
    for line in _tried(table, path) if try_out else ():
        say(line)
    say(f"wrote {path}; read it, correct it, then run: portcullis policy check {path} --table {table}")


def _identifying(table: Path, policy: Policy, rows: int) -> Iterator[str]:
    """Why the quasi-identifiers are some: how many rows they single out, and what each of them adds."""
    if not isinstance(policy.schema, Schema):
        return
    roles = Roles.declared(policy)
    try:
        rating = rate(read_fields(table, rows), roles=roles, share=SHARE, size=SIZE)
    except DataError:
        return  # of very many fields, or of values that are lists here and there, a proposal is made all the same
    yield f"{rating.quasi:.0%} of the rows are unique on the quasi-identifiers as they are"
    # What is left out cannot be used, and who is meant is asked for.
    own = [one for one in rating.found.sets if all(roles.of.get(name) == "quasi" for name in one.fields)]
    yield from (f"  {sentence(one)}" for one in own[:SETS])


def _tried(table: Path, path: Path) -> Iterator[str]:
    """What the proposal costs with several k; it is the same audit that stands before every publication."""
    given = parse_text(path.read_text(encoding="utf-8"))
    if "k" not in given["guarantee"]:
        return
    for factor in TRIED:
        k = factor * given["guarantee"]["k"]
        policy = parse_policy({**given, "guarantee": {**given["guarantee"], "k": k}}, path.parent)
        try:
            with progress_bar() as progress:
                found = policy.data.anonymize(policy, table, progress=progress).verdict.notes[0]
        except InfeasibleError as error:
            found = f"cannot be had: {error}"
        yield f"with k {k}: {found}"


def _proposed(sample: Sample, name: str) -> Proposal:
    """The proposal of the first kind that recognises its data; the default, which takes any table, is asked last."""
    default, *others = data_kinds()
    for kind in (*others, default):
        proposal = kind.propose(sample, name)
        if proposal is not None:
            return proposal
    raise DataError("no kind of data recognises this table")

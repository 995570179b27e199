"""`portcullis evidence`: file what a topic holds, look at what was filed, and check it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from microdata import DataError
from service.cli.options import Overwrite
from service.cli.output import progress_bar, say, say_json, say_table, warn
from service.cli.targets import check_targets
from service.codec import registry_of
from service.evidence import (
    Bounds,
    Given,
    evidence_html,
    gather_stretch,
    keep_secret,
    kind_of,
    new_secret,
    output_of,
    public_key,
    read,
    signature,
    signing_key,
    verify,
    verify_stretch,
    write,
)
from service.exit_status import GUARANTEE_FAILED
from service.kafka import connect
from service.kafka.flags import Bootstrap, ClientName, SettingsFile, kafka_settings
from service.policy import load_policy
from service.settings import read_settings_file

evidence = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_LONGEST_SECRET = 1024

Evidence: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Also file what was asked, achieved and attacked here; FILE.secret is for you alone."),
]
Sign: TypeAlias = Annotated[Path | None, typer.Option(help="Private key (PEM, Ed25519) that signs the evidence.")]


@evidence.callback()
def _evidence() -> None:
    """File what a topic holds, look at what was filed, and check it."""


@evidence.command(
    "verify", epilog="Example: portcullis evidence verify evidence.json --original people.csv --published safe.csv"
)
def verify_command(
    file: Annotated[Path, typer.Argument(help="Evidence, as --evidence wrote it, or a job.")],
    policy: Annotated[Path | None, typer.Option(help="The policy of the publication.")] = None,
    original: Annotated[Path | None, typer.Option(help="The table or events that were anonymized.")] = None,
    published: Annotated[Path | None, typer.Option(help="What was published of it.")] = None,
    secret: Annotated[
        Path | None, typer.Option(help="The file FILE.secret that was written with the evidence; found beside it.")
    ] = None,
    links: Annotated[
        Path | None, typer.Option(help="Of a replay: which events each line is about (FILE.links); found beside it.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Public key (PEM, Ed25519) of who must have signed it.")] = None,
    purpose: Annotated[str | None, typer.Option(help="Which of the policy's purposes it was for.")] = None,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write the page of the evidence, with what was verified.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Compare each statement with the files: it holds, differs or is not checked. Exit status 1 if one differs."""
    sources = {"the evidence": file, "the policy": policy, "the original": original, "what was published": published}
    check_targets({name: path for name, path in sources.items() if path}, {"--html": html}, overwrite=overwrite)
    filed = read(file)
    loaded = None if policy is None else load_policy(policy, purpose=purpose)
    given = Given(
        loaded,
        original,
        published,
        links or _beside(links_of(file)),
        _secret(file, secret),
        None if key is None else public_key(key),
    )
    with progress_bar() as progress:
        if kind_of(filed) == "topic":
            read_settings_file(settings_file)
            reached = bootstrap is not None or settings_file is not None
            broker = connect(kafka_settings(bootstrap, client)) if reached else None
            registry = registry_of(loaded.route()) if broker and loaded and loaded.stream else None
            checks = list(verify_stretch(filed, file, given, broker, registry=registry, progress=progress))
        else:
            checks = list(verify(filed, given, progress))
    if html is not None:
        html.write_text(evidence_html(filed, checks), encoding="utf-8")
    differing = [one for one in checks if one.outcome == "differs"]
    if as_json:
        say_json({"holds": not differing, "checks": [vars(one) for one in checks]})
    else:
        say_table(("checked", "outcome", "why"), [(one.about, one.outcome, one.why) for one in checks])
    if differing:
        warn(f"the evidence does not hold: {', '.join(one.about for one in differing)}")
        raise typer.Exit(GUARANTEE_FAILED)


@evidence.command(
    epilog="Example: portcullis evidence topic orders.yaml --out october.json --to 2026-11-01\n\n"
    "         portcullis evidence topic orders.yaml --out november.json --after october.json --to 2026-12-01"
)
def topic(
    policy: Annotated[Path, typer.Argument(help="Policy whose output topic is looked at.")],
    out: Annotated[Path, typer.Option(help="Where to write the evidence.")],
    since: Annotated[
        str | None,
        typer.Option("--from", help="Begin with what was published at this time (ISO 8601, UTC if it says no other)."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="End before what was published at this time; without, with the newest.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option(help="The evidence before: begin where it ended, and name it. Keep it beside --out.")
    ] = None,
    sign: Sign = None,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
    overwrite: Overwrite = False,
) -> None:
    """File what a stretch of an output topic holds. Exit status 1 if what any reader can check does not hold."""
    filing = Signing.of(out, sign)
    sources = {"the policy": policy} | ({"the evidence before": after} if after else {})
    check_targets(sources, {"--out": out}, overwrite=overwrite)
    if after is not None and since is not None:
        raise typer.BadParameter("it begins where the evidence before ended", param_hint="--from")
    if after is not None and after.resolve().parent != out.resolve().parent:
        raise typer.BadParameter("must be in the directory of --out: verify looks for it there", param_hint="--after")
    bounds = Bounds(
        None if after is None else read(after),
        "" if after is None else after.name,
        _milliseconds(since, "--from"),
        _milliseconds(until, "--to"),
    )
    loaded = load_policy(policy)
    output_of(loaded)
    read_settings_file(settings_file)
    with progress_bar() as progress:
        broker = connect(kafka_settings(bootstrap, client))
        registry = registry_of(loaded.route())
        made = gather_stretch(loaded, broker, bounds, by="command line", registry=registry, progress=progress)
    filing.file(made)
    stretch, found = made["parts"]["stretch"], made["parts"]["audited"]
    rows = "" if found.get("unread") else f", {found['rows']} rows in {found['classes']} classes"
    say(f"{stretch['records']} records of {stretch['topic']}{rows}; evidence is in {out}, its hash is {made['hash']}")
    if found.get("unread") and stretch["records"]:
        warn("there are records that this policy does not write: they were hashed and could not be audited")
        raise typer.Exit(GUARANTEE_FAILED)
    if stretch["records"] and not found["holds"]:
        warn("what any reader can check does not hold: portcullis evidence show tells it")
        raise typer.Exit(GUARANTEE_FAILED)


def _milliseconds(given: str | None, option: str) -> int | None:
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise typer.BadParameter(
            "must be a time as ISO 8601: 2026-11-17 or 2026-11-17T08:30:00Z", param_hint=option
        ) from None
    return round(1000 * (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


@evidence.command(epilog="Example: portcullis evidence show evidence.json --html evidence.html")
def show(
    file: Annotated[Path, typer.Argument(help="Evidence, as --evidence wrote it, or a job.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page; without, it goes to stdout.")] = None,
) -> None:
    """Make a page of what the evidence says, without verifying it. `verify --html` makes one that says what holds."""
    made = evidence_html(read(file))
    if html is None:
        say(made)
    else:
        html.write_text(made, encoding="utf-8")


@dataclass(frozen=True)
class Signing:
    """Where a command files evidence of what it wrote, and with which key."""

    path: Path | None
    key: Any
    secret: bytes = field(default_factory=new_secret)

    @classmethod
    def of(cls, path: Path | None, key: Path | None) -> Signing:
        """What `--evidence` and `--sign` say; a key that cannot be used stops the run before it begins."""
        if key is not None and path is None:
            raise typer.BadParameter("it signs evidence: say where to write that with --evidence", param_hint="--sign")
        return cls(path, None if key is None else signing_key(key))

    def targets(self) -> dict[str, Path | None]:
        """The files that are written, by the options that name them."""
        secret = None if self.path is None else secret_of(self.path)
        return {"--evidence": self.path, "--evidence (secret)": secret}

    def file(self, evidence: dict[str, Any]) -> None:
        """Sign it where there is a key, and write it; with the secret beside it, where it names an original."""
        assert self.path is not None, "it is only made where a path was given"
        if self.key is not None:
            evidence["signature"] = signature(evidence, self.key)
        if "original" in evidence["parts"]:
            keep_secret(self.secret, secret_of(self.path))
        write(evidence, self.path)

    def say(self, *beside: Path | None) -> None:
        """Where it is, and what must stay with the original."""
        if self.path is not None:
            kept = " and ".join(str(path) for path in (secret_of(self.path), *beside) if path)
            say(f"evidence is in {self.path}; keep {kept} with the original, and away from who must not have that")


def secret_of(file: Path) -> Path:
    """Where the secret of evidence is kept."""
    return file.with_name(f"{file.name}.secret")


def links_of(file: Path) -> Path:
    """Where the links of a replay are kept that has evidence."""
    return file.with_name(f"{file.name}.links")


def _beside(path: Path) -> Path | None:
    return path if path.is_file() else None


def _secret(file: Path, given: Path | None) -> bytes | None:
    path = given or secret_of(file)
    if given is None and not path.exists():
        return None
    with path.open("rb") as opened:
        text = opened.read(_LONGEST_SECRET)
    try:
        return bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        raise DataError(f"{path.name}: is not the secret of evidence") from None

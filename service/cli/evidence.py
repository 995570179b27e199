"""`portcullis evidence`: look at what was filed, and check it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from microdata import DataError
from service.cli.output import progress_bar, say, say_json, say_table, warn
from service.evidence import (
    Given,
    evidence_html,
    new_secret,
    public_key,
    read,
    signature,
    signing_key,
    verify,
    write,
)
from service.exit_status import GUARANTEE_FAILED
from service.policy import load_policy

evidence = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_LONGEST_SECRET = 1024

Evidence: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Also file what was asked, achieved and attacked here; FILE.secret is for you alone."),
]
Sign: TypeAlias = Annotated[Path | None, typer.Option(help="Private key (PEM, Ed25519) that signs the evidence.")]


@evidence.callback()
def _evidence() -> None:
    """Look at what was filed about a publication, and check it."""


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
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Do again whatever can be: what holds, what differs, what was not checked. Exit status 1 if something differs."""
    filed = read(file)
    loaded = None if policy is None else load_policy(policy, purpose=purpose)
    with progress_bar() as progress:
        checks = list(
            verify(
                filed,
                Given(
                    loaded,
                    original,
                    published,
                    links or _beside(links_of(file)),
                    _secret(file, secret),
                    None if key is None else public_key(key),
                ),
                progress,
            )
        )
    differing = [one for one in checks if one.outcome == "differs"]
    if as_json:
        say_json({"holds": not differing, "checks": [vars(one) for one in checks]})
    else:
        say_table(("checked", "outcome", "why"), [(one.about, one.outcome, one.why) for one in checks])
    if differing:
        warn(f"the evidence does not hold: {', '.join(one.about for one in differing)}")
        raise typer.Exit(GUARANTEE_FAILED)


@evidence.command(epilog="Example: portcullis evidence show evidence.json --html evidence.html")
def show(
    file: Annotated[Path, typer.Argument(help="Evidence, as --evidence wrote it, or a job.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page; without, it goes to stdout.")] = None,
) -> None:
    """Make a page for people of evidence. It only shows what the file says: verify checks it."""
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
    secret: bytes

    @classmethod
    def of(cls, path: Path | None, key: Path | None) -> Signing:
        """What `--evidence` and `--sign` say; a key that cannot be used stops the run before it begins."""
        if key is not None and path is None:
            raise typer.BadParameter("it signs evidence: say where to write that with --evidence", param_hint="--sign")
        return cls(path, None if key is None else signing_key(key), new_secret())

    def targets(self) -> dict[str, Path | None]:
        """The files that are written, by the options that name them."""
        secret = None if self.path is None else secret_of(self.path)
        return {"--evidence": self.path, "--evidence (secret)": secret}

    def file(self, evidence: dict[str, Any]) -> None:
        """Sign the evidence where there is a key, and write it with its secret beside it."""
        assert self.path is not None, "it is only made where a path was given"
        if self.key is not None:
            evidence["signature"] = signature(evidence, self.key)
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


def keep_secret(secret: bytes, path: Path) -> None:
    """Write a secret so that others on this machine cannot read it."""
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secret.hex() + "\n")


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

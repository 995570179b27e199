"""`portcullis evidence`: look at what was filed, and check it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from microdata import DataError
from service.cli.output import progress_bar, say, say_json, say_table, warn
from service.evidence import evidence_html, public_key, read, verify
from service.exit_status import GUARANTEE_FAILED
from service.policy import load_policy

evidence = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_LONGEST_SECRET = 1024


@evidence.callback()
def _evidence() -> None:
    """Look at what was filed about a publication, and check it."""


@evidence.command(
    "verify", epilog="Example: portcullis evidence verify evidence.json --original people.csv --published safe.csv"
)
def verify_command(
    file: Annotated[Path, typer.Argument(help="Evidence, as anonymize --evidence wrote it.")],
    policy: Annotated[Path | None, typer.Option(help="The policy of the publication.")] = None,
    original: Annotated[Path | None, typer.Option(help="The table that was anonymized.")] = None,
    published: Annotated[Path | None, typer.Option(help="What was published of it.")] = None,
    secret: Annotated[
        Path | None, typer.Option(help="The file FILE.secret that was written with the evidence; found beside it.")
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
                loaded,
                original=original,
                published=published,
                secret=_secret(file, secret),
                signer=None if key is None else public_key(key),
                progress=progress,
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
    file: Annotated[Path, typer.Argument(help="Evidence, as anonymize --evidence wrote it.")],
    html: Annotated[Path | None, typer.Option(help="Where to write the page; without, it goes to stdout.")] = None,
) -> None:
    """Make a page for people of evidence. It only shows what the file says: verify checks it."""
    made = evidence_html(read(file))
    if html is None:
        say(made)
    else:
        html.write_text(made, encoding="utf-8")


def secret_of(file: Path) -> Path:
    """Where the secret of evidence is kept."""
    return file.with_name(f"{file.name}.secret")


def keep_secret(secret: bytes, path: Path) -> None:
    """Write a secret so that others on this machine cannot read it."""
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secret.hex() + "\n")


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

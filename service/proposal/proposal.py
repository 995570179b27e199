"""Guesses written down as a policy file with comments, and hierarchies beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from microdata import DataError, Hierarchy
from service.proposal.guesses import Guess, guesses
from service.proposal.profile import profiles

FOLDER = "hierarchies"


@dataclass(frozen=True)
class Proposal:
    """A policy as text, and the hierarchies that it names by file name."""

    text: str
    hierarchies: Mapping[str, Hierarchy]
    guesses: tuple[Guess, ...]

    def write(self, directory: Path) -> Path:
        """Write the policy and its hierarchies; nothing that is already there is replaced."""
        policy = directory / "policy.yaml"
        paths = [policy, *(directory / FOLDER / name for name in self.hierarchies)]
        for path in paths:
            if path.exists():
                raise DataError(f"{path} exists already; remove it or choose another directory with --out")
        (directory / FOLDER).mkdir(parents=True, exist_ok=True)
        for name, hierarchy in self.hierarchies.items():
            hierarchy.to_csv(directory / FOLDER / name)
        policy.write_text(self.text, encoding="utf-8")
        return policy


def propose(sample: pa.Table, name: str) -> Proposal:
    """A policy for tables like this sample."""
    found = guesses(profiles(sample))
    if not any(guess.role == "quasi" for guess in found):
        raise DataError("no column looks like a quasi-identifier: nothing could be generalized")
    files = _file_names(found)
    lines = [*_head(name, sample.num_rows), *_schema(found, files), *_left_out(found), *_guarantee(found)]
    trees = {files[guess.name]: guess.hierarchy for guess in found if guess.hierarchy is not None}
    return Proposal("\n".join(lines) + "\n", trees, tuple(found))


def _file_names(found: list[Guess]) -> dict[str, str]:
    """One file name per hierarchy, made of the field's name."""
    names: dict[str, str] = {}
    for guess in found:
        if guess.hierarchy is not None:
            stem = re.sub(r"[^A-Za-z0-9._-]+", "_", guess.name).strip("._") or "field"
            taken = sum(other.rsplit("-", 1)[0] == stem or other == f"{stem}.csv" for other in names.values())
            names[guess.name] = f"{stem}-{taken + 1}.csv" if taken else f"{stem}.csv"
    return names


def _head(name: str, rows: int) -> Iterator[str]:
    yield f"# Proposed from a sample of {rows} rows. Every guess has its reason with it: change what is wrong, then"
    yield "# run `portcullis policy check`. Hierarchy files list values of the sample: keep them as safe as the table."
    yield f"name: {_scalar(re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('.-_') or 'table')}"
    yield "schema:"


def _schema(found: list[Guess], files: Mapping[str, str]) -> Iterator[str]:
    person = next((guess for guess in found if guess.role == "person"), None)
    if person:
        yield f"  person: {_scalar(person.name)}  # {person.reason}"
    else:
        yield "  person: {row: true}  # no column reads like a person: every row counts as another one"
    for role in ("quasi", "sensitive"):
        members = [guess for guess in found if guess.role == role]
        if members:
            yield f"  {role}:"
        for guess in members:
            declaration = dict(guess.declaration)
            if guess.name in files:
                declaration["hierarchy"] = f"{FOLDER}/{files[guess.name]}"
            yield f"    # {guess.reason}"
            yield f"    {_scalar(guess.name)}: {_flow(declaration)}"
    yield "  public: []  # nothing is passed on as it is unless you say so"


def _left_out(found: list[Guess]) -> Iterator[str]:
    left_out = [guess for guess in found if guess.role == "left out"]
    if left_out:
        yield "  # Not declared, so never published:"
    for guess in left_out:
        yield f"  #   {_scalar(guess.name)}: {guess.reason}"


def _guarantee(found: list[Guess]) -> Iterator[str]:
    if any(guess.role == "sensitive" for guess in found):
        yield "# k persons share each class, and its sensitive values are distributed like the table's, within t."
        yield "guarantee: {algorithm: sabre, k: 5, t: 0.3}"
    else:
        yield "# k persons share each class; no column reads like something to protect beyond that."
        yield "guarantee: {algorithm: mondrian, k: 5}"
    yield "table: {on_refused: stop}  # or drop: leave refused rows out and count them"


def _flow(declaration: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in declaration.items()) + "}"


def _scalar(value: object) -> str:
    """A YAML scalar; texts that YAML might read as something else are quoted as JSON does."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", value) and value.lower() not in _RESERVED:
        return value
    return json.dumps(value, ensure_ascii=False)


_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})

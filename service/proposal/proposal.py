"""Guesses written down as a policy file with comments, and hierarchies beside it."""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from microdata import DataError, Hierarchy, Sample, shown_escaped
from microdata.columns import field_column
from service.policy.data import TopicFacts
from service.proposal.guesses import Guess, guesses
from service.proposal.names import names_key
from service.proposal.persons import Persons
from service.proposal.profile import Profile, profiles
from service.proposal.stream import stream_lines

FOLDER = "hierarchies"
K = 5
FEWEST = 2
"""Persons that a table must have for any k to mean something."""
MANY_QUASI = 20
MANY_REFUSED = 0.05
"""Share of the rows from which it is worth a warning that they are left out."""
MAX_NAME = 100
WIDTH = 110


@dataclass(frozen=True)
class Proposal:
    """A policy as text, and the hierarchies that it names by file name."""

    text: str
    hierarchies: Mapping[str, Hierarchy]
    guesses: tuple[Guess, ...]
    warnings: tuple[str, ...]
    """What its author must decide, because a wrong guess there makes the guarantee a false one."""

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


class Rules(Protocol):
    """What a regulation says about columns, whatever they were taken for."""

    preset: str
    """Its name in a policy, whose publications are checked against it."""

    def apply(self, found: Sequence[Guess], columns: Sequence[Profile]) -> tuple[list[Guess], tuple[str, ...]]:
        """What each column may be, and what its author must know."""


def propose(sample: Sample, name: str, topic: TopicFacts | None = None, rules: Rules | None = None) -> Proposal:
    """A policy for tables, or a topic, like this sample."""
    columns = profiles(sample.columns)
    found, persons = guesses(columns, topic.tags if topic else {})
    found, said = (found, ()) if rules is None else rules.apply(found, columns)
    if not any(guess.role == "quasi" for guess in found):
        alone = "; there is one column: known delimiters are , ; tab and |" if len(columns) == 1 else ""
        because = f". {' '.join(said)}" if said else alone
        raise DataError(f"no column looks like a quasi-identifier: nothing could be generalized{because}")
    rest = _rows_left(found, columns)
    files = _file_names(found)
    if topic and topic.keyed and persons.column is None:
        persons = replace(persons, key=True)
    least = _k(_persons_in(sample.columns, persons.column, rest))
    sensitive = any(guess.role == "sensitive" for guess in found)
    ends = (
        [*_guarantee(least, sensitive=sensitive), *_table(int((~rest).sum()) + sample.misshapen, sample)]
        if topic is None
        else list(stream_lines(topic, least, _formats(topic, in_key=persons.key), sensitive=sensitive))
    )
    lines = [
        *_head(name, sample, "table" if topic is None else "topic"),
        *_commented(said),
        *_person(found, persons, topic.key_fields if topic else ()),
        *_schema(found, files),
        *_left_out(found),
        *_preset(rules),
        *ends,
    ]
    trees = {files[guess.name]: guess.hierarchy for guess in found if guess.hierarchy is not None}
    warnings = (*_warnings(found, persons), *said, *_gaps(found, rest))
    return Proposal("\n".join(map(_printable, lines)) + "\n", trees, tuple(found), warnings)


def _printable(line: str) -> str:
    r"""Return a line in which names have only characters that YAML allows; others are escapes such as `\u2028`.

    YAML reads some of them as the end of a line, so that a name in a comment could add to the policy.
    """
    return shown_escaped(line).replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")


def _gaps(found: list[Guess], rest: NDArray[np.bool_]) -> Iterator[str]:
    """Where many rows go because of gaps, the columns that cost most of them."""
    refused = int((~rest).sum())
    if refused >= MANY_REFUSED * len(rest):
        declared = [guess for guess in found if guess.role != "left out" and guess.missing]
        worst = sorted(declared, key=lambda guess: -guess.missing)[:3]
        names = ", ".join(f"{_scalar(guess.name)} ({guess.missing})" for guess in worst)
        yield f"{refused} of {len(rest)} rows have gaps and are left out: {names}. Delete a column's line to keep them."


def _preset(rules: Rules | None) -> Iterator[str]:
    if rules is not None:
        yield "# What is about to be published is checked again. Below reviewed, list fields that you have found to be"
        yield "# none of the identifiers, where their names and values do not tell."
        yield f"preset: {{name: {rules.preset}, reviewed: []}}"


def _file_names(found: list[Guess]) -> dict[str, str]:
    """One file name per hierarchy, made of the field's name; file systems may not tell upper from lower case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for guess in found:
        if guess.hierarchy is not None:
            stem = re.sub(r"[^A-Za-z0-9._-]+", "_", guess.name)[:MAX_NAME].strip("._") or "field"
            numbered = (f"{stem}-{number}.csv" for number in itertools.count(2))
            names[guess.name] = next(
                name for name in itertools.chain([f"{stem}.csv"], numbered) if name.lower() not in taken
            )
            taken.add(names[guess.name].lower())
    return names


def _rows_left(found: list[Guess], columns: list[Profile]) -> NDArray[np.bool_]:
    """Rows that have a value in every declared column."""
    declared = {guess.name for guess in found if guess.role != "left out"}
    rest = np.ones(columns[0].rows, bool)
    for column in columns:
        if column.name in declared:
            rest &= ~column.absent
    return rest


def _persons_in(sample: pa.Table, column: str | None, rest: NDArray[np.bool_]) -> int:
    if column is None:
        return int(rest.sum())
    return pc.count_distinct(field_column(sample, column).filter(pa.array(rest))).as_py()


def _head(name: str, sample: Sample, what: str) -> Iterator[str]:
    some = "the first" if what == "table" else "the newest"
    seen = f"{'all' if sample.whole else some} {sample.columns.num_rows} rows of the {what}"
    yield f"# Proposed from {seen}. Roles are guesses, each kind with its reason:"
    yield "# change what is wrong, then run `portcullis policy check`. Hierarchy files list values that were seen: keep"
    yield "# them as safe as the data itself."
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:MAX_NAME].strip(".-_")
    yield f"name: {_scalar(stem or 'table')}"
    yield "schema:"


def _formats(topic: TopicFacts, *, in_key: bool) -> str:
    """What the policy says of formats: those of keys where the person is in them."""
    if in_key and (topic.format, topic.key_format) != ("json", "raw"):
        return f"{{input: {topic.format}, output: {topic.format}, key: {topic.key_format}}}"
    return topic.format if topic.format != "json" else ""


def _person(found: list[Guess], persons: Persons, key_fields: Sequence[str]) -> Iterator[str]:
    yield from _commented(_warnings(found, persons))
    if persons.key:
        yield "  # records have keys, which come back; no field reads like a person"
        named = next(filter(names_key, key_fields), next(iter(key_fields), None))
        yield f"  person: {{key: {'true' if named is None else _scalar(named)}}}"
    elif persons.column is None:
        yield "  person: {row: true}"
    else:
        yield f"  # {persons.reason}"
        yield f"  person: {_scalar(persons.column)}"


def _commented(warnings: Iterable[str]) -> Iterator[str]:
    for warning in warnings:
        yield from (f"  # {line}" for line in textwrap.wrap(warning, WIDTH))


def _warnings(found: list[Guess], persons: Persons) -> Iterator[str]:
    """What the author of the policy must decide, because a wrong guess here makes the guarantee a false one."""
    if persons.key:
        yield "THE KEY OF A RECORD COUNTS AS THE PERSON. If it is something else, k is false; name the person's field."
    elif persons.column is None:
        yield (
            "NO COLUMN NAMES PERSONS: every row counts as another person. If one person has several rows here, k is "
            "false; put the name of the person's column behind `person:`."
        )
    if persons.maybe:
        names = ", ".join(_scalar(name) for name in persons.maybe[:5])
        yield f"Values come back like those of a person's key: {names}. If they name persons, put it behind `person:`."
    quasi = sum(guess.role == "quasi" for guess in found)
    if quasi > MANY_QUASI:
        yield f"{quasi} quasi-identifiers leave little detail in each: keep those that others may really know."


def _schema(found: list[Guess], files: Mapping[str, str]) -> Iterator[str]:
    for role in ("quasi", "sensitive"):
        members = [guess for guess in found if guess.role == role]
        if members:
            yield f"  {role}:"
        for reason in dict.fromkeys(guess.reason for guess in members):
            yield f"    # {reason}"
            for guess in members:
                if guess.reason == reason:
                    yield f"    {_scalar(guess.name)}: {_flow(_declaration(guess, files))}{_missing(guess)}"
    yield "  public: []  # nothing is passed on as it is unless you say so"


def _declaration(guess: Guess, files: Mapping[str, str]) -> dict[str, Any]:
    file = {"hierarchy": f"{FOLDER}/{files[guess.name]}"} if guess.name in files else {}
    return {**guess.declaration, **file}


def _missing(guess: Guess) -> str:
    return f"  # missing in {guess.missing} row{'s' * (guess.missing > 1)}" if guess.missing else ""


def _left_out(found: list[Guess]) -> Iterator[str]:
    left_out = [guess for guess in found if guess.role == "left out"]
    if left_out:
        yield "  # Not declared, so never published:"
    for reason in dict.fromkeys(guess.reason for guess in left_out):
        yield f"  #   {reason}:"
        names = ", ".join(_scalar(guess.name) for guess in left_out if guess.reason == reason)
        yield from (f"  #     {line}" for line in textwrap.wrap(names, WIDTH))


def _k(persons: int) -> int:
    if persons < FEWEST:
        raise DataError(
            f"a policy protects persons among each other, and fewer than {FEWEST} have all their values here"
        )
    return K if persons >= 2 * K else FEWEST


def _guarantee(k: int, *, sensitive: bool) -> Iterator[str]:
    if sensitive:
        yield "# k persons share each class, and its sensitive values are distributed like the table's, within t."
        yield f"guarantee: {{algorithm: sabre, k: {k}, t: 0.3}}"
    else:
        yield "# k persons share each class; no column reads like something to protect beyond that."
        yield f"guarantee: {{algorithm: mondrian, k: {k}}}"


def _table(refused: int, sample: Sample) -> Iterator[str]:
    if refused:
        yield f"# {refused} rows have no value in a declared column, or could not be read. They are left out and"
        yield "# counted; with on_refused: stop they would stop the run."
    if not sample.whole:
        yield "# Rows beyond the sample may hold values that it does not have. They are left out and counted: run"
        yield "# `portcullis policy check --table` to see how many, and widen domains and hierarchies."
    if refused or not sample.whole:
        yield "table: {on_refused: drop}"
    else:
        yield "table: {on_refused: stop}  # or drop: leave refused rows out and count them"


def _flow(declaration: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in declaration.items()) + "}"


def _value(value: object) -> str:
    return _flow(value) if isinstance(value, Mapping) else _scalar(value)


def _scalar(value: object) -> str:
    """A YAML scalar; texts that YAML might read as something else are quoted as JSON does."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", value) and value.lower() not in _RESERVED:
        return value
    return json.dumps(value, ensure_ascii=False)


_RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})

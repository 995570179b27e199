"""A policy against a table: which rows it refuses, whether its guarantee can be met, what would leave unprotected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microdata import (
    DataError,
    InfeasibleError,
    PersonSource,
    Progress,
    Refusals,
    Table,
    read_sample,
    read_table,
    silent,
)
from microdata.sources import format_of
from privacy import check_feasible
from service.codec import Events, plain_values, read_events, refusals_of
from service.policy.data import Refused
from service.policy.errors import PolicyProblem
from service.policy.policy import Policy, at_parameter
from service.proposal.persons import look_like_persons
from service.proposal.profile import profiles
from stream_algos import StreamParameters

NEARLY_UNIQUE = 0.5
"""Share of distinct values from which a public field points at persons."""
CHANGED = 0.5
"""Share of returning persons whose value changed from which on an attribute is not one that rarely does."""
MOST_NAMED = 3
"""Columns that one warning each is about."""


@dataclass(frozen=True)
class RecordsCheck:
    """What a table says about a policy."""

    rows: int
    """Rows that the policy accepts."""
    refusals: Refusals
    problems: tuple[PolicyProblem, ...]
    """Why a run would stop."""
    warnings: tuple[str, ...]

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Rows that it does not, by field and reason."""
        counts = self.refusals.counts().items()
        return tuple(Refused(field, reason.code, rows) for (field, reason), rows in counts)


def check_table(policy: Policy, path: Path, progress: Progress = silent) -> RecordsCheck:
    """Read the table as a run would, and look instead of anonymizing."""
    table, refusals = _read(policy, path, progress)
    problems, warnings = [], []
    if len(refusals):
        text = f"the schema refuses rows of the table\n{refusals.describe()}"
        if policy.table.on_refused == "stop":
            problems.append(PolicyProblem("table.on_refused", text))
        else:
            warnings.append(text)
    try:
        check_feasible(policy.models(), table)
    except InfeasibleError as error:
        problems.append(at_parameter(error))
    if isinstance(policy.parameters, StreamParameters) and policy.parameters.steady:
        problems.extend(_changing_values(table))
    warnings.extend(_pointing_fields(table))
    if policy.schema.person is PersonSource.ROW:
        warnings.extend(_returning_persons(path))
    return RecordsCheck(len(table), refusals, tuple(problems), tuple(warnings))


def _read(policy: Policy, path: Path, progress: Progress) -> tuple[Table, Refusals]:
    """Events as a worker and a replay take them; tables as they are read for a publication."""
    schema = policy.schema
    if policy.kind != "stream" or format_of(path) != "json":
        reading = read_table(path, schema, on_refused="drop", progress=progress)
        return reading.table, reading.refusals
    events = Events.merged(list(read_events(path, schema, progress=progress)), [])
    columns = dict(zip(schema.public, map(plain_values, events.public), strict=True))
    table = Table(schema, events.persons, events.quasi, events.sensitive, pa.table(columns) if columns else None)
    return table, refusals_of(schema, events.refused)


def _returning_persons(path: Path) -> Iterator[str]:
    """Columns, declared or not, that say that persons have several rows."""
    try:
        sample = read_sample(path).columns
    except DataError:
        # A policy reads its own columns only: the others may be called what they are.
        return
    for column in look_like_persons(profiles(sample))[:MOST_NAMED]:
        yield (
            f"schema.person: {{row: true}} counts every row as another person, but {column.name!r} reads like a person "
            f"with {column.repeats:.1f} rows each ({column.distinct} different values in {column.rows} rows). If it is "
            f"one, k is false: declare it as the person."
        )


def _changing_values(table: Table) -> Iterator[PolicyProblem]:
    """Quasi-identifiers whose values changed for most of the persons who have several rows."""
    _, first, number, rows = np.unique(table.persons, return_index=True, return_inverse=True, return_counts=True)
    returning = int((rows > 1).sum())
    for column, attribute in enumerate(table.schema.quasi):
        values = table.quasi[:, column]
        changed = len(np.unique(number[values != values[first[number]]]))
        if changed > CHANGED * returning:
            yield PolicyProblem(
                f"schema.quasi.{attribute.name}",
                f"changed for {changed} of {returning} persons who come back, and the algorithm is for values that "
                "rarely do; leave it out, choose castle, or insist with guarantee.may_change: true",
            )


def _pointing_fields(table: Table) -> Iterator[str]:
    """Public fields whose values are nearly unique: whoever knows one knows the row."""
    if table.public is None:
        return
    for name in table.schema.public:
        distinct = pc.count_distinct(table.public.column(name)).as_py()
        if distinct > 1 and distinct > NEARLY_UNIQUE * len(table):
            yield (
                f"schema.public: {name!r} has {distinct} different values in {len(table)} rows; published as it is, "
                "it points at single persons. Declare it as a quasi-identifier or leave it out."
            )

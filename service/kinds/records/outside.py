"""A table against what its owner says that others have: the population it was drawn from, and counts beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from microdata import DataError, PersonSource, Progress, Schema, Table, read_sample, read_table, silent
from service.kinds.records.counts import read_counts
from service.kinds.records.tables import AnonymizedTable
from service.policy import Policy, PolicyProblem
from service.policy.data import Outside
from service.report import TableReport, beside, population_of

MOST_COUNTS = 16
"""Tables of counts that are looked at together."""


def report_against(
    policy: Policy, result: AnonymizedTable, report: TableReport, outside: Outside, *, progress: Progress = silent
) -> TableReport:
    """The report with both."""
    changes: dict[str, object] = {}
    if outside.population is not None:
        known = outside.population
        people = known if isinstance(known, int) else _people(known, policy.schema, progress)
        changes["population"] = population_of(result.publication, people)
    if outside.counts or outside.count_files:
        tables = [read_counts(path, policy.schema) for path in outside.count_files]
        changes["beside"] = beside(result.publication, outside.counts, tables)
    return report.model_copy(update=changes)


def wrong_counts(schema: Schema, outside: Outside) -> Iterator[PolicyProblem]:
    """What is wrong with the counts that are asked for."""
    quasi = [one.name for one in schema.quasi]
    declared = len(outside.counts) + len(outside.count_files)
    if declared and not schema.sensitive:
        yield PolicyProblem("table.counts", "there is no sensitive attribute to count")
    if declared > MOST_COUNTS:
        yield PolicyProblem("table.counts", f"there are more than {MOST_COUNTS} tables of counts")
    for fields in outside.counts:
        if not fields or not set(fields) <= set(quasi):
            yield PolicyProblem("table.counts", f"must name quasi-identifiers of the policy: {', '.join(quasi)}")


def _people(path: Path, schema: Schema, progress: Progress) -> Table:
    """Everybody, with the quasi-identifiers of the policy. Who lies outside of its domains fits no class."""
    names = read_sample(path, 1).columns.column_names
    person = schema.person if schema.person in names else PersonSource.ROW
    known = replace(schema, person=person, sensitive=(), public=())
    table = read_table(path, known, on_refused="drop", progress=progress).table
    if not len(table):
        raise DataError(f"{path.name}: nobody in it has values of the policy's domains")
    return table

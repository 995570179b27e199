"""Generic checks: what must be true of every algorithm for tables, whatever it does inside.

A check takes a `Case` (an algorithm with parameters) and raises `AssertionError` where something is wrong. Cases are
derived from what an algorithm declares (its parameters and its example), so one is checked as soon as it is registered.
Whoever writes an algorithm outside of this repository runs them too:

>>> from static_algos import STATIC_ALGORITHMS
>>> from static_algos.checks import STATIC_CHECKS, cases
>>> case = cases(STATIC_ALGORITHMS["mondrian"])[0]
>>> for check in STATIC_CHECKS:
...     check(case)
"""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from microdata import (
    EXAMPLE_QUASI,
    EXAMPLE_SENSITIVE,
    Cancelled,
    InfeasibleError,
    Publication,
    Schema,
    Table,
    example_table,
    published_columns,
)
from privacy import KEYS, Model, audit
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Entry

OPTIONS: tuple[Mapping[str, Any], ...] = ({"suppression": 0.1},)
"""Options with a range of values; options with named values are found by themselves."""


@dataclass(frozen=True)
class Case:
    """An algorithm with parameters."""

    algorithm: type[StaticAlgorithm]
    name: str
    given: Mapping[str, Any]
    stricter: Mapping[str, Any] = field(default_factory=dict)
    first: bool = True
    """Whether it is the first of its algorithm."""

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.given.items())})"

    def build(self, **changed: Any) -> StaticAlgorithm:
        """The algorithm, with some parameters changed."""
        return self.algorithm(**{**self.given, **changed})

    def accepts(self, schema: Schema) -> bool:
        """Whether the request makes sense for this schema at all."""
        try:
            return bool(self.build().models(schema))
        except InfeasibleError:
            return False

    def tables(self, rows: int = 150) -> Iterator[Table]:
        """Tables of different kinds: one row per person or several, one sensitive attribute or two."""
        tables = (
            example_table(rows, 1, sensitive=EXAMPLE_SENSITIVE[:1]),
            example_table(rows, 2, sensitive=EXAMPLE_SENSITIVE[1:]),
            example_table(rows, 3, persons=rows // 2),
        )
        return (table for table in tables if self.accepts(table.schema))

    def some_tables(self, rows: int = 150) -> list[Table]:
        """For what does not depend on the models: all tables for the first case, and the last for each of the others.

        The last has several rows per person, and two sensitive attributes where the models take them.
        """
        return list(self.tables(rows))[0 if self.first else -1 :]

    def table(self, rows: int = 150) -> Table:
        """The first of them."""
        return next(self.tables(rows))


def cases(entry: Entry[StaticAlgorithm]) -> list[Case]:
    """Everything that an algorithm can be asked for, by itself; and the first of it with every option."""
    found = [
        Case(entry.algorithm, entry.name, given, {key.name: stricter})
        for key in KEYS
        for request, stricter in key.requests
        if (given := _request(entry, key.name, request)) is not None
    ]
    if not found:
        found = [Case(entry.algorithm, entry.name, entry.algorithm.example)]
    options = [*OPTIONS, *_named_options(entry)]
    varied = [replace(found[0], given={**found[0].given, **option}) for option in options]
    further = found[1:] + [case for case in varied if _valid(entry, case.given)]
    return found[:1] + [replace(case, first=False) for case in further]


def _request(entry: Entry[StaticAlgorithm], key: str, request: Any) -> Mapping[str, Any] | None:
    """Parameters that ask for something and little else; None where the algorithm does not take it."""
    example = entry.algorithm.example
    models = {one.name for one in KEYS}
    options = {name: value for name, value in example.items() if name not in models}
    ways = ({**options, "k": 2, key: request}, {**options, key: request}, {**example, key: request})
    return next((given for given in ways if _valid(entry, given)), None)


def all_cases() -> list[Case]:
    """The cases of every registered static algorithm."""
    return [case for entry in STATIC_ALGORITHMS for case in cases(entry)]


def _valid(entry: Entry[StaticAlgorithm], given: Mapping[str, Any]) -> bool:
    try:
        entry.parameters.model_validate(given)
    except ValidationError:
        return False
    return True


def _named_options(entry: Entry[StaticAlgorithm]) -> Iterator[Mapping[str, Any]]:
    for name, one in entry.parameters.model_fields.items():
        if typing.get_origin(one.annotation) is Literal:
            yield from ({name: value} for value in typing.get_args(one.annotation) if value != one.default)
        elif one.annotation is bool:
            yield {name: not one.default}


def anonymized(case: Case, table: Table, seed: int = 1, **changed: Any) -> tuple[Publication, tuple[Model, ...]]:
    """The publication, and the models that it promises."""
    algorithm = case.build(**changed)
    return algorithm.anonymize(table, seed=seed), algorithm.models(table.schema)


def assert_sound(table: Table, publication: Publication, models: tuple[Model, ...]) -> None:
    """The audit agrees, and every row is published once or suppressed."""
    found = audit(table, publication, models)
    assert found.findings, "nothing is promised"
    assert found.holds, (found.findings, found.faults)
    assert publication.table is table
    assert publication.classes.shape == (len(table),)
    assert publication.classes.min(initial=0) >= -1
    assert publication.classes.max(initial=-1) < len(publication.boxes)
    assert publication.sizes.min(initial=1) > 0, "a class without rows"
    assert publication.sizes.sum() + publication.suppressed == len(table)


def guarantee_holds(case: Case) -> None:
    """Under the independent audit, on every table."""
    for table in case.tables():
        assert_sound(table, *anonymized(case, table))


def input_is_not_modified(case: Case) -> None:
    """Not one value of the caller's table."""
    table = case.table()
    before = [column.copy() for column in (table.persons, table.quasi, table.sensitive)]
    anonymized(case, table)
    assert np.array_equal(before[0], table.persons)
    assert np.array_equal(before[1], table.quasi)
    assert np.array_equal(before[2], table.sensitive)


def same_seed_gives_the_same_result(case: Case) -> None:
    """The same classes and boxes."""
    for table in case.some_tables():
        one, other = (anonymized(case, table, seed=7)[0] for _ in range(2))
        assert np.array_equal(one.classes, other.classes)
        assert np.array_equal(one.boxes.lo, other.boxes.lo)
        assert np.array_equal(one.boxes.hi, other.boxes.hi)


def works_without_a_seed(case: Case) -> None:
    """With randomness of the operating system."""
    algorithm, table = case.build(), case.table()
    assert_sound(table, algorithm.anonymize(table), algorithm.models(table.schema))


def row_order_does_not_matter(case: Case) -> None:
    """The guarantee holds in every order: three of the first table, one of the others."""
    for number, table in enumerate(case.some_tables()):
        orders = (np.argsort(table.sensitive[:, 0]), np.argsort(table.quasi[:, 0]), np.arange(len(table))[::-1])
        for order in orders[: 1 if number else 3]:
            moved = table.take(order)
            assert_sound(moved, *anonymized(case, moved))


def column_order_does_not_matter(case: Case) -> None:
    """The guarantee holds in every order."""
    for table in case.some_tables():
        schema = table.schema
        turned = Schema(schema.person, schema.quasi[::-1], schema.sensitive[::-1])
        moved = Table(turned, table.persons, table.quasi[:, ::-1].copy(), table.sensitive[:, ::-1].copy())
        assert_sound(moved, *anonymized(case, moved))


def classes_can_be_shown_as_means(case: Case) -> None:
    """However it shows them itself, which it declares: each class has a point in its box, and keeps the guarantee."""
    for table in case.some_tables():
        publication, models = anonymized(case, table)
        assert publication.show == case.algorithm.shows
        shown = replace(publication, show="mean")
        assert published_columns(shown).num_rows == len(table) - publication.suppressed
        assert_sound(table, shown, models)


def stricter_has_an_effect(case: Case) -> None:
    """A threshold without an effect is none."""
    if not case.stricter:
        return
    assert any(_has_effect(case, table) for table in case.tables(400))


def _has_effect(case: Case, table: Table) -> bool:
    loose, _ = anonymized(case, table)
    try:
        tight, models = anonymized(case, table, **case.stricter)
    except InfeasibleError:
        return True
    assert_sound(table, tight, models)
    return tight.loss > loose.loss or tight.suppressed > loose.suppressed


def k_counts_persons(case: Case) -> None:
    """K up to the number of persons is met; beyond, the nearest feasible k is named."""
    table = example_table(40, 4, EXAMPLE_QUASI[:2], case.table().schema.sensitive, persons=8)
    persons = len(np.unique(table.persons))
    needy = {"max_share", "max_category_share", "l", "alpha"}
    if "k" not in case.algorithm.Parameters.model_fields or case.given.keys() & needy:
        return  # The small table may not have what they need, which is not the point here.
    publication, models = anonymized(case, table, k=persons)
    assert_sound(table, publication, models)
    refusal = _refusal(case, table, k=persons + 1)
    assert refusal is not None, "more persons were promised than there are"
    assert (refusal.parameter, refusal.nearest) == ("k", persons)


def _refusal(case: Case, table: Table, **changed: Any) -> InfeasibleError | None:
    try:
        anonymized(case, table, **changed)
    except InfeasibleError as refusal:
        return refusal
    return None


def degenerate_tables_are_published_or_refused(case: Case) -> None:
    """One row, two rows, all equal: published soundly, or refused with a reason."""
    table = case.table(30)
    same_quasi = Table(table.schema, table.persons, np.repeat(table.quasi[:1], 30, axis=0), table.sensitive)
    same_value = Table(table.schema, table.persons, table.quasi, np.repeat(table.sensitive[:1], 30, axis=0))
    for odd in (table.take(np.arange(1)), table.take(np.arange(2)), same_quasi, same_value):
        with contextlib.suppress(InfeasibleError):
            assert_sound(odd, *anonymized(case, odd))


def an_empty_table_gives_an_empty_publication(case: Case) -> None:
    """Nothing in, nothing out."""
    empty = case.table().take(np.arange(0))
    publication, _ = anonymized(case, empty)
    assert (len(publication.boxes), len(publication.classes), publication.suppressed) == (0, 0, 0)


def progress_is_told_and_may_cancel(case: Case) -> None:
    """Whoever waits is told how far it is, and may stop it."""
    table = case.table()
    told: list[tuple[str, int, int]] = []
    case.build().anonymize(table, seed=1, progress=lambda *given: told.append(given))
    assert told
    assert all(phase and 0 <= done <= total for phase, done, total in told)

    def stop_at(call: int) -> Callable[[str, int, int], None]:
        left = iter(range(call))

        def progress(*_told: Any) -> None:
            if next(left, None) is None:
                raise Cancelled

        return progress

    for call in {0, len(told) // 2, len(told) - 1}:
        try:
            case.build().anonymize(table, seed=1, progress=stop_at(call))
        except Cancelled:
            continue
        raise AssertionError("it went on after it was cancelled")


STATIC_CHECKS = (
    guarantee_holds,
    input_is_not_modified,
    same_seed_gives_the_same_result,
    works_without_a_seed,
    row_order_does_not_matter,
    column_order_does_not_matter,
    classes_can_be_shown_as_means,
    stricter_has_an_effect,
    k_counts_persons,
    degenerate_tables_are_published_or_refused,
    an_empty_table_gives_an_empty_publication,
    progress_is_told_and_may_cancel,
)

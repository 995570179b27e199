from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microdata import (
    Cancelled,
    Category,
    GuaranteeError,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    geometry,
)
from privacy import Groups, KAnonymity, TCloseness, check
from static_algos import Burel, Sabre
from static_algos._refine_kernels import LINES, fill_block, find_cut
from static_algos.limits import close_limits, references_of
from static_algos.refine import _room, _whole, refine_classes
from tests.static_algos.bucket_tables import COUNTRIES, one_attribute, persons_of, table_of, tables

SALARY = Number("salary", 0, 9, integer=True)


def table_of_rows(rows: Any, **more: Any) -> Any:
    random = np.random.default_rng(5)
    return table_of([SALARY], [random.binomial(9, 0.4, rows)], **more)


def refined(table: Any, t: Any, k: Any, classes: Any = None) -> Any:
    limits = close_limits(table, k, Fraction(str(t)), references_of(table))
    start = np.zeros(len(table), np.int32) if classes is None else classes
    return refine_classes(table, start, limits)


def groups_of(table: Any, classes: Any) -> Any:
    return Groups.of(table.schema, table.persons, table.sensitive, classes, classes.max() + 1)


@settings(max_examples=60)
@given(tables(most_rows=150), st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.integers(1, 6), st.integers(0, 2**32))
def test_parts_keep_the_limits_and_stay_inside_their_class(table: Any, t: Any, k: int, seed: int) -> None:
    assume(persons_of(table) >= k)
    classes = Sabre(t=t, k=k, refine="none").anonymize(table, seed=seed).classes
    parts = refined(table, t, k, classes)
    assert check([KAnonymity(k), TCloseness(t)], groups_of(table, parts)).all()
    assert sorted(np.unique(parts)) == list(range(parts.max() + 1))
    for part in range(parts.max() + 1):
        assert len(np.unique(classes[parts == part])) == 1


@settings(max_examples=25)
@given(tables(most_rows=150), st.sampled_from([0.05, 0.3]), st.integers(1, 4))
def test_large_classes_are_cut_by_samples_as_safely(table: Any, t: Any, k: int) -> None:
    """With tiny blocks, every cut of more than eight rows comes from a sample, or from one quasi-identifier."""
    assume(persons_of(table) >= k)
    with patch("static_algos.refine.BLOCK", 8), patch("static_algos.refine._SAMPLE", 4):
        parts = refined(table, t, k)
    assert check([KAnonymity(k), TCloseness(t)], groups_of(table, parts)).all()
    assert sorted(np.unique(parts)) == list(range(parts.max() + 1))


def test_samples_lose_little() -> None:
    table = table_of_rows(4000)
    whole = Publication.of(table, refined(table, 0.2, 5))
    with patch("static_algos.refine.BLOCK", 500), patch("static_algos.refine._SAMPLE", 250):
        sampled = Publication.of(table, refined(table, 0.2, 5))
    assert whole.loss < sampled.loss < 1.15 * whole.loss


def test_a_class_that_no_sample_can_cut_is_cut_along_one_quasi_identifier() -> None:
    """At t = 0 both halves must match the table exactly, which a sample cannot promise."""
    quasi = np.stack([np.repeat(np.arange(40.0), 2), np.zeros(80), np.zeros(80)], axis=1)
    table = table_of([SALARY], [np.tile([0, 9], 40)], quasi=quasi)
    with patch("static_algos.refine.BLOCK", 16), patch("static_algos.refine._SAMPLE", 9):
        publication = Publication.of(table, refined(table, 0, 2))
    assert publication.loss < 0.2
    assert len(publication.boxes) >= 10


def test_every_step_loses_less() -> None:
    table = table_of_rows(1500)
    losses = [Sabre(t=0.2, k=5, refine=how).anonymize(table, seed=1).loss for how in ("none", "classes", "table")]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < 0.6 * losses[0]
    losses = [Burel(beta=1, k=5, refine=how).anonymize(table, seed=1).loss for how in ("none", "classes", "table")]
    assert losses == sorted(losses, reverse=True)


def test_proportional_cuts_are_found_where_plain_ones_break_the_limit() -> None:
    """Old rows have one value, young ones the other: only a cut through both keeps the distribution."""
    age = np.concatenate([np.arange(20.0), np.arange(30.0, 50.0)])
    table = table_of([SALARY], [np.repeat([0, 9], 20)], quasi=np.stack([age, np.zeros(40), np.zeros(40)], axis=1))
    publication = Publication.of(table, refined(table, 0.05, 4))
    assert len(publication.boxes) >= 4
    assert check([TCloseness(0.05)], groups_of(table, publication.classes)).all()


def test_persons_are_counted_on_both_sides() -> None:
    persons = np.repeat(np.arange(30), 8)
    table = table_of_rows(240, persons=persons)
    parts = refined(table, 0.6, 5)
    assert parts.max() > 3
    for part in range(parts.max() + 1):
        assert len(np.unique(persons[parts == part])) >= 5


def test_equal_rows_are_not_cut() -> None:
    table = one_attribute(SALARY, [32], quasi=np.full((32, 3), 1.0))
    assert refined(table, 0.5, 2).max() == 0


def test_several_sensitive_attributes_limit_together() -> None:
    values = np.random.default_rng(8).integers(0, 10, 600)
    table = table_of([SALARY, Category("birth", COUNTRIES)], [values, values // 2])
    parts = refined(table, 0.15, 3)
    assert parts.max() > 10
    assert check([TCloseness(0.15)], groups_of(table, parts)).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_cut_that_loses_least_is_taken(seed: Any) -> None:
    """Exactly one cut is possible: into two halves. It is at least as good as the best one found by hand."""
    table = table_of_rows(40, seed=seed)
    publication = Publication.of(table, refined(table, 1.0, 20))
    assert publication.sizes.tolist() == [20, 20]
    assert publication.loss <= min(_halves_by_hand(table, column) for column in range(3)) + 1e-12


def _halves_by_hand(table: Any, column: Any) -> Any:
    classes = np.ones(len(table), np.int32)
    classes[np.argsort(table.quasi[:, column], kind="stable")[: len(table) // 2]] = 0
    return Publication.of(table, classes).loss


def test_it_can_be_cancelled() -> None:
    def stop(phase: Any, done: Any, total: Any) -> None:
        if phase == "refine":
            raise Cancelled

    with pytest.raises(Cancelled):
        Sabre(t=0.2, k=3).anonymize(table_of_rows(300), progress=stop)


def test_a_refinement_that_ignores_its_limits_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def halves(table: Any, classes: Any, limits: Any, progress: Any) -> Any:
        return (table.quasi[:, 0] > 25).astype(np.int32) + 2 * (table.sensitive[:, 0] > 3).astype(np.int32)

    monkeypatch.setattr("static_algos.refine.refine_classes", halves)
    with pytest.raises(GuaranteeError, match="t-closeness"):
        Sabre(t=0.05, k=2).anonymize(table_of_rows(400))


def wide_rows(columns: Any, rows: int = 200) -> Any:
    """Many quasi-identifiers of two neighbouring values, and a last one over its whole domain."""
    random = np.random.default_rng(7)
    quasi = tuple(Number(f"q{column}", 0, 99, integer=True) for column in range(columns))
    schema = Schema(PersonSource.ROW, quasi, (SALARY,))
    values = random.integers(0, 2, (rows, columns)).astype(float)
    values[:, -1] = random.permutation(rows) // 2
    return Table(schema, np.arange(rows), values, random.integers(0, 10, (rows, 1)).astype(np.int32))


@pytest.mark.parametrize("columns", [LINES, LINES + 1, 4 * LINES])
def test_a_class_is_lined_up_by_a_bounded_number_of_quasi_identifiers(columns: Any) -> None:
    """Each line prices boxes in all of them, so the work would grow with the square of their number."""
    table = wide_rows(columns)
    limits = close_limits(table, 5, Fraction(1, 5), references_of(table))
    block, desk = _room(columns, limits, len(table))
    fill_block(table.quasi, limits, _whole(table), np.arange(len(table), dtype=np.int32), block)
    desk.sequence[:] = -1
    cut = find_cut(geometry(table.schema), limits, block, desk, 0, len(table))
    lined_up = {number // 2 for number in np.flatnonzero((desk.sequence >= 0).any(axis=1))}
    assert LINES <= len(lined_up) <= LINES + 1, "and the first, which is the place to judge them"
    assert cut.sequence // 2 == columns - 1, "the one that gains most is among them"
    assert groups_of(table, refined(table, 0.2, 5)).persons.min() >= 5

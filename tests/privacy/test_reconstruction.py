"""Counts beside a table, against linear programs solved by scipy."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import reconstruction
from privacy.reconstruction import CERTAIN, _solve

ILL = Category("ill", Hierarchy.flat(["no", "yes"]))


def publication(ages: Any, sexes: Any, ill: Any, classes: Any) -> Publication:
    quasi = (Number("age", 0, 99, integer=True), Category("sex", Hierarchy.flat(["f", "m"])))
    schema = Schema(PersonSource.ROW, quasi, (ILL,))
    rows = np.stack([np.array(ages, float), np.array(sexes, float)], axis=1)
    return Publication.of(
        Table(schema, np.arange(len(ages)), rows, np.array(ill, np.int32)[:, None]), np.array(classes)
    )


def forced(groupings: Any, values: Any) -> Any:
    """Rows whose bit every solution of the sums has alike: the least and the largest that it can be are the same."""
    rows = len(values)
    equal, sums = [], []
    for groups in groupings:
        for one in np.unique(groups):
            equal.append((groups == one).astype(float))
            sums.append(values[groups == one].sum())
    found = []
    for row in range(rows):
        aim = np.zeros(rows)
        aim[row] = 1
        ends = [linprog(sign * aim, A_eq=equal, b_eq=sums, bounds=(0, 1)).fun * sign for sign in (1, -1)]
        found.append(ends[1] - ends[0] < 1e-6)
    return np.array(found)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_linear_program_is_certain_of_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(0, 2, 24)
    groupings = [np.arange(24) // 6, random.integers(0, 8, 24), random.integers(0, 7, 24)]
    chances = _solve(groupings, values, 2)[np.arange(24), values]
    known = forced(groupings, values)
    assert (chances[known] >= CERTAIN).all()
    # Whatever can be both has a chance of both.
    assert (chances[~known] < 0.999).all()
    for groups in groupings:
        sums = np.bincount(groups, _solve(groupings, values, 2)[:, 1])
        assert sums == pytest.approx(np.bincount(groups, values), abs=0.05)


def test_counts_by_age_tell_what_classes_hide() -> None:
    ages, sexes, ill = [20, 30, 40, 50] * 2, [0, 0, 0, 0, 1, 1, 1, 1], [1, 0, 0, 1, 1, 0, 1, 0]
    published = publication(ages, sexes, ill, [0, 0, 0, 0, 1, 1, 1, 1])
    (nothing,) = reconstruction(published, [])
    assert (nothing.certain, nothing.guessed, nothing.rows) == (0, 0.5, 8)
    # Of the two at 20 both are ill, of those at 30 nobody; each of the others is one of two.
    (by_age,) = reconstruction(published, [["age"]])
    assert (by_age.certain_alone, by_age.certain) == (0, 0.5)
    (by_both,) = reconstruction(published, [["age", "sex"]])
    assert (by_both.certain, by_both.guessed) == (1, 1)


def test_what_is_not_published_is_not_solved_for() -> None:
    published = publication([20, 30, 40], [0, 0, 0], [1, 0, 0], [0, 0, -1])
    assert reconstruction(published, [["age"]])[0].rows == 2
    empty = publication([20, 30], [0, 0], [1, 0], [-1, -1])
    assert reconstruction(empty, [["age"]])[0].certain == 0


def test_of_many_rows_some_classes_are_looked_at() -> None:
    random = np.random.default_rng(2)
    published = publication(
        random.integers(0, 99, 1_000), random.integers(0, 2, 1_000), random.integers(0, 2, 1_000), np.arange(1_000) // 5
    )
    (found,) = reconstruction(published, [["age", "sex"]], most_cells=800)
    assert found.rows == 200
    assert found.certain > 0.5

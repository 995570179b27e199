"""Counts beside a table, against linear programs solved by scipy."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import CountTable, reconstruction
from privacy._decoding_kernels import _to_chances, decode

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
def test_what_a_linear_program_is_certain_of_is_found_and_nothing_else(seed: int) -> None:
    random = np.random.default_rng(seed)
    ill = random.integers(0, 2, 24)
    ages, sexes, classes = random.integers(0, 12, 24), random.integers(0, 2, 24), np.arange(24) // 6
    published = publication(ages, sexes, ill, classes)
    (found,) = reconstruction(published, [["age"], ["sex"]])
    assert found.certain == pytest.approx(forced([classes, ages, sexes], ill).mean())
    assert (found.rows, found.off) == (24, 0)
    assert found.guessed >= found.certain


def least(starts: Any, regions: Any, known: Any, hard: Any) -> float:
    """The least sum that is missing, by scipy: of two values only the chance of the second is solved for."""
    cells, soft = len(starts) - 1, np.flatnonzero(~hard)
    rows = np.zeros((len(known), cells))
    for cell in range(cells):
        rows[regions[starts[cell] : starts[cell + 1]], cell] += 1
    missing = np.eye(len(soft))
    above, below = np.hstack([rows[soft], -missing]), np.hstack([-rows[soft], -missing])
    found = linprog(
        np.concatenate([np.zeros(cells), np.ones(len(soft))]),
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([known[soft, 1], -known[soft, 1]]),
        A_eq=np.hstack([rows[hard], np.zeros((hard.sum(), len(soft)))]),
        b_eq=known[hard, 1],
        bounds=[(0, 1)] * cells + [(0, None)] * len(soft),
    )
    return float(found.fun)


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.0), (1, 0.7), (2, 2.0)])
def test_noisy_counts_are_missed_by_no_more_than_a_linear_program_misses_them(seed: int, noise: float) -> None:
    random, rows = np.random.default_rng(seed), 80
    values = random.integers(0, 2, rows)
    groupings = [np.arange(rows) // 8, *(random.integers(0, 8, rows) for _ in range(6))]
    known, regions, before = [], [], 0
    for place, groups in enumerate(groupings):
        ones = np.bincount(groups, values, groups.max() + 1)
        if place:
            ones = np.round(ones + noise * random.standard_normal(len(ones)))
        # Only the second value is counted but in classes.
        zeros = np.bincount(groups) - ones if not place else np.full(len(ones), np.nan)
        known.append(np.stack([zeros, ones], axis=1))
        regions.append(groups + before)
        before += len(ones)
    sums, hard = np.concatenate(known), np.arange(before) < len(known[0])
    starts, flat = np.arange(rows + 1) * len(groupings), np.stack(regions, axis=1).ravel().astype(np.int32)
    first = (known[0] / known[0].sum(axis=1, keepdims=True))[groupings[0]]
    chances, _ = decode(starts, flat, np.ones(rows), sums, hard, first, 0.03, 3_000, 1e-7)
    own = np.zeros(len(sums))
    np.add.at(own, flat, np.repeat(chances[:, 1], len(groupings)))
    assert chances.sum(axis=1) == pytest.approx(np.ones(rows))
    assert own[hard] == pytest.approx(sums[hard, 1], abs=0.01)
    assert np.abs(own - sums[:, 1])[~hard].sum() == pytest.approx(least(starts, flat, sums, hard), rel=0.01, abs=0.05)
    if not noise:
        assert (chances[np.arange(rows), values] > 0.95).mean() > 0.9, "so many exact sums leave nothing open"


def by_age(ages: Any, ill: Any, off: float, step: int = 1) -> CountTable:
    """How many are ill in each few years of age."""
    low = np.arange(0, 100, step, dtype=float)
    ones = np.array(
        [sum(value for age, value in zip(ages, ill, strict=True) if one <= age < one + step) for one in low]
    )
    sizes = np.ones(len(low), np.int64)
    return CountTable(
        "ill", ("age",), low[:, None], low[:, None] + step - 1, sizes, ones + off * (-1) ** np.arange(len(low))
    )


def test_counts_of_a_file_are_as_good_as_counts_by_fields_and_noise_takes_from_them() -> None:
    random = np.random.default_rng(5)
    ages, sexes, ill = random.integers(0, 100, 400), random.integers(0, 2, 400), random.integers(0, 2, 400)
    published = publication(ages, sexes, ill, np.argsort(np.argsort(ages + 100 * random.random(400))) // 10)
    (by_fields,) = reconstruction(published, [["age"]])
    (exact,) = reconstruction(published, [], [by_age(ages, ill, 0)])
    assert (exact.off, exact.certain_alone) == (0, by_fields.certain_alone)
    assert exact.certain == pytest.approx(by_fields.certain, abs=0.02)
    noisy, coarse = (
        reconstruction(published, [], [one])[0] for one in (by_age(ages, ill, 3), by_age(ages, ill, 0, 50))
    )
    assert noisy.off == 3
    assert exact.guessed > noisy.guessed + 0.05
    assert exact.guessed > coarse.guessed + 0.05
    assert exact.wrong == 0
    assert noisy.wrong == pytest.approx(noisy.certain, abs=0.1), "what noise makes certain is right and wrong by chance"


def test_a_value_that_nobody_has_and_a_box_that_nobody_is_in_are_counts_too() -> None:
    published = publication([20, 30], [0, 0], [1, 1], [0, 0])
    nobody = CountTable(
        "ill", ("age",), np.array([[20.0], [90]]), np.array([[20.0], [95]]), np.array([0, 1]), np.zeros(2)
    )
    (found,) = reconstruction(published, [], [nobody])
    assert (found.rows, found.off, found.certain) == (2, 0, 1)


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


@pytest.mark.timeout(60)
def test_a_number_that_rounding_moves_across_the_limit_does_not_keep_it_busy() -> None:
    """Seen on census data: its share counts as nothing, then as something, then as nothing again."""
    tiny, others = -2.4105219908804117e-17, [0.05242150766589981, 0.015365018566564744, 0.08154561805981281]
    others += [0.02959989089900326, 0.2637499271923553, 0.24119775224381998, 0.013744542835366242]
    others += [0.013999106473160564, 0.005994797937115628, 0.007579349160237635]
    own = np.array([*others, tiny, 0.19384038369540824, 0.052400558367317544, 0.028561546903937963])
    _to_chances(own)
    assert own.min() >= 0
    assert own.sum() == pytest.approx(1)

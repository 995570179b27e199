"""Population uniqueness against scipy, against definitions written out, and against populations that are known."""

from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from microdata import InfeasibleError, Number, PersonSource, Publication, Schema, Table
from privacy import pitman, population_risk, slide_negative_binomial, unique_people, zayatz
from privacy.population import _digamma, _Sliding


@cache
def partition(people: int, theta: float, alpha: float, seed: int) -> Any:
    """The class of each person, drawn from Pitman's random partition one by one."""
    random, sizes, classes = np.random.default_rng(seed), list[int](), []
    for number in range(people):
        chance = np.array([*(size - alpha for size in sizes), theta + alpha * len(sizes)]) / (theta + number)
        own = int(random.choice(len(chance), p=chance / chance.sum()))
        sizes.append(0) if own == len(sizes) else None
        sizes[own] += 1
        classes.append(own)
    return np.array(classes)


@pytest.mark.parametrize("x", [1e-3, 0.5, 1.0, 3.3, 9.99, 10.0, 1234.5, 1e9])
def test_digamma_is_that_of_scipy(x: float) -> None:
    assert _digamma(x) == pytest.approx(special.digamma(x), rel=1e-10, abs=1e-10)


def test_zayatz_is_bayes_rule_written_out() -> None:
    sizes, people = np.array([1, 1, 1, 2, 2, 5]), 40
    persons = int(sizes.sum())

    def exactly_one(size: int) -> Fraction:
        return Fraction(size * comb(people - size, persons - 1), comb(people, persons))

    seen = sum(exactly_one(int(size)) for size in sizes)
    expected = Fraction(3, persons) * (3 * exactly_one(1) / seen)
    assert zayatz(sizes, people) == pytest.approx(float(expected))


def test_pitman_is_where_scipy_finds_the_largest_likelihood() -> None:
    sizes = np.bincount(partition(600, 30.0, 0.5, 1))
    count, persons = len(sizes), int(sizes.sum())

    def unlikely(given: Any) -> float:
        theta, alpha = np.exp(given[0]), special.expit(given[1])
        steps = np.log(theta + alpha * np.arange(1, count)).sum() - np.log(theta + np.arange(1, persons)).sum()
        inside = (special.gammaln(sizes - alpha) - special.gammaln(1 - alpha)).sum()
        return -float(steps + inside)

    best = optimize.minimize(unlikely, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    theta, alpha = np.exp(best[0]), special.expit(best[1])
    expected = np.exp(special.gammaln(theta + 1) - special.gammaln(theta + alpha) + (alpha - 1) * np.log(50_000))
    assert pitman(sizes, 50_000) == pytest.approx(expected, rel=1e-3)


def test_what_a_sliding_population_shows_is_what_scipy_adds_up() -> None:
    classes, rate, size, chance = 500.0, 0.3, 0.7, 0.2
    others = np.arange(400)
    likely = stats.nbinom.pmf(others, size, chance)
    made = _Sliding(classes, rate, size, chance)
    assert made.unseen == pytest.approx((likely * stats.binom.pmf(0, others + 1, rate)).sum())
    assert made.seen_once == pytest.approx(classes * (likely * stats.binom.pmf(1, others + 1, rate)).sum())
    assert made.unique == pytest.approx(classes * likely[0])
    people = round(classes * (1 + size * (1 - chance) / chance))
    found = _Sliding.fitted(people, classes, rate, round(classes * (1 - made.unseen)))
    assert found.size == pytest.approx(size, rel=0.02)
    assert found.chance == pytest.approx(chance, rel=0.02)


@pytest.mark.parametrize(("size", "chance"), [(0.5, 0.1), (1.5, 0.3), (0.2, 0.05)])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_sliding_populations_are_found_again(size: float, chance: float, share: float) -> None:
    random = np.random.default_rng(1)
    members = 1 + random.negative_binomial(size, chance, 20_000)
    people = int(members.sum())
    sample = np.bincount(random.choice(np.repeat(np.arange(len(members)), members), int(share * people), replace=False))
    found = slide_negative_binomial(sample[sample > 0], people)
    assert found == pytest.approx((members == 1).sum() / people, rel=0.15)


@pytest.mark.parametrize(("share", "by"), [(0.1, "pitman"), (0.4, "zayatz")])
def test_the_estimate_is_near_what_is_true(share: float, by: str) -> None:
    off = []
    for seed in range(3):
        classes = partition(2_000, 100.0, 0.6, seed)
        true = float((np.bincount(classes) == 1).sum() / len(classes))
        sample = np.random.default_rng(seed).choice(classes, int(share * len(classes)), replace=False)
        sizes = np.bincount(sample)
        found = unique_people(sizes[sizes > 0], len(classes))
        assert found.by in {by, "snb"} - ({"snb"} if by == "pitman" else set())
        off.append(found.share / true)
    # Zayatz takes classes of the population to be no larger than those of the sample, and so errs on the safe side.
    assert 0.75 < np.mean(off) < (1.25 if by == "pitman" else 2.5)


def test_nobody_is_unique_where_nobody_is_in_the_sample_and_all_where_all_are() -> None:
    assert pitman(np.array([5, 7]), 1_000) == zayatz(np.array([5, 7]), 20) == 0
    assert pitman(np.ones(50, np.int64), 1_000_000) == 1
    assert zayatz(np.ones(50, np.int64), 60) == 1
    assert slide_negative_binomial(np.ones(50, np.int64), 60) == pytest.approx(1)
    assert slide_negative_binomial(np.array([5, 7]), 20) == 0
    assert slide_negative_binomial(np.array([1, 1, 3, 5]), 10) == pytest.approx(0.2)
    # The whole population: who is unique in it is.
    assert zayatz(np.array([1, 1, 3, 5]), 10) == pytest.approx(0.2)


def test_a_population_is_no_smaller_than_the_table() -> None:
    with pytest.raises(InfeasibleError, match="at least as many"):
        unique_people(np.array([5, 5]), 9)


def test_people_are_counted_where_they_are_known() -> None:
    schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),), ())

    def of(ages: Any) -> Table:
        return Table(schema, np.arange(len(ages)), np.array(ages, float)[:, None], np.empty((len(ages), 0), np.int32))

    publication = Publication.of(of([20, 29, 40, 49, 50]), np.array([0, 0, 1, 1, -1]))
    found = population_risk(publication, of([20, 20, 22, 29, 40, 49, 77]))
    assert (found.people, found.after.k_map, found.after.unique, found.after.how) == (7, 2, 0, "counted")
    assert found.after.risk is not None
    assert found.after.risk.average == pytest.approx((2 / 4 + 2 / 2) / 4)
    assert (found.before.k_map, found.before.unique) == (1, 3 / 4)
    # Somebody whom the population lacks still is one of it.
    assert population_risk(publication, of([77])).after.k_map == 2
    estimated = population_risk(publication, 1_000)
    assert (estimated.after.unique, estimated.after.k_map, estimated.after.how) == (0, None, "pitman")
    assert estimated.before.unique == 1

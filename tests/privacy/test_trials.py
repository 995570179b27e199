import doctest
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import Rate, Trial, trials
from privacy import trials as module
from static_algos import Mondrian
from tests.worlds import ILLNESS, QUASI, random_table


def by_name(found: Any) -> dict[str, Trial]:
    return {one.attack: one for one in found}


@pytest.fixture(scope="module")
def table() -> Any:
    return random_table(2_000, 1, QUASI[:4], (ILLNESS,))


def test_a_table_as_it_is_gives_people_away(table: Any) -> None:
    found = by_name(trials(Publication.of(table, np.arange(len(table)))))
    assert list(found) == ["singling out", "linkability", "inference"]
    assert found["singling out"].after.share > 0.5
    assert found["inference"].after.share > 0.8
    assert found["inference"].risk > 0.5 > found["inference"].control.share
    assert found["linkability"].risk > 0.1
    for one in found.values():
        assert one.before == pytest.approx(one.after.share, abs=0.1)
        assert one.risk_interval[0] <= one.risk <= one.risk_interval[1]


def test_one_class_of_all_gives_nobody_away(table: Any) -> None:
    found = by_name(trials(Publication.of(table, np.zeros(len(table), int))))
    assert found["singling out"].after.share == 0
    assert found["linkability"].after.share == pytest.approx(found["linkability"].baseline)
    assert found["inference"].risk < 0.1
    assert found["inference"].before is not None
    assert found["inference"].before > 0.8


def test_what_holds_for_everybody_is_no_risk_of_those_in_the_table() -> None:
    # Everybody over 50 is ill: the attack is always right, on people who are not in the table as well.
    random = np.random.default_rng(1)
    ages = random.integers(0, 100, 3_000).astype(float)
    schema = Schema(
        PersonSource.ROW, (Number("age", 0, 99, integer=True),), (Category("ill", Hierarchy.flat(["n", "y"])),)
    )
    table = Table(schema, np.arange(3_000), ages[:, None], (ages > 50).astype(np.int32)[:, None])
    found = by_name(trials(Publication.of(table, ages // 10)))
    assert found["inference"].after.share > 0.85
    assert found["inference"].control.share > 0.9
    assert found["inference"].risk < 0.2
    assert "linkability" not in found


def test_a_guarantee_is_seen_in_it(table: Any) -> None:
    found = by_name(trials(Mondrian(k=10).anonymize(table)))
    assert found["singling out"].after.share < (found["singling out"].before or 0)
    assert found["inference"].risk < 0.4


def test_few_persons_are_not_tried() -> None:
    assert trials(Mondrian(k=3).anonymize(random_table(150, 2))) == ()
    assert trials(Publication.of(random_table(500, 2), np.full(500, -1))) == ()


def test_it_repeats_with_the_seed(table: Any) -> None:
    publication = Mondrian(k=5).anonymize(table)
    assert trials(publication, seed=3) == trials(publication, seed=3)
    assert trials(publication, seed=3) != trials(publication, seed=4)
    # Persons are codes of a run: others must not lead to other people being tried.
    codes = np.random.default_rng(1).permutation(len(table))[table.persons]
    renamed = replace(publication, table=replace(table, persons=codes))
    assert trials(renamed, seed=3) == trials(publication, seed=3)


def test_persons_with_several_rows_are_in_or_out_with_all_of_them() -> None:
    table = random_table(2_000, 4, QUASI[:3], (ILLNESS,), persons=400)
    found = by_name(trials(Publication.of(table, np.arange(2_000))))
    assert found["inference"].after.tried == found["inference"].control.tried == 39
    assert found["inference"].risk > 0.3


@pytest.mark.parametrize(("share", "tried"), [(0.0, 50), (0.02, 500), (0.5, 40), (1.0, 200)])
def test_the_interval_is_where_the_normal_test_does_not_reject(share: float, tried: int) -> None:
    low, high = Rate(share, tried).interval
    z = NormalDist().inv_cdf(0.975)
    for end in (low, high):
        # Wilson's ends are where the distance is z standard deviations of the end itself.
        assert abs(end - share) == pytest.approx(z * np.sqrt(end * (1 - end) / tried), abs=1e-7)


def test_documentation() -> None:
    assert doctest.testmod(__import__(module.__module__, fromlist=["Rate"])).failed == 0

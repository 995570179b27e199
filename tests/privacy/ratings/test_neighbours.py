"""Neighbourhoods by slicing against the definition, and the attack and the audit against theirs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy.ratings.neighbours
from microdata import InfeasibleError
from microdata.ratings import RatingSchema, Scale
from privacy.ratings import (
    KEpsilon,
    RatingDiversity,
    audit_ratings,
    check_scale,
    dissimilarity,
    equal_rows,
    largest_k,
    least_epsilon,
    measure,
    neighbour_counts,
    neighbourhoods,
    pairwise_counts,
    preference_attack,
    sensitive_dissimilarity,
    slices,
)
from tests.privacy.ratings.rating_worlds import neighbours, survey, tables


@pytest.mark.parametrize(("small", "room"), [(48, 1 << 20), (0, 1 << 20), (0, 1)])
@settings(max_examples=40)
@given(rows=tables(), epsilon=st.integers(0, 5))
def test_slicing_finds_what_the_definition_says(small: int, room: int, rows: Any, epsilon: int) -> None:
    ratings = survey(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privacy.ratings.neighbours, "SMALL", small)
        patch.setattr(privacy.ratings.neighbours, "ROOM", room)
        around = neighbourhoods(ratings, epsilon)
    expected = neighbours(rows, epsilon)
    assert around.counts.tolist() == [len(one) for one in expected]
    assert pairwise_counts(ratings, epsilon).tolist() == [len(one) for one in expected]
    if len(ratings.sensitive_items):
        for place, near in enumerate(expected):
            given_ = [rows[one][-1] for one in near if rows[one][-1] is not None]
            assert around.sums[place, 0].tolist() == [len(given_), sum(given_), sum(one**2 for one in given_)]


@settings(max_examples=30)
@given(rows=tables(), epsilon=st.integers(0, 4), k=st.integers(1, 6))
def test_a_search_that_ends_early_tells_the_truth_about_what_is_asked(rows: Any, epsilon: int, k: int) -> None:
    ratings = survey(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privacy.ratings.neighbours, "SMALL", 0)
        early = neighbour_counts(ratings, epsilon, least=k)
    full = pairwise_counts(ratings, epsilon)
    assert early.min() == full.min() == largest_k(ratings, epsilon)
    assert ((early < k) == (full < k)).all()


def test_large_sets_are_cut_into_blocks() -> None:
    generator = np.random.default_rng(5)
    rows = [(*row, 1) for row in generator.integers(1, 6, (3000, 4)).tolist()]
    ratings = survey(rows)
    assert (neighbour_counts(ratings, 1) == pairwise_counts(ratings, 1)).all()


@settings(max_examples=25)
@given(rows=tables(least=2))
def test_what_follows_from_the_definition(rows: Any) -> None:
    ratings = survey(rows)
    reached = [largest_k(ratings, epsilon) for epsilon in range(5)]
    assert reached == sorted(reached)
    assert reached[0] == np.bincount(equal_rows(ratings.open, values=True)).min(), "k-anonymity"
    assert largest_k(ratings, 5) == len(rows)
    found = least_epsilon(ratings, 2)
    assert (found is None) == (reached[-1] < 2)
    if found is not None:
        assert found.epsilon == next(place for place, k in enumerate(reached) if k >= 2)
    groups = slices(ratings, 1)
    for number in range(groups.max() + 1):
        own = [rows[one] for one in np.flatnonzero(groups == number)]
        assert all(len(near) == len(own) for near in neighbours(own, 1)), "everybody is close to everybody"


def test_dissimilarity_of_what_is_missing() -> None:
    pairs = ((None, None), (None, 1), (4, None), (1, 4))
    assert [dissimilarity(one, other, 5) for one, other in pairs] == [0, 5, 5, 3]
    assert [sensitive_dissimilarity(one, other, 5) for one, other in pairs] == [5, 5, 5, 3]


def test_findings_name_how_many_fail() -> None:
    rows = [(1, 1, 1), (1, 1, 5), (1, 2, 3), (5, 5, 2), (5, 5, 2)]
    models = (KEpsilon(3, 1), RatingDiversity(0.5, 1))
    (persons, few), (diverse, alike) = measure(models, survey(rows))
    assert (persons.achieved, persons.failing, persons.holds) == (2, 2, False)
    assert few.tolist() == alike.tolist() == [False, False, False, True, True]
    assert (diverse.achieved, diverse.failing) == (0, 2)


@pytest.mark.parametrize(
    ("model", "parameter", "nearest"),
    [(KEpsilon(2, 5), "epsilon", 4), (RatingDiversity(2.5, 1), "l", 2)],
)
def test_what_no_scale_has_is_refused(model: Any, parameter: str, nearest: float) -> None:
    with pytest.raises(InfeasibleError) as refused:
        check_scale((model,), RatingSchema("p", Scale(1, 5), sensitive=("secret",)))
    assert (refused.value.parameter, refused.value.nearest) == (parameter, nearest)
    with pytest.raises(InfeasibleError, match="the schema has none"):
        check_scale((RatingDiversity(1, 1),), RatingSchema("p", Scale(1, 5)))


@settings(max_examples=30)
@given(rows=tables(), tolerance=st.integers(0, 2), known=st.integers(1, 3))
def test_the_attack_counts_who_fits(rows: Any, tolerance: int, known: int) -> None:
    """With all open items known, candidates are those within the tolerance wherever the victim rated."""
    ratings = survey(rows)
    width = len(rows[0]) - 1
    linked = preference_attack(ratings, ratings, known=max(known, width), tolerance=tolerance, victims=None)
    single = hit = told = 0.0
    for row in rows:
        fits = [
            other
            for other in rows
            if all(
                own is None or (theirs is not None and abs(own - theirs) <= tolerance)
                for own, theirs in zip(row[:-1], other[:-1], strict=True)
            )
        ]
        single += len(fits) == 1
        hit += 1 / len(fits)
        told += fits[0][-1] is not None and len({other[-1] for other in fits}) == 1
    assert linked.victims == len(rows)
    assert linked.singled_out == pytest.approx(single / len(rows))
    assert linked.hit == pytest.approx(hit / len(rows))
    assert linked.told == pytest.approx(told / len(rows))


def test_knowing_less_finds_more() -> None:
    generator = np.random.default_rng(1)
    ratings = survey([(*row, 1) for row in generator.integers(1, 6, (200, 6)).tolist()])
    single = [preference_attack(ratings, ratings, known=known, tolerance=1).singled_out for known in (1, 3, 6)]
    assert single == sorted(single)
    assert single[0] < single[-1]


ROWS = [(1, 2, 3), (1, 2, 3), (2, 2, None), (2, 1, 4)]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({0: (1, 2, 4)}, "sensitive"),
        ({2: (2, 2, 3)}, "sensitive"),
        ({4: (1, 1, 3)}, "persons"),
    ],
)
def test_an_audit_without_the_algorithm_sees_what_no_release_does(change: Any, kind: str) -> None:
    changed = [*ROWS, *([change[4]] if 4 in change else [])]
    for place, row in change.items():
        changed[place] = row
    found = audit_ratings(survey(ROWS), survey(changed), (KEpsilon(1, 1),))
    assert kind in [fault.kind for fault in found.faults]
    assert not found.holds
    assert audit_ratings(survey(ROWS), survey(ROWS[::-1]), (KEpsilon(1, 1),)).holds


def test_invented_ratings_are_told() -> None:
    before, after = survey([(1, None, 1), (1, 2, 2)]), survey([(1, 2, 1), (1, 2, 2)])
    assert [fault.kind for fault in audit_ratings(before, after, ()).faults] == ["invented"]
    assert audit_ratings(before, after, (), may_invent=True).holds


def test_equal_hashes_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        privacy.ratings.neighbours, "row_hashes", lambda starts, *_: np.zeros((len(starts) - 1, 2), np.uint64)
    )
    with pytest.raises(AssertionError, match="one hash"):
        equal_rows(survey(ROWS).open, values=True)
    assert math.isinf(RatingDiversity(1, 1).achieved(neighbourhoods(survey([(1, 1, None)]), 5), survey(ROWS).schema)[0])

"""KE-ANON: what it promises, held against the definition; and checks that fire when it is broken."""

import itertools
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import GuaranteeError, InfeasibleError
from microdata.ratings import Ratings, Scale, Sparse, ratings_from_rows
from privacy.ratings import measure, preference_attack
from static_algos.ratings import KeAnon, RatingsPublication, ke_anon, utility
from static_algos.ratings.cliques import groups_of_alike
from static_algos.ratings.recoding import Recoding
from static_algos.ratings.sketches import groups_by_sketch
from tests.privacy.ratings.rating_worlds import SIZE, neighbours, plain_rows, survey, tables

HOW = [
    {"strategy": "clip"},
    {"strategy": "centroid", "null_policy": "majority"},
    {"strategy": "paper"},
    {"strategy": "same", "items": "most"},
]


def as_rows(ratings: Ratings) -> list[tuple[int | None, ...]]:
    """Rows of a release as the oracle takes them: open items first, the sensitive one last."""
    return [tuple(value or None for value in row) for row in plain_rows(ratings)]


def test_what_is_anonymous_already_may_leave_as_it_is() -> None:
    """The octahedron of the paper: everybody is close to four others, but no four persons are close to each other."""
    rows = [(1, 2, 2), (4, 2, 2), (2, 1, 2), (2, 4, 2), (2, 2, 1), (2, 2, 4)]
    ratings = ratings_from_rows(rows, Scale(1, 5))
    assert KeAnon(k=4, epsilon=2).anonymize(ratings).distortion == 3
    for how in HOW[:3]:
        kept = KeAnon(k=4, epsilon=2, accept="degree", **how).anonymize(ratings)
        assert kept.distortion == 0
        assert plain_rows(kept.released) == plain_rows(ratings)
    assert KeAnon(k=4, epsilon=2, accept="degree", strategy="same").anonymize(ratings).distortion > 0, "also at 0"
    assert KeAnon(k=6, epsilon=2, accept="degree").anonymize(ratings).sizes.tolist() == [6], "not so many are close"


def test_a_judge_that_believes_everything_lets_nothing_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = ratings_from_rows([(1, 5), (5, 1), (1, 1), (5, 5)], Scale(1, 5))
    asked: list[Any] = []

    def once(models: Any, given: Any) -> Any:
        asked.append(given)
        return [] if len(asked) == 1 else measure(models, given)

    monkeypatch.setattr(ke_anon, "measure", once)
    with pytest.raises(GuaranteeError, match="fails for 4 persons"):
        KeAnon(k=2, epsilon=1, accept="degree").anonymize(ratings)


@pytest.mark.parametrize("how", HOW, ids=lambda how: how["strategy"])
@settings(max_examples=25)
@given(rows=tables(most=16, least=4), k=st.integers(1, 4), epsilon=st.integers(0, 3))
def test_everybody_is_close_to_k_persons(how: Any, rows: Any, k: int, epsilon: int) -> None:
    ratings = survey(rows)
    publication = KeAnon(k=k, epsilon=epsilon, **how).anonymize(ratings)
    released = as_rows(publication.released)
    if "secret" not in ratings.names:
        released = [(*row, None) for row in released]
    assert all(len(near) >= k for near in neighbours(released, epsilon))
    if how["strategy"] == "same":
        assert all(len(near) >= k for near in neighbours(released, 0))
    sizes = publication.sizes
    assert sizes.min() >= k
    assert (publication.recoded.open.values >= 1).all()
    assert (publication.recoded.open.values <= SIZE).all()
    if how.get("null_policy") != "majority":
        assert publication.changes.invented == 0
    before, after = (
        (Counter(one.sensitive_matrix[:, 0].tolist()) for one in (ratings, publication.released))
        if len(ratings.sensitive_items)
        else (Counter[int](), Counter[int]())
    )
    assert not after - before, "sensitive ratings are somebody's"
    changes = publication.changes
    assert changes.kept + changes.changed + changes.suppressed == len(ratings.open.values)


@settings(max_examples=20)
@given(rows=tables(most=14, least=4), k=st.integers(2, 4), data=st.data())
def test_order_and_chance_do_not_matter(rows: Any, k: int, data: Any) -> None:
    order = data.draw(st.permutations(range(len(rows))))
    for items in ("all", "most"):
        algorithm = KeAnon(k=k, epsilon=1, items=items)
        one = algorithm.anonymize(survey(rows)).released
        other = algorithm.anonymize(survey([rows[place] for place in order])).released
        assert Counter(plain_rows(one)) == Counter(plain_rows(other))


@settings(max_examples=40)
@given(column=st.lists(st.integers(1, SIZE), min_size=1, max_size=6), steps=st.integers(0, 4))
def test_clip_is_the_least_distortion_and_centroid_keeps_the_sum(column: Any, steps: int) -> None:
    ratings = ratings_from_rows([(one,) for one in column], Scale(1, SIZE))
    group = np.zeros(len(column), np.int64)
    made = {
        strategy: Recoding(steps, SIZE, 1, strategy).recode(ratings.open, group).values
        for strategy in ("clip", "centroid", "paper")
    }
    best = min(
        sum(abs(a - b) for a, b in zip(column, other, strict=True))
        for other in itertools.product(range(1, SIZE + 1), repeat=len(column))
        if max(other) - min(other) <= steps
    )
    assert np.abs(made["clip"] - np.array(column)).sum() == best
    for values in made.values():
        assert values.max() - values.min() <= steps
        assert min(column) <= values.min()
        assert values.max() <= SIZE
    if steps:
        assert made["centroid"].sum() == made["paper"].sum() == sum(column)


@settings(max_examples=20)
@given(
    rows=tables(most=18, least=6, missing=False),
    sd=st.sampled_from([0.3, 0.8]),
    strategy=st.sampled_from(["clip", "centroid", "paper", "same"]),
)
def test_sensitive_ratings_are_spread_around_everybody(rows: Any, sd: float, strategy: str) -> None:
    ratings = survey([(*row[:-1], row[-1] or 1) for row in rows])
    algorithm = KeAnon(k=2, epsilon=1, l={"sd": sd}, strategy=strategy)
    if np.std(ratings.sensitive_matrix[:, 0]) < sd:
        with suppress(InfeasibleError):  # some partitions are more spread than the whole, where neighbourhoods overlap
            algorithm.anonymize(ratings)
        return
    released = as_rows(algorithm.anonymize(ratings).released)
    for near in neighbours(released, 1):
        assert np.std([released[one][-1] or 0 for one in near]) >= sd - 1e-9


@pytest.mark.parametrize("strategy", ["clip", "centroid", "paper", "same"])
def test_ties_are_broken_in_the_order_in_which_the_spread_was_measured(strategy: str) -> None:
    """With `paper`, the rows in their given order were recoded differently and missed the spread of one person."""
    quasi = [
        (6, 6, 1),
        (4, 1, 3),
        (3, 6, 5),
        (1, 2, 2),
        (4, 2, 3),
        (1, 6, 3),
        (5, 2, 5),
        (3, 5, 4),
        (6, 6, 6),
        (6, 6, 5),
    ]
    secrets = [5, 4, 4, 5, 2, 1, 5, 4, 4, 2]
    rows = [(*row, secret) for row, secret in zip(quasi, secrets, strict=True)]
    ratings = ratings_from_rows(rows, Scale(1, 6), names=["q1", "q2", "q3", "secret"], sensitive=["secret"])
    publication = KeAnon(k=2, epsilon=2, l={"sd": 1.0}, strategy=strategy).anonymize(ratings)
    assert np.array_equal(publication.original.persons, ratings.persons)
    assert plain_rows(publication.original) == plain_rows(ratings)


def test_one_row_for_all_stops_exact_knowledge() -> None:
    generator = np.random.default_rng(2)
    taste = generator.integers(1, 6, (4, 6))
    rows = np.clip(taste[generator.integers(0, 4, 120)] + generator.integers(-1, 2, (120, 6)), 1, 5)
    ratings = survey([(*row, 1) for row in rows.tolist()])
    clipped, same = (KeAnon(k=4, epsilon=1, strategy=one).anonymize(ratings) for one in ("clip", "same"))
    before = preference_attack(ratings, ratings, known=6)
    assert before.singled_out > 0.5
    assert preference_attack(ratings, clipped.recoded, known=6).singled_out > 0, "(k,ε) does not promise that"
    after = preference_attack(ratings, same.recoded, known=6)
    assert after.singled_out == 0
    assert after.hit <= 1 / 4
    tolerant = preference_attack(clipped.recoded, clipped.recoded, known=6, tolerance=1)
    assert tolerant.fewest is not None
    assert tolerant.fewest >= 4, "who knows published ratings within ε finds k persons"


def test_sketches_bring_together_who_shares_items() -> None:
    """Three tastes with ten items each: groups by sketches keep nearly everything, groups by chance hardly anything."""
    generator = np.random.default_rng(4)
    rows: list[list[int | None]] = []
    for person in range(96):
        first = 10 * (person % 3)
        rows.append([int(generator.integers(1, 6)) if first <= item < first + 10 else None for item in range(30)])
    ratings = ratings_from_rows(rows, Scale(1, 5), names=[f"m{item:02}" for item in range(30)])
    groups, rest = groups_by_sketch(ratings.open, 4, 30)
    assert len(rest) == 0
    assert sorted(np.concatenate(groups).tolist()) == list(range(96))
    assert all(len({int(person) % 3 for person in members}) == 1 for members in groups)
    publication = KeAnon(k=4, epsilon=1, items="most").anonymize(ratings)
    assert publication.changes.suppressed == 0
    assert (publication.sizes >= 4).all()


def test_many_patterns_are_grouped_by_sketches_too() -> None:
    generator = np.random.default_rng(6)
    given_ = np.where(generator.random((150, 12)) < 0.5, generator.integers(1, 6, (150, 12)), 0)
    ratings = ratings_from_rows([[3, *(value or None for value in row)] for row in given_.tolist()], Scale(1, 5))
    publication = KeAnon(k=5, epsilon=1).anonymize(ratings)
    assert publication.sizes.min() >= 5
    assert publication.changes.invented == 0


def test_large_sets_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("static_algos.ratings.cliques.BLOCK", 40)
    block = np.random.default_rng(3).integers(1, 6, (150, 4)).astype(np.int16)
    groups, rest = groups_of_alike(block, 4, 1, 5)
    assert sorted(np.concatenate([*groups, rest]).tolist()) == list(range(150))
    assert all(4 <= len(members) < 8 for members in groups)
    assert len(rest) < 4


def test_the_published_method_costs_more() -> None:
    generator = np.random.default_rng(8)
    ratings = survey([(*row, 1) for row in generator.integers(1, 6, (80, 4)).tolist()])
    made = [KeAnon(k=4, epsilon=1, strategy=one).anonymize(ratings) for one in ("clip", "centroid", "paper")]
    costs = [one.distortion for one in made]
    assert costs[0] <= costs[1] <= costs[2]


def test_who_shares_nothing_is_withheld() -> None:
    rows = [(1, None, 2), (None, 1, 3), (2, None, None), (None, 2, 1)]
    ratings = ratings_from_rows(rows, Scale(1, 5), names=["a", "b", "secret"], sensitive=["secret"])
    publication = KeAnon(k=4, epsilon=1).anonymize(ratings)
    assert (publication.withheld, len(publication.released)) == (4, 0)
    publication = KeAnon(k=2, epsilon=1).anonymize(ratings)
    assert publication.withheld == 0


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(InfeasibleError) as refused:
        KeAnon(k=9, epsilon=1).anonymize(survey([(1, 1, 1)] * 4))
    assert (refused.value.parameter, refused.value.nearest) == ("k", 4)
    with pytest.raises(InfeasibleError, match="k"):
        KeAnon(k=0, epsilon=1)


RECODE = Recoding.recode


def _leave(self: Recoding, rows: Sparse, groups: Any) -> Sparse:
    return rows


def _too_high(self: Recoding, rows: Sparse, groups: Any) -> Sparse:
    same = RECODE(self, rows, groups)
    return Sparse(same.starts, same.items, np.full_like(same.values, SIZE + 1))


@pytest.mark.parametrize(
    ("target", "broken", "said"),
    [
        ((Recoding, "recode"), _leave, "differ by more than ε"),
        ((Recoding, "recode"), _too_high, "left the scale"),
        ((RatingsPublication, "groups_are_cliques"), lambda self: False, "differ by more than ε"),
        ((RatingsPublication, "sensitive_is_untouched"), lambda self: False, "sensitive rating was changed"),
    ],
)
def test_what_does_not_hold_does_not_leave(monkeypatch: Any, target: Any, broken: Any, said: str) -> None:
    monkeypatch.setattr(*target, broken)
    with pytest.raises(GuaranteeError, match=said):
        KeAnon(k=2, epsilon=0).anonymize(survey([(1, 1, 1), (5, 2, 1), (3, 3, 2), (2, None, 1)]))


def test_a_changed_answer_and_a_small_group_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = survey([(1, 1, 1), (1, 2, 5), (4, 4, 2), (4, 5, 3)])
    publication = KeAnon(k=2, epsilon=1).anonymize(ratings)
    wrong = Sparse(ratings.sensitive.starts, ratings.sensitive.items, ratings.sensitive.values[::-1].copy())
    recoded = Ratings(ratings.schema, ratings.names, ratings.persons, publication.recoded.open, wrong)
    assert not RatingsPublication(ratings, publication.groups, recoded, publication.recoding).sensitive_is_untouched()
    monkeypatch.setattr(
        "static_algos.ratings.ke_anon.group_persons",
        lambda ratings, *_, **__: [np.array([place]) for place in range(len(ratings))],
    )
    with pytest.raises(GuaranteeError, match="1 persons of 2"):
        KeAnon(k=2, epsilon=1).anonymize(ratings)


def test_nothing_lost_is_measured_as_nothing() -> None:
    generator = np.random.default_rng(9)
    rows = [(*row, 1 + number % 5) for number, row in enumerate(generator.integers(1, 6, (60, 5)).tolist())]
    ratings = survey(rows)
    alone = KeAnon(k=1, epsilon=1).anonymize(ratings)
    found = utility(alone)
    assert (found.mean_error, found.count_error, found.moved) == (0, 0, 0)
    assert found.centroid == pytest.approx(1)
    assert found.spread_before == found.spread_after
    assert found.item_means is not None
    assert found.item_means.original == found.item_means.published
    assert found.neighbours is not None
    assert found.neighbours.original == found.neighbours.published
    harsh = utility(KeAnon(k=20, epsilon=0).anonymize(ratings))
    assert harsh.count_error is not None
    assert harsh.count_error > 0.1
    assert harsh.spread_after is not None
    assert harsh.spread_before is not None
    assert harsh.spread_after < harsh.spread_before

import doctest
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Cancelled, GuaranteeError, InfeasibleError, Number, PersonSource, Schema, Table
from privacy import Groups, check
from static_algos import STATIC_ALGORITHMS, Incognito, full_domain, incognito
from static_algos.recoding import recodings
from tests.worlds import ILLNESS, QUASI, guarantees, random_table, tables


def by_hand(table: Any, models: Any, height: Any, limit: Any) -> Any:
    """Loss of every combination of levels that keeps the guarantee, each looked at by itself."""
    recoded = recodings(table, height, {})
    found = {}
    for node in itertools.product(*(range(len(one.levels)) for one in recoded)):
        levels = [one.levels[level] for one, level in zip(recoded, node, strict=True)]
        codes = np.stack([level.group[one.codes] for level, one in zip(levels, recoded, strict=True)], axis=1)
        classes = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
        groups = Groups.of(table.schema, table.persons, table.sensitive, classes, classes.max() + 1)
        holds = check(models, groups)[classes]
        if (~holds).sum() <= limit:
            lost = np.stack([level.loss[codes[:, a]] for a, level in enumerate(levels)], axis=1) @ table.schema.weights
            found[node] = float(np.where(holds, lost, 1.0).mean())
    return found


def minimal_of(found: Any) -> Any:
    return {
        node
        for node in found
        if not any(other != node and all(a <= b for a, b in zip(other, node, strict=True)) for other in found)
    }


@settings(max_examples=80)
@given(tables(most_rows=40), guarantees, st.sampled_from([0, 0.1, 0.3]), st.integers(1, 2))
def test_the_best_and_all_minimal_ones_are_found(table: Any, guarantee: Any, suppression: Any, height: int) -> None:
    algorithm = Incognito(**guarantee, suppression=suppression, height=height)
    try:
        models = algorithm.models(table.schema)
        publication = algorithm.anonymize(table)
    except InfeasibleError:
        models = tuple(algorithm.parameters._models(table.schema))
        publication = None
    limit = math.floor(Fraction(str(suppression)) * len(table))
    found = by_hand(table, models, height, limit)
    if publication is None:
        assert not found
        return
    assert publication.details["loss"] == pytest.approx(min(found.values()))
    every = Incognito(**guarantee, suppression=suppression, height=height, choose="minimal").anonymize(table)
    assert {tuple(one["levels"].values()) for one in every.details["minimal"]} == minimal_of(found)  # type: ignore[attr-defined]
    assert every.details["loss"] == pytest.approx(min(found[node] for node in minimal_of(found)))


@settings(max_examples=80)
@given(tables(), guarantees, st.sampled_from([0, 0.2]))
def test_classes_cover_their_rows_and_keep_the_guarantee(table: Any, guarantee: Any, suppression: Any) -> None:
    algorithm = Incognito(**guarantee, suppression=suppression)
    try:
        publication = algorithm.anonymize(table)
    except InfeasibleError:
        return
    kept = publication.classes >= 0
    assert publication.suppressed <= suppression * len(table)
    assert publication.suppressed == publication.details["suppressed"]
    assert len(publication.boxes) == publication.details["classes"]
    assert publication.sizes.min(initial=1) > 0
    assert publication.boxes.cover(table.quasi[kept], publication.classes[kept]).all()
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    assert check(algorithm.models(table.schema), groups).all()
    lost = publication.loss * kept.sum() + publication.suppressed
    assert publication.details["loss"] == pytest.approx(lost / len(table))


def test_every_row_is_generalized_alike() -> None:
    table = random_table(400, 1)
    publication = Incognito(k=5, suppression=0.1).anonymize(table)
    level = publication.details["levels"]["age"]  # type: ignore[index]
    recoded = recodings(table, 4, {})[0].levels[level]
    published = set(zip(publication.boxes.lo[:, 0], publication.boxes.hi[:, 0], strict=True))
    assert published <= set(zip(recoded.lo, recoded.hi, strict=True))


def test_suppression_buys_detail() -> None:
    table = random_table(1_000, 2, QUASI[:3], (ILLNESS,))
    losses = [Incognito(k=8, suppression=share).anonymize(table).details["loss"] for share in (0, 0.02, 0.1)]
    assert losses == sorted(losses, reverse=True)  # type: ignore[type-var]
    assert losses[0] > losses[-1]  # type: ignore[operator]


def test_t_has_an_effect() -> None:
    table = random_table(2_000, 3, QUASI[:3], (ILLNESS,))
    losses = [Incognito(t=t, k=2).anonymize(table).loss for t in (0.05, 0.2, 0.5)]
    assert losses == sorted(set(losses), reverse=True)


def test_subsets_save_looks() -> None:
    table = random_table(300, 4)
    publication = Incognito(k=5).anonymize(table)
    nodes = math.prod(len(one.levels) for one in recodings(table, 4, {}))
    assert publication.details["looked_at"] < nodes / 4  # type: ignore[operator]


@pytest.mark.parametrize("asked", [{"k": 5}, {"t": 0.1}, {"beta": 1}])
def test_a_search_that_believes_everything_is_caught(monkeypatch: pytest.MonkeyPatch, asked: Any) -> None:
    table = random_table(300, 5, sensitive=(ILLNESS,))
    monkeypatch.setattr(full_domain, "check", lambda models, groups: np.ones(len(groups), bool))
    with pytest.raises(GuaranteeError, match="fails in"):
        Incognito(**asked).anonymize(table)


def test_k_counts_persons() -> None:
    table = random_table(60, 6, persons=4)
    assert Incognito(k=4).anonymize(table).suppressed == 0
    with pytest.raises(InfeasibleError) as refusal:
        Incognito(k=5).anonymize(table)
    assert (refusal.value.parameter, refusal.value.nearest) == ("k", 4)


def test_a_lattice_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_domain, "MOST_NODES", 10)
    with pytest.raises(InfeasibleError, match="combinations"):
        Incognito(k=2).anonymize(random_table(20, 7))


@pytest.mark.parametrize("phase", ["pruning", "choosing"])
def test_progress_cancels(phase: str) -> None:
    def stop(now: Any, done: Any, total: Any) -> None:
        assert 0 <= done <= total
        if now == phase:
            raise Cancelled

    with pytest.raises(Cancelled):
        Incognito(k=3).anonymize(random_table(200, 8), progress=stop)


def test_it_is_in_the_catalogue_with_its_documentation() -> None:
    assert STATIC_ALGORITHMS["incognito"].algorithm is Incognito
    assert doctest.testmod(incognito).failed == 0


def test_a_lattice_beyond_counting_is_refused_in_a_short_sentence() -> None:
    numbers = tuple(Number(f"n{number}", 0, 99, integer=True) for number in range(300))
    table = Table(Schema(PersonSource.ROW, numbers), np.arange(9), np.zeros((9, 300)), np.empty((9, 0), np.int32))
    with pytest.raises(InfeasibleError, match=r"10\^\d+ combinations of levels are too many") as caught:
        Incognito(k=2).anonymize(table)
    assert len(str(caught.value)) < 250

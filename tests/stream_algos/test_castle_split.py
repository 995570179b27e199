"""Splitting a large cluster block by block is as good as looking at all pairs of rows."""

from typing import Any

import numpy as np
import pytest

from microdata import Boxes, table_loss
from privacy import DistinctDiversity, Groups, KAnonymity, check
from stream_algos import _held_kernels as held
from stream_algos import _split_kernels as kernels
from tests.stream_algos.castle_streams import MIXED, NUMBERS, castle, stream


def one_cluster(schema: Any, rows: Any, k: Any, l: int = 1, persons: Any = None) -> Any:  # noqa: E741
    """An engine that holds all rows in one cluster, the rows, and what splitting wants."""
    batch = stream(schema, 5, rows, persons=persons, grid=False)
    engine = castle(schema, formation="arrival", k=k, l=l, delta=10 * rows, eta=1)
    engine.push(batch)
    engine._fetch_words(0)
    slots = engine._held()
    return engine, slots, np.full(rows, held.NONE)


def loss_of(engine: Any, slots: Any, part: Any, clusters: Any) -> Any:
    boxes = Boxes.around(engine.schema, engine._state.rows.quasi[slots], part, clusters)
    return table_loss(boxes, np.bincount(part, minlength=clusters))


def assert_classes(engine: Any, slots: Any, part: Any, clusters: Any) -> None:
    rows = engine._rows_at(slots)
    groups = Groups.of(engine.schema, rows.persons, rows.sensitive, part, clusters)
    models = [
        KAnonymity(engine.parameters.k),
        *([DistinctDiversity(engine.parameters.l)] if engine.schema.sensitive else []),
    ]
    assert check(models, groups).all()


@pytest.mark.parametrize("k", [5, 20])
def test_blocks_lose_no_more_than_all_pairs(k: int) -> None:
    engine, slots, part = one_cluster(NUMBERS, 4000, k)
    assert len(slots) ** 2 > 2 * k * kernels.BLOCK_PAIRS, "the cluster is not large enough for this test"
    arguments = engine._state.rows, engine._out, engine._space, engine._rules
    plain_slots, plain = slots.copy(), part.copy()
    plain_clusters = kernels._split_k(*arguments, plain_slots, plain, 0)
    clusters = kernels.split(*arguments, slots, part)
    assert_classes(engine, slots, part, clusters)
    assert_classes(engine, plain_slots, plain, plain_clusters)
    assert loss_of(engine, slots, part, clusters) <= 1.05 * loss_of(engine, plain_slots, plain, plain_clusters)


@pytest.mark.parametrize("persons", [None, 300])
def test_blocks_keep_persons_and_values(persons: Any) -> None:
    engine, slots, part = one_cluster(MIXED, 3000, 4, 3, persons)
    before = set(slots.tolist())
    clusters = kernels.split(engine._state.rows, engine._out, engine._space, engine._rules, slots, part)
    assert set(slots.tolist()) == before
    assert clusters > 10
    assert_classes(engine, slots, part, clusters)

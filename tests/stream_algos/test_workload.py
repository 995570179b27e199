"""The workload error of a stream: the query errors of its stretches, whenever and however their rows leave."""

from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Publication, Table, seeded_words
from static_algos import median_query_error
from stream_algos import Batch, Castle, Release, Workload, workload_error
from stream_algos.workload import QUERIES
from tests.stream_worlds import stream
from tests.worlds import ILLNESS

SCHEMA, BATCH = stream(500, 3, (ILLNESS,), persons=120)
WHOLE = Table(SCHEMA, BATCH.persons, BATCH.quasi, BATCH.sensitive)


def released(pieces: Any = (500,), **given: Any) -> Any:
    """What CASTLE makes of the rows, step by step, numbered from 0."""
    engine, at = Castle(SCHEMA, words=seeded_words(1), k=4, delta=60, **given), 0
    releases: list[Any] = []
    batch = Batch(np.arange(500), BATCH.times, BATCH.persons, BATCH.quasi, BATCH.sensitive)
    while at < 500:
        size = pieces[len(releases) % len(pieces)]
        part = batch.take(slice(at, at + size))
        releases.append((part, engine.push(part)))
        at += size
    return [*releases, (Batch.empty(SCHEMA), engine.flush())]


def by_definition(release: Any, stretch: Any) -> Any:
    """Every stretch as a table, judged by itself."""
    box = np.full(500, -1)
    box[release.members] = release.cluster_of()
    errors = []
    for start in range(0, 500 - stretch + 1, stretch):
        used, labels = np.unique(box[start : start + stretch], return_inverse=True)
        hidden = int(used[0] < 0)
        boxes = Boxes(SCHEMA, release.lo[used[hidden:]], release.hi[used[hidden:]])
        part = Publication(WHOLE.take(np.arange(start, start + stretch)), (labels - hidden).astype(np.int32), boxes)
        errors.append(median_query_error(part, queries=QUERIES))
    return np.mean(errors)


@pytest.mark.parametrize("stretch", [100, 170, 500])
def test_it_is_the_mean_query_error_of_whole_stretches(stretch: int) -> None:
    whole = Release.concat([release for _, release in released()])
    expected = by_definition(whole, stretch)
    assert expected > 0
    assert workload_error(WHOLE, whole, stretch) == pytest.approx(expected)
    for pieces in ((1,), (7, 64), (130,)):
        workload = Workload(SCHEMA, stretch)
        for part, release in released(pieces):
            workload.take(part)
            workload.decided(release)
        assert workload.error() == pytest.approx(expected), pieces


def test_a_short_stream_is_one_stretch() -> None:
    whole = Release.concat([release for _, release in released()])
    assert workload_error(WHOLE, whole, 10_000) == workload_error(WHOLE, whole, 500)
    assert Workload(SCHEMA).error() is None


def test_exact_boxes_answer_without_an_error_and_suppressed_rows_with_one() -> None:
    nothing, n = Release.empty(len(SCHEMA.quasi)), np.arange(500)
    none = Release(**{**vars(nothing), "suppressed": n, "given_up": n})
    assert workload_error(WHOLE, none, 500) == 1.0
    alone = Release(
        ids=n.astype(np.uint64),
        lo=BATCH.quasi,
        hi=BATCH.quasi,
        starts=np.arange(501),
        members=n,
        reused=np.zeros(500, bool),
        windows=np.full((500, 2), -1),
        suppressed=n[:0],
    )
    assert workload_error(WHOLE, alone, 500) < 0.05  # type: ignore[operator]


def test_what_is_judged_is_forgotten() -> None:
    workload = Workload(SCHEMA, 100)
    for part, release in released((50,)):
        workload.take(part)
        workload.decided(release)
        assert len(workload._open) <= 3
    assert not workload._open

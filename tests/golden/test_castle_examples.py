"""Section 5.14 of the specification: the thesis' examples and three traces, with the thesis' setting."""

from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Category, Hierarchy, Number, Schema, class_loss, seeded_words
from stream_algos import Batch, Castle

EDUCATION = Hierarchy.from_mapping(
    {"Any": {"School": ["Primary School", "Secondary School"], "University": ["Bachelor", "Master", "Ph.D."]}}
)
AGE_EDUCATION = Schema("pid", (Number("age", 18, 120), Category("education", EDUCATION)))
ONE_NUMBER = Schema("pid", (Number("value", 0, 100),))


def boxes(*sides: Any) -> Any:
    lo, hi = zip(*((low, high) for low, high in sides), strict=True)
    return Boxes(AGE_EDUCATION, np.array(lo, float), np.array(hi, float))


def people(*rows: Any) -> Any:
    ages, labels = zip(*rows, strict=True)
    return np.stack([np.array(ages, float), np.array([EDUCATION.codes[label] for label in labels], float)], axis=1)


def batch(positions: Any, persons: Any, quasi: Any) -> Any:
    rows = len(positions)
    return Batch(
        np.array(positions), np.zeros(rows), np.array(persons), np.array(quasi, float), np.empty((rows, 0), np.int32)
    )


def trace(stream: Any, **parameters: Any) -> Any:
    """What leaves at which position: (position, members, lo, hi, reused) and the suppressed positions."""
    engine = Castle(ONE_NUMBER, words=seeded_words(1), formation="arrival", reuse=True, **parameters)
    released, suppressed, taus = [], [], []
    for item in [*stream.split(), None]:
        if item is None:
            when, release = "flush", engine.flush()
        else:
            position, person, value = item.split(":")
            when, release = int(position), engine.push(batch([int(position)], [ord(person)], [[value]]))  # type: ignore[assignment]
        for c in range(len(release)):
            members = sorted(release.members[release.starts[c] : release.starts[c + 1]].tolist())
            released.append((when, members, release.lo[c, 0], release.hi[c, 0], bool(release.reused[c])))
            taus.append(round(engine.status()["tau"], 12))
        suppressed += [(when, position) for position in release.suppressed.tolist()]
    return released, suppressed, taus


def test_examples_5_1_and_5_2_a_cluster_is_its_minimal_box_and_counts_persons() -> None:
    rows = people((25, "Bachelor"), (26, "Master"), (30, "Ph.D."), (25, "Bachelor"))
    engine = Castle(AGE_EDUCATION, words=seeded_words(1), formation="arrival", k=4, delta=10, eta=1)
    engine.push(batch(range(4), [1, 2, 3, 1], rows))
    assert engine.status()["held_persons"] == 3
    assert engine.status()["open_clusters"] == 1
    assert engine.flush().suppressed.tolist() == [0, 1, 2, 3]

    engine = Castle(AGE_EDUCATION, words=seeded_words(1), formation="arrival", k=3, delta=10, eta=1)
    engine.push(batch(range(4), [1, 2, 3, 1], rows))
    release = engine.flush()
    university = EDUCATION.nodes["University"]
    assert release.lo.tolist() == [[25, EDUCATION.first[university]]]
    assert release.hi.tolist() == [[30, EDUCATION.last[university]]]


def test_example_5_3_enlargement_chooses_the_second_cluster() -> None:
    before = class_loss(boxes(([18, 0], [22, 1]), ([26, 2], [28, 3])))
    after = class_loss(boxes(([18, 0], [24, 2]), ([24, 2], [28, 3])))
    assert after - before == pytest.approx([0.3098, 0.0098], abs=5e-5)

    engine = Castle(AGE_EDUCATION, words=seeded_words(1), formation="arrival", k=2, delta=10, eta=2)
    start = people((18, "Primary School"), (26, "Bachelor"), (22, "Secondary School"), (28, "Master"))
    engine.push(batch(range(5), range(5), np.concatenate([start, people((24, "Bachelor"))])))
    clusters = engine.snapshot()["clusters"]
    assert clusters[4] == clusters[1] == clusters[3]
    assert clusters[0] == clusters[2] != clusters[4]


def test_trace_1_merging_and_reuse_at_the_end() -> None:
    released, suppressed, taus = trace(
        "1:a:10 2:b:12 3:a:11 4:c:50 5:d:52 6:e:11 7:f:90 8:g:51 9:h:13 10:h:55", k=2, delta=3, eta=2, mu=2
    )
    assert released == [
        (4, [1, 2, 3, 4], 10, 50, False),
        (8, [5, 7, 8], 51, 90, False),
        (9, [6, 9], 11, 13, False),
        ("flush", [10], 51, 90, True),
    ]
    assert suppressed == []
    assert taus == [0.4, 0.395, 0.205, 0.205]


def test_trace_2_suppression() -> None:
    released, suppressed, taus = trace("1:a:10 2:b:20 3:a:10 4:b:20 5:c:30 6:d:31", k=3, delta=2, eta=5, mu=5)
    assert released == [(5, [3, 4, 5], 10, 30, False)]
    assert suppressed == [(3, 1), (4, 2), ("flush", 6)]
    assert taus == [0.2]


def test_trace_3_reuse_at_expiry() -> None:
    released, suppressed, _ = trace(
        "1:a:0 2:b:40 3:c:70 4:d:72 5:e:71 6:f:5 7:g:71 8:h:30 9:i:31", k=2, delta=2, eta=3, mu=3
    )
    assert released == [
        (3, [1, 2], 0, 40, False),
        (5, [3, 4, 5], 70, 72, False),
        (8, [6, 8], 5, 30, False),
        (9, [7], 70, 72, True),
    ]
    assert suppressed == [("flush", 9)]

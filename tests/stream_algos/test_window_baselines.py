"""The algorithms that others are compared with keep the guarantee too, so that comparisons with them are fair."""

from typing import Any

import numpy as np
import pytest

from load_tests.generators import power_law
from microdata import Boxes, Number, PersonSource, Schema, class_loss, seeded_words
from stream_algos import Batch, DynamicGroup, IncognitoW, MondrianW
from tests.stream_worlds import Observer, stream
from tests.worlds import DEBT, ILLNESS


@pytest.mark.parametrize("kind", [MondrianW, IncognitoW])
@pytest.mark.parametrize("attribute", [ILLNESS, DEBT])
def test_the_window_baselines_pass_the_gate(kind: Any, attribute: Any) -> None:
    schema, batch = stream(130, 4, (attribute,), drift=0.6)
    engine = kind(schema, words=seeded_words(1), t=0.3, k=3, floor=0, window={"size": 40, "advance": 10})
    observer = Observer(schema, engine).run(batch)
    observer.assert_complete()
    assert engine.steps["direct"] > 0
    assert len(observer.release.members) > 100


def condensed(schema: Any, quasi: Any, k: Any, first: Any, persons: Any = None) -> Any:
    """The groups of all rows at the end of the stream: positions of each, and the mean loss."""
    n = np.arange(len(quasi))
    engine = DynamicGroup(schema, k=k, first=first, window={"size": len(n), "advance": len(n)})
    sensitive = np.empty((len(n), 0), np.int32)
    release = engine.push(Batch(n, n * 1.0, n if persons is None else persons, quasi, sensitive))  # type: ignore[arg-type]
    loss = class_loss(Boxes(schema, release.lo, release.hi)) @ np.diff(release.starts) / len(n)
    return np.split(release.members, release.starts[1:-1]), loss


def test_groups_have_k_to_2k_rows() -> None:
    table = power_law(1.2, 50, 3).table(600)
    groups, loss = condensed(Schema(PersonSource.ROW, table.schema.quasi), table.quasi, 10, 200)
    assert 0 < loss < 1
    sizes = [len(rows) for rows in groups]
    assert min(sizes) >= 10
    assert max(sizes) < 20
    assert sorted(np.concatenate(groups).tolist()) == list(range(600))


CLOUDS = Schema("person", (Number("x", 0, 100), Number("y", 0, 100)))


def test_separate_clouds_are_separate_groups() -> None:
    random = np.random.default_rng(1)
    points = np.concatenate([random.normal(20, 1, (60, 2)), random.normal(80, 1, (60, 2))])[random.permutation(120)]
    assert condensed(CLOUDS, points, 5, 40)[1] < 0.05


@pytest.mark.parametrize("first", [1, 7, 300])
def test_groups_are_halved_by_persons_and_not_by_rows(first: int) -> None:
    """Whoever comes often must not fill a group alone, in the first rows either."""
    random = np.random.default_rng(first)
    persons = np.sort(random.integers(0, 12, 300))
    points = random.normal(50, 1, (300, 2)) + persons[:, None]
    groups, _ = condensed(CLOUDS, points, 3, first, persons)
    assert len(groups) > 1
    assert min(len(np.unique(persons[rows])) for rows in groups) >= 3


def test_a_group_is_halved_across_its_longest_side() -> None:
    points = np.column_stack([np.tile([10.0, 90.0], 20), np.full(40, 50.0)])
    groups, loss = condensed(CLOUDS, points + np.random.default_rng(2).normal(0, 1, (40, 2)), 20, 20)
    assert len(groups) == 2
    assert loss < 0.1

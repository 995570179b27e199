"""The baselines keep the guarantee too, so that comparisons with them are fair."""

import numpy as np
import pytest
from stream_worlds import Observer, stream
from worlds import DEBT, ILLNESS

from load_tests.generators import power_law
from load_tests.stream_baselines import DynamicGroup
from microdata import Number, PersonSource, Schema, seeded_words
from stream_algos import IncognitoW, MondrianW


@pytest.mark.parametrize("kind", [MondrianW, IncognitoW])
@pytest.mark.parametrize("attribute", [ILLNESS, DEBT])
def test_the_window_baselines_pass_the_gate(kind, attribute):
    schema, batch = stream(130, 4, (attribute,), drift=0.6)
    engine = kind(schema, words=seeded_words(1), t=0.3, k=3, floor=0, window={"size": 40, "advance": 10})
    observer = Observer(schema, engine).run(batch)
    observer.assert_complete()
    assert engine.steps["direct"] > 0
    assert len(observer.release.members) > 100


def test_groups_have_k_to_2k_rows():
    table = power_law(1.2, 50, 3).table(600)
    groups = DynamicGroup(table.schema, 10, 200)
    assert 0 < groups.loss(table.quasi) < 1
    sizes = [len(rows) for rows in groups._members]
    assert min(sizes) >= 10
    assert max(sizes) < 20
    assert sorted(row for rows in groups._members for row in rows) == list(range(600))


def test_separate_clouds_are_separate_groups():
    schema = Schema(PersonSource.ROW, (Number("x", 0, 100), Number("y", 0, 100)))
    random = np.random.default_rng(1)
    points = np.concatenate([random.normal(20, 1, (60, 2)), random.normal(80, 1, (60, 2))])[random.permutation(120)]
    assert DynamicGroup(schema, 5, 40).loss(points) < 0.05

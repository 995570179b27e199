"""BUREL_W: classes keep the caps of their window, over drifting streams; and a cap that is too wide is caught."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import GuaranteeError, seeded_words
from static_algos import likeness_caps
from stream_algos import BurelW
from stream_algos import burel_w as module
from tests.stream_worlds import Observer, stream
from tests.worlds import DEBT, ILLNESS

WINDOW = {"size": 40, "advance": 10}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 160),
    beta=st.sampled_from([0.5, 1, 3]),
    drift=st.sampled_from([0.0, 0.5, 0.9]),
    sensitive=st.sampled_from([(ILLNESS,), (DEBT,), (DEBT, ILLNESS)]),
    persons=st.one_of(st.none(), st.integers(1, 30)),
    floor=st.sampled_from([0.0, 0.5, 1.0]),
    refine=st.sampled_from(["none", "classes", "table"]),
)
def test_no_value_exceeds_its_gain(
    seed: int, rows: int, beta: Any, drift: Any, sensitive: Any, persons: Any, floor: Any, refine: Any
) -> None:
    schema, batch = stream(rows, seed, sensitive, persons, drift)
    engine = BurelW(schema, words=seeded_words(1), beta=beta, k=3, window=WINDOW, floor=floor, refine=refine)
    observer = Observer(schema, engine).run(batch, (9, 30))
    observer.assert_complete()
    assert engine.steps["uncovered"] == 0
    release, held = observer.release, observer.rows
    for c in range(len(release)):
        own = held.sensitive[observer.find(release.members[release.starts[c] : release.starts[c + 1]])]
        window = held.sensitive[observer.between(*release.windows[c].tolist())]
        for column in range(len(sensitive)):
            for value in np.unique(own[:, column]):
                q = Fraction(int((own[:, column] == value).sum()), len(own))
                p = Fraction(int((window[:, column] == value).sum()), len(window))
                assert q <= p * (1 + Fraction(str(beta)))
                assert float(q) <= float(p) * (1 - np.log(float(p))) + 1e-9


def drifting_engines() -> Iterator[Any]:
    for seed in range(8):
        schema, batch = stream(300, seed, (DEBT,), drift=0.9)
        engine = BurelW(schema, words=seeded_words(1), beta=1, k=2, window=WINDOW, floor=0)
        Observer(schema, engine).run(batch).assert_complete()
        yield engine


def test_every_case_occurs() -> None:
    engines = list(drifting_engines())
    for case in ("direct", "indirect", "idle"):
        assert sum(engine.steps[case] for engine in engines) > 0, case


def test_caps_of_another_distribution_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caps broken on purpose: those of the undecided rows for a larger β than was asked for."""

    def too_wide(models: Any, schema: Any, references: Any, present: Any) -> Any:
        wide = BurelW(schema, beta=50, k=2, window=WINDOW).models()
        return likeness_caps(wide, schema, references, present)

    monkeypatch.setattr(module, "likeness_caps", too_wide)
    with pytest.raises(GuaranteeError, match="beta-likeness"):
        list(drifting_engines())

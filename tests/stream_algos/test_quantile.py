"""Quantiles of a stream: exact counts, shares that hold, edges that only widen; and a gate that believes nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, InfeasibleError, Number, Schema, seeded_words
from service.codec.events import Events
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate
from service.publishing.rows import Rows
from stream_algos import Batch, Quantile
from stream_algos._quantile_kernels import PERSONS
from tests.stream_worlds import Observer, cut

TREE = Hierarchy.from_mapping({"*": {"north": ["a", "b"], "south": ["c", "d"]}})
SCHEMA = Schema("person", (Number("pay", 0, 1000), Category("city", TREE)))


def engine(seed: int = 1, **more: Any) -> Any:
    given: Any = {"k": 5, "universe": 1000, "beta": 0.1, "window": 320, **more}
    return Quantile(SCHEMA, words=seeded_words(seed), **given)


def rows(count: int, seed: int = 1, *, scale: float = 100.0, cities: Any = (0, 1, 2, 3), start: int = 0) -> Any:
    random = np.random.default_rng(seed)
    pay = np.clip(random.exponential(scale, count), 0, 1000)
    quasi = np.stack([pay, random.choice(cities, count).astype(float)], axis=1)
    order = np.arange(start, start + count)
    return Batch(order, order / 10, random.integers(0, 10**6, count), quasi, np.empty((count, 0), np.int32))


def test_counts_are_those_of_the_last_rows_of_the_window() -> None:
    given = replace(rows(700), persons=np.random.default_rng(2).integers(0, 90, 700))
    made = engine()
    for part in cut(given, (50, 1, 13)):
        made.push(part)
        last = int(part.positions[-1])
        begin = last // made._model.pane * made._model.pane - 320
        window = slice(max(begin, 0), last + 1)
        latest = dict(zip(given.persons[window].tolist(), given.quasi[window].tolist(), strict=True))
        assert made._state.meta[PERSONS] == len(latest)
        for column, own in enumerate(np.array(list(latest.values())).T):
            cells = own.astype(int) if column else made._cells[0].of(own)
            assert np.array_equal(made._state.counts[column], np.bincount(cells, minlength=1024))


def test_columns_are_whole_until_the_first_window_is_full_and_then_cut() -> None:
    observer = Observer(SCHEMA, engine()).run(rows(700), (37,))
    observer.assert_complete()
    release = observer.release
    assert release.suppressed.tolist() == list(range(40))  # nobody was there before the first pane
    early = release.members < 320
    assert (release.lo[early] == [0, 0]).all()
    assert (release.hi[early] == [1000, 3]).all()
    parts = observer.engine.status()
    assert parts["parts_pay"] > 4
    assert parts["parts_city"] == 4
    # About equally many rows in each part, not equally wide ones.
    pays, counts = np.unique(release.lo[~early, 0], return_counts=True)
    assert len(pays) == parts["parts_pay"]
    assert counts.min() > 0.4 * counts.mean()
    width = release.hi[~early, 0] - release.lo[~early, 0]
    assert width.max() > 5 * width.min()


def test_a_stream_that_drifts_widens_edges_and_never_narrows_them() -> None:
    observer = Observer(SCHEMA, engine())
    observer.push(rows(700))
    before = observer.engine.status()
    observer.push(rows(700, 2, scale=600.0, cities=(0, 0, 0, 3), start=700))
    after = observer.engine.status()
    assert 1 <= after["parts_pay"] < before["parts_pay"]
    observer.push(rows(700, 3, start=1400))
    assert observer.engine.status()["parts_pay"] <= after["parts_pay"]
    observer.flush()
    observer.assert_complete()


def test_rare_values_are_suppressed_or_their_parents_published() -> None:
    few = replace(rows(900, cities=(0, 1, 2)), quasi=rows(900, cities=(0, 1, 2)).quasi)
    few.quasi[[400, 500, 600], 1] = 3.0
    made = engine()
    release = made.push(few)
    assert {400, 500, 600} <= set(release.suppressed.tolist())
    assert made.status()["parts_city"] == 4
    many = rows(900)
    many.quasi[:, 1] = np.where(np.arange(900) % 40, many.quasi[:, 1] // 2 * 2, 3.0)
    made = engine(k=12)
    release = made.push(many)
    assert not {3.0} & set(release.lo[release.members > 400, 1].tolist())
    assert made.status()["parts_city"] < 4


def test_a_stranger_gate_refuses_what_the_window_does_not_bear() -> None:
    given = rows(700)
    made = engine()
    release = made.push(given)
    kept = Rows.empty(SCHEMA)
    kept.append(Events(given.positions, given.persons, given.quasi, given.sensitive, (), []), given.times)

    def passed(broken: Any) -> Any:
        return Gate(SCHEMA, made.models()).passes(broken, kept, PublishedBoxes(len(SCHEMA.quasi)))

    assert passed(release).all()
    narrow = replace(release, lo=release.lo.copy(), hi=release.hi.copy())
    narrow.lo[-1, 0] = narrow.hi[-1, 0] = given.quasi[-1, 0]
    assert passed(narrow).tolist() == [True] * (len(release) - 1) + [False]
    shifted = replace(release, hi=release.hi.copy())
    shifted.hi[-1, 0] += 1.0  # enough persons, but it cuts an interval that has left
    assert passed(shifted).tolist() == [True] * (len(release) - 1) + [False]


def test_an_engine_that_cuts_anew_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    real = made._begin_pane

    def forgetful(pane: int) -> None:
        made._cut = False
        real(pane)

    monkeypatch.setattr(made, "_begin_pane", forgetful)
    observer = Observer(SCHEMA, made)
    both = Batch.concat([rows(700), rows(700, 2, scale=150.0, start=700)])
    with pytest.raises(AssertionError, match="a box cuts another"):
        observer.push(both)


def test_a_restart_goes_on_with_the_same_edges() -> None:
    given = rows(900)
    one, other = Observer(SCHEMA, engine()), Observer(SCHEMA, engine())
    one.push(given)
    for turn, part in enumerate(cut(given, (130,))):
        other.push(part)
        other.restarted(engine(turn + 2))
    assert np.array_equal(one.release.lo, other.release.lo)
    assert np.array_equal(one.release.members, other.release.members)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InfeasibleError) as error:
        engine(k=100, universe=100)
    assert error.value.parameter == "universe"
    nearest: Any = error.value.nearest
    assert engine(k=100, universe=nearest).models()[0].asked == 100
    with pytest.raises(InfeasibleError):
        engine(k=100, universe=nearest - 1)
    with pytest.raises(InfeasibleError):
        engine(window=7)


def test_nothing_calls_it_k_anonymity() -> None:
    made = engine()
    words = [made.models()[0].name, made.models()[0].label, *made.status()]
    assert not any("k-anonymity" in word for word in words)


@pytest.mark.timeout(120)
def test_an_only_child_is_climbed_over() -> None:
    """Its parent has the same leaves: publishing it instead would be no step at all, for ever."""
    tree = Hierarchy.from_mapping({"*": {"north": {"coast": ["a"], "hills": ["b"]}, "south": {"plain": ["c"]}}})
    schema = Schema("person", (Category("city", tree),))
    made = Quantile(schema, words=seeded_words(1), k=5, universe=100, beta=0.1, window=80)
    cities = np.arange(400)[:, None] % 8 == np.array([0, 1])  # of eight persons one in a and one in b
    batch = replace(rows(400), quasi=np.where(cities[:, :1], 0.0, np.where(cities[:, 1:], 1.0, 2.0)))
    Observer(schema, made).run(batch, (37,)).assert_complete()

"""Windows: invariants 12 to 14 of the specification, the tail, lost rows, and checks that fire when they must."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, GuaranteeError, Hierarchy, InfeasibleError, Number, PersonSource, Schema, seeded_words
from static_algos import sabre_classes
from stream_algos import Batch, SabreW
from stream_algos import window as windows
from tests.stream_worlds import Observer, cut, stream
from tests.worlds import DEBT, ILLNESS

FEW = settings(max_examples=25, deadline=None)

shapes = st.tuples(st.integers(1, 4), st.sampled_from([6, 10, 17])).map(
    lambda shape: {"size": shape[0] * shape[1], "advance": shape[1]}
)
runs = st.fixed_dictionaries(
    {
        "rows": st.integers(0, 160),
        "seed": st.integers(0, 10_000),
        "persons": st.one_of(st.none(), st.integers(1, 30)),
        "drift": st.sampled_from([0.0, 0.5, 0.9, 1.0]),
        "sensitive": st.sampled_from([(ILLNESS,), (DEBT,), (ILLNESS, DEBT)]),
    }
)
ways = st.fixed_dictionaries(
    {"floor": st.sampled_from([0.0, 0.5, 1.0]), "refine": st.sampled_from(["none", "classes", "table"])}
)
thresholds = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.7])


def observed(run: Any, k: Any, t: Any, window: Any, **given: Any) -> Any:
    schema, batch = stream(**run)
    engine = SabreW(schema, words=seeded_words(1), t=t, k=k, window=window, **given)
    return Observer(schema, engine), batch


def literal_distance(attribute: Any, rows: Any, reference: Any) -> Any:
    """Earth mover's distance by its closed forms, from lists of values."""
    p = [Fraction(int((reference == value).sum()), len(reference)) for value in range(attribute.size)]
    q = [Fraction(int((rows == value).sum()), len(rows)) for value in range(attribute.size)]
    if not isinstance(attribute, Category):
        steps = np.cumsum([one - other for one, other in zip(q, p, strict=True)])
        return sum(abs(step) for step in steps) / (attribute.size - 1)
    tree, moved = attribute.hierarchy, Fraction(0)
    for node in range(1, len(tree.parent)):
        below = range(tree.first[node], tree.last[node] + 1)
        surplus = sum(q[value] - p[value] for value in below)
        moved += max(surplus, 0) * int(tree.height[tree.parent[node]] - tree.height[node])
    return moved / int(tree.height[0])


@FEW
@given(runs, st.integers(1, 6), thresholds, ways, shapes, st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_every_class_is_a_part_of_a_window_and_close_to_it(
    run: Any, k: int, t: Any, way: Any, window: Any, sizes: Any
) -> None:
    if window["size"] < k:
        window = {"size": 4 * window["advance"], "advance": window["advance"]}
    observer, batch = observed(run, k, t, window, **way)
    for part in cut(batch, sizes):
        observer.push(part)
        undecided = observer.find(observer.engine.pending())
        oldest = observer.rows.positions[undecided[:1]]
        ended = (part.positions[-1] + 1) // window["advance"] * window["advance"]
        assert not len(oldest) or oldest[0] >= ended - window["size"] + window["advance"], "an expired row is undecided"
    observer.flush()
    observer.assert_complete()
    assert all(waited < window["size"] + max(sizes) - 1 for waited in observer.waited.values())
    assert observer.engine.steps["uncovered"] == 0, "Theorem 6.1"
    release, rows = observer.release, observer.rows
    for c in range(len(release)):
        members = release.members[release.starts[c] : release.starts[c + 1]]
        inside = observer.between(*release.windows[c].tolist())
        held = rows.positions[inside]
        assert np.isin(members, held).all()
        assert held[0] in _beginnings(rows.positions, held[-1], window), "all rows of a window, and no others"
        own = observer.find(members)
        assert len(np.unique(rows.persons[own])) >= k
        for column, attribute in enumerate(observer.schema.sensitive):
            reference = rows.sensitive[inside, column]
            assert literal_distance(attribute, rows.sensitive[own, column], reference) <= Fraction(str(t))


def _beginnings(positions: Any, last: Any, window: Any) -> Any:
    """The first row of every window whose last row this may be: they end with a pane, or with the stream."""
    size, advance = window["size"], window["advance"]
    ends = [(last // advance + panes) * advance for panes in range(1, size // advance + 1)]
    ends.append(positions[-1] + 1)
    return [positions[np.searchsorted(positions, end - size)] for end in ends]


@FEW
@given(runs, st.sampled_from([(20.0, 5.0), (9.0, 9.0), (3.0, 1.5)]), st.lists(st.integers(1, 30), min_size=1))
def test_windows_by_time(run: Any, window: Any, sizes: Any) -> None:
    seconds, advance = window
    observer, batch = observed(run, 3, 0.3, {"seconds": seconds, "advance_seconds": advance})
    for part in cut(batch, sizes):
        observer.push(part)
        observer.expire(float(part.times[-1]))
        pending = observer.find(observer.engine.pending())
        assert not len(pending) or observer.rows.times[pending[0]] > part.times[-1] - seconds
    observer.flush()
    observer.assert_complete()
    assert observer.engine.steps["uncovered"] == 0
    for first, last in observer.release.windows:
        held = observer.rows.times[observer.between(int(first), int(last))]
        assert held[-1] - held[0] <= seconds


@FEW
@given(runs, thresholds, shapes, st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_a_restart_anywhere_changes_nothing_but_the_words(run: Any, t: Any, window: Any, restarts: Any) -> None:
    observer, batch = observed(run, 2, t, window)
    for turn, part in enumerate(cut(batch, (9, 2, 20))):
        observer.push(part)
        if restarts[turn % len(restarts)] == 0:
            steps = observer.engine.steps
            observer.restarted(SabreW(observer.schema, words=seeded_words(100 + turn), t=t, k=2, window=window))
            observer.engine.steps = steps
    observer.flush()
    observer.assert_complete()
    assert observer.engine.steps["uncovered"] == 0


def drifting_runs() -> Iterator[Any]:
    """Engines over streams that drift so much that undecided rows are often far from their window."""
    for seed in range(8):
        schema, batch = stream(300, seed, (DEBT,), drift=0.95)
        engine = SabreW(schema, words=seeded_words(1), t=0.1, k=2, floor=0, window={"size": 80, "advance": 20})
        observer = Observer(schema, engine).run(batch)
        observer.assert_complete()
        yield observer


def test_every_case_occurs_over_drifting_streams() -> None:
    steps = sum((observer.engine.steps for observer in drifting_runs()), start=Counter())  # type: ignore[var-annotated]
    assert min(steps["direct"], steps["indirect"], steps["idle"]) > 5
    assert steps["uncovered"] == 0


def test_the_floor_decides_where_both_cases_are_possible() -> None:
    taken = {}
    for floor in (0, 1):
        observer, batch = observed({"rows": 200, "seed": 1}, 3, 0.4, {"size": 40, "advance": 10}, floor=floor)
        taken[floor] = observer.run(batch).engine.steps
    assert taken[0]["indirect"] == 0
    assert taken[1]["indirect"] > 0
    assert taken[1]["direct"] < taken[0]["direct"]


def test_a_short_stream_is_one_window() -> None:
    observer, batch = observed({"rows": 30, "seed": 1}, 3, 0.3, {"size": 100, "advance": 50})
    observer.run(batch)
    assert np.unique(observer.release.windows, axis=0).tolist() == [[batch.positions[0], batch.positions[-1]]]
    assert len(observer.release.members) == 30


def test_the_tail_is_compared_with_the_last_full_window() -> None:
    observer, batch = observed({"rows": 97, "seed": 1}, 3, 0.5, {"size": 40, "advance": 20})
    observer.run(batch)
    last = batch.positions[-1]
    assert observer.release.windows[-1].tolist() == [batch.positions[batch.positions > last - 40][0], last]


def test_a_thin_window_is_suppressed() -> None:
    observer, batch = observed({"rows": 60, "seed": 1, "persons": 2}, 3, 0.5, {"size": 20, "advance": 10})
    observer.run(replace(batch, positions=np.arange(60)))
    assert len(observer.release.suppressed) == 60
    assert observer.engine.status()["infeasible_steps"] == 5
    assert observer.engine.status()["uncovered_rows"] == 0


def test_a_deadline_ends_a_slow_stream() -> None:
    observer, batch = observed({"rows": 30, "seed": 1}, 3, 0.5, {"size": 100, "advance": 50}, delay={"seconds": 60.0})
    observer.push(batch)
    observer.expire(float(batch.times[0]) + 59.9)
    assert len(observer.engine.pending()) == 30
    observer.expire(float(batch.times[0]) + 60.1)
    assert len(observer.release.members) == 30
    assert observer.engine.needed_from() is None


def test_a_clock_that_is_set_back_opens_no_pane_again() -> None:
    observer, batch = observed({"rows": 40, "seed": 1}, 2, 0.5, {"seconds": 4.0, "advance_seconds": 2.0})
    times = np.concatenate([np.arange(30.0), np.arange(10.0)])
    observer.run(Batch(batch.positions, times, batch.persons, batch.quasi, batch.sensitive))
    observer.assert_complete()


def test_a_long_silence_costs_no_time() -> None:
    observer, batch = observed({"rows": 20, "seed": 1}, 2, 0.5, {"seconds": 0.5, "advance_seconds": 0.001})
    observer.push(batch.take(slice(0, 10)))
    observer.expire(1e12)
    assert not len(observer.engine.pending())
    later = batch.take(slice(10, 20))
    observer.push(Batch(later.positions, later.times + 1e12, later.persons, later.quasi, later.sensitive))
    observer.flush()
    observer.assert_complete()


def test_pending_classes_are_dropped_when_rows_of_their_window_are_gone() -> None:
    window = {"size": 40, "advance": 10}
    observer, batch = observed({"rows": 45, "seed": 3}, 2, 0.5, window)
    batch = replace(batch, positions=np.arange(45))
    observer.push(batch)
    assert observer.engine.status()["open_clusters"] > 0
    snapshot = observer.engine.snapshot()
    again = SabreW(observer.schema, t=0.5, k=2, window=window)
    again.restore(snapshot, batch.take(slice(1, None)))
    assert again.status()["open_clusters"] == 0
    assert np.array_equal(again.pending(), observer.engine.pending())


RANKS = Schema(PersonSource.ROW, (Number("age", 0, 99),), (Number("debt", 0, 9, integer=True),))


def test_ranks_of_present_values_only_would_break_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ground-distance hazard: SABRE on a domain of the values that happen to be there lets t be exceeded."""

    def re_ranked(rows: Any, references: Any, **given: Any) -> Any:
        present, values = np.unique(rows.sensitive[:, 0], return_inverse=True)
        small = Schema(PersonSource.ROW, RANKS.quasi, (Number("debt", 0, max(len(present) - 1, 1), integer=True),))
        table = type(rows)(small, rows.persons, rows.quasi, values.astype(np.int32)[:, None])
        counts = np.bincount(values, minlength=max(len(present), 2))
        return sabre_classes(table, [counts], **given)

    random = np.random.default_rng(3)
    n = np.arange(400)
    # Most of the domain lies between two of the values, which ranks of the present ones do not see.
    values = random.choice(np.array([0, 7, 8, 9], np.int32), (400, 1))
    batch = Batch(n, n.astype(float), n, random.integers(0, 99, (400, 1)).astype(float), values)

    def run() -> None:
        SabreW(RANKS, words=seeded_words(1), t=0.2, k=2, window={"size": 40, "advance": 20}).push(batch)

    run()
    monkeypatch.setattr("stream_algos.sabre_w.sabre_classes", re_ranked)
    with pytest.raises(GuaranteeError, match="t-closeness"):
        run()


def test_expiring_rows_without_a_pending_class_are_suppressed_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 6.1 broken on purpose: the pending classes of a DIRECT step are forgotten."""
    let_out = SabreW._let_out

    def forgetful(self: Any, chosen: Any) -> Any:
        release = let_out(self, chosen)
        self._closed_marks[self._closed_marks >= 0] = windows.LOOSE
        return release

    monkeypatch.setattr(SabreW, "_let_out", forgetful)
    observers = list(drifting_runs())
    assert all(one.engine.steps["uncovered"] <= len(one.release.suppressed) for one in observers)
    assert sum(one.engine.steps["uncovered"] for one in observers) > 0


@pytest.mark.parametrize(
    ("window", "parameter", "nearest"),
    [
        ({"size": 100, "advance": 30}, "window.size", "90"),
        ({"size": 10, "advance": 30}, "window.size", "30"),
        ({"seconds": 10.0, "advance_seconds": 4.0}, "window.seconds", "8"),
        ({"size": 4, "advance": 2}, "window.size", 6),
    ],
)
def test_windows_that_cannot_be_are_refused(window: Any, parameter: str, nearest: Any) -> None:
    with pytest.raises(InfeasibleError) as refusal:
        SabreW(RANKS, t=0.2, k=6, window=window)
    assert (refusal.value.parameter, refusal.value.nearest) == (parameter, nearest)


@pytest.mark.parametrize(
    "window", [{}, {"size": 10}, {"size": 10, "advance": 5, "seconds": 1.0, "advance_seconds": 1.0}]
)
def test_a_window_is_by_count_or_by_time(window: Any) -> None:
    with pytest.raises(ValueError, match="give size and advance, or seconds and advance_seconds"):
        SabreW(RANKS, t=0.2, window=window)


def test_a_stream_without_sensitive_values_is_refused() -> None:
    with pytest.raises(Exception, match="sensitive"):
        SabreW(Schema(PersonSource.ROW, RANKS.quasi), t=0.2, window={"size": 10, "advance": 10})


def test_a_snapshot_holds_positions_only() -> None:
    schema = Schema("who", (Number("age", 0, 99),), (Category("item", Hierarchy.flat(["x", "y"])),))
    n = np.arange(30)
    rows = Batch(n + 1000, n / 7, n + 5_000_000, n[:, None] + 0.125, (n[:, None] % 2).astype(np.int32))  # type: ignore[arg-type]
    engine = SabreW(schema, t=0.5, k=2, window={"size": 20, "advance": 10})
    engine.push(rows)
    kept = np.concatenate([array.ravel() for array in engine.snapshot().values()]).astype(float)
    assert not np.isin(kept, np.concatenate([rows.persons, rows.quasi.ravel()])).any()

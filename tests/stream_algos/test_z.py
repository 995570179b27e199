"""z-anonymity: every decision against the rule in plain Python, the attack on it, and a gate that believes nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Category, Hierarchy, InfeasibleError, Number, PersonSource, Schema, seeded_words
from privacy import Passing
from stream_algos import Batch, Z
from stream_algos._z_kernels import LIVE_COMBINATIONS, LIVE_PAIRS
from tests.stream_worlds import Observer, cut, stream

TREE = Hierarchy.from_mapping({"*": {"north": ["a", "b"], "south": ["c", "d"]}})
SCHEMA = Schema("person", (Number("age", 0, 99, integer=True), Category("city", TREE)))
WIDTHS = {"age": [10, 50]}


def engine(z: int, tuples: int, seconds: Any = None, schema: Any = SCHEMA, seed: int = 1, **more: Any) -> Any:
    return Z(schema, words=seeded_words(seed), z=z, window={"tuples": tuples, "seconds": seconds}, **more)


def batch(ages: Any, cities: Any, persons: Any = None, positions: Any = None, times: Any = None) -> Any:
    count = len(ages)
    quasi = np.stack([np.array(ages, float), np.array(["abcd".index(one) for one in cities], float)], axis=1)
    return Batch(
        np.arange(count) if positions is None else np.array(positions),
        np.zeros(count) if times is None else np.array(times, float),
        np.arange(count) if persons is None else np.array(persons),
        quasi,
        np.empty((count, 0), np.int32),
    )


def boxes_of(release: Any) -> Any:
    """Box of each released position."""
    sides = zip(release.lo.tolist(), release.hi.tolist(), strict=True)
    return dict(zip(release.members.tolist(), sides, strict=True))


def generalized(age: float, city: float, rung: int) -> Any:
    """What a row is on each rung: written by hand for this schema and these widths."""
    if rung == 3:
        return ((0.0, 0.0), (99.0, 3.0))
    low, high = [(age, age), (age // 10 * 10, age // 10 * 10 + 9), (age // 50 * 50, age // 50 * 50 + 49)][rung]
    node = city // 2 * 2
    first, last = (city, city) if rung == 0 else (node, node + 1)
    return ((low, first), (high, last))


def by_rule(rows: Any, z: int, tuples: int, seconds: Any) -> Any:
    """The same decisions by looking at every row of the window on every rung."""
    shown: list[list[Any]] = []  # what each earlier row counts as
    decided = {}
    for n in range(len(rows)):
        shown.append([])
        for rung in range(4):
            own = generalized(rows.quasi[n, 0], rows.quasi[n, 1], rung)
            shown[n].append(own)
            persons = {
                int(rows.persons[m])
                for m in range(n + 1)
                if rows.positions[n] - rows.positions[m] < tuples
                and (seconds is None or rows.times[n] - rows.times[m] < seconds)
                and len(shown[m]) > rung
                and shown[m][rung] == own
            }
            if len(persons) >= z:
                decided[int(rows.positions[n])] = tuple(map(list, own))
                break
    return decided


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(5, 40), st.sampled_from([None, 0.7, 6.0]))
def test_every_decision_is_the_one_of_the_rule(seed: int, z: int, tuples: int, seconds: Any) -> None:
    random = np.random.default_rng(seed)
    count = 80
    rows = batch(
        random.choice([1, 2, 3, 15, 22, 60, 77, 99], count),
        random.choice(list("abcd"), count),
        random.integers(0, 15, count),
        np.cumsum(random.integers(1, 3, count)),
        np.cumsum(random.random(count)),
    )
    observer = Observer(SCHEMA, engine(z, tuples, seconds, widths=WIDTHS))
    for turn, part in enumerate(cut(rows, (9, 1, 20))):
        observer.push(part)
        if turn % 2:
            observer.restarted(engine(z, tuples, seconds, seed=turn + 2, widths=WIDTHS))
    observer.flush()
    observer.assert_complete()
    assert boxes_of(observer.release) == by_rule(rows, z, tuples, seconds)


def test_rows_of_one_person_are_no_company() -> None:
    release = engine(2, 100).push(batch([30] * 6, "aaaaaa", [7, 7, 7, 7, 8, 7]))
    assert release.suppressed.tolist() == [0, 1, 2, 3]
    assert boxes_of(release)[5] == ([30.0, 0.0], [30.0, 0.0])


def test_the_window_ends_where_it_says() -> None:
    apart = [batch([30, 30], "aa", positions=[0, distance]) for distance in (9, 10)]
    released = [engine(2, 10).push(one).members.tolist() for one in apart]
    assert released == [[9], []]
    late = [batch([30, 30], "aa", times=[0, seconds]) for seconds in (4.9, 5.0)]
    assert [engine(2, 10, 5.0).push(one).members.tolist() for one in late] == [[1], []]


def test_positions_and_time_that_pass_without_rows_empty_the_window() -> None:
    made = engine(2, 10, 5.0)
    made.push(batch([30], "a"))
    assert made.needed_from() == 0
    made.advance(8)
    assert made.needed_from() == 0
    made.advance(9)
    assert made.needed_from() is None
    made = engine(2, 10, 5.0)
    made.push(batch([30], "a"))
    made.expire(5.0)
    assert made.needed_from() is None
    assert made.status()["combinations"] == 0


def test_who_left_finer_is_no_company_on_a_coarser_rung() -> None:
    """A rare value among many: a box around both would point at it, since the others leave as they are."""
    many = batch([20] * 30 + [25], "a" * 31)
    release = engine(5, 1000, widths=WIDTHS).push(many)
    assert 29 in boxes_of(release)
    assert boxes_of(release)[29] == ([20.0, 0.0], [20.0, 0.0])
    # Four rows of 20 came before there were five: with the rare one they are five who came that far.
    assert boxes_of(release)[30] == ([20.0, 0.0], [29.0, 1.0])
    late = batch([20] * 4 + [20] * 60 + [25], "a" * 65)
    assert 64 in engine(5, 30, widths=WIDTHS).push(late).suppressed  # those four are out of the window


def test_whoever_knows_the_rule_still_has_z_persons_to_choose_from() -> None:
    """The attacker knows all values and the rule, and leaves out everybody who would have left finer when they came."""
    schema, rows = stream(300, 4, persons=100)
    z = 4
    made = Z(schema, words=seeded_words(1), z=z, window={"tuples": 150})
    release = made.push(rows)
    boxes = boxes_of(release)
    for position, (lo, hi) in boxes.items():
        own = np.searchsorted(rows.positions, position)
        window = np.flatnonzero((rows.positions > position - 150) & (rows.positions <= position))
        possible = set()
        for m in window:
            inside = (np.array(lo) <= rows.quasi[m]).all() and (rows.quasi[m] <= np.array(hi)).all()
            theirs = boxes.get(int(rows.positions[m]))
            finer = theirs is not None and theirs != (lo, hi) and widths(theirs) < widths((lo, hi))
            if inside and not finer:
                possible.add(int(rows.persons[m]))
        assert len(possible) >= z, own


def widths(box: Any) -> float:
    return float(np.sum(np.array(box[1]) - np.array(box[0])))


def test_a_kernel_that_counts_rows_is_caught_by_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = batch([30] * 6, "aaaaaa", [7] * 6)
    made = engine(3, 100)
    real = made._judge
    # As if every row were another person's.
    monkeypatch.setattr(made, "_judge", lambda given: real(replace(given, persons=given.positions)))
    with pytest.raises(AssertionError, match="too few persons passed"):
        Observer(SCHEMA, made).push(rows)


def test_a_box_that_is_not_shown_is_refused_by_the_gate() -> None:
    from service.codec.events import Events  # noqa: PLC0415
    from service.publishing.boxes import PublishedBoxes  # noqa: PLC0415
    from service.publishing.gate import Gate  # noqa: PLC0415
    from service.publishing.rows import Rows  # noqa: PLC0415

    rows = batch([30, 30, 30, 31, 30], "aaaaa")
    made = engine(3, 100, widths=WIDTHS)
    release = made.push(rows)
    kept = Rows.empty(SCHEMA)
    kept.append(Events(rows.positions, rows.persons, rows.quasi, rows.sensitive, (), []), rows.times)
    gate, nothing = Gate(SCHEMA, made.models()), PublishedBoxes(len(SCHEMA.quasi))
    assert gate.passes(release, kept, nothing).all()
    assert gate.achieved == {"z-anonymity": 3}
    assert gate.largest_share is None
    position = release.members.tolist().index(3)
    release.lo[position], release.hi[position] = rows.quasi[3], rows.quasi[3]
    assert gate.passes(release, kept, nothing).tolist() == [n != position for n in range(len(release))]
    # Nor may two rows leave as one cluster, nor a row whose window is gone.
    together = replace(release, starts=np.array([0, len(release.members)]), **first_of(release))
    assert not gate.passes(together, kept, nothing).any()
    kept.keep(release.members, None)
    assert not gate.passes(release.select(np.array([0])), kept, nothing).any()


def first_of(release: Any) -> Any:
    names = ("ids", "lo", "hi", "reused", "windows", "decided", "company", "parents")
    return {name: getattr(release, name)[:1] for name in names}


def test_nothing_is_kept_of_who_has_left_the_window() -> None:
    schema, rows = stream(500, 2, persons=100)
    made = Z(schema, z=2, window={"tuples": 50})
    made.push(rows)
    made.advance(int(rows.positions[-1]) + 50)
    assert made._state.meta[LIVE_PAIRS] == made._state.meta[LIVE_COMBINATIONS] == 0
    assert (made._state.heads == -1).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InfeasibleError) as error:
        engine(11, 10)
    assert (error.value.parameter, error.value.nearest) == ("window.tuples", 11)
    with pytest.raises(InfeasibleError) as error:
        engine(2, 10, widths={"city": [2]})
    assert error.value.parameter == "widths"
    with pytest.raises(InfeasibleError) as error:
        engine(2, 10, widths={"age": [10, 15]})
    assert error.value.nearest == 20


def test_one_value_and_continuous_domains_have_levels_too() -> None:
    schema = Schema(PersonSource.ROW, (Number("x", 0, 1), Number("one", 5, 5), Number("s", 0, 10, step=0.1)))
    random = np.random.default_rng(3)
    quasi = np.stack([random.random(200), np.full(200, 5.0), random.random(200) * 10], axis=1)
    quasi[:3] = [[0, 5, 0], [1, 5, 10], [0.5, 5, 9.95]]
    rows = Batch(np.arange(200), np.zeros(200), np.arange(200), quasi, np.empty((200, 0), np.int32))
    observer = Observer(schema, engine(3, 200, schema=schema)).run(rows)
    observer.assert_complete()
    assert len(observer.release.members) > 150


def test_passing_is_what_the_gate_looks_at() -> None:
    """The window of a row is found by its position, whatever the release says."""
    rows = batch([30, 30, 30], "aaa", positions=[0, 50, 99])
    passing = Passing(rows.positions, rows.times, rows.persons, rows.quasi, np.array([2]), *[rows.quasi[2:]] * 2)
    assert [engine(2, tuples).models()[0].company(passing).tolist() for tuples in (49, 50)] == [[1], [2]]

"""Blocks: every algorithm for tables over a stream, poor blocks that wait, and requests that cannot work."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from microdata import GuaranteeError, InfeasibleError, Number, Schema, seeded_words
from privacy import KEYS
from static_algos import STATIC_ALGORITHMS, Mondrian
from static_algos.checks import all_cases
from stream_algos import STREAM_ALGORITHMS, Batch, Blocks, blocks
from stream_algos.blocks import BlocksParameters
from tests.stream_algos.test_all_engines import ABSURD, numbers_of, with_value
from tests.stream_worlds import Observer, stream
from tests.worlds import DEBT, ILLNESS

MONDRIAN = {"algorithm": "mondrian", "k": 3}


def engine_of(schema: Any, seed: int = 1, **given: Any) -> Blocks:
    return Blocks(schema, words=seeded_words(seed), **{"size": 40, "table": MONDRIAN, **given})


def observed(schema: Any, **given: Any) -> Observer:
    return Observer(schema, engine_of(schema, **given))


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in STATIC_ALGORITHMS])
def test_every_algorithm_for_tables_runs_over_a_stream(entry: Any) -> None:
    schema, batch = stream(160, 3, (ILLNESS, DEBT))
    observer = observed(schema, size=80, table={"algorithm": entry.name, **entry.algorithm.example})
    observer.run(batch).assert_complete()
    assert len(observer.release.members) > 0.6 * len(batch)
    assert len(np.unique(observer.release.windows, axis=0)) > 1


def test_a_block_is_what_the_algorithm_makes_of_its_rows() -> None:
    schema, batch = stream(200, 5)
    dense = replace(batch, positions=np.arange(200))
    observer = observed(schema, size=50).run(dense, (7, 60, 1))
    expected = []
    for start in range(0, 200, 50):
        rows = dense.take(slice(start, start + 50))
        classes = Mondrian(k=3).anonymize(blocks._table(schema, rows)).classes
        expected += [sorted(rows.positions[classes == one].tolist()) for one in range(classes.max() + 1)]
    assert observer.clusters() == sorted(expected)
    assert np.unique(observer.release.windows, axis=0).tolist() == [[0, 49], [50, 99], [100, 149], [150, 199]]
    assert set(observer.release.decided.tolist()) == {49, 99, 149, 199}


def crowd(persons: Any) -> Any:
    """A stream without gaps of these persons, one a second."""
    schema = Schema("person", (Number("age", 0, 99, integer=True),))
    n = len(persons)
    return schema, Batch(
        np.arange(n),
        np.arange(n, dtype=np.float64),
        np.array(persons),
        np.arange(n, dtype=np.float64)[:, None] % 100,
        np.empty((n, 0), np.int32),
    )


def test_a_poor_block_waits_for_the_next_one() -> None:
    schema, batch = crowd([0] * 10 + list(range(1, 11)))
    observer = observed(schema, size=10)
    observer.push(batch.take(slice(0, 10)))
    assert len(observer.engine.pending()) == 10
    assert observer.engine.status()["waited_blocks"] == 1
    observer.push(batch.take(slice(10, 20)))
    assert len(observer.engine.pending()) == 0
    assert len(observer.release.suppressed) == 0
    assert np.unique(observer.release.windows, axis=0).tolist() == [[0, 19]]


def test_what_stays_poor_is_suppressed_and_counted() -> None:
    schema, batch = crowd([0] * 10 + [1] * 10 + [2] * 10)
    observer = observed(schema, size=10)
    observer.push(batch.take(slice(0, 20)))
    assert observer.release.suppressed.tolist() == list(range(10))
    observer.push(batch.take(slice(20, 30)))
    assert observer.release.suppressed.tolist() == list(range(20))
    observer.flush()
    observer.assert_complete()
    assert len(observer.release.members) == 0
    assert observer.engine.status()["given_up_blocks"] == 3


def test_a_longer_delay_saves_them() -> None:
    schema, batch = crowd([0] * 10 + [1] * 10 + [2] * 10)
    observer = observed(schema, size=10, delay={"tuples": 30}).run(batch)
    assert len(observer.release.members) == 30


def test_an_overdue_block_leaves_with_what_has_come_since() -> None:
    """Positions without rows pass too: the second block is not complete, but the first may not wait for that."""
    schema, batch = crowd([0] * 10 + [1, 2, 3])
    observer = observed(schema, size=10)
    observer.push(batch.take(slice(0, 10)))
    late = batch.take(slice(10, 13))
    observer.push(replace(late, positions=np.array([15, 16, 17])))
    observer.advance(18)
    assert len(observer.release) == 0
    observer.advance(19)
    assert len(observer.release.members) == 13
    observer.assert_complete()


def test_seconds_complete_a_block() -> None:
    schema, batch = crowd(list(range(30)))
    observer = observed(schema, size=1000, seconds=8)
    observer.push(batch)
    assert np.unique(observer.release.windows, axis=0).tolist() == [[0, 7], [8, 15], [16, 23]]
    observer.expire(31.0)
    assert len(observer.engine.pending()) == 6
    observer.expire(32.0)
    assert len(observer.engine.pending()) == 0


def test_seconds_end_the_wait() -> None:
    schema, batch = crowd([0] * 5)
    observer = observed(schema, size=1000, seconds=8, delay={"tuples": 5000, "seconds": 20})
    observer.push(batch)
    observer.expire(8.0)
    assert len(observer.engine.pending()) == 5
    observer.expire(19.9)
    assert len(observer.engine.pending()) == 5
    observer.expire(20.0)
    assert observer.release.suppressed.tolist() == list(range(5))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 150),
    size=st.integers(1, 60),
    more=st.integers(0, 80),
    seconds=st.sampled_from([None, 3.0, 20.0]),
    persons=st.integers(1, 40),
    restarts=st.integers(1, 4),
)
def test_every_row_is_decided_once_and_in_time(
    seed: int, rows: int, size: int, more: int, seconds: Any, persons: int, restarts: int
) -> None:
    schema, batch = stream(rows, seed, (ILLNESS,), persons, drift=0.5)
    delay = {"tuples": size + more, "seconds": None if seconds is None else 2.5 * seconds}
    given_: dict[str, Any] = {"size": size, "seconds": seconds, "delay": delay, "table": {**MONDRIAN, "l": 2}}
    observer = observed(schema, **given_)
    for turn, start in enumerate(range(0, rows, 17)):
        part = batch.take(slice(start, start + 17))
        observer.expire(float(part.times[0]))
        observer.push(part)
        held = observer.engine.pending()
        assert not len(held) or part.positions[-1] - held[0] < size + more
        if turn % restarts == 0:
            observer.restarted(engine_of(schema, 100 + turn, **given_))
    observer.flush()
    observer.assert_complete()


def test_a_block_after_a_restore_is_the_same_block() -> None:
    schema, batch = stream(120, 9)
    quiet, restarted = observed(schema), observed(schema)
    for start in range(0, 120, 11):
        part = batch.take(slice(start, start + 11))
        quiet.push(part)
        restarted.push(part)
        restarted.restarted(engine_of(schema, 100 + start))
    quiet.flush()
    restarted.flush()
    assert quiet.clusters() == restarted.clusters()


def test_an_algorithm_that_lies_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, batch = stream(120, 9, (ILLNESS,))
    honest = Mondrian.anonymize

    def lying(self: Any, table: Any, **options: Any) -> Any:
        publication = honest(self, table, **options)
        return replace(publication, classes=np.roll(publication.classes, 1)) if len(table) else publication

    monkeypatch.setattr(Mondrian, "anonymize", lying)
    with pytest.raises(GuaranteeError):
        engine_of(schema, table={**MONDRIAN, "t": 0.2}).push(batch)


def test_what_no_table_could_have_is_refused_before_the_first_row() -> None:
    schema, _ = stream(5, 1, (ILLNESS,))
    with pytest.raises(InfeasibleError) as refusal:
        engine_of(schema, table={**MONDRIAN, "l": 99})
    assert refusal.value.parameter == "table.l"
    with pytest.raises(InfeasibleError) as refusal:
        engine_of(schema, table={"algorithm": "incognito", "k": 2, "widths": {"nobody": [5]}})
    assert refusal.value.parameter == "table.widths"
    with pytest.raises(InfeasibleError) as refusal:
        engine_of(schema, table={"algorithm": "mondrian"})
    assert refusal.value.parameter == "table"


@pytest.mark.parametrize(
    "table",
    [{}, {"algorithm": "castle"}, {"algorithm": 5}, {**MONDRIAN, "no": 1}, {**MONDRIAN, "k": "3"}, {"k": 3}],
)
def test_what_is_no_request_is_refused(table: Any) -> None:
    schema, _ = stream(5, 1)
    with pytest.raises(ValidationError):
        engine_of(schema, table=table)


@pytest.mark.parametrize(
    ("given_", "parameter"),
    [
        ({"delay": {"tuples": 39}}, "delay.tuples"),
        ({"delay": {"tuples": 40, "seconds": 5}}, "seconds"),
        ({"seconds": 5, "delay": {"tuples": 40, "seconds": 4}}, "delay.seconds"),
        ({"seconds": 5, "delay": {"tuples": 40}}, "delay.seconds"),
    ],
)
def test_delays_shorter_than_a_block_are_refused(given_: Any, parameter: str) -> None:
    schema, _ = stream(5, 1)
    with pytest.raises(InfeasibleError) as refusal:
        engine_of(schema, **given_)
    assert refusal.value.parameter == parameter


def test_two_requests_that_mean_the_same_are_the_same() -> None:
    for case in all_cases():
        one = BlocksParameters.model_validate({"size": 5, "table": {"algorithm": case.name, **case.given}})
        assert BlocksParameters.model_validate(json.loads(one.model_dump_json())) == one
        said = {"algorithm": case.name, **json.loads(case.build().parameters.model_dump_json(exclude_none=True))}
        assert one.table == said


@pytest.mark.parametrize("name", ["incognito", "lattice", "samarati", "top_down"])
def test_absurd_numbers_inside_a_request_are_refused_or_work(name: str) -> None:
    """An earlier try hung for height = 10^12."""
    schema, batch = stream(40, 1, (ILLNESS,))
    entry = STATIC_ALGORITHMS[name]
    described = entry.parameters.model_json_schema()
    keys = {key.name for key in KEYS}
    tried = 0
    for path, _ in numbers_of(described, described):
        if path[0] in keys:
            continue  # the generic checks try those of guarantees
        for value in ABSURD:
            table = with_value({"algorithm": name, "k": 2}, path, value)
            if table is None:
                continue
            tried += 1
            try:
                engine = engine_of(schema, table=table)
            except (InfeasibleError, ValidationError):
                continue
            decided = [engine.push(batch), engine.flush()]
            assert sum(len(one.members) + len(one.suppressed) for one in decided) == len(batch)
    assert tried >= 10


def test_the_schema_of_its_parameters_has_every_algorithm() -> None:
    described = STREAM_ALGORITHMS["blocks"].parameters.model_json_schema()
    forms = {form["title"]: form for form in described["properties"]["table"]["anyOf"]}
    assert forms.keys() == set(STATIC_ALGORITHMS.names())
    assert forms["sabre"]["properties"].keys() == {"algorithm", *STATIC_ALGORITHMS["sabre"].parameters.model_fields}
    assert "$ref" not in json.dumps(described["properties"]["table"])

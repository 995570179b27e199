"""Schemas of the input that change while a stream runs, between two runs, and before it is drained."""

import json
import logging
from typing import Any

import pytest

from microdata import SchemaError
from service.kafka import Partition
from service.registry import SchemaConflictError
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.stream import stream_of
from tests.service.codec.avro_world import order, read, record
from tests.service.codec.protobuf_world import classes
from tests.service.codec.protobuf_world import written as protobuf_written
from tests.service.registry.fake_registry import FakeRegistry
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_avro_worker import (
    cycle,
    feed,
    framed,
    letters,
    messages,
    policy_of,
    registry,
    worker_of,
)

__all__ = ["registry"]
FIRST = record()


def without(name: str, *more: Any, **types: Any) -> Any:
    """The schema of an order that lacks a field and has others."""
    made = record(*more, **types)
    return {**made, "fields": [each for each in made["fields"] if each["name"] != name]}


def renamed(old: str, new: str, kind: Any) -> tuple[Any, Any]:
    """The schema of an order in which a field has another name; with and without the old name as its alias."""
    return without(old, {"name": new, "type": kind, "aliases": [old]}), without(old, {"name": new, "type": kind})


AGE = ["null", "int"]
WITH_ALIAS, WITHOUT_ALIAS = renamed("age", "years", AGE)


def rows_of(paper: Any, registry: FakeRegistry) -> list[dict[str, Any]]:
    """All rows that were published, each message read by the schema whose id it carries."""
    rows = []
    for message in messages(paper):
        text = registry.schemas[int.from_bytes(message[1:5], "big")]["schema"]
        rows += read(text, message[5:])["rows"]
    return rows


def stopped(worker: Worker) -> None:
    """Stop a worker that keeps its pending events."""
    worker._finish()
    worker.close()


def drained(policy: Any, paper: Any, **settings: Any) -> dict[int, int]:
    paper.others = 0
    stream = stream_of(policy, options := WorkerSettings(**settings))
    paper.assign(0)
    return Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0).drain()


def pending(policy: Any, paper: Any, registry: FakeRegistry, count: int = 5) -> None:
    """Run a worker that is stopped while some of its events are pending."""
    number = registry.subjects["raw-value"][-1]
    schema = json.loads(registry.schemas[number]["schema"])
    worker = worker_of(policy, paper, "keep")
    feed(paper, *(framed(number, schema, order(n)) for n in range(count)))
    cycle(worker, 3)
    assert worker.metrics.status()["gauges"]["pending"]
    stopped(worker)


@pytest.fixture
def paper() -> Paper:
    return Paper(1)


CHANGES = {
    "renamed without alias": WITHOUT_ALIAS,
    "public field removed": without("note"),
    "public type changed": record(amount="string"),
}


DRAINED_CHANGES = CHANGES | {"renamed with alias": WITH_ALIAS, "public type promoted": record(amount="double")}


@pytest.mark.parametrize("change", DRAINED_CHANGES)
@pytest.mark.parametrize("settings", [{}, {"accept_loss": True}], ids=["drain", "drain --accept-loss"])
def test_drain_publishes_pending_events_after_an_incompatible_schema_was_registered(
    registry: FakeRegistry, paper: Paper, change: str, settings: Any
) -> None:
    pending(policy_of(), paper, registry)
    before = len(messages(paper))
    registry.add("raw-value", DRAINED_CHANGES[change])
    assert drained(policy_of(), paper, **settings) == {0: 5}
    assert len(messages(paper)) > before
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(5)]
    assert not letters(paper)


@pytest.mark.parametrize("change", CHANGES)
def test_restarted_worker_goes_on_with_the_schemas_that_its_state_names(
    registry: FakeRegistry, paper: Paper, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    pending(policy_of(), paper, registry)
    registry.add("raw-value", CHANGES[change])
    with caplog.at_level(logging.WARNING):
        worker = worker_of(policy_of(), paper)
    number = registry.subjects["raw-value"][0]
    feed(paper, *(framed(number, FIRST, order(n)) for n in range(5, 9)))
    cycle(worker, 3)
    assert worker.metrics.unready() is None
    (notice,) = worker.metrics.notices()
    assert f"input {number}" in notice
    assert "run `portcullis drain OLD_POLICY` and `portcullis run NEW_POLICY`" in notice
    assert notice in caplog.text
    assert worker.metrics.status()["old_schemas"] == notice
    stopped(worker)
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(9)]


def test_first_start_still_refuses_a_schema_that_the_policy_does_not_fit(registry: FakeRegistry, paper: Paper) -> None:
    registry.add("raw-value", WITHOUT_ALIAS)
    with pytest.raises(SchemaError, match="age: the topic's schema has no such field"):
        worker_of(policy_of(), paper)


def test_schemas_of_a_drained_stream_are_not_used_again(registry: FakeRegistry, paper: Paper) -> None:
    pending(policy_of(), paper, registry)
    drained(policy_of(), paper)
    registry.add("raw-value", WITHOUT_ALIAS)
    with pytest.raises(SchemaError, match="age: the topic's schema has no such field"):
        worker_of(policy_of(), paper)


def test_policy_with_aliases_continues_after_the_drain_of_the_old_one(registry: FakeRegistry, paper: Paper) -> None:
    pending(policy_of(), paper, registry)
    number = registry.add("raw-value", WITHOUT_ALIAS)
    new = policy_of("{input: {type: avro, aliases: {age: [years]}}, output: avro}")
    assert new.fingerprint() != policy_of().fingerprint()
    drained(policy_of(), paper)
    values = [order(n) for n in range(5, 9)]
    feed(paper, *(framed(number, WITHOUT_ALIAS, {**one, "years": one["age"]}) for one in values))
    feed(paper, *(framed(registry.subjects["raw-value"][0], FIRST, order(n)) for n in range(9, 12)))
    worker = worker_of(new, paper)
    cycle(worker, 3)
    stopped(worker)
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(12)]
    assert not letters(paper)


def test_policy_with_another_output_subject_continues_after_a_public_field_changed_its_type(
    registry: FakeRegistry, paper: Paper
) -> None:
    pending(policy_of(), paper, registry)
    schema = record(amount="string")
    number = registry.add("raw-value", schema)
    new = policy_of("{input: avro, output: {type: avro, subject: safe-2}}")
    drained(policy_of(), paper)
    feed(paper, *(framed(number, schema, order(n, amount=f"{n}")) for n in range(5, 9)))
    worker = worker_of(new, paper)
    cycle(worker, 3)
    stopped(worker)
    rows = rows_of(paper, registry)
    assert sorted(row["amount"] for row in rows if isinstance(row["amount"], str)) == ["5", "6", "7", "8"]
    assert len(rows) == 9


def test_field_is_found_by_an_alias_of_the_newest_schema_while_the_worker_runs(
    registry: FakeRegistry, paper: Paper
) -> None:
    first = registry.subjects["raw-value"][0]
    worker = worker_of(policy_of(), paper)
    feed(paper, *(framed(first, FIRST, order(n)) for n in range(5)))
    cycle(worker, 2)
    number = registry.add("raw-value", WITH_ALIAS)
    values = [order(n) for n in range(5, 9)]
    feed(paper, *(framed(number, WITH_ALIAS, {**one, "years": one["age"]}) for one in values))
    feed(paper, *(framed(first, FIRST, order(n)) for n in range(9, 12)))
    cycle(worker, 5)
    stopped(worker)
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(12)]
    assert not letters(paper)


def test_promoted_public_field_is_read_while_the_worker_runs(registry: FakeRegistry, paper: Paper) -> None:
    old, new = record(amount="int"), record(amount="long")
    registry.subjects.clear()
    first = registry.add("raw-value", old)
    worker = worker_of(policy_of(), paper)
    feed(paper, *(framed(first, old, order(n, amount=n)) for n in range(5)))
    cycle(worker, 2)
    assert worker.metrics.status()["gauges"]["pending"]
    second = registry.add("raw-value", new)
    feed(paper, *(framed(second, new, order(n)) for n in range(5, 9)))
    cycle(worker, 5)
    stopped(worker)
    assert sorted(row["amount"] % 2**40 for row in rows_of(paper, registry)) == [*range(9)]
    assert max(row["amount"] for row in rows_of(paper, registry)) > 2**40
    assert not letters(paper)


PURCHASE = """\
syntax = "proto3";
package shop;
message Order { string who = 1; TYPE AGE = 2; string item = 3; TYPE amount = 4; string note = 5; }
"""


def purchase(text: str, number: int, *numbers: int, age: str = "age", amount: int = 0) -> list[bytes]:
    made = [
        {"who": f"p{n}", age: n, "item": "xy"[n % 2], "amount": n + amount, **({"note": "n"} if "note" in text else {})}
        for n in numbers
    ]
    return [b"\0" + number.to_bytes(4, "big") + b"\0" + protobuf_written(text, one) for one in made]


def protobuf(kind: str = "int32", age: str = "age") -> str:
    return PURCHASE.replace("TYPE", kind).replace("AGE", age)


def protobuf_amounts(paper: Any, registry: FakeRegistry) -> list[int]:
    found = []
    for message in messages(paper):
        text = registry.schemas[int.from_bytes(message[1:5], "big")]["schema"]
        made = classes(text)["portcullis.safe.Cluster"].FromString(message[6:])
        found += [row.amount for row in made.rows]
    return sorted(found)


def test_wider_number_of_protobuf_is_read_while_the_worker_runs(registry: FakeRegistry, paper: Paper) -> None:
    registry.subjects.clear()
    old, new = protobuf("int32"), protobuf("int64")
    first = registry.add("raw-value", old, "PROTOBUF")
    worker = worker_of(policy_of("protobuf"), paper)
    feed(paper, *purchase(old, first, *range(5)))
    cycle(worker, 2)
    second = registry.add("raw-value", new, "PROTOBUF")
    feed(paper, *purchase(new, second, *range(5, 9), amount=2**40))
    cycle(worker, 5)
    stopped(worker)
    assert protobuf_amounts(paper, registry) == [*range(5), *(2**40 + n for n in range(5, 9))]
    assert not letters(paper)


def test_renamed_field_of_protobuf_is_drained_and_continues_with_an_alias(registry: FakeRegistry, paper: Paper) -> None:
    registry.subjects.clear()
    old, new = protobuf(), protobuf(age="years")
    first = registry.add("raw-value", old, "PROTOBUF")
    worker = worker_of(policy_of("protobuf"), paper, "keep")
    feed(paper, *purchase(old, first, *range(5)))
    cycle(worker, 3)
    assert worker.metrics.status()["gauges"]["pending"]
    stopped(worker)
    second = registry.add("raw-value", new, "PROTOBUF")
    assert drained(policy_of("protobuf"), paper) == {0: 5}
    feed(paper, *purchase(new, second, *range(5, 9), age="years"), *purchase(old, first, *range(9, 12)))
    policy = policy_of("{input: {type: protobuf, aliases: {age: [years]}}, output: protobuf}")
    worker = worker_of(policy, paper)
    cycle(worker, 3)
    stopped(worker)
    assert protobuf_amounts(paper, registry) == [*range(12)]
    assert not letters(paper)


def test_incompatible_schema_does_not_stop_a_running_worker(
    registry: FakeRegistry, paper: Paper, caplog: pytest.LogCaptureFixture
) -> None:
    first = registry.subjects["raw-value"][0]
    worker = worker_of(policy_of(), paper)
    feed(paper, *(framed(first, FIRST, order(n)) for n in range(5)))
    cycle(worker, 2)
    number = registry.add("raw-value", WITHOUT_ALIAS)
    values = [order(n, age=None) for n in range(5, 7)]
    feed(paper, *(framed(number, WITHOUT_ALIAS, {**one, "years": 7}) for one in values))
    feed(paper, *(framed(first, FIRST, order(n)) for n in range(7, 10)))
    asked = registry.asked.copy()
    cycle(worker, 8)
    (notice,) = worker.metrics.notices()
    assert "age: the topic's schema has no such field" in notice
    versions = "GET /api/subjects/raw-value/versions/latest"
    assert registry.asked[versions] - asked[versions] <= 4, "it is not asked again for each batch"
    stopped(worker)
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(5), 7, 8, 9]
    assert [(offset, field) for offset, field, _ in letters(paper)] == [(5, "age"), (6, "age")]
    assert caplog.text.count("goes on with the schemas that it has used so far") == 1


def test_pending_events_are_read_by_the_schema_by_which_they_were_taken(registry: FakeRegistry, paper: Paper) -> None:
    """The newest schema has no default any more for a field that pending records lack."""
    registry.subjects.clear()
    writer = without("age")
    with_default = {**writer, "fields": [*writer["fields"], {"name": "age", "type": "int", "default": 7}]}
    no_default = {**writer, "fields": [*writer["fields"], {"name": "age", "type": "int"}]}
    first = registry.add("raw-value", writer)
    registry.add("raw-value", with_default)
    worker = worker_of(policy_of(), paper, "keep")
    values = [{key: value for key, value in order(n).items() if key != "age"} for n in range(5)]
    feed(paper, *(framed(first, writer, value) for value in values))
    cycle(worker, 3)
    assert worker.metrics.status()["gauges"]["pending"]
    stopped(worker)
    registry.add("raw-value", no_default)
    worker = worker_of(policy_of(), paper)
    cycle(worker, 2)
    assert not worker.metrics.status()["stopped"]
    stopped(worker)
    assert sorted(row["amount"] - 2**40 for row in rows_of(paper, registry)) == [*range(5)]


def test_state_names_the_schemas_of_pending_events_and_forgets_those_of_settled_ones(
    registry: FakeRegistry, paper: Paper
) -> None:
    pending(policy_of(), paper, registry)
    second = registry.add("raw-value", record(age="int"))
    worker = worker_of(policy_of(), paper)
    states = paper.logs[Partition("portcullis.safe.state", 0)]
    cycle(worker, 1)
    feed(paper, *(framed(second, record(age="int"), order(n)) for n in range(5, 7)))
    cycle(worker, 2)
    inputs = [[one.schemas.input for one in State.decode(value).schemas] for _, value in states]
    assert [1] in inputs
    assert [1, second] in inputs
    stopped(worker)
    assert [one.schemas.input for one in State.decode(states[-1][1]).schemas] == [second]


def test_public_type_that_changes_with_json_output_waits_until_pending_events_are_drained(
    registry: FakeRegistry, paper: Paper
) -> None:
    """Rows of one run have one type: pending events are published by the old schema, whatever the newest says."""
    policy = policy_of("{input: avro}")
    pending(policy, paper, registry)
    schema = record(amount="string")
    number = registry.add("raw-value", schema)
    worker = worker_of(policy, paper)
    cycle(worker, 3)
    assert not worker.metrics.status()["stopped"]
    assert "amount has another type in the newest schema" in worker.metrics.notices()[0]
    stopped(worker)
    drained(policy, paper)
    feed(paper, *(framed(number, schema, order(n, amount=f"{n}")) for n in range(5, 9)))
    worker = worker_of(policy, paper)
    cycle(worker, 3)
    stopped(worker)
    amounts = [row["amount"] for message in messages(paper) for row in json.loads(message)["rows"]]
    assert sorted(map(str, amounts)) == sorted([*(str(2**40 + n) for n in range(5)), "5", "6", "7", "8"])


def test_output_that_the_registry_refuses_is_drained_by_the_schema_that_it_has(
    registry: FakeRegistry, paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The type is promoted, but the output's subject has a rule that takes no wider one."""
    old = record(amount="int")
    registry.subjects.clear()
    first = registry.add("raw-value", old)
    worker = worker_of(policy_of(), paper, "keep")
    feed(paper, *(framed(first, old, order(n, amount=n)) for n in range(5)))
    cycle(worker, 3)
    stopped(worker)
    registry.add("raw-value", record(amount="long"))

    def register(*_: Any) -> int:
        raise SchemaConflictError("the registry does not take it")

    monkeypatch.setattr("service.registry.Registry.register", register)
    assert drained(policy_of(), paper) == {0: 5}
    assert sorted(row["amount"] for row in rows_of(paper, registry)) == [*range(5)]


def test_aliases_of_a_nested_field_are_names_in_its_record() -> None:
    with pytest.raises(Exception, match="aliases are names without dots"):
        policy_of("{input: {type: avro, aliases: {home.zip: [home.code]}}}")
    with pytest.raises(Exception, match="leave aliases out"):
        policy_of("{output: {type: avro, aliases: {age: [years]}}}")

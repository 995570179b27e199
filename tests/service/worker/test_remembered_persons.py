"""A worker that remembers people: whatever happens to it, the attacker who ties rows together finds k persons."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from microdata import GuaranteeError, PersonSource
from service.codec import Format, TopicFormat
from service.kafka import RecordBatch, UnclearError
from service.settings import SettingsError
from service.worker import followed, partition
from service.worker import memory as memory_module
from service.worker import partition as partition_module
from service.worker.packing import unpack
from service.worker.partition import InputPartition
from service.worker.sealing import add_key, load_keys
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.topics import TopicError, prepare
from stream_algos import Cohorts, Release
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.quarter import ASKED, MEMORY, STATES, K, Quarter, kept, small_pages
from tests.service.worker.test_cycle import STATE, Hall

LOST = {3: "commit", 5: "committed"}
"""In which turns the answer to a commit is lost: before it was applied, and after."""


@pytest.mark.parametrize("company", ["standing", "present"])
@pytest.mark.parametrize("l", [1, 2])
def test_the_attack_fails_over_restarts_compaction_and_small_pages(
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    company: str,
    l: int,  # noqa: E741 - ℓ
) -> None:
    small_pages(monkeypatch)
    monkeypatch.setattr(partition, "_FEW_BOXES", 10)
    monkeypatch.setattr(followed, "_PERSONS", 100)
    quarter = Quarter(key_file, company=company, l=l)
    quarter.hall.cycle()
    for turn in range(40):
        quarter.come(25, among=slice(0, 20 + turn))
        if turn % 7 in LOST:
            quarter.paper.errors[LOST[turn % 7]] = UnclearError("nobody knows")
        quarter.hall.cycle(1 + turn % 3)
        if turn % 3 == 0:
            quarter.restart()
        if turn % 5 == 0:
            quarter.compact()
    quarter.hall.cycle(4)
    assert quarter.known()["persons"] > 50
    rows, _, _, items = quarter.published()
    assert len(rows) > (750 if company == "standing" else 400)
    assert quarter.least() >= K
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 0, "the attack along the way, too"
    if l == 2 and company == "present":
        assert all(len({item for own, item in items if own == cluster}) == 2 for cluster, _ in items)
    (own,) = quarter.hall.worker._owned.running.values()
    assert own._gate._lineages is not None
    if company == "present":  # of classes that have left nothing stays
        assert len(own._gate._lineages._boxes) < 40 < len({cluster for cluster, _ in items})
    # The topic is as large as what is remembered, however long it ran.
    quarter.compact()
    live = len(quarter.paper.logs[MEMORY]) - sum(place == MEMORY for place, _ in quarter.paper.gone)
    assert live < len(quarter.paper.logs[MEMORY]) / 2


@pytest.mark.parametrize("seen", [True, False])
def test_persons_whose_events_are_rejected_are_no_company(
    key_file: Path, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """With `seen: False` the worker ignores what rejected events show, and the attacker succeeds."""
    monkeypatch.setattr(followed, "_PERSONS", 0)
    if not seen:
        taken = InputPartition.take
        monkeypatch.setattr(
            InputPartition, "take", lambda own, events, *given: taken(own, replace(events, rejected=None), *given)
        )
    quarter = Quarter(key_file)
    quarter.hall.cycle()
    for turn in range(24):
        quarter.come(25, among=slice(0, 20 + 2 * turn), moving=0.1, rejected=0.2)
        if turn % 7 in LOST:
            quarter.paper.errors[LOST[turn % 7]] = UnclearError("nobody knows")
        quarter.hall.cycle(1 + turn % 3)
        if turn % 5 == 0:
            quarter.restart()
    quarter.hall.cycle(4)
    assert len(quarter.published()[0]) > 100
    assert (quarter.least() >= K) == seen


def test_the_worker_finds_out_itself_that_a_person_whose_event_was_rejected_is_no_company(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is not told of rejected events; the attack along the way is."""
    monkeypatch.setattr(followed, "_PERSONS", 100)
    monkeypatch.setattr(Cohorts, "push", lambda own, batch: _PUSH(own, batch.accepted()))
    quarter = Quarter(key_file)
    quarter.hall.cycle()
    for turn in range(24):
        quarter.come(25, among=slice(0, 20 + 2 * turn), moving=0.0, rejected=0.0 if turn < 6 else 0.2)
        quarter.hall.cycle(2)
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] > 0


_PUSH = Cohorts.push


def test_without_what_was_kept_the_attack_would_succeed(quarter: Quarter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is able to see it: a worker that forgets persons at every restart is found out."""
    monkeypatch.setattr(memory_module.DurableMemory, "write", lambda own, _: own.erased())
    for _ in range(8):
        quarter.restart()
        quarter.hall.cycle()
        for one in quarter.hall.worker._owned.running.values():
            one.engine.__init__(one.engine.schema, **one.engine.parameters.model_dump())  # type: ignore[misc]
        for _ in range(4):
            quarter.come(30, moving=0.0)
            quarter.hall.cycle()
    quarter.hall.cycle(2)
    assert quarter.least() < K


def test_nothing_is_refused_because_what_its_box_comes_after_was_forgotten(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "_FEW_BOXES", 1)
    quarter = Quarter(key_file, persons=400, l=2)
    quarter.hall.cycle()
    for known in range(40, 400, 20):
        quarter.come(60, moving=0.0, among=slice(0, known))
        quarter.hall.cycle()
    assert quarter.known()["splits"] > 10
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 0


def test_what_is_remembered_is_written_and_acknowledged_before_the_state_that_names_it(quarter: Quarter) -> None:
    quarter.come(30)
    quarter.hall.cycle()
    waits = [call[1] for call in quarter.paper.calls if call[0] == "wait"]
    assert waits == [MEMORY.topic, STATE]
    calls = [call[:2] for call in quarter.paper.calls]
    assert calls.index(("wait", MEMORY.topic)) < calls.index(("produce", "safe")), "what leaves is not waited for, too"
    state = State.decode(quarter.paper.logs[STATES][-1][1])
    assert state.memory is not None
    assert state.memory.end == len(quarter.paper.logs[MEMORY])
    assert state.memory.sizes["persons"] >= 55


def test_nothing_of_a_person_can_be_read_without_the_key(quarter: Quarter, key_file: Path) -> None:
    keys = load_keys(key_file)
    values = [value for _, value in quarter.paper.logs[MEMORY] if value is not None]
    assert values
    key, value = next((key, value) for key, value in quarter.paper.logs[MEMORY] if value is not None)
    content, _ = keys.open(value, MEMORY, key)
    _, arrays = unpack(content)
    column = arrays["persons.values"].astype(float).tobytes()
    assert column[:64] in b"".join(array.tobytes() for array in arrays.values())
    assert column[:64] not in b"".join(values) + read_by_anybody(quarter)
    assert content not in b"".join(values), "sealed, and not only made smaller"
    assert b"p1" not in key


def read_by_anybody(quarter: Quarter) -> bytes:
    """All that stands in the state topic."""
    records = [unpack(value)[1] for _, value in quarter.paper.logs[STATES]]
    return b"".join(array.tobytes() for arrays in records for array in arrays.values())


@pytest.mark.parametrize("company", ["standing", "present"])
def test_no_number_in_a_state_is_a_value_but_of_what_is_decided_or_published(key_file: Path, company: str) -> None:
    quarter = Quarter(key_file, company=company, founders=K)
    quarter.hall.cycle()
    for turn in range(6):
        quarter.come(40, moving=0.2, among=slice(0, 12 + 4 * turn))
        quarter.hall.cycle()
    kept(quarter, key_file)
    keys, waiting, names = load_keys(key_file), 0, set[str]()
    for _, value in quarter.paper.logs[STATES]:
        arrays = unpack(value)[1]
        names |= {name for name, array in arrays.items() if array.dtype.kind == "f"}
        own = int((arrays["decisions.entries"] < 0).sum())
        assert len(arrays["decisions.lo"]) == len(arrays["decisions.hi"]) == own
        for whose in ("engine.", "legacy."):
            inside = [name for name in arrays if name.startswith(whose)]
            assert inside in ([], [whose + "sealed"])
            for name in inside:
                rest = unpack(keys.open(arrays[name].tobytes(), MEMORY, b"rest")[0])[1]
                waiting += rest.get("covers", np.empty(0)).size
    assert names <= {"clock.time", "decisions.lo", "decisions.hi", "outlived.lo", "outlived.hi"}
    assert (waiting > 0) == (company == "present"), "what rows that wait bring is there, for who has the key"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda own: {**State.decode(own[-2][1]).engine}, "is of another cycle"),  # type: ignore[dict-item]
        (lambda own: {"sealed": State.decode(own[-1][1]).engine["sealed"][:-1]}, "does not open"),  # type: ignore[index]
        (lambda _: {"sealed": np.zeros(99, np.uint8)}, "no worker of this version"),
        (lambda _: {}, "no worker of this version"),
    ],
)
def test_a_state_whose_sealed_part_is_not_its_own_stops_the_partition(
    quarter: Quarter, spoil: Any, reason: str
) -> None:
    quarter.come(40)
    quarter.hall.cycle(2)
    states = quarter.paper.logs[STATES]
    key, value = states[-1]
    states[-1] = (key, replace(State.decode(value), engine=spoil(states)).encode())
    published = len(quarter.published()[0])
    quarter.restart()
    assert reason in quarter.stopped()
    quarter.come(40)
    quarter.hall.cycle(3)
    assert len(quarter.published()[0]) == published


def test_somebody_unlike_all_others_makes_no_partition_thin(key_file: Path) -> None:
    quarter = Quarter(key_file, persons=24, delay={"tuples": 12})
    quarter.values[:], quarter.values[0] = (50, 0), (90, 2)
    quarter.hall.cycle()
    thin: list[Any] = []
    for person in [1, 2] * 8 + [*range(3, 11)] * 6 + [*range(8)] * 8:
        quarter.bring(person)
        if len(quarter.seen) % 16 == 0:
            quarter.hall.cycle()
            (own,) = quarter.hall.worker._owned.running.values()
            thin.append((own.thin, own.engine.status()["cohorts"]))
    assert thin[0] == (True, 0), "too few for one cohort"
    assert thin[-2:] == [(False, 1)] * 2
    assert quarter.known()["pool"] == 1
    assert quarter.hall.worker.metrics.status()["counts"]["suppressed"] > 4


def test_memory_that_was_written_in_another_way_stops_the_partition(
    quarter: Quarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of other entries is another page: what lies between would be lost with the deltas."""
    entries = Cohorts.entries

    def wider(own: Cohorts, table: str, numbers: Any) -> Any:
        columns = dict(entries(own, table, numbers))
        return columns if table != "persons" else {**columns, "shown": columns["shown"].astype(np.int64)}

    quarter.restart()
    monkeypatch.setattr(Cohorts, "entries", wider)
    assert "another version of the worker has written it" in quarter.stopped()


def test_an_engine_that_cannot_be_settled_stops_its_partition_alone(
    quarter: Quarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise GuaranteeError("there is no such cohort")

    quarter.come(20)
    monkeypatch.setattr(Cohorts, "boxes", broken)
    quarter.hall.cycle()
    assert "there is no such cohort" in quarter.stopped()


def test_an_empty_cluster_is_refused_and_nothing_else_with_it(quarter: Quarter) -> None:
    """Broken on purpose: an engine has decided that nobody leaves, with a box of its own."""
    quarter.come(20, moving=0.0)
    quarter.hall.cycle()
    (own,) = quarter.hall.worker._owned.running.values()
    owed = own._state.decisions
    nobody = replace(owed.select(np.array([0])), ids=np.array([5], np.uint64), starts=np.zeros(2, np.int64))
    nobody = replace(nobody, members=np.empty(0, np.int64), reused=np.array([False]), entries=np.array([-1]))
    own._state = replace(own._state, decisions=Release.concat([owed, nobody]))
    before = len(quarter.published()[0])
    quarter.hall.cycle()
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 1
    assert len(quarter.published()[0]) == before + len(owed.members)
    assert quarter.known()["persons"] > 50


def test_people_are_known_again_by_a_new_process_with_the_same_key_file(quarter: Quarter, key_file: Path) -> None:
    quarter.hall.cycle(3)
    before = quarter.known()
    other = Quarter(key_file, paper=quarter.paper)
    other.paper.assign(0)
    other.hall.cycle()
    assert other.known()["persons"] == before["persons"]
    assert other.known()["cohorts"] == before["cohorts"]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda own: own.paper.gone.add((MEMORY, len(own.paper.logs[MEMORY]) - 1)), "records are missing or old"),
        (lambda own: own.paper.truncate(MEMORY, 3), "records are missing or old"),
        (lambda own: own.paper.truncate(MEMORY, len(own.paper.logs[MEMORY])), "records are missing or old"),
        (lambda own: own.paper.logs[MEMORY].__delitem__(slice(-1, None)), "ends before the records"),
        (lambda own: own.paper.logs[MEMORY].__setitem__(-1, own.paper.logs[MEMORY][0]), "missing or old"),
        (lambda own: own.paper.logs[MEMORY].__setitem__(-1, (b"delta/99/0", own.paper.logs[MEMORY][0][1])), "not open"),
        (lambda own: own.paper.logs[MEMORY].__setitem__(-1, (b"pool/0", b"PCM1")), "missing or old"),
        (lambda own: own.paper.ids.update({MEMORY.topic: UUID(int=9)}), "deleted and created again"),
    ],
)
def test_memory_that_is_not_what_its_state_says_stops_the_partition(quarter: Quarter, spoil: Any, reason: str) -> None:
    quarter.restart()
    spoil(quarter)
    published = len(quarter.published()[0])
    assert reason in quarter.stopped()
    quarter.come(40)
    quarter.hall.cycle(3)
    assert len(quarter.published()[0]) == published


def test_record_that_no_worker_wrote_is_ignored_and_reported(
    quarter: Quarter, caplog: pytest.LogCaptureFixture
) -> None:
    quarter.paper.logs[MEMORY].append((b"somebody", b"Zq7mark"))
    offset = len(quarter.paper.logs[MEMORY]) - 1
    quarter.come(40)
    quarter.hall.cycle(3)
    before = quarter.known()
    with caplog.at_level("WARNING"):
        quarter.restart()
        quarter.hall.cycle()
    assert quarter.known()["persons"] == before["persons"]
    (told,) = [one.message for one in caplog.records if "not written by a worker" in one.message]
    assert f"1 records were not written by a worker and are ignored; the first is at offset {offset}" in told
    assert "a key of 8 bytes" in told
    assert not any(text in caplog.text for text in ("Zq7mark", "somebody"))


def test_damaged_record_is_named_by_its_offset(quarter: Quarter) -> None:
    quarter.restart()
    log = quarter.paper.logs[MEMORY]
    key, value = log[-1]
    log[-1] = (key, value[:-1] + bytes([value[-1] ^ 1]))
    assert f"the record at offset {len(log) - 1} is damaged: a record does not open with key" in quarter.stopped()


def test_a_memory_topic_that_is_created_again_while_it_runs_stops_the_partition(quarter: Quarter) -> None:
    quarter.paper.ids[MEMORY.topic] = UUID(int=9)
    quarter.come(40)
    quarter.hall.cycle()
    assert "deleted and created again" in quarter.stopped()


def with_persons_of(one: Path, seals: Path) -> Path:
    """A file with the key of persons of one key file, and what seals of another; whichever is missing is made."""
    for path in (one, seals):
        if not path.exists():
            add_key(path)
    persons, merged = json.loads(one.read_bytes())["persons"], one.with_name("merged.json")
    merged.write_text(json.dumps(json.loads(seals.read_bytes()) | {"persons": persons}))
    return merged


def test_a_foreign_key_stops_the_partition_and_an_old_one_still_opens(
    quarter: Quarter, key_file: Path, tmp_path: Path
) -> None:
    quarter.hall.cycle(3)
    known = quarter.known()["persons"]
    add_key(key_file)
    other = Quarter(key_file, paper=quarter.paper, seed=2)
    other.paper.assign(0)
    other.hall.cycle()
    assert other.known()["persons"] == known, "sealed with the key before"
    foreign = Quarter(with_persons_of(key_file, seals=tmp_path / "foreign.json"), paper=quarter.paper)
    foreign.paper.assign(0)
    assert "which is not in the key file" in foreign.stopped()


def test_a_key_file_with_another_key_of_persons_stops_the_partition(quarter: Quarter, key_file: Path) -> None:
    """It opens everything, and would know nobody again."""
    merged = with_persons_of(key_file.with_name("foreign.json"), seals=key_file)
    published = len(quarter.published()[0])
    other = Quarter(merged, paper=quarter.paper)
    other.paper.assign(0)
    reason = other.stopped()
    assert "`persons` in the key file is another key" in reason
    assert "Bring back the topic, or the key file" in reason
    other.come(40)
    other.hall.cycle(3)
    assert len(other.published()[0]) == published
    note = State.decode(quarter.paper.logs[STATES][-1][1]).memory
    assert note is not None
    assert note.persons_check == load_keys(key_file).persons_check != load_keys(merged).persons_check


def test_the_gate_knows_after_a_restart_which_values_have_left(key_file: Path) -> None:
    """With ℓ = 2 a cohort that has shown both values publishes any of them alone, before and after."""
    quarter = Quarter(key_file, l=2, persons=30)
    quarter.hall.cycle()
    for _ in range(8):
        quarter.come(30, moving=0.0)
        quarter.hall.cycle()
    quarter.hall.cycle(3)
    before = quarter.hall.worker.metrics.status()["counts"]["refused_releases"]
    quarter.restart()
    quarter.come(30, moving=0.0)
    quarter.hall.cycle(3)
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == before == 0
    (own,) = quarter.hall.worker._owned.running.values()
    rows = quarter.published()[3]
    boxes = {number for number, _ in rows}
    assert own._gate._lineages is not None
    values, _, whose = own._gate._lineages._entries[: own._gate._lineages._used].T
    ids = own._gate._lineages._boxes.ids[whose].tolist()
    known = {
        box: {value for one, value in zip(ids, values.tolist(), strict=True) if one == int(box, 16)} for box in boxes
    }
    shown = {box: {"xy".index(item) for own_, item in rows if own_ == box} for box in boxes}
    assert known == shown, "what has left, and nothing else"


def test_how_far_reading_what_is_remembered_has_come_is_why_a_worker_is_not_ready(
    quarter: Quarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarter.hall.cycle(2)
    read, metrics, told = quarter.paper.read, quarter.hall.worker.metrics, []

    def one_by_one(place: Any, start: int, stop: int, timeout: float) -> Any:
        for batch in read(place, start, stop, timeout):
            for record in zip(batch.offsets, batch.keys, batch.values, strict=True):
                offsets = np.array(record[:1])
                yield RecordBatch(place, offsets, offsets, [record[1]], [record[2]])
                told.append(metrics.unready())

    assert metrics.unready() is None
    quarter.restart()
    monkeypatch.setattr(quarter.paper, "read", one_by_one)
    quarter.hall.worker._poll(0.0, 1)
    records = len(quarter.paper.logs[MEMORY])
    shares = [round(100 * (number + 1) / records) for number in range(records)]
    assert [one for one in told if one and MEMORY.topic in one] == [
        f"reading {MEMORY.topic}/0 again, {share} %" for share in shares
    ]
    monkeypatch.undo()
    quarter.hall.cycle()
    assert metrics.unready() is None


def test_a_worker_without_its_key_refuses_to_start_and_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"PORTCULLIS_WORKER_KEY_FILE\)\. `portcullis key new FILE` makes one"):
        Hall(kind=Cohorts, **ASKED)
    with pytest.raises(SettingsError, match="cannot be read"):
        Hall(kind=Cohorts, settings={"key_file": tmp_path / "nowhere"}, **ASKED)


def test_persons_must_not_be_spread_over_partitions(quarter: Quarter) -> None:
    stream, settings = quarter.hall.stream, WorkerSettings()
    with pytest.raises(TopicError, match="must take the person from the record's key"):
        prepare(Paper(2), stream, settings, 9_000_000)  # type: ignore[arg-type]
    by_key = replace(stream, schema=replace(stream.schema, person=PersonSource.KEY))
    with pytest.raises(TopicError, match="`keyed` in its stream section"):
        prepare(Paper(2), by_key, settings, 9_000_000)  # type: ignore[arg-type]
    prepare(Paper(2), replace(by_key, keyed="murmur2"), settings, 9_000_000)  # type: ignore[arg-type]
    # Bytes of an encoded key, and with them its partition, change with the version of its schema.
    encoded = replace(by_key, keyed="murmur2", format=Format(key=TopicFormat("avro")))
    with pytest.raises(TopicError, match="keys of format avro have other bytes, and so another partition"):
        prepare(Paper(2), encoded, settings, 9_000_000)  # type: ignore[arg-type]
    prepare(Paper(1), replace(encoded, keyed=None), settings, 9_000_000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"cleanup.policy": "compact,delete", "max.compaction.lag.ms": "1"}, "must be compact alone"),
        ({"cleanup.policy": "compact"}, "max.compaction.lag.ms"),
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": "604800001"}, "max.compaction.lag.ms"),
        (
            {"cleanup.policy": "compact", "max.compaction.lag.ms": "1", "max.message.bytes": "900000"},
            "takes records up",
        ),
    ],
)
def test_a_memory_topic_that_could_lose_or_keep_too_much_is_refused(quarter: Quarter, config: Any, reason: str) -> None:
    describe = quarter.paper.describe_topic
    quarter.paper.describe_topic = lambda name: (
        replace(describe(name), config=config) if name == MEMORY.topic else describe(name)
    )
    with pytest.raises(TopicError, match=reason):
        prepare(quarter.paper, quarter.hall.stream, WorkerSettings(), 9_000_000)

"""What a partition decides, owes and settles, and what a worker claims: each rule by itself, without a broker."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from microdata import GuaranteeError
from service.kafka import AbortableError, GroupToken, Partition, RetriableError
from service.worker.restoring import PartitionError
from service.worker.state import State
from stream_algos import Release
from tests.service.worker import test_crashes
from tests.service.worker.chunks import Chunks
from tests.service.worker.test_at_most_once import Reusing, released, settle
from tests.service.worker.test_crashes import Simulation
from tests.service.worker.test_cycle import STATE, Hall, event


def simulation_of(monkeypatch: pytest.MonkeyPatch, kind: Any, people: Any, **given: Any) -> Simulation:
    monkeypatch.setitem(test_crashes.ENGINES, "tested", (kind, given))
    return Simulation(people, 2, 0, "tested")


# -- what was decided before -------------------------------------------------------------------------------------------


class Windowed(Chunks):
    """Keeps rows that it has released, as engines with windows do."""

    windowed = True

    def needed_from(self) -> Any:
        return 0


@pytest.mark.parametrize(
    ("members", "count"),
    [([2], 0), ([3, 4], 0), ([5], 0), ([0], 1), ([1, 3], 1), ([2, 5, 0, 1], 2)],
    ids=["pending", "new", "the next one", "settled", "settled and new", "two settled"],
)
def test_a_settled_row_is_never_decided_again(monkeypatch: pytest.MonkeyPatch, members: Any, count: int) -> None:
    """Rows 0 and 1 are published, row 2 is pending, and the next offset is 3."""
    simulation = simulation_of(monkeypatch, Windowed, [0, 1, 2])
    simulation.take(3)
    settle(simulation)
    settle(simulation)
    assert (sorted(released(simulation)), simulation.partition.engine.pending().tolist()) == ([0, 1], [2])
    if count:
        with pytest.raises(GuaranteeError, match=f"{count} rows were decided before"):
            simulation.partition._require_undecided(np.array(members))
    else:
        simulation.partition._require_undecided(np.array(members))


def test_an_engine_is_told_the_last_position_that_was_taken_and_no_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    class Told(Chunks):
        def advance(self, position: Any) -> Any:
            told.append(position)
            return super().advance(position)

    simulation = simulation_of(monkeypatch, Told, [0, 1, 2])
    simulation.take(3)
    simulation.partition.pass_over(7)
    assert told == [2, 6]
    assert simulation.partition.totals["suppressed"] == 4
    assert simulation.partition.totals["taken"] == 7


# -- what is owed and reused -------------------------------------------------------------------------------------------


class Dropping(Reusing):
    """Reuses its box once and has it no more after that, as engines do that keep a few boxes."""

    def push(self, batch: Any) -> Any:
        release = super().push(batch)
        if release.reused.any():
            self._box = None
        return release


@pytest.mark.parametrize("restart", [False, True])
def test_a_box_that_the_engine_dropped_after_it_was_reused_is_still_known(
    monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    simulation = simulation_of(monkeypatch, Dropping, [0, 3, 0])
    simulation.take(2)
    assert [settle(simulation), settle(simulation)] == [0, 0]
    simulation.take(1)
    assert settle(simulation) == 0
    assert len(simulation.partition.engine.reusable()[0]) == 0
    if restart:
        simulation.restart()
    assert settle(simulation) == 0
    assert sorted(released(simulation)) == [0, 1, 2]


def test_rows_that_are_decided_are_kept_until_they_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 0 and 1 are decided, row 2 is pending; a restart reads from the first of them."""
    simulation = simulation_of(monkeypatch, Chunks, [0, 1, 2, 2])
    simulation.take(3)
    settle(simulation)
    assert simulation.partition._state.needed_from == 0
    assert simulation.partition.rows.positions.tolist() == [0, 1, 2]
    assert simulation.partition.missing().tolist() == []
    assert simulation.partition.dirty
    simulation.partition.rows.keep(np.array([0]), None)
    assert simulation.partition.missing().tolist() == [1, 2]
    simulation.restart()
    settle(simulation)
    assert simulation.partition._state.needed_from == 2
    assert simulation.partition.rows.positions.tolist() == [2]
    assert not simulation.partition.dirty


def test_a_window_of_a_decision_is_read_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(Chunks):
        """Compares its clusters with a window that begins before their rows, and keeps none of it itself."""

        windowed = True

        def needed_from(self) -> Any:
            return None

        def _let_go(self) -> Any:
            release = super()._let_go()
            return Release(**{**vars(release), "windows": np.array([[0, int(release.members.max())]])})

    simulation = simulation_of(monkeypatch, Closed, [0, 1, 2, 3])
    simulation.take(2)
    settle(simulation)
    settle(simulation)
    simulation.take(2)
    settle(simulation)
    assert simulation.partition._state.needed_from == 0


def test_pending_rows_are_read_again_though_the_engine_keeps_none_for_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain(Chunks):
        def needed_from(self) -> Any:
            return None

    simulation = simulation_of(monkeypatch, Plain, [0, 0])
    simulation.take(2)
    settle(simulation)
    assert simulation.partition._state.needed_from == 0
    simulation.restart()
    assert simulation.partition.engine.pending().tolist() == [0, 1]


def test_a_refused_cluster_counts_its_rows_as_suppressed_and_nothing_of_it_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulation = simulation_of(monkeypatch, Chunks, [0, 1, 2, 3])
    simulation.take(4)
    settle(simulation)
    simulation.partition.rows.keep(np.array([1, 2, 3]), None)
    departure = simulation.partition.publish()
    assert (departure.refused, departure.suppressed, len(departure.held_back)) == (1, 2, 1)
    assert sorted(departure.clusters.members.tolist()) == [2, 3]
    assert settle(simulation) == 1
    totals = simulation.partition.totals
    assert (totals["suppressed"], totals["released"], totals["clusters"], totals["reused"]) == (2, 2, 1, 0)


def test_times_of_rows_survive_a_restart_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = simulation_of(monkeypatch, Chunks, [0, 0, 0])
    for time in (0.0, 5.0, 7.0):
        position = simulation.partition.position
        simulation.partition.take(simulation.read(position, position + 1), position + 1, time)
    settle(simulation)
    simulation.restart()
    assert simulation.partition.rows.times.tolist() == [0.0, 5.0, 7.0]


def test_the_state_counts_cycles_and_names_the_next_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = simulation_of(monkeypatch, Chunks, [0, 1, 2])
    before = simulation.partition.sequence
    simulation.take(2)
    settle(simulation)
    simulation.restart()
    assert (simulation.partition.sequence, simulation.partition.position) == (before + 1, 2)
    assert simulation.partition._state.decisions.members.tolist() != []


# -- what a worker claims ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("generation", "member"), [(-1, "me"), (3, "")])
def test_a_token_that_proves_nothing_claims_no_partition(generation: int, member: str) -> None:
    hall = Hall()
    hall.feed(event(0, 0))
    hall.paper.generation, hall.paper.member = generation, member
    hall.cycle()
    assert "begin" not in hall.names()
    assert hall.paper.committed_offsets == {}
    assert hall.worker._owned.running == {}
    hall.paper.generation, hall.paper.member = 4, "me"
    hall.cycle()
    assert len(hall.worker._owned.running) == 1
    hall.worker.close()


def test_a_claim_shuts_out_others_before_it_looks_at_what_they_have_committed() -> None:
    hall = Hall()
    order: list[str] = []
    transactions = hall.worker._transactions
    producer = SimpleNamespace(init_transactions=lambda: order.append("shut out"), close=lambda: order.append("close"))
    transactions._client = SimpleNamespace(producer=lambda _: producer)

    def begin() -> Any:
        order.append("look")
        raise GuaranteeError("that is enough")

    with pytest.raises(GuaranteeError, match="enough"):
        transactions.claim(next(iter([test_crashes.PLACE])), GroupToken("g", 1, "me", 1), begin)
    assert order == ["shut out", "look", "close"]
    hall.worker.close()


def test_a_transaction_that_was_left_open_is_ended_by_the_next_owner_of_its_id() -> None:
    hall = Hall()
    hall.worker._transactions.end_left_open("somebody")
    assert hall.names() == ["init"]
    hall.worker.close()


def test_a_discarded_producer_is_closed_and_never_used_again() -> None:
    hall = Hall()
    transactions = hall.worker._transactions
    first = transactions.ready()
    closed: list[bool] = []
    transactions._producer = SimpleNamespace(close=lambda: closed.append(True))
    transactions.discard()
    assert closed == [True]
    assert transactions.ready() is first, "a new one from the client"
    assert hall.names() == ["init", "init"]
    hall.worker.close()


def test_a_producer_that_cannot_begin_is_closed() -> None:
    hall, closed = Hall(), list[bool]()

    def fails() -> None:
        raise GuaranteeError("no")

    producer = SimpleNamespace(init_transactions=fails, close=lambda: closed.append(True))
    hall.worker._transactions._client = SimpleNamespace(producer=lambda _: producer)
    with pytest.raises(GuaranteeError):
        hall.worker._transactions.ready()
    assert closed == [True]
    assert hall.worker._transactions._producer is None
    hall.worker.close()


def test_the_offset_names_the_state_that_was_written_with_it() -> None:
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1))
    hall.cycle(2)
    (offset,) = hall.paper.committed_offsets.values()
    note = json.loads(offset.metadata)
    assert (offset.offset, note["state"], note["sequence"]) == (2, 2, 3)
    hall.worker.close()


def test_a_claim_encodes_its_state_before_it_opens_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    hall, encode = Hall(), State.encode
    monkeypatch.setattr(State, "encode", lambda *given: hall.paper.calls.append(("encode",)) or encode(*given))
    hall.cycle()
    assert hall.names().index("encode") < hall.names().index("begin")
    hall.worker.close()


def test_dead_letters_have_the_rounded_time_of_their_commit() -> None:
    """A time to the millisecond would tell when the rejected record came."""
    hall = Hall()
    hall.cycle()
    hall.now += 0.789
    hall.feed((None, b"poison"))
    hall.cycle()
    assert [call[1:] for call in hall.paper.calls if call[0] == "produce"] == [("dead", 1_000_000)]
    assert len(hall.paper.logs[Partition("dead", 0)]) == 1
    hall.worker.close()


@pytest.mark.parametrize("call", ["produce", "wait", "flush", "commit"])
def test_a_transaction_that_fails_is_aborted_at_once(call: str) -> None:
    hall = Hall()
    hall.cycle()
    hall.feed(event(0, 0), event(1, 1), (None, b"poison"))
    hall.paper.errors[call] = AbortableError("no room")
    hall.cycle()
    assert hall.names()[-1] == "abort"
    assert hall.worker._owned.running == {}
    hall.worker.close()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"topic_id": UUID(int=8)}, "its id changed"), ({"partition": 1}, "is about raw/1")],
)
def test_a_stream_does_not_begin_where_a_state_of_something_else_has_ended(changes: Any, reason: str) -> None:
    """The state came after this worker had looked, so only `begin` sees it."""
    hall = Hall()
    hall.cycle()
    states = hall.paper.logs[Partition(STATE, 0)]
    state = State.decode(states[-1][1])
    states.append((b"0", replace(state, engine=None, origin=replace(state.origin, **changes)).encode()))
    with pytest.raises(PartitionError, match=reason):
        hall.worker._connections.restorer.begin(test_crashes.PLACE)
    hall.worker.close()


def test_a_stream_does_not_begin_where_it_is_under_way_by_now() -> None:
    hall = Hall()
    hall.cycle()
    with pytest.raises(RetriableError, match="taken over meanwhile"):
        hall.worker._connections.restorer.begin(test_crashes.PLACE)
    hall.worker.close()

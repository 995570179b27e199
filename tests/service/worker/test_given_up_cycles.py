"""Cycles that came to nothing, and what a worker remembers of people then: what is durable, and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microdata import GuaranteeError
from service.kafka import AbortableError, UnclearError
from stream_algos import Cohorts
from tests.service.worker.quarter import MEMORY, K, Quarter, small_pages
from tests.service.worker.test_cycle import RAW


def test_an_aborted_cycle_leaves_nothing_behind(quarter: Quarter) -> None:
    quarter.hall.cycle(2)
    before = len(quarter.paper.logs[MEMORY])
    quarter.come(40)
    quarter.paper.errors["flush"] = AbortableError("not now")
    quarter.hall.cycle()
    assert len(quarter.paper.logs[MEMORY]) == before
    quarter.hall.cycle(4)
    assert quarter.least() >= K


def tables(quarter: Quarter) -> Any:
    """What is remembered, and nothing else, in the same words whoever tells it."""
    (own,) = quarter.hall.worker._owned.running.values()
    engine: Any = own.engine
    found = {name: engine.entries(name, np.arange(size)) for name, size in engine.sizes().items()}
    return {(name, column): array.tolist() for name, columns in found.items() for column, array in columns.items()}


@pytest.mark.parametrize("company", ["standing", "present"])
@pytest.mark.parametrize("how", ["abort", "rebalance"])
def test_what_is_durable_is_remembered_without_reading_it_when_a_cycle_is_given_up(
    key_file: Path, how: str, company: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarter = Quarter(key_file, company=company, l=2, founders=K)
    quarter.hall.cycle()
    undo, undone = Cohorts.undo, list[float]()

    def seen(one: Cohorts) -> Any:
        undone.append(one.status()["splits"])
        return undo(one)

    monkeypatch.setattr(Cohorts, "undo", seen)
    given_up = 0
    for turn in range(12):
        quarter.come(30, moving=0.1, among=slice(0, 10 + 4 * turn))
        quarter.hall.cycle()
        before = tables(quarter)
        quarter.come(60, moving=0.1, among=slice(0, 30 + 2 * turn))
        (old,) = quarter.hall.worker._owned.running.values()
        splits = old.engine.status()["splits"]
        quarter.hall.worker._transactions.trouble.over()
        if how == "abort":
            quarter.paper.errors["flush"] = AbortableError("not now")
            quarter.hall.cycle()
            quarter.hall.worker._transactions.trouble.over()
        else:
            assert quarter.hall.worker._take_some(0.0) == 60
            quarter.paper.assign(0)
            quarter.paper._told[1]([RAW])
        quarter.paper.errors[f"read {MEMORY.topic}/0"] = RuntimeError("there is no need to read")
        quarter.hall.worker._poll(0.0, 1)
        assert quarter.paper.errors.pop(f"read {MEMORY.topic}/0"), "it was not read"
        after = tables(quarter)
        given_up += undone[-1] > splits
        (own,) = quarter.hall.worker._owned.running.values()
        assert own is not old
        assert after == before
        quarter.restart()
        quarter.hall.worker._poll(0.0, 1)
        assert {key: value for key, value in tables(quarter).items() if key[1] != "seen"} == {
            key: value for key, value in before.items() if key[1] != "seen"
        }
    assert how == "rebalance" or given_up > 0, "splits were undone"
    quarter.hall.cycle(4)
    assert quarter.least() >= K
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 0


def test_what_is_in_memory_of_another_cycle_or_of_a_failed_one_is_read_instead(quarter: Quarter) -> None:
    quarter.hall.cycle(2)
    (own,) = quarter.hall.worker._owned.running.values()
    reading = f"read {MEMORY.topic}/0"
    for spoil in (
        lambda left: setattr(left, "_torn", True),
        lambda left: setattr(left, "_state", replace(left._state, sequence=left.sequence - 1)),
        lambda left: left.forget(np.array([[0, 0]])),
    ):
        quarter.hall.worker._owned.discard()
        spoil(own)
        quarter.paper.errors[reading] = UnclearError("somebody reads")
        quarter.hall.worker._poll(0.0, 1)
        assert reading not in quarter.paper.errors
        quarter.hall.worker._owned._trouble.over()
        quarter.hall.worker._poll(0.0, 1)
        (own,) = quarter.hall.worker._owned.running.values()


@pytest.mark.parametrize("lost", [False, True])
def test_a_cohort_of_which_a_decided_row_is_lost_is_split_no_more(key_file: Path, lost: bool) -> None:
    """Its value counted for ℓ when it was decided, and never left."""
    quarter = Quarter(key_file, settings={"accept_loss": True}, l=2, founders=K, delay={"tuples": 8})
    quarter.values = np.stack([np.concatenate([[10, 50, 90], np.arange(20, 80)]), np.zeros(63, int)], axis=1)
    quarter.hall.cycle()
    for person in [0, 1, 2] * 4:
        quarter.bring(person)
    quarter.hall.cycle(2)
    quarter.bring(0)
    quarter.hall.cycle()
    assert (quarter.known()["cohorts"], len(quarter.published()[0])) == (1, 12)
    if lost:
        quarter.paper.gone.add((RAW, 12))
        quarter.restart()
    quarter.hall.cycle()
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == lost
    quarter.restart()
    for turn in range(6):
        for person in range(3, 63, 2):
            quarter.bring(person)
        quarter.hall.cycle()
        if turn == 3:
            quarter.restart()
    assert quarter.known()["members"] == 33
    assert (quarter.known()["splits"] == 0) == lost
    assert len(quarter.published()[0]) > 100


def test_nobody_is_forgotten_in_the_middle_of_a_cycle(quarter: Quarter) -> None:
    """What was touched and is not durable would be written no more."""
    quarter.come(20)
    assert quarter.hall.worker._take_some(0.0) == 20
    quarter.hall.worker._catch_up()
    (own,) = quarter.hall.worker._owned.running.values()
    with pytest.raises(GuaranteeError, match="in the middle of a cycle"):
        own.forget(np.array([[0, 0]]))
    quarter.hall.cycle(3)
    assert own.forget(np.array([[0, 0]])) == 0
    with pytest.raises(GuaranteeError):
        own.forget(np.array([[0, 0]]))


@pytest.mark.parametrize("call", ["pass_over", "forget"])
def test_an_engine_that_failed_is_not_taken_for_one_that_knows_what_is_durable(
    quarter: Quarter, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    quarter.hall.cycle(2)
    (own,) = quarter.hall.worker._owned.running.values()
    assert own.durable_memory is not None
    monkeypatch.setattr(own.engine, {"pass_over": "advance", "forget": "forget"}[call], lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        getattr(own, call)({"pass_over": own.position + 5, "forget": np.array([[0, 0]])}[call])
    assert own.durable_memory is None


@pytest.mark.parametrize(("when", "is_read"), [("commit", False), ("committed", True)])
def test_after_a_lost_answer_what_is_in_memory_is_taken_over_only_for_the_cycle_that_is_committed(
    quarter: Quarter, when: str, is_read: bool
) -> None:
    quarter.hall.cycle(2)
    (old,) = quarter.hall.worker._owned.running.values()
    sequence, reading = old.sequence, f"read {MEMORY.topic}/0"
    quarter.come(60, moving=0.1)
    quarter.paper.errors[when] = UnclearError("nobody knows")
    quarter.hall.cycle()
    quarter.hall.worker._transactions.trouble.over()
    quarter.paper.errors[reading] = UnclearError("somebody reads")
    quarter.hall.worker._poll(0.0, 1)
    assert (quarter.paper.errors.pop(reading, None) is None) == is_read
    quarter.hall.worker._owned._trouble.over()
    quarter.hall.worker._poll(0.0, 1)
    (own,) = quarter.hall.worker._owned.running.values()
    assert own.sequence == sequence + is_read
    taken_over = tables(quarter)
    quarter.restart()
    quarter.hall.worker._poll(0.0, 1)
    assert {key: value for key, value in tables(quarter).items() if key[1] != "seen"} == {
        key: value for key, value in taken_over.items() if key[1] != "seen"
    }
    quarter.hall.cycle(3)
    assert quarter.least() >= K


def interrupted(paper: Any, call: str) -> list[bytes]:
    """Let the next transaction that holds a page fail once it was handed over; keys that were, to look at."""
    seen: list[bytes] = []
    original = getattr(paper, call)

    def handed(*given: Any, **more: Any) -> Any:
        answer = original(*given, **more)
        keys = [record[1] for record in paper._open if record[0] == MEMORY]
        if any(key.startswith(b"persons/") for key in keys) and not seen:
            seen.extend(keys)
            raise AbortableError("not acknowledged")
        return answer

    setattr(paper, call, handed)
    return seen


@pytest.mark.parametrize("call", ["produce", "produce_and_wait"])
def test_pages_that_were_interrupted_are_written_again_and_the_round_goes_on(
    key_file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    small_pages(monkeypatch)
    quarter = Quarter(key_file)
    quarter.hall.cycle()
    for _ in range(3):
        quarter.come(40)
        quarter.hall.cycle()
    seen = interrupted(quarter.paper, call)
    rounds, restarts = set[int](), 0
    for _ in range(24):
        quarter.come(20)
        before = len(quarter.paper.logs[MEMORY])
        had_failed = bool(seen)
        quarter.hall.cycle()
        if seen and not had_failed:
            assert len(quarter.paper.logs[MEMORY]) == before, "nothing of it counts"
            quarter.hall.cycle()
        (own,) = quarter.hall.worker._owned.running.values()
        assert own.memory is not None
        live, note = own.memory.durable._live, own.memory.durable.note
        rounds.add(live.begun)
        if live.next != (0, 0):
            quarter.restart()
            quarter.hall.worker._poll(0.0, 1)
            (own,) = quarter.hall.worker._owned.running.values()
            assert own.memory is not None
            assert own.memory.durable._live == live
            assert own.memory.durable.note == note
            restarts += 1
    assert any(key.startswith(b"persons/") for key in seen), "a page was interrupted"
    assert restarts > 3
    assert len(rounds) > 2, "rounds came to their end"
    quarter.hall.cycle(3)
    assert quarter.least() >= K
    assert quarter.hall.worker.metrics.status()["counts"]["refused_releases"] == 0

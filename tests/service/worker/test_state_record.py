"""Every field of a state survives its record, and a record that lacks one is refused."""

from dataclasses import fields, replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from microdata import DataError
from service.worker.packing import pack, packed, unpack
from service.worker.state import Origin, State
from stream_algos import Release

DECISIONS = Release(
    ids=np.array([7, 7, 8], np.uint64),
    lo=np.array([[0.0], [0], [10]]),
    hi=np.array([[10.0], [10], [20]]),
    starts=np.array([0, 2, 3, 4]),
    members=np.array([3, 1, 2, 4]),
    reused=np.array([False, True, False]),
    windows=np.array([[0, 4], [-1, -1], [0, 4]]),
    suppressed=np.empty(0, np.int64),
    company=np.array([3, 3, 4]),
    parents=np.array([5, 5, 0], np.uint64),
)
STATE = State(
    origin=Origin("stream", "raw", UUID(int=3), 2, "print"),
    sequence=5,
    position=9,
    first_partitions=4,
    engine={"held": np.array([6, 8])},
    pending=np.array([6, 8]),
    decisions=DECISIONS,
    needed_from=1,
    withheld=np.array([11], np.uint64),
    outlived=(np.array([12], np.uint64), np.array([[0.0]]), np.array([[30.0]])),
    clock=(np.array([1, 6]), np.array([2.5, 4.5])),
    owner="group.me",
    totals={"taken": 9},
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and np.array_equal(one, other))
    if isinstance(one, Release):
        kept = [field.name for field in fields(Release) if field.name not in {"decided", "given_up"}]
        return all(same(getattr(one, name), getattr(other, name)) for name in kept)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple):
        return all(same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


@pytest.mark.parametrize("name", [field.name for field in fields(State)])
@pytest.mark.parametrize(
    "state",
    [STATE, replace(STATE, engine=None, outlived=None, needed_from=None, decisions=Release.empty(1))],
    ids=["under way", "drained"],
)
def test_every_field_survives_the_record(state: State, name: str) -> None:
    assert same(getattr(state, name), getattr(State.decode(state.encode()), name))


def test_boxes_that_only_share_an_id_are_written_one_by_one() -> None:
    """Their parents differ, so neither stands for the other."""
    decisions = replace(DECISIONS, parents=np.array([5, 6, 0], np.uint64))
    assert same(decisions, State.decode(replace(STATE, decisions=decisions).encode()).decisions)


@pytest.mark.parametrize("name", ["fingerprint", "position", "sequence", "drained", "totals", "topic_id"])
def test_a_record_without_a_field_is_refused(name: str) -> None:
    head, arrays = unpack(STATE.encode())
    del head[name]
    with pytest.raises(DataError, match="incomplete"):
        State.decode(pack(head, packed(arrays)))


@pytest.mark.parametrize(("name", "value"), [("topic_id", "none"), ("topic_id", 3), ("memory", {"topic_id": 3})])
def test_a_record_with_a_wrong_field_is_refused(name: str, value: Any) -> None:
    head, arrays = unpack(STATE.encode())
    head[name] = value
    with pytest.raises(DataError, match="incomplete"):
        State.decode(pack(head, packed(arrays)))


def test_a_record_without_its_arrays_is_refused() -> None:
    head, arrays = unpack(STATE.encode())
    del arrays["pending"]
    with pytest.raises(DataError, match="incomplete"):
        State.decode(pack(head, packed(arrays)))

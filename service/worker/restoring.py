"""How a partition is taken over: from its committed offset, the state record that this names, and the input itself.

Every disagreement between offset, state, topic and policy stops the partition. Guessing would publish an event twice
under two boxes, and that is a privacy fault.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import msgspec
import numpy as np

from microdata import DataError, PortcullisError
from service.kafka import Client, Committed, GroupConsumer, Partition, Reader
from service.worker.decisions import no_release
from service.worker.events import EventDecoder
from service.worker.gate import Gate
from service.worker.partition import InputPartition
from service.worker.settings import WorkerSettings
from service.worker.state import Origin, State
from service.worker.stream import Stream
from service.worker.topics import Topics

log = logging.getLogger(__name__)

_READ_TIMEOUT = 30.0


class PartitionError(PortcullisError):
    """A partition that must not go on; an operator has to look."""


class StateNote(msgspec.Struct, frozen=True):
    """What is committed with an input offset: which state record belongs to it."""

    state: int
    sequence: int
    topic_id: str

    def encode(self) -> str:
        """The metadata string of the committed offset."""
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True)
class Restorer:
    """Takes over partitions of one stream."""

    stream: Stream
    topics: Topics
    client: Client
    consumer: GroupConsumer
    reader: Reader
    decoder: EventDecoder
    settings: WorkerSettings

    def restore(self, partition: Partition, committed: Committed | None) -> InputPartition:
        """The partition as its last committed cycle left it, or as a first start."""
        state = self._state(partition, committed)
        gate = Gate(self.stream.schema, self.stream.models)
        if state is None:
            started = InputPartition(self.stream.schema, gate, self.stream.engine(), self._first(partition))
            started.begin()
            return started
        restored = InputPartition(self.stream.schema, gate, self.stream.engine(), state)
        self._reread(partition, state, restored)
        self._account_for_losses(partition, restored)
        restored.resume()
        return restored

    def _state(self, partition: Partition, committed: Committed | None) -> State | None:
        if committed is None:
            state = self._last_state(partition.number)
            if state is not None:
                log.warning("%s/%d: no committed offset, going on from its last state", *partition)
        else:
            state = self._named_state(partition, committed)
        if state is None:
            return None
        self._check(partition, state)
        if state.engine is None:
            # A drained stream: the new policy starts where the old one ended, with nothing of it but the counts.
            return State(
                origin=self._origin(partition),
                sequence=state.sequence,
                position=state.position,
                first_partitions=state.first_partitions,
                engine=None,
                pending=np.empty(0, np.int64),
                decisions=no_release(self.stream.schema),
                needed_from=None,
                totals=state.totals,
            )
        return state

    def _named_state(self, partition: Partition, committed: Committed) -> State:
        """Exactly the state record that the committed offset names."""
        try:
            note = msgspec.json.decode(committed.metadata, type=StateNote)
        except msgspec.DecodeError:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: group {self.stream.group!r} has a committed offset that no "
                "worker wrote; delete the group's offsets, or use another stream name"
            ) from None
        place = Partition(self.stream.state_topic, partition.number)
        records = list(self._states(place, note.state, note.state + 1)) if self._is_there(place, note.state) else []
        if not records:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: the committed offset {committed.offset} names state record "
                f"{note.state} of {place.topic}, which is gone"
            )
        state = records[0]
        if (state.sequence, state.position, str(state.origin.topic_id)) != (
            note.sequence,
            committed.offset,
            note.topic_id,
        ):
            raise PartitionError(
                f"{partition.topic}/{partition.number}: the committed offset {committed.offset} (sequence "
                f"{note.sequence}) and its state record (offset {state.position}, sequence {state.sequence}) disagree"
            )
        return state

    def _is_there(self, place: Partition, offset: int) -> bool:
        """Whether the log reaches that far, be it stable or not.

        A broker answers a commit before its markers are written, each partition's at its own time: the offset may
        be there when its state is not stable yet. Reading it waits for that.
        """
        if offset < self.reader.watermarks(place).high:
            return True
        with closing(self.client.reader(dirty=True)) as dirty:
            return offset < dirty.watermarks(place).high

    def _last_state(self, number: int) -> State | None:
        """The last state record of a partition, up to the end that the log has now."""
        place = Partition(self.stream.state_topic, number)
        marks = self.reader.watermarks(place)
        last = None
        for state in self._states(place, marks.low, marks.high):
            last = state
        return last

    def _states(self, place: Partition, start: int, stop: int) -> Iterator[State]:
        for batch in self.reader.read(place, start, stop, _READ_TIMEOUT):
            for value in batch.values:
                try:
                    yield State.decode(value or b"")
                except DataError as error:
                    raise PartitionError(f"{place.topic}/{place.number}: {error}") from None

    def _check(self, partition: Partition, state: State) -> None:
        mine, theirs = self._origin(partition), state.origin
        where = f"{partition.topic}/{partition.number}"
        if (theirs.topic, theirs.partition) != (mine.topic, mine.partition):
            raise PartitionError(f"{where}: the state record is about {theirs.topic}/{theirs.partition}")
        if theirs.stream != mine.stream and state.engine is not None:
            raise PartitionError(
                f"{where}: output {self.stream.output!r} is fed by stream {theirs.stream!r}; a second stream would "
                f"publish the same events under other boxes. Drain {theirs.stream!r} first"
            )
        if theirs.topic_id != mine.topic_id:
            raise PartitionError(
                f"{where}: the input topic was deleted and created again (its id changed), so offsets mean other events"
            )
        if theirs.fingerprint != mine.fingerprint and state.engine is not None:
            raise PartitionError(
                f"{where}: the policy differs from the one that made this state; run `portcullis drain` with the old "
                "policy, then start the new one"
            )

    def _origin(self, partition: Partition) -> Origin:
        return Origin(
            self.stream.name, partition.topic, self.topics.input_id, partition.number, self.stream.fingerprint
        )

    def _first(self, partition: Partition) -> State:
        """A first start: where the policy says, or at the beginning for a partition that the topic got later."""
        others = (self._last_state(number) for number in range(self.topics.input_partitions))
        first = next((state.first_partitions for state in others if state is not None), self.topics.input_partitions)
        marks = self.consumer.watermarks(partition)
        earliest = self.stream.start == "earliest" or partition.number >= first
        return State(
            origin=self._origin(partition),
            sequence=0,
            position=marks.low if earliest else marks.high,
            first_partitions=first,
            engine=None,
            pending=np.empty(0, np.int64),
            decisions=no_release(self.stream.schema),
            needed_from=None,
        )

    def _reread(self, partition: Partition, state: State, restored: InputPartition) -> None:
        """Put the rows that are still needed back, from the input itself."""
        if state.needed_from is None:
            return
        wanted = np.concatenate([state.pending, state.decisions.members])
        for batch in self.reader.read(partition, state.needed_from, state.position, _READ_TIMEOUT):
            events = self.decoder.decode(batch)
            needed = np.isin(events.positions, wanted) | restored.engine.windowed
            restored.put_back(events.at(needed))

    def _account_for_losses(self, partition: Partition, restored: InputPartition) -> None:
        """Rows that retention took: stop, or where the operator accepts it, count them as suppressed."""
        missing = restored.missing()
        if not len(missing):
            return
        if not self.settings.accept_loss:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: {len(missing)} undecided or unpublished events are gone from "
                f"the input (first offset {missing[0]}); raise its retention, or start with --accept-loss to count "
                "them as suppressed"
            )
        log.warning("%s/%d: %d lost events are counted as suppressed", *partition, len(missing))
        restored.accept_loss()

"""How a partition is taken over: from its committed offset, the state record that this names, and the input itself.

Every disagreement between offset, state, topic and policy stops the partition. Guessing would publish an event twice
under two boxes, and that is a privacy fault.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from microdata import DataError, PortcullisError, SchemaError
from service.codec import Decoder, Events, SchemaIds, StreamCodec, StreamDecoder, is_read_as
from service.kafka import Committed, GroupConsumer, Partition, Reader, RetriableError
from service.publishing.gate import Gate
from service.worker.asking import asking
from service.worker.keyed import KeyedDecoder
from service.worker.memory import MemoryNote
from service.worker.partition import InputPartition
from service.worker.person_memory import PersonMemory
from service.worker.sealing import Keys
from service.worker.settings import WorkerSettings
from service.worker.state import Legacy, Origin, SchemasFrom, State
from service.worker.stream import Stream
from service.worker.topics import StreamTopics
from stream_algos import Release

log = logging.getLogger(__name__)

_READ_TIMEOUT = 30.0
_MARKER_SECONDS = 1.0
"""How long after a commit its marker may be missing before somebody is taken to have died in between."""
_OTHER_PERSONS = (
    "`persons` in the key file is another key than the one by which they are known there, so everybody would be taken "
    "for new"
)


class PartitionError(PortcullisError):
    """A partition that must not go on; an operator has to look."""


class ChangedTypesError(PortcullisError):
    """Pending events were read by `schemas`, in which public fields have other types than the codec's."""

    def __init__(self, schemas: SchemaIds, reason: str) -> None:
        super().__init__(reason)
        self.schemas = schemas


class StateNote(msgspec.Struct, frozen=True):
    """What is committed with an input offset: which state record belongs to it."""

    state: int
    sequence: int
    topic_id: str

    def encode(self) -> str:
        """The metadata string of the committed offset."""
        return msgspec.json.encode(self).decode()


def recreated_input(partition: Partition, stream: Stream) -> str:
    """Why a partition stops whose topic is not the one that its state is about."""
    return (
        f"{partition.topic}/{partition.number}: the input topic was deleted and created again (its id changed), so "
        f"offsets mean other events. To begin anew with it, stop the workers and delete {_kept_topics(stream)} "
        f"and the offsets of group {stream.group!r}"
    )


def recreated_state(partition: Partition, stream: Stream) -> str:
    """Why a partition stops whose state is gone while it runs."""
    return (
        f"{partition.topic}/{partition.number}: the state topic {stream.state_topic!r} was deleted and created again "
        "(its id changed), so nobody else can know what has left. To begin anew, stop the workers and delete "
        f"{_kept_topics(stream)} and the offsets of group {stream.group!r}: events that have left may leave again, "
        "under other boxes"
    )


def _kept_topics(stream: Stream) -> str:
    """What a worker writes for those after it."""
    names = [stream.state_topic, *([stream.memory_topic] if stream.remembers else [])]
    return f"topic{'s' * (len(names) > 1)} {' and '.join(map(repr, names))}"


def lost_memory(partition: Partition, stream: Stream, why: str) -> str:
    """Why a partition stops of which nobody knows any more who is in which cohort."""
    return (
        f"{partition.topic}/{partition.number}: what was remembered of persons cannot be read from topic "
        f"{stream.memory_topic!r} ({why}). Whoever goes on without it publishes the same persons under other boxes. "
        f"Bring back the topic, or the key file. To begin anew, stop the workers and delete it, {stream.state_topic!r} "
        f"and the offsets of group {stream.group!r}: the promise then holds from there on"
    )


@dataclass(frozen=True)
class Restorer:
    """Takes over partitions of one stream."""

    stream: Stream
    topics: StreamTopics
    consumer: GroupConsumer
    reader: Reader
    dirty: Reader
    codec: StreamCodec
    decoder_by: Callable[[SchemaIds], StreamDecoder]
    """Makes what reads events by these schemas again."""
    settings: WorkerSettings
    keys: Keys | None = None
    """Of a stream that remembers persons."""
    ending: bool = False
    """Whether the stream takes nothing any more: then it may end in a topic that has grown."""

    def restore(
        self, partition: Partition, committed: Committed | None, left: InputPartition | None = None
    ) -> InputPartition | None:
        """The partition as its last committed cycle left it; None where no stream is under way and one may begin.

        `left` is what was in memory of it when it was let go.
        """
        state = self._state(partition, committed)
        if state is None:
            return None
        restored = self._with(state)
        self._recall(partition, state, restored, left)
        self._reread(partition, state, restored)
        self._account_for_losses(partition, restored)
        restored.resume()
        return restored

    def open_owner(self, partition: Partition) -> str | None:
        """Transactional id of a worker that has left a transaction open in which it committed this partition.

        Markers of a transaction that has ended are written a moment later; so wait for them before suspecting anybody.
        """
        kept = Partition(self.stream.state_topic, partition.number)
        end, until = self.dirty.watermarks(kept).high, time.monotonic() + _MARKER_SECONDS
        while (stable := self.reader.watermarks(kept).high) < end:
            if time.monotonic() > until:
                return self._owner(kept, stable, end)
            time.sleep(0.05)
        return None

    def _owner(self, kept: Partition, start: int, stop: int) -> str | None:
        states = list(self._states(kept, start, stop, self.dirty))
        ours = (f"{self.stream.group}.", f"{self.stream.state_topic}.")
        return states[-1].owner if states and states[-1].owner.startswith(ours) else None

    def require_under_way(self) -> None:
        """Refuse where the stream would have to begin in some partition before anybody could be forgotten there."""
        states = [self._last_state(number) for number in range(self.topics.input_partitions)]
        where = f"stream {self.stream.name!r}"
        if not any(states):
            raise PartitionError(f"{where} was never started: there is nobody to forget")
        if any(state.legacy for state in states if state):
            raise PartitionError(
                f"{where} was drained with --keep-cohorts: start the policy that goes on with them, stop it and run "
                "this with that policy; or run `portcullis drain` without --keep-cohorts, which forgets everybody"
            )
        missing = [number for number, state in enumerate(states) if state is None or state.engine is None]
        if len(missing) == len(states):
            raise PartitionError(f"{where} was drained, which forgot everybody: there is nobody to forget")
        if missing:
            raise PartitionError(
                f"{where} has not begun in {self.stream.input}/{missing[0]}: start its workers until they are ready, "
                "stop them and run this again"
            )

    def begin(self, partition: Partition) -> tuple[InputPartition, Collection[bytes]]:
        """The partition where the policy says, or where a drained stream has ended.

        With it, keys of records about persons that an earlier run has left: nobody needs them or will delete them.

        Look only after everybody else was shut out who might begin too: they would see the same. Since this stream was
        drained, another one may have gone on, of which the committed offset knows nothing.
        """
        last = self._last_state(partition.number)
        if last is None:
            return self._anew(self._first(partition))
        self._check(partition, last)
        if last.engine is not None:
            raise RetriableError(f"{partition.topic}/{partition.number}: was taken over meanwhile")
        if last.legacy is not None:
            return self._inherited(partition, last, last.legacy), ()
        # The new policy takes over nothing of the old one but the counts.
        first = self.topics.input_partitions if self.stream.stays_put else last.first_partitions
        return self._anew(self._fresh(partition, last.position, first, last.sequence, last.totals))

    def _anew(self, state: State) -> tuple[InputPartition, Collection[bytes]]:
        own = self._with(state)
        if own.memory is None:
            return own, ()
        where, left = Partition(self.stream.memory_topic, state.origin.partition), dict[bytes, bool]()
        low, high = self.dirty.watermarks(where).low, own.memory.durable.note.start
        for batch in self.reader.read(where, low, high, _READ_TIMEOUT):
            left |= {key: value is not None for key, value in zip(batch.keys, batch.values, strict=True) if key}
        old = [key for key, is_there in left.items() if is_there]
        if old:
            log.warning(
                "%s/%d begins anew: %d records of persons from before are deleted, and what is promised begins here",
                *(state.origin.topic, state.origin.partition, len(old)),
            )
        return own, old

    def _inherited(self, partition: Partition, last: State, legacy: Legacy) -> InputPartition:
        """The partition with the persons whom a drained stream has kept, if they were kept for such a policy."""
        state = replace(
            self._fresh(partition, last.position, last.first_partitions, last.sequence, last.totals),
            engine=legacy.engine,
            memory=last.memory,
            withheld=last.withheld,
        )
        inherited = self._with(state)
        reason = "this policy remembers nobody"
        if inherited.memory is not None:
            reason = inherited.memory.terms.refused(legacy.terms) or ""
        if reason:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: the policy before was drained with --keep-cohorts, and "
                f"{reason}. "
                "Change that, or run `portcullis drain` with the policy before, which forgets everybody: what is "
                "promised then begins anew"
            )
        self._recall(partition, state, inherited)
        inherited.resume()
        log.info("%s/%d: goes on with the persons of the policy before", *partition)
        return inherited

    def _with(self, state: State) -> InputPartition:
        gate, engine = Gate(self.stream.schema, self.stream.models), self.stream.engine()
        memory = None
        if self.keys is not None:
            where = Partition(self.stream.memory_topic, state.origin.partition)
            note = state.memory or self._nothing(where, self.keys)
            memory = PersonMemory(
                self.stream.schema, engine, gate, where, self.keys, note, self.stream.same_persons, self.stream.company
            )
        return InputPartition(self.stream.schema, gate, engine, state.read_by(self.codec.schemas), memory)

    def _nothing(self, where: Partition, keys: Keys) -> MemoryNote:
        """Nobody is remembered: what the topic holds is of another time."""
        end = self.dirty.watermarks(where).high
        return MemoryNote(str(self.topics.memory_id), keys.persons_check, end, end, {}, 0)

    def _recall(
        self, partition: Partition, state: State, restored: InputPartition, left: InputPartition | None = None
    ) -> None:
        """Read what is remembered of persons, and hold it against what the state says of it.

        What is in memory of the very cycle that is committed need not be read: only what came since is undone.
        """
        if restored.memory is None or self.keys is None:
            return
        where, note = Partition(self.stream.memory_topic, partition.number), state.memory
        if note is None:
            raise PartitionError(lost_memory(partition, self.stream, "the state names none"))
        if note.topic_id != str(self.topics.memory_id):
            raise PartitionError(lost_memory(partition, self.stream, "it was deleted and created again"))
        if note.persons_check != self.keys.persons_check:
            raise PartitionError(lost_memory(partition, self.stream, _OTHER_PERSONS))
        if note.end > self.dirty.watermarks(where).high:
            raise PartitionError(lost_memory(partition, self.stream, "it ends before the records that the state names"))
        started = time.monotonic()
        if left is not None and left.sequence == state.sequence and left.origin == state.origin:
            memory = left.durable_memory
            if memory is not None and memory.durable.note == note and restored.memory.taken_from(memory):
                log.info("%s/%d: still remembers %s", *partition, _told(note))
                return
        try:
            restored.memory.read(self.reader)
        except DataError as error:
            self._require_unchanged(partition, state)
            raise PartitionError(lost_memory(partition, self.stream, str(error))) from None
        log.info("%s/%d: remembers %s, read in %.1f s", *partition, _told(note), time.monotonic() - started)

    def _require_unchanged(self, partition: Partition, state: State) -> None:
        """Whoever was overtaken while reading has seen parts of two states, and tries again."""
        committed = self.consumer.committed([partition])[partition]
        if committed is not None and self._named_state(partition, committed).sequence != state.sequence:
            raise RetriableError(f"{partition.topic}/{partition.number}: was taken over meanwhile")

    def _state(self, partition: Partition, committed: Committed | None) -> State | None:
        """The state of this stream's run, None before the first and after a drained one."""
        state = self._last_state(partition.number) if committed is None else self._named_state(partition, committed)
        if state is None:
            return None
        self._check(partition, state)
        if state.engine is None:
            return None
        if committed is None:
            log.warning("%s/%d: no committed offset, going on from its last state", *partition)
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
        kept = Partition(self.stream.state_topic, partition.number)
        # A broker answers a commit before its markers are written, each partition's at its own time: the state may not
        # be stable yet. Reading it waits for that.
        is_there = note.state < self.dirty.watermarks(kept).high
        records = list(self._states(kept, note.state, note.state + 1)) if is_there else []
        if not records:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: the committed offset {committed.offset} names state record "
                f"{note.state} of {kept.topic}, which is gone"
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

    def _last_state(self, number: int) -> State | None:
        return last_state(self.reader, self.dirty, Partition(self.stream.state_topic, number))

    def _states(self, kept: Partition, start: int, stop: int, reader: Reader | None = None) -> Iterator[State]:
        return _states(reader or self.reader, kept, start, stop)

    def _check(self, partition: Partition, state: State) -> None:
        mine, theirs = self._origin(partition), state.origin
        where = f"{partition.topic}/{partition.number}"
        if (theirs.topic, theirs.partition) != (mine.topic, mine.partition):
            raise PartitionError(f"{where}: the state record is about {theirs.topic}/{theirs.partition}")
        self._check_owner(partition, state)
        if theirs.topic_id != mine.topic_id:
            raise PartitionError(recreated_input(partition, self.stream))
        if theirs.fingerprint != mine.fingerprint and state.engine is not None:
            raise PartitionError(
                f"{where}: the policy differs from the one that made this state; run `portcullis drain` with the old "
                "policy, then start the new one"
            )
        self._check_partitions(partition, state)

    def _check_partitions(self, partition: Partition, state: State) -> None:
        """Where keys choose the partition, another number of partitions moves persons from one to another."""
        began, now = state.first_partitions, self.topics.input_partitions
        under_way = state.engine is not None or state.legacy is not None
        if self.stream.stays_put and began != now and under_way and not self.ending:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: the input has {now} partitions and had {began} when this "
                "stream began, so keys have moved from one to another; run `portcullis drain`, then start it anew"
            )

    def _check_owner(self, partition: Partition, state: State) -> None:
        owner = state.origin.stream
        if owner != self.stream.name and state.engine is not None:
            raise PartitionError(
                f"{partition.topic}/{partition.number}: output {self.stream.output!r} is fed by stream {owner!r}; a "
                f"second stream would publish the same events under other boxes. Drain {owner!r} first"
            )

    def _origin(self, partition: Partition) -> Origin:
        return Origin(
            self.stream.name, partition.topic, self.topics.input_id, partition.number, self.stream.fingerprint
        )

    def _first(self, partition: Partition) -> State:
        """A first start: where the policy says, or at the beginning for a partition that the topic got later."""
        others = (self._last_state(number) for number in range(self.topics.input_partitions))
        other = next((state for state in others if state is not None), None)
        if other is not None:
            self._check_owner(partition, other)
            self._check_partitions(partition, other)
        now = self.topics.input_partitions
        first = now if other is None else other.first_partitions
        marks = self.consumer.watermarks(partition)
        earliest = self.stream.start == "earliest" or partition.number >= first
        # Where keys have moved since a stream was drained, what begins here begins with the present partitions.
        ended = other is not None and other.engine is None and self.stream.stays_put
        return self._fresh(partition, marks.low if earliest else marks.high, now if ended else first)

    def _fresh(
        self,
        partition: Partition,
        position: int,
        first_partitions: int,
        sequence: int = 0,
        totals: Mapping[str, int] | None = None,
    ) -> State:
        return State(
            origin=self._origin(partition),
            sequence=sequence,
            position=position,
            first_partitions=first_partitions,
            engine=None,
            pending=np.empty(0, np.int64),
            decisions=Release.empty(len(self.stream.schema.quasi)),
            needed_from=None,
            totals=totals or {},
        )

    def _reread(self, partition: Partition, state: State, restored: InputPartition) -> None:
        """Put the rows that are still needed back, from the input itself."""
        if state.needed_from is None:
            return
        wanted = np.concatenate([state.pending, state.decisions.members])
        decoders = self._decoders(partition, state)
        for batch in self.reader.read(partition, state.needed_from, state.position, _READ_TIMEOUT):
            for start, stop, decoder in decoders:
                part = batch.between(start, stop)
                if not len(part):
                    continue
                with asking():
                    events = KeyedDecoder(decoder, self.stream.keyed, state.first_partitions).decode(part)
                needed = np.isin(events.positions, wanted) | restored.engine.windowed
                restored.put_back(self._with_types(events.at(needed)))

    def _decoders(self, partition: Partition, state: State) -> list[tuple[int, int, Decoder]]:
        """Return what reads the events from one offset to before another as they were read at first."""
        known = state.schemas or (SchemasFrom(0, self.codec.schemas),)
        stops = [*(one.position for one in known[1:]), state.position]
        found: list[tuple[int, int, Decoder]] = []
        for place, (one, stop) in enumerate(zip(known, stops, strict=True)):
            try:
                decoder = self.decoder_by(one.schemas) if one.schemas else self.codec
            except SchemaError as error:
                raise PartitionError(
                    f"{partition.topic}/{partition.number}: its events were read by schema id {one.schemas.input}, and "
                    f"that cannot be done again: {error}. Bring the schema back to the registry"
                ) from None
            self._require_same_types(partition, one.schemas, decoder)
            found.append((one.position if place else 0, stop, decoder))
        return found

    def _require_same_types(self, partition: Partition, schemas: SchemaIds, decoder: StreamDecoder) -> None:
        changed = [name for name, kind in decoder.public.items() if not is_read_as(kind, self.codec.public[name])]
        if changed:
            raise ChangedTypesError(
                schemas,
                f"{partition.topic}/{partition.number}: public field {changed[0]} has another type in the newest "
                "schema than in pending events",
            )

    def _with_types(self, events: Events) -> Events:
        """Return events whose public columns have the types of the codec's."""
        public = [
            column if column.type == kind else column.cast(kind, safe=False)
            for column, kind in zip(events.public, self.codec.public.values(), strict=True)
        ]
        return replace(events, public=tuple(public))

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


def last_state(reader: Reader, dirty: Reader, kept: Partition) -> State | None:
    """The last record of a partition of the state topic, up to the end that it has now, be it stable yet or not."""
    marks = dirty.watermarks(kept)
    last = None
    for state in _states(reader, kept, marks.low, marks.high):
        last = state
    return last


def _states(reader: Reader, kept: Partition, start: int, stop: int) -> Iterator[State]:
    for batch in reader.read(kept, start, stop, _READ_TIMEOUT):
        for value in batch.values:
            try:
                yield State.decode(value or b"")
            except DataError as error:
                raise PartitionError(f"{kept.topic}/{kept.number}: {error}") from None


def _told(note: MemoryNote) -> str:
    return ", ".join(f"{size} {table}" for table, size in note.sizes.items())

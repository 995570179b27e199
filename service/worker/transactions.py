"""The transactions of one worker: what leaves, dead letters, states and consumed offsets, all of it or nothing.

After any abort or unclear commit the producer is thrown away: nothing is resumed from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import TypeAlias

from service.kafka import (
    AbortableError,
    Client,
    Committed,
    FinalError,
    GroupToken,
    KafkaError,
    Partition,
    TransactionalProducer,
)
from service.publishing.dead_letters import dead_letter
from service.worker.metrics import Metrics
from service.worker.partition import InputPartition, Settlement
from service.worker.restoring import StateNote
from service.worker.stream import Stream
from service.worker.trouble import Trouble

Settlements: TypeAlias = Mapping[Partition, Settlement]


class Transactions:
    """Settles partitions under one transactional id, `owner`; `now` gives the time that is written to records."""

    def __init__(self, client: Client, stream: Stream, owner: str, now: Callable[[], int], metrics: Metrics) -> None:
        self.owner = owner
        self.trouble = Trouble("committing", metrics)
        self._client = client
        self._stream = stream
        self._now = now
        self._producer: TransactionalProducer | None = None

    def commit(self, token: GroupToken, settlements: Settlements) -> Settlements:
        """Settle these partitions in one transaction: what is durable then."""
        return self._transact(self.ready(), token, settlements)

    def ready(self) -> TransactionalProducer:
        """The producer. Opening it ends what this worker may have left open, and shuts out who used its id before."""
        if self._producer is None:
            producer = self._client.producer(self.owner)
            try:
                producer.init_transactions()
            except BaseException:
                producer.close()
                raise
            self._producer = producer
        return self._producer

    def claim(
        self, partition: Partition, token: GroupToken, begin: Callable[[], tuple[InputPartition, Collection[bytes]]]
    ) -> InputPartition:
        """Begin a partition in which no stream is under way, before anything of it is taken.

        What an earlier run has left of persons, under the keys that `begin` tells, is deleted.

        Another stream may begin with the same output at the same moment. They share the producer's id: each shuts out
        those who opened it before and then looks what they have committed, so at most one of them gets through.
        """
        token.require_current()
        claimant = f"{self._stream.state_topic}.{partition.number}"
        with closing(self._client.producer(claimant)) as producer:
            producer.init_transactions()
            own, left = begin()
            settlement = own.settle(own.publish(), claimant)
            if settlement.memory is not None:
                settlement = replace(settlement, memory=settlement.memory.deleting(left))
            settled = self._transact(producer, token, {partition: settlement})
        own.committed(settled[partition])
        return own

    def end_left_open(self, owner: str) -> None:
        """End what a dead worker has left open, so that nobody waits until the broker gives it up.

        Whoever takes over a transactional id aborts what is open under it and shuts out its owner, should it live.
        """
        with closing(self._client.producer(owner)) as producer:
            producer.init_transactions()

    def discard(self) -> None:
        """Forget the producer; the next one ends what this one has left open."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _transact(self, producer: TransactionalProducer, token: GroupToken, settlements: Settlements) -> Settlements:
        """All bytes are encoded before the transaction opens, and it does not span a poll.

        But for states that name where what is remembered of persons ends: that must have arrived before.
        """
        stream, tick = self._stream, self._now()
        for settlement in settlements.values():
            _ = settlement.record
        letters = [
            dead_letter(partition, refused) for partition, each in settlements.items() for refused in each.refused
        ]
        try:
            producer.begin()
            # Before the rest, which is much more: so that it is not waited for as well.
            settled = self._remember(producer, settlements, tick)
            for settlement in settled.values():
                for number, values in settlement.published.messages.items():
                    producer.produce(Partition(stream.output, number), values, timestamp_ms=tick)
            if letters and stream.dead_letters is not None:
                producer.produce(Partition(stream.dead_letters, 0), letters, timestamp_ms=tick)
            states = {place: Partition(stream.state_topic, place.number) for place in settled}
            written = producer.produce_and_wait(
                {states[place]: (str(place.number).encode(), one.record) for place, one in settled.items()}, tick
            )
            offsets = {}
            for partition, settlement in settled.items():
                state = settlement.state
                note = StateNote(written[states[partition]], state.sequence, str(state.origin.topic_id))
                offsets[partition] = Committed(state.position, note.encode())
            producer.flush()
            producer.send_offsets(offsets, token)
            producer.commit()
        except (AbortableError, FinalError):
            # One that cannot be aborted either is ended by the producer that takes over its id.
            with suppress(KafkaError):
                producer.abort()
            raise
        return settled

    @staticmethod
    def _remember(producer: TransactionalProducer, settlements: Settlements, tick: int) -> Settlements:
        """Write what is remembered of persons, and wait until all of it has arrived: records arrive in their order."""
        last = {}
        for settlement in settlements.values():
            memory = settlement.memory
            if memory is None or not memory.records:
                continue
            *before, last[memory.where] = memory.records
            if before:
                keys, values = zip(*before, strict=True)
                producer.produce(memory.where, values, keys, tick)
        if not last:
            return settlements
        written = producer.produce_and_wait(last, tick)
        return {
            place: one
            if one.memory is None or one.memory.where not in written
            else one.remembering(written[one.memory.where] + 1)
            for place, one in settlements.items()
        }

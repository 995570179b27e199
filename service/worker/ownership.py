"""The partitions of one worker: how they come, run, stop and go.

What is in memory of a partition may be thrown away at any moment; then it is restored from what is durable.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from microdata import GuaranteeError
from service.codec import NewerSchemaError
from service.kafka import Committed, FinalError, GroupToken, KafkaError, Partition, RetriableError
from service.worker.connections import Connections
from service.worker.metrics import Metrics
from service.worker.partition import InputPartition
from service.worker.restoring import ChangedTypesError, PartitionError, lost_memory, recreated_input, recreated_state
from service.worker.stream import Stream
from service.worker.topics import MissingTopicError, TopicError
from service.worker.transactions import Transactions
from service.worker.trouble import Trouble
from service.worker.watch import IdleWatch, TopicWatch, held

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
"""How often the topics are looked at while nothing is committed."""
_LOOK_PATIENCE = 1.0
"""How long that may take; meanwhile nothing is polled."""


class Ownership:
    """`running` are the partitions that are restored and take events; `stopped` wait for an operator, with why."""

    def __init__(self, stream: Stream, connections: Connections, transactions: Transactions, metrics: Metrics) -> None:
        self.running: dict[Partition, InputPartition] = {}
        self.stopped: dict[Partition, str] = {}
        self._left: dict[Partition, InputPartition] = {}
        """What was in memory of partitions that were let go, and may stay here."""
        self._stream = stream
        self._connections = connections
        self._transactions = transactions
        self._metrics = metrics
        self._trouble = Trouble("restoring partitions", metrics)
        self._failures: Counter[Partition] = Counter()
        self._watch = TopicWatch(connections.client, stream)
        self._idle_watch = IdleWatch(connections.client, stream)
        self._look_at = 0.0

    # -- coming ------------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Become a member of the stream's group."""
        consumer = self._connections.consumer
        consumer.subscribe([self._stream.input], self._on_assigned, self._on_revoked, self._on_revoked)

    def _on_assigned(self, partitions: list[Partition]) -> None:
        self._left = {partition: own for partition, own in self._left.items() if partition in partitions}
        log.info("assigned: %s", ", ".join(f"{p.topic}/{p.number}" for p in partitions) or "nothing")

    def _on_revoked(self, partitions: list[Partition]) -> None:
        """Revoked or lost: the engine is dropped at once, its uncommitted work with it."""
        for partition in partitions:
            self._leave(partition)
            self.stopped.pop(partition, None)

    def take_over(self, token: GroupToken) -> None:
        """Restore what is assigned and not yet running; a partition that cannot go on stops with its reason."""
        waiting = self._waiting()
        renew = self._connections.has_newer_schema
        if not (waiting or renew) or self._trouble.pause or self._transactions.trouble.pause:
            return
        try:
            if renew:
                # Rows and messages have the types of one schema: everything is read again by the newest.
                self._connections.look_at_topics()
                self.discard()
            self.topics_hold()
            waiting = self._waiting()
            if not waiting:
                return
            if max(partition.number for partition in waiting) >= self._connections.topics.input_partitions:
                # The input has grown. Clients opened before may not know the new partitions of the state topic.
                self._connections.look_at_topics()
                self.discard()
                waiting = self._waiting()
            # A transaction that this worker left open would make the committed offsets unstable: end it first.
            self._transactions.ready()
            self._end_open_transactions(waiting)
            committed = self._connections.consumer.committed(waiting)
            for partition in waiting:
                self._failures[partition] += 1
                self._restore(partition, committed[partition], token)
                del self._failures[partition]
        except FinalError:
            raise
        except (KafkaError, TopicError) as error:
            self._trouble.note(error)
        else:
            self._trouble.over()

    @property
    def pause(self) -> float:
        """Seconds until partitions are restored again; 0 where nothing is wrong."""
        return self._trouble.pause

    def _waiting(self) -> list[Partition]:
        """What is to be restored; what could not be comes last, so that it holds up nobody else."""
        assigned = self._connections.consumer.assignment()
        waiting = [
            partition for partition in assigned if partition not in self.running and partition not in self.stopped
        ]
        return sorted(waiting, key=lambda partition: (self._failures[partition], partition))

    def _end_open_transactions(self, waiting: list[Partition]) -> None:
        for partition in waiting:
            owner = self._connections.restorer.open_owner(partition)
            if owner is not None:
                log.warning("%s/%d: ending a transaction that its last owner has left open", *partition)
                self._transactions.end_left_open(owner)

    def _restore(self, partition: Partition, committed: Committed | None, token: GroupToken) -> None:
        started, restorer = time.monotonic(), self._connections.restorer
        self._metrics.restoring(f"restoring {partition.topic}/{partition.number}")
        try:
            own = restorer.restore(partition, committed, self._left.pop(partition, None)) or self._transactions.claim(
                partition, token, lambda: restorer.begin(partition)
            )
        except (PartitionError, GuaranteeError) as error:
            self.halt(partition, str(error))
            return
        except ChangedTypesError as error:
            if not self._connections.keep_schemas(error.schemas, error):
                self.halt(partition, f"{error}, and other partitions need yet other schemas")
                return
            raise RetriableError(str(error), NewerSchemaError.code) from None
        self._connections.consumer.seek(partition, own.position)
        self._connections.consumer.resume([partition])
        self.running[partition] = own
        self._metrics.restored(partition, own, time.monotonic() - started)
        log.info("%s/%d: restored %d rows, going on at %d", *partition, len(own.rows), own.position)

    # -- running -----------------------------------------------------------------------------------------------------

    def guarded(self, partition: Partition, step: Callable[[], object]) -> None:
        """An engine that breaks its own guarantee stops its partition; nothing of it leaves."""
        try:
            step()
        except GuaranteeError as error:
            self._metrics.refused_release()
            self.halt(partition, f"the engine refused its own release: {error}")

    def topics_hold(self) -> bool:
        """Whether the topics are still those that this worker knows; if not, its partitions stop or are restored.

        The id of a topic never comes back: what was read before this look was read from the topic that it has seen.
        """
        self._look_at = time.monotonic() + _LOOK_SECONDS
        topics = self._connections.topics
        seen = self._watch.look()
        if seen == held(topics, self._stream):
            return True
        for partition in list(self.running):
            if seen.input_id != topics.input_id:
                self.halt(partition, recreated_input(partition, self._stream))
            elif seen.state_id != topics.state_id:
                self.halt(partition, recreated_state(partition, self._stream))
            elif seen.memory_id != topics.memory_id:
                self.halt(partition, lost_memory(partition, self._stream, "it was deleted and created again"))
        self.discard()
        try:
            self._connections.look_at_topics()
        except MissingTopicError as error:  # until it is back, the next look finds the same difference
            raise RetriableError(str(error), error.code) from error
        except TopicError as error:
            for partition in self._connections.consumer.assignment() - self.stopped.keys():
                self.halt(partition, str(error))
        return False

    def watch_topics(self) -> None:
        """Look at the topics now and then, also while there is nothing to commit."""
        if time.monotonic() < self._look_at or not self.running:
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        seen = self._idle_watch.look(_LOOK_PATIENCE)
        if seen is None or seen == held(self._connections.topics, self._stream):
            return
        try:
            self.topics_hold()
        except KafkaError as error:  # whoever commits looks again, and minds
            log.debug("the topics cannot be looked at (%s)", error)

    # -- going -------------------------------------------------------------------------------------------------------

    def halt(self, partition: Partition, reason: str) -> None:
        """Stop one partition until an operator has looked; the others go on."""
        log.error("partition stopped: %s", reason)
        self.stopped[partition] = reason
        self.let_go(partition)
        self._left.pop(partition, None)

    def let_go(self, partition: Partition) -> None:
        """Forget what is in memory of a partition; it is restored from what is durable."""
        self._leave(partition)
        if partition in self._connections.consumer.assignment():
            with suppress(KafkaError):  # what comes of it nevertheless belongs to no partition that runs
                self._connections.consumer.pause([partition])

    def _leave(self, partition: Partition) -> None:
        """It runs no longer. Whom it remembers it may remember still, once it is known what is durable."""
        own = self.running.pop(partition, None)
        if own is not None and own.memory is not None:
            self._left[partition] = own

    @property
    def looks_back(self) -> bool:
        """Whether taking partitions over looks at what was in memory of them: then nothing may be at work on that."""
        return bool(self._left)

    def discard(self) -> None:
        """Forget the producer and every engine: what is durable decides."""
        self._transactions.discard()
        for partition in list(self.running):
            self.let_go(partition)

    def close(self) -> None:
        """Forget everything; what is pending stays with the next owner."""
        self.running.clear()
        self._left.clear()
        self._watch.close()
        self._idle_watch.close()

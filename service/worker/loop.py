"""The worker: one process, one loop. Poll, decode, push, check, encode, produce, commit.

One transaction per cycle carries the clusters decided in the cycle before, the new state, dead letters and the consumed
offsets. A decision is committed first and published by the next transaction, so a reader that sees aborted transactions
may see a cluster twice but never one event under two boxes. After any abort or unclear commit the producer and every
engine are thrown away and restored as after a crash: nothing is resumed from memory.

Engines push in threads of their own, whose kernels hold no lock, while the loop polls and decodes the next batch, and
while it checks and encodes what the cycle before has decided; the loop waits for them before it looks at anything that
they change.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

from microdata import GuaranteeError, PortcullisError
from service.codec import JsonCodec, Refused
from service.kafka import (
    AbortableError,
    Client,
    Committed,
    FatalError,
    FencedError,
    GoneError,
    GroupToken,
    KafkaError,
    Partition,
    RecordBatch,
    RetriableError,
    TransactionalProducer,
    UnclearError,
    UnknownTopicError,
)
from service.publishing.messages import MessageEncoder, commit_tick, dead_letter
from service.publishing.publication import Publication
from service.worker.metrics import Metrics
from service.worker.partition import InputPartition
from service.worker.restoring import PartitionError, Restorer, StateNote
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.stream import Stream
from service.worker.topics import TopicError, prepare

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_LAG_SECONDS = 5.0
"""How often the broker is asked how far the input goes."""
_THIN_SECONDS = 60.0
"""How often it is said of a partition that it is too thin."""


class Worker:
    """A member of one stream's group. `run` returns when `stop` is set and everything decided has been published."""

    def __init__(
        self,
        stream: Stream,
        client: Client,
        settings: WorkerSettings,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stream = stream
        self.metrics = metrics
        self._client = client
        self._settings = settings
        self._clock = clock
        self._id = f"{stream.group}.{settings.instance or secrets.token_hex(8)}"
        self._consumer = client.group_consumer(stream.group)
        self._reader = client.reader()
        self._dirty_reader = client.reader(dirty=True)
        try:
            self._look_at_topics()
        except BaseException:
            self._disconnect()
            raise
        self._token: GroupToken | None = None
        self._producer: TransactionalProducer | None = None
        self._partitions: dict[Partition, InputPartition] = {}
        self._refused: dict[Partition, list[Refused]] = {}
        self._stopped: dict[Partition, str] = {}
        # One thread per core; an engine is always in the same one, so it takes its events in order.
        self._engines = [ThreadPoolExecutor(1, "engines") for _ in range(os.cpu_count() or 1)]
        self._pushes: list[tuple[Partition, InputPartition, Future[None]]] = []
        self._lag_at = 0.0
        self._thin_at: dict[Partition, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        self._consumer.subscribe([self.stream.input], self._on_assigned, self._on_revoked, self._on_revoked)
        try:
            while not stop.is_set():
                self._cycle(stop)
            self._finish()
        finally:
            self.close()

    def _look_at_topics(self) -> None:
        """Check the topics, and learn from them what decoding, encoding and restoring need."""
        admin = self._client.admin()
        try:
            self._topics = prepare(admin, self.stream, self._settings, self._client.largest_request)
        except RetriableError as error:
            raise RetriableError(f"Kafka does not answer, check bootstrap_servers and the broker ({error})") from None
        finally:
            admin.close()
        self._messages = MessageEncoder(
            self.stream.schema, self.stream.emit, self._topics.output_partitions, self._topics.message_bytes
        )
        limit = min(self._settings.max_event_bytes, self._messages.largest_event)
        self._decoder = JsonCodec(self.stream.schema, limit)
        self._restorer = Restorer(
            self.stream,
            self._topics,
            self._consumer,
            self._reader,
            self._dirty_reader,
            self._decoder,
            self._settings,
        )

    def close(self) -> None:
        """Let go of every connection; what is pending stays with the next owner."""
        self.metrics.gone()
        for thread in self._engines:
            thread.shutdown()
        self._partitions.clear()
        if self._producer is not None:
            self._producer.close()
        self._disconnect()

    def _disconnect(self) -> None:
        self._consumer.close()
        self._reader.close()
        self._dirty_reader.close()

    # -- one cycle ---------------------------------------------------------------------------------------------------

    def _cycle(self, stop: threading.Event) -> None:
        """Take events for one commit interval, then settle them in one transaction."""
        end, taken = time.monotonic() + self._settings.commit_interval, 0
        while True:
            taken += self._take_some(max(0.0, end - time.monotonic()))
            if stop.is_set() or taken >= self._settings.commit_events or time.monotonic() >= end:
                break
        publications = self._publications()
        self._catch_up()
        self._expire()
        self._settle(publications)
        self._measure_lag()

    def _take_some(self, timeout: float) -> int:
        """Hand what there is to the engines; the number of records."""
        try:
            batches = self._consumer.poll(timeout, self._settings.poll_records)
        except RetriableError as error:
            log.warning("the input cannot be read at the moment (%s)", error)
            batches = []
        except GoneError as gone:
            self._pass_over(Partition(gone.topic, gone.partition))
            batches = []
        # The token belongs to exactly this poll: it proves the membership under which these records were given.
        self._token = self._consumer.group_token()
        self._take_over()
        ours = [batch for batch in batches if batch.partition in self._partitions]
        for batch in ours:
            self._take(batch)
        self.metrics.polled(self._consumer.assignment(), self._partitions, self._stopped)
        return sum(map(len, ours))

    def _pass_over(self, place: Partition) -> None:
        """Events were gone from the input before they were taken: stop, or where that is accepted, count them."""
        self._catch_up()
        partition = self._partitions.get(place)
        if partition is None:
            return
        low = self._consumer.watermarks(place).low
        if not self._settings.accept_loss or low <= partition.position:
            self._halt(
                place,
                f"{place.topic}/{place.number}: offset {partition.position} is gone from the input, which begins at "
                f"{low} now; raise its retention, or start with --accept-loss to count what is missing as suppressed",
            )
            return
        log.warning("%s/%d: offsets %d to %d are gone and count as suppressed", *place, partition.position, low - 1)
        partition.pass_over(low)
        self._consumer.seek(place, low)

    def _take(self, batch: RecordBatch) -> None:
        partition = self._partitions[batch.partition]
        events = self._decoder.decode(batch)
        self._refused.setdefault(batch.partition, []).extend(events.refused)
        thread = self._engines[batch.partition.number % len(self._engines)]
        push = thread.submit(partition.take, events, int(batch.offsets[-1]) + 1, self._clock())
        self._pushes.append((batch.partition, partition, push))

    def _catch_up(self) -> None:
        """Wait until the engines have taken everything that was handed to them."""
        pushes, self._pushes = self._pushes, []
        for place, partition, push in pushes:
            push.exception()
            if self._partitions.get(place) is partition:  # what was revoked meanwhile is somebody else's
                self._guarded(place, push.result)

    def _expire(self) -> None:
        next_turn = self._clock() + self._settings.commit_interval  # what is due by then would be late
        for place, partition in list(self._partitions.items()):
            self._guarded(place, partial(partition.expire, next_turn))

    def _measure_lag(self) -> None:
        if time.monotonic() < self._lag_at:
            return
        self._lag_at = time.monotonic() + _LAG_SECONDS
        for place, partition in self._partitions.items():
            try:
                self.metrics.lagging(place, max(0, self._consumer.watermarks(place).high - partition.position))
            except (RetriableError, UnknownTopicError):  # a broker that is just starting knows no topics yet
                return

    def _guarded(self, place: Partition, step: Callable[[], None]) -> None:
        """An engine that breaks its own guarantee stops its partition; nothing of it leaves."""
        try:
            step()
        except GuaranteeError as error:
            self.metrics.refused_release()
            self._halt(place, f"the engine refused its own release: {error}")

    # -- one transaction ---------------------------------------------------------------------------------------------

    def _publications(self) -> dict[Partition, Publication]:
        """What every partition owes, checked and encoded. It was decided before: engines may be at work meanwhile."""
        publications = {}
        for place, partition in self._partitions.items():
            publication = partition.publish()
            publications[place] = replace(publication, messages=self._messages.encode(publication, partition.rows))
        return publications

    def _settle(self, publications: dict[Partition, Publication], *, drained: bool = False) -> None:
        """Publish what is owed and commit what is fresh; any failure discards everything in memory."""
        dirty = {
            place: partition
            for place, partition in self._partitions.items()
            if place in self._consumer.assignment() and (partition.dirty or drained)
        }
        token = self._token
        if not dirty or token is None:
            return
        started = time.monotonic()
        states = {place: each.next_state(publications[place], drained=drained) for place, each in dirty.items()}
        encoded = self._encoded(states)
        if not encoded:
            return
        try:
            token.require_current()
            self._transact(self._ready_producer(), token, publications, states, encoded)
        except UnclearError:
            log.warning("a commit's outcome is unknown: everything is restored from what is durable")
            self._discard()
        except (AbortableError, FatalError, FencedError, RetriableError) as error:
            log.warning("a transaction did not commit (%s): everything is restored from what is durable", error)
            self._discard()
        else:
            self.metrics.committed(time.monotonic() - started)
            self._remember(publications, states)

    def _transact(
        self,
        producer: TransactionalProducer,
        token: GroupToken,
        publications: dict[Partition, Publication],
        states: dict[Partition, State],
        encoded: dict[Partition, bytes],
    ) -> None:
        """All bytes are encoded before the transaction opens, and it does not span a poll."""
        tick = commit_tick(self._clock(), self._settings.commit_interval)
        letters = [dead_letter(place, refused) for place in encoded for refused in self._refused.get(place, [])]
        try:
            producer.begin()
            for place in encoded:
                for number, values in publications[place].messages.items():
                    producer.produce(Partition(self.stream.output, number), values, timestamp_ms=tick)
            if letters and self.stream.dead_letters is not None:
                producer.produce(Partition(self.stream.dead_letters, 0), letters, timestamp_ms=tick)
            offsets = {}
            for place, value in encoded.items():
                where = Partition(self.stream.state_topic, place.number)
                record = producer.produce_and_wait(where, value, str(place.number).encode(), tick)
                state = states[place]
                note = StateNote(record, state.sequence, str(state.origin.topic_id))
                offsets[place] = Committed(state.position, note.encode())
            producer.flush()
            producer.send_offsets(offsets, token)
            producer.commit()
        except AbortableError:
            # One that cannot be aborted either is ended by the producer that takes over its id.
            with suppress(KafkaError):
                producer.abort()
            raise

    def _encoded(self, states: dict[Partition, State]) -> dict[Partition, bytes]:
        """The state records. A partition whose state has outgrown its limit stops before anything of it is decided."""
        encoded, limit = {}, self._settings.max_state_bytes
        for place, state in states.items():
            value = state.encode()
            if len(value) <= limit:
                encoded[place] = value
            else:
                size = f"the state takes {len(value)} bytes, max_state_bytes allows {limit}"
                self._halt(place, f"{place.topic}/{place.number}: {size}; raise it, or lower the delay")
        return encoded

    def _remember(self, publications: dict[Partition, Publication], states: dict[Partition, State]) -> None:
        now = self._clock()
        for place, partition in self._partitions.items():
            if place in states:
                self._refused.pop(place, None)
                self.metrics.settled(place, partition, publications[place], now)
                partition.committed(states[place], publications[place])
                if partition.thin and time.monotonic() >= self._thin_at.get(place, 0.0):
                    self._thin_at[place] = time.monotonic() + _THIN_SECONDS
                    log.warning("%s/%d: too few persons within the delay, so events are suppressed", *place)

    def _ready_producer(self) -> TransactionalProducer:
        if self._producer is None:
            producer = self._client.producer(self._id)
            producer.init_transactions()
            self._producer = producer
        return self._producer

    def _discard(self) -> None:
        """Forget the producer and every engine: what is durable decides."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
        self._consumer.pause([place for place in self._partitions if place in self._consumer.assignment()])
        self._partitions.clear()
        self._refused.clear()

    # -- partitions come and go --------------------------------------------------------------------------------------

    def _on_assigned(self, partitions: list[Partition]) -> None:
        log.info("assigned: %s", ", ".join(f"{p.topic}/{p.number}" for p in partitions) or "nothing")

    def _on_revoked(self, partitions: list[Partition]) -> None:
        """Revoked or lost: the engine is dropped at once, its uncommitted work with it."""
        for place in partitions:
            self._partitions.pop(place, None)
            self._refused.pop(place, None)
            self._stopped.pop(place, None)

    def _take_over(self) -> None:
        """Restore what is assigned and not yet running; a partition that cannot go on stops with its reason."""
        waiting = [p for p in self._consumer.assignment() if p not in self._partitions and p not in self._stopped]
        if not waiting:
            return
        if max(place.number for place in waiting) >= self._topics.input_partitions:
            # The input has grown. Clients opened before may not know the new partitions of the state topic.
            self._look_at_topics()
            self._discard()
        try:
            # A transaction that this worker left open would make the committed offsets unstable: end it first.
            self._ready_producer()
            committed = self._consumer.committed(waiting)
            for place in sorted(waiting):
                self._restore(place, committed[place])
        except (RetriableError, AbortableError, FencedError, UnclearError, UnknownTopicError) as error:
            # An unknown topic: a partition that was added just now is not known everywhere yet.
            log.warning("partitions cannot be restored yet (%s), trying again", error)
            self._discard()
            time.sleep(_RETRY_SECONDS)

    def _restore(self, place: Partition, committed: Committed | None) -> None:
        started = time.monotonic()
        try:
            partition = self._restorer.restore(place, committed) or self._begin(place)
        except (PartitionError, GuaranteeError) as error:
            self._halt(place, str(error))
            return
        self._partitions[place] = partition
        self._consumer.seek(place, partition.position)
        self._consumer.resume([place])
        self.metrics.restored(place, partition, time.monotonic() - started)
        log.info("%s/%d: restored %d rows, going on at %d", *place, len(partition.rows), partition.position)

    def _begin(self, place: Partition) -> InputPartition:
        """Claim a partition in which no stream is under way, before anything of it is taken.

        Another stream may begin with the same output at the same moment. They share the producer's id: each shuts out
        those who opened it before and then looks what they have committed, so at most one of them gets through.
        """
        assert self._token is not None, "partitions are assigned by a poll"
        self._token.require_current()
        with closing(self._client.producer(f"{self.stream.state_topic}.{place.number}")) as producer:
            producer.init_transactions()
            partition = self._restorer.begin(place)
            publication = partition.publish()
            state = partition.next_state(publication)
            self._transact(producer, self._token, {place: publication}, {place: state}, {place: state.encode()})
        partition.committed(state, publication)
        return partition

    def _halt(self, place: Partition, reason: str) -> None:
        """Stop one partition until an operator has looked; the others go on."""
        log.error("partition stopped: %s", reason)
        self._stopped[place] = reason
        self._partitions.pop(place, None)
        self._refused.pop(place, None)
        if place in self._consumer.assignment():
            self._consumer.pause([place])

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Publish what is decided; what is pending stays for the next owner unless the operator asked to flush."""
        if self._settings.on_stop == "flush":
            for place, partition in list(self._partitions.items()):
                self._guarded(place, partition.flush)
        # The first transaction publishes what is owed and commits what is fresh, the second publishes that.
        self._settle(self._publications())
        self._settle(self._publications())

    def drain(self) -> dict[int, int]:
        """Flush and publish every partition of the input, and record the end: a new policy may start there.

        Returns the input offset at which each partition ended.
        """
        self._consumer.subscribe([self.stream.input], self._on_assigned, self._on_revoked, self._on_revoked)
        try:
            self._own_everything()
            for place, partition in list(self._partitions.items()):
                self._guarded(place, partition.flush)
            self._settle(self._publications())
            self._settle(self._publications())
            self._settle(self._publications(), drained=True)
            if len(self._partitions) < self._topics.input_partitions:
                raise PortcullisError("the drain did not commit; nothing is lost, run it again")
            return {place.number: partition.position for place, partition in self._partitions.items()}
        finally:
            self.close()

    def _own_everything(self, patience: float = 60.0) -> None:
        """Join the group until every partition is here and restored, taking no new event."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self._consumer.poll(0.2, 1)
            self._token = self._consumer.group_token()
            self._take_over()
            self._consumer.pause(self._consumer.assignment())
            if self._stopped:
                raise PartitionError("; ".join(self._stopped.values()))
            if len(self._partitions) == self._topics.input_partitions:
                return
        raise TopicError(
            f"stream {self.stream.name!r}: other workers hold some of its partitions; stop them before draining"
        )

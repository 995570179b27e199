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
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial

from microdata import GuaranteeError, PersonKey, UnavailableError
from service.codec import JsonCodec, Refused
from service.kafka import (
    AbortableError,
    Client,
    Committed,
    FatalError,
    FinalError,
    GoneError,
    GroupToken,
    KafkaError,
    Partition,
    Reader,
    RecordBatch,
    RetriableError,
    TransactionalProducer,
    reach,
)
from service.publishing.messages import MessageEncoder, commit_tick, dead_letter
from service.publishing.publication import Publication
from service.worker.heard import HeardReader
from service.worker.metrics import Metrics
from service.worker.partition import InputPartition
from service.worker.restoring import PartitionError, Restorer, StateNote, recreated_input, recreated_state
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.stream import Stream
from service.worker.topics import TopicError, check_settings, prepare
from service.worker.trouble import Trouble
from service.worker.watch import TopicWatch, held

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.5
_LOOKING = "looking at the topics"
_REACH_SECONDS = 1.5
"""How long a broker may take to accept a connection before anything is opened."""
_SLOW_SECONDS = 2.0
"""After so long without an answer it is said what is waited for."""
_LONGEST_PAUSE = 5.0
"""Between two looks at topics that are not there."""
_DRAIN_TRIES = 5
_LONGEST_POLL = 1.0
"""A poll that waits longer would hide from the outside that the loop turns, and from the loop that it shall end."""
_LAG_SECONDS = 5.0
"""How often the broker is asked how far the input goes."""
_LOOK_SECONDS = 5.0
"""How often the topics are looked at while nothing is committed."""
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
        self._reading = Trouble("reading the input", metrics)
        self._restoring = Trouble("restoring partitions", metrics)
        self._committing = Trouble("committing", metrics)
        self._measuring = Trouble("measuring the lag", metrics)
        self._restore_failures: Counter[Partition] = Counter()
        self._stop = threading.Event()
        self._id = f"{stream.group}.{settings.instance or secrets.token_hex(8)}"
        # Rows that wait and rows that come must agree about persons, however often the codec is made anew meanwhile.
        self._person_key = PersonKey.random()
        check_settings(stream, settings, client.largest_request)
        self._connections = ExitStack()
        self._is_open = False
        self._watch = TopicWatch(client, stream)
        self._token: GroupToken | None = None
        self._producer: TransactionalProducer | None = None
        self._partitions: dict[Partition, InputPartition] = {}
        self._refused: dict[Partition, list[Refused]] = {}
        self._stopped: dict[Partition, str] = {}
        # One thread per core; an engine is always in the same one, so it takes its events in order.
        self._engines = [ThreadPoolExecutor(1, "engines") for _ in range(os.cpu_count() or 1)]
        self._pushes: list[tuple[Partition, InputPartition, Future[None]]] = []
        self._lag_at = 0.0
        self._look_at = 0.0
        self._thin_at: dict[Partition, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        self._stop = stop
        try:
            if not self.open(stop):
                return
            self._join()
            while not stop.is_set():
                self._cycle(stop)
            self._finish()
        finally:
            self.close()

    # -- the beginning -----------------------------------------------------------------------------------------------

    def open(self, stop: threading.Event) -> bool:
        """Wait until brokers and topics are there, for as long as that takes; False where `stop` came before."""
        said, pause = "", _FIRST_PAUSE
        while not (self._is_open or stop.is_set()):
            try:
                self._connect()
            except FinalError:
                raise
            except (KafkaError, TopicError) as error:
                said = self._told_once(error, said)
                stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self.metrics.worked(_LOOKING)
        return self._is_open

    def _told_once(self, error: KafkaError | TopicError, said: str) -> str:
        """Say what is waited for unless it was said just before; what is said now."""
        reason = str(error)
        self.metrics.waits(reason)
        if isinstance(error, KafkaError):
            self.metrics.failed(_LOOKING, error.code, reason)
        if reason != said:
            log.warning("%s waits: %s", self.stream.name, reason)
        return reason

    def _connect(self) -> None:
        """Look at the topics and open what reads; nothing is opened before somebody listens."""
        with self._told_when_slow():
            reach(self._client.servers, _REACH_SECONDS)
            self._look_at_topics()

    @contextmanager
    def _told_when_slow(self) -> Iterator[None]:
        """Say what is waited for where a broker takes its time; the clients do so after half a minute."""
        servers = self._client.servers

        def tell() -> None:
            log.warning("%s waits for an answer of Kafka at %s", self.stream.name, servers)
            self.metrics.waits(f"Kafka at {servers} does not answer")

        timer = threading.Timer(_SLOW_SECONDS, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _open_readers(self) -> None:
        with ExitStack() as opened:
            self._consumer = opened.enter_context(
                closing(self._client.group_consumer(self.stream.group, self._settings.instance))
            )
            self._reader = opened.enter_context(closing(self._heard(self._client.reader())))
            self._dirty_reader = opened.enter_context(closing(self._client.reader(dirty=True)))
            self._connections, self._is_open = opened.pop_all(), True

    def _heard(self, reader: Reader) -> HeardReader:
        return HeardReader(reader, lambda place: self.metrics.step(f"reading {place.topic}/{place.number} again"))

    def _join(self) -> None:
        self._consumer.subscribe([self.stream.input], self._on_assigned, self._on_revoked, self._on_revoked)

    def _look_at_topics(self) -> None:
        """Check the topics, and learn from them what decoding, encoding and restoring need."""
        with closing(self._client.admin()) as admin:
            self._topics = prepare(admin, self.stream, self._settings, self._client.largest_request)
        if not self._is_open:
            self._open_readers()
        self._messages = MessageEncoder(
            self.stream.schema, self.stream.emit, self._topics.output_partitions, self._topics.message_bytes
        )
        limit = min(self._settings.max_event_bytes, self._messages.largest_event)
        self._decoder = JsonCodec(self.stream.schema, limit, person_key=self._person_key)
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
        self._watch.close()
        self._connections.close()

    # -- one cycle ---------------------------------------------------------------------------------------------------

    def _cycle(self, stop: threading.Event) -> None:
        """Take events for one commit interval, then settle them in one transaction."""
        end, taken = time.monotonic() + self._settings.commit_interval, 0
        while True:
            taken += self._take_some(min(_LONGEST_POLL, max(0.0, end - time.monotonic())))
            if stop.is_set() or taken >= self._settings.commit_events or time.monotonic() >= end:
                break
        publications = self._publications()
        self._catch_up()
        self._expire()
        self.metrics.step("committing")
        self._settle(publications)
        self._measure_lag()
        self._watch_topics()

    def _take_some(self, timeout: float) -> int:
        """Hand what there is to the engines; the number of records."""
        batches = self._poll(timeout, self._settings.poll_records)
        # The token belongs to exactly this poll: it proves the membership under which these records were given.
        self._token = self._consumer.group_token()
        self._take_over()
        ours = [batch for batch in batches if batch.partition in self._partitions]
        for batch in ours:
            self._take(batch)
        self.metrics.polled(self._consumer.assignment(), self._partitions, self._stopped)
        return sum(map(len, ours))

    def _poll(self, timeout: float, most: int) -> list[RecordBatch]:
        """What the input has; nothing while it cannot be read, which does not hold up the rest of the cycle."""
        try:
            batches = self._consumer.poll(timeout, most)
        except (FinalError, FatalError):
            raise
        except GoneError as gone:
            place = Partition(gone.topic, gone.partition)
            try:
                self._pass_over(place)
            except FinalError:
                raise
            except KafkaError as error:
                self._reading.note(error)
                self._let_go(place)
        except KafkaError as error:
            self._reading.note(error)
            self._stop.wait(min(timeout, self._reading.pause))
        else:
            self._reading.over()
            return batches
        return []

    def _pass_over(self, place: Partition) -> None:
        """Events were gone from the input before they were taken: stop, or where that is accepted, count them."""
        self._catch_up()
        partition = self._partitions.get(place)
        if partition is None or not self._topics_hold():
            return
        low, high = self._consumer.watermarks(place)
        if low <= partition.position <= high:
            raise RetriableError(f"{place.topic}/{place.number}: offset {partition.position} was out of range")
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
            self.metrics.step("measuring the lag")
            try:
                self.metrics.lagging(place, max(0, self._consumer.watermarks(place).high - partition.position))
            except KafkaError as error:  # whatever it is: who needs the broker will find out
                self._measuring.note(error)
                self._lag_at += self._measuring.pause
                return
        self._measuring.over()

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
        states = {
            place: each.next_state(publications[place], self._id, drained=drained) for place, each in dirty.items()
        }
        encoded = self._encoded(states)
        if not encoded:
            return
        try:
            token.require_current()
            if not self._topics_hold():
                return
            self._transact(self._ready_producer(), token, publications, states, encoded)
        except FinalError:
            raise
        except KafkaError as error:
            # Whatever has become of it, it is not repeated: everything is restored from what is durable.
            self._committing.note(error)
            self._discard()
        else:
            self._committing.over()
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
        except (AbortableError, FinalError):
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
            try:
                producer.init_transactions()
            except BaseException:
                producer.close()
                raise
            self._producer = producer
        return self._producer

    def _discard(self) -> None:
        """Forget the producer and every engine: what is durable decides."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None
        for place in list(self._partitions):
            self._let_go(place)

    def _let_go(self, place: Partition) -> None:
        """Forget what is in memory of a partition; it is restored from what is durable."""
        self._partitions.pop(place, None)
        self._refused.pop(place, None)
        if place in self._consumer.assignment():
            with suppress(KafkaError):  # what comes of it nevertheless belongs to no partition that runs
                self._consumer.pause([place])

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
        if not waiting or self._restoring.pause or self._committing.pause:
            return
        # What could not be restored comes last, so that it holds up nobody else.
        waiting.sort(key=lambda place: (self._restore_failures[place], place))
        try:
            if not self._topics_hold():
                waiting = [place for place in waiting if place not in self._stopped]
                if not waiting:
                    return
            if max(place.number for place in waiting) >= self._topics.input_partitions:
                # The input has grown. Clients opened before may not know the new partitions of the state topic.
                self._look_at_topics()
                self._discard()
            # A transaction that this worker left open would make the committed offsets unstable: end it first.
            self._ready_producer()
            self._end_open_transactions(waiting)
            committed = self._consumer.committed(waiting)
            for place in waiting:
                self._restore_failures[place] += 1
                self._restore(place, committed[place])
                del self._restore_failures[place]
        except FinalError:
            raise
        except KafkaError as error:
            self._restoring.note(error)
        else:
            self._restoring.over()

    def _end_open_transactions(self, waiting: list[Partition]) -> None:
        """End what dead workers have left open, so that nobody waits until the broker gives them up.

        Whoever takes over a transactional id aborts what is open under it and shuts out its owner, should it live.
        """
        for place in waiting:
            owner = self._restorer.open_owner(place)
            if owner is not None:
                log.warning("%s/%d: ending a transaction that its last owner has left open", *place)
                with closing(self._client.producer(owner)) as producer:
                    producer.init_transactions()

    def _topics_hold(self) -> bool:
        """Whether the topics are still those that this worker knows; if not, its partitions stop or are restored.

        The id of a topic never comes back: what was read before this look was read from the topic that it has seen.
        """
        self._look_at = time.monotonic() + _LOOK_SECONDS
        input_id, state_id, _ = seen = self._watch.look()
        if seen == held(self._topics):
            return True
        for place in list(self._partitions):
            if input_id != self._topics.input_id:
                self._halt(place, recreated_input(place, self.stream))
            elif state_id != self._topics.state_id:
                self._halt(place, recreated_state(place, self.stream))
        self._discard()
        try:
            self._look_at_topics()
        except TopicError as error:
            for place in self._consumer.assignment() - self._stopped.keys():
                self._halt(place, str(error))
        return False

    def _watch_topics(self) -> None:
        """Look at the topics now and then, also while there is nothing to commit."""
        if time.monotonic() >= self._look_at and self._partitions:
            try:
                self._topics_hold()
            except KafkaError as error:  # whoever commits looks again, and minds
                log.debug("the topics cannot be looked at (%s)", error)

    def _restore(self, place: Partition, committed: Committed | None) -> None:
        started = time.monotonic()
        self.metrics.step(f"restoring {place.topic}/{place.number}")
        try:
            partition = self._restorer.restore(place, committed) or self._begin(place)
        except (PartitionError, GuaranteeError) as error:
            self._halt(place, str(error))
            return
        self._consumer.seek(place, partition.position)
        self._consumer.resume([place])
        self._partitions[place] = partition
        self.metrics.restored(place, partition, time.monotonic() - started)
        log.info("%s/%d: restored %d rows, going on at %d", *place, len(partition.rows), partition.position)

    def _begin(self, place: Partition) -> InputPartition:
        """Claim a partition in which no stream is under way, before anything of it is taken.

        Another stream may begin with the same output at the same moment. They share the producer's id: each shuts out
        those who opened it before and then looks what they have committed, so at most one of them gets through.
        """
        assert self._token is not None, "partitions are assigned by a poll"
        self._token.require_current()
        claimant = f"{self.stream.state_topic}.{place.number}"
        with closing(self._client.producer(claimant)) as producer:
            producer.init_transactions()
            partition = self._restorer.begin(place)
            publication = partition.publish()
            state = partition.next_state(publication, claimant)
            self._transact(producer, self._token, {place: publication}, {place: state}, {place: state.encode()})
        partition.committed(state, publication)
        return partition

    def _halt(self, place: Partition, reason: str) -> None:
        """Stop one partition until an operator has looked; the others go on."""
        log.error("partition stopped: %s", reason)
        self._stopped[place] = reason
        self._let_go(place)

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
        try:
            self._connect()
            self._require_alone()
            self._join()
            for _ in range(_DRAIN_TRIES):
                self._own_everything()
                for place, partition in list(self._partitions.items()):
                    self._guarded(place, partition.flush)
                self._settle(self._publications())
                self._settle(self._publications())
                self._settle(self._publications(), drained=True)
                if len(self._partitions) == self._topics.input_partitions:
                    return {place.number: partition.position for place, partition in self._partitions.items()}
            raise UnavailableError("the drain did not commit; nothing is lost, run it again")
        finally:
            self.close()

    def _require_alone(self) -> None:
        """Workers beside a drain would hold some of the partitions, or begin anew what it has just ended."""
        with closing(self._client.admin()) as admin:
            members = admin.group_members(self.stream.group)
        if members:
            raise TopicError(
                f"stream {self.stream.name!r} has {members} running {'worker' if members == 1 else 'workers'}: stop "
                "them before draining. One that was killed counts until its session times out (session_timeout_ms)"
            )

    def _own_everything(self, patience: float = 60.0) -> None:
        """Join the group until every partition is here and restored, taking no new event."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self._poll(0.2, 1)
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

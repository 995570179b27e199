"""The worker: one process, one loop. Take, decode, push, check, encode, commit.

One transaction per cycle carries the clusters decided in the cycle before, the new state, dead letters and the consumed
offsets. A decision is committed first and published by the next transaction, so a reader that sees aborted transactions
may see a cluster twice but never one event under two boxes. After any abort or unclear commit the producer and every
engine are thrown away and restored as after a crash: nothing is resumed from memory.

Engines push in threads of their own, whose kernels hold no lock, while the loop polls and decodes the next batch, and
while it checks and encodes what the cycle before has decided; the loop waits for them before it looks at anything that
they change. What a transaction says of each partition is put together in the same threads.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from functools import partial

from microdata import UnavailableError
from service.codec import DEFAULT_FORMAT, Events, other_framing
from service.kafka import (
    Client,
    FatalError,
    FinalError,
    GoneError,
    GroupToken,
    KafkaError,
    Partition,
    RecordBatch,
    RetriableError,
)
from service.publishing.departure import Departure
from service.publishing.messages import commit_tick
from service.worker.asking import SchemaChangedError
from service.worker.connections import Connections
from service.worker.metrics import Metrics
from service.worker.ownership import Ownership
from service.worker.partition import Ending, InputPartition, Settlement
from service.worker.rejections import RecentRejections
from service.worker.restoring import PartitionError
from service.worker.settings import WorkerSettings
from service.worker.stream import Stream
from service.worker.topics import TopicError, check_settings
from service.worker.transactions import Transactions
from service.worker.trouble import Trouble

log = logging.getLogger(__name__)

_DRAIN_TRIES = 5
_LONGEST_POLL = 1.0
"""A poll that waits longer would hide from the outside that the loop turns, and from the loop that it shall end."""
_LAG_SECONDS = 5.0
"""How often the broker is asked how far the input goes."""
_LAG_PATIENCE = 1.0
"""How long all answers may take; meanwhile nothing is polled."""
_WARN_SECONDS = 60.0
"""How often a warning about one partition is repeated."""


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
        check_settings(stream, settings, client.largest_request)
        self.stream = stream
        self.metrics = metrics
        self._settings = settings
        self._clock = clock
        self._stop = threading.Event()
        self._reading = Trouble("reading the input", metrics)
        self._decoding = Trouble("asking the schema registry", metrics)
        self._measuring = Trouble("measuring the lag", metrics)
        owner = f"{stream.group}.{settings.instance or secrets.token_hex(8)}"
        self._connections = Connections(stream, client, settings, metrics)
        self._transactions = Transactions(client, stream, owner, self._tick, metrics)
        self._owned = Ownership(stream, self._connections, self._transactions, metrics)
        self._token: GroupToken | None = None
        # One thread per core; an engine is always in the same one, so it takes its events in order.
        self._engines = [ThreadPoolExecutor(1, "engines") for _ in range(os.cpu_count() or 1)]
        self._pushes: list[tuple[Partition, InputPartition, Future[None]]] = []
        self._lag_at = 0.0
        self._warned_at: dict[tuple[str, Partition], float] = {}
        self._rejections: dict[Partition, RecentRejections] = {}
        self._read_before: set[Partition] = set()
        """Partitions of which a record was read since they were taken over."""

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        self._stop = stop
        try:
            if not self.open(stop):
                return
            self._owned.join()
            while not stop.is_set():
                self._cycle(stop)
            self._finish()
        finally:
            self.close()

    def open(self, stop: threading.Event) -> bool:
        """Wait until brokers and topics are there, for as long as that takes; False where `stop` came before."""
        return self._connections.wait(stop)

    def close(self) -> None:
        """Let go of every connection; what is pending stays with the next owner."""
        self.metrics.gone()
        for thread in self._engines:
            thread.shutdown()
        self._owned.close()
        self._transactions.discard()
        self._connections.close()

    # -- one cycle ---------------------------------------------------------------------------------------------------

    def _cycle(self, stop: threading.Event) -> None:
        """Take events for one commit interval, then settle them in one transaction."""
        end, taken = time.monotonic() + self._settings.commit_interval, 0
        while True:
            taken += self._take_some(min(_LONGEST_POLL, max(0.0, end - time.monotonic())))
            if stop.is_set() or taken >= self._settings.commit_events or time.monotonic() >= end:
                break
            if self._connections.has_newer_schema:  # what was taken by the old one is committed first
                break
        owed = self._check_and_encode()
        self._catch_up()
        self._expire()
        self.metrics.step("committing")
        self._commit(owed)
        self._measure_lag()
        self._owned.watch_topics()

    # -- take --------------------------------------------------------------------------------------------------------

    def _take_some(self, timeout: float) -> int:
        """Hand what there is to the engines; the number of records."""
        before = dict(self._owned.running)
        batches = self._poll(timeout, self._settings.poll_records)
        running = self._owned.running
        self._rejections = {partition: own for partition, own in self._rejections.items() if partition in running}
        # What was polled before its partition was restored comes again from where that goes on.
        kept = {partition for partition, own in running.items() if own is before.get(partition)}
        ours = [batch for batch in batches if batch.partition in kept]
        self._read_before &= running.keys()
        taken = self._decode_all(ours, timeout)
        self.metrics.polled(self._connections.consumer.assignment(), running, self._owned.stopped)
        return taken

    def _poll(self, timeout: float, most: int) -> list[RecordBatch]:
        """What the input has, from partitions that are ours; those that are new are taken over first."""
        batches = self._read(timeout, most)
        # The token belongs to exactly this poll: it proves the membership under which these records were given.
        self._token = self._connections.consumer.group_token()
        if self._owned.looks_back:
            self._catch_up()
        self._owned.take_over(self._token)
        return batches

    def _read(self, timeout: float, most: int) -> list[RecordBatch]:
        """Nothing while the input cannot be read, which does not hold up the rest of the cycle."""
        try:
            batches = self._connections.consumer.poll(timeout, most)
        except (FinalError, FatalError):
            raise
        except GoneError as gone:
            partition = Partition(gone.topic, gone.partition)
            try:
                self._pass_over(partition)
            except FinalError:
                raise
            except KafkaError as error:
                self._reading.note(error)
                self._owned.let_go(partition)
        except KafkaError as error:
            self._reading.note(error)
            self._stop.wait(min(timeout, self._reading.pause))
        else:
            self._reading.over()
            return batches
        return []

    def _pass_over(self, partition: Partition) -> None:
        """Events were gone from the input before they were taken: stop, or where that is accepted, count them."""
        self._catch_up()
        own = self._owned.running.get(partition)
        if own is None or not self._owned.topics_hold():
            return
        low, high = self._connections.consumer.watermarks(partition)
        if low <= own.position <= high:
            raise RetriableError(f"{partition.topic}/{partition.number}: offset {own.position} was out of range")
        if not self._settings.accept_loss or low <= own.position:
            self._owned.halt(
                partition,
                f"{partition.topic}/{partition.number}: offset {own.position} is gone from the input, which begins at "
                f"{low} now; raise its retention, or start with --accept-loss to count what is missing as suppressed",
            )
            return
        log.warning("%s/%d: offsets %d to %d are gone and count as suppressed", *partition, own.position, low - 1)
        own.pass_over(low)
        self._connections.consumer.seek(partition, low)

    # -- decode, push ------------------------------------------------------------------------------------------------

    def _decode_all(self, batches: Sequence[RecordBatch], timeout: float) -> int:
        """The number of records that were taken. Those whose schema nobody tells now are taken later."""
        taken, waiting = 0, set[Partition]()
        for batch in batches:
            if batch.partition in waiting:
                continue
            try:
                self._decode_and_push(batch)
                taken += len(batch)
            except SchemaChangedError:
                waiting.add(batch.partition)
                self._put_back(batch)
            except RetriableError as error:
                waiting.add(batch.partition)
                self._decoding.note(error)
                self._put_back(batch)
        if waiting:
            self._stop.wait(min(timeout, max(self._decoding.pause, self._owned.pause)))
        elif batches:
            self._decoding.over()
        return taken

    def _put_back(self, batch: RecordBatch) -> None:
        """Have the next poll begin with this batch again."""
        try:
            self._connections.consumer.seek(batch.partition, int(batch.offsets[0]))
        except FinalError:
            raise
        except KafkaError as error:
            self._reading.note(error)
            self._owned.let_go(batch.partition)

    def _decode_and_push(self, batch: RecordBatch) -> None:
        """The engine decides in its own thread; what it decides is `fresh` until a transaction has committed it."""
        own = self._owned.running[batch.partition]
        events = self._connections.decoder.decode(batch)
        if not self._has_readable_framing(batch, events):
            return
        self._note_rejections(batch, events)
        push = self._thread_of(batch.partition).submit(own.take, events, int(batch.offsets[-1]) + 1, self._clock())
        self._pushes.append((batch.partition, own, push))

    def _has_readable_framing(self, batch: RecordBatch, events: Events) -> bool:
        """Stop a partition whose first records show a framing that is not read, before any of them is rejected."""
        if batch.partition in self._read_before:
            return True
        plain_json = self.stream.format.input.type == DEFAULT_FORMAT
        reason = other_framing(batch, batch.header_names, events, plain_json=plain_json)
        if reason is None:
            if len(events):
                self._read_before.add(batch.partition)
            return True
        self._owned.halt(batch.partition, f"{batch.partition.topic}/{batch.partition.number}: {reason}")
        return False

    def _note_rejections(self, batch: RecordBatch, events: Events) -> None:
        """Report a partition of which most recent records are rejected; the schema of the topic may have changed."""
        recent = self._rejections.get(batch.partition)
        if recent is None:
            recent = self._rejections[batch.partition] = RecentRejections(prefixed=self.stream.format.input.is_prefixed)
        recent.note(batch, events.refused)
        found = recent.above(self._settings.rejected_share)
        self.metrics.rejecting(batch.partition, found)
        if found is not None:
            self._warn(batch.partition, "the worker rejects most records: ", found)

    def _thread_of(self, partition: Partition) -> ThreadPoolExecutor:
        return self._engines[partition.number % len(self._engines)]

    def _catch_up(self) -> None:
        """Wait until the engines have taken everything that was handed to them."""
        pushes, self._pushes = self._pushes, []
        for partition, own, push in pushes:
            push.exception()
            if self._owned.running.get(partition) is own:  # what was revoked meanwhile is somebody else's
                self._owned.guarded(partition, push.result)

    def _expire(self) -> None:
        next_turn = self._clock() + self._settings.commit_interval  # what is due by then would be late
        for partition, own in list(self._owned.running.items()):
            self._owned.guarded(partition, partial(own.expire, next_turn))

    # -- check, encode -----------------------------------------------------------------------------------------------

    def _check_and_encode(self) -> dict[Partition, Departure]:
        """What every partition owes: decisions of the last committed transaction, which the next one publishes.

        Nothing of it changes any more, so engines may be at work meanwhile.
        """
        owed = {}
        for partition, own in self._owned.running.items():
            departure = own.publish()
            messages = self._connections.messages.encode(departure, own.rows)
            owed[partition] = replace(departure, messages=messages)
        return owed

    # -- commit ------------------------------------------------------------------------------------------------------

    def _commit(self, owed: Mapping[Partition, Departure], *, end: Ending | None = None) -> None:
        """Publish what is owed and commit what is fresh, which is owed from then on.

        Any failure discards everything in memory.
        """
        token = self._token
        settlements = self._settlements(owed, end)
        if not settlements or token is None:
            return
        started = time.monotonic()
        try:
            token.require_current()
            if not self._owned.topics_hold():
                return
            settled = self._transactions.commit(token, settlements)
        except FinalError:
            raise
        except KafkaError as error:
            # Whatever has become of it, it is not repeated: everything is restored from what is durable.
            self._transactions.trouble.note(error)
            self._owned.discard()
        else:
            self._transactions.trouble.over()
            self.metrics.committed(time.monotonic() - started)
            self._remember(settled)

    def _settlements(self, owed: Mapping[Partition, Departure], end: Ending | None) -> dict[Partition, Settlement]:
        """What there is to settle. A partition whose state has outgrown its limit stops before any of it is decided."""
        settlements, limit = {}, self._settings.max_state_bytes
        assigned = self._connections.consumer.assignment()
        settling = {
            partition: self._thread_of(partition).submit(self._settled, own, owed[partition], end)
            for partition, own in self._owned.running.items()
            if partition in assigned and (own.dirty or end)
        }
        wait(settling.values())
        for partition, future in settling.items():
            self._owned.guarded(partition, future.result)
            if partition in self._owned.stopped:
                continue
            settlement = future.result()
            if len(settlement.record) <= limit:
                settlements[partition] = settlement
            else:
                size = f"the state takes {len(settlement.record)} bytes, max_state_bytes allows {limit}"
                self._owned.halt(
                    partition, f"{partition.topic}/{partition.number}: {size}; raise it, or lower the delay"
                )
        return settlements

    def _settled(self, own: InputPartition, owed: Departure, end: Ending | None) -> Settlement:
        """In the thread of its engine: what is remembered is made smaller and sealed, which holds no lock."""
        settlement = own.settle(owed, self._transactions.owner, end=end)
        _ = settlement.record
        return settlement

    def _remember(self, settlements: Mapping[Partition, Settlement]) -> None:
        now = self._clock()
        for partition, own in self._owned.running.items():
            if partition not in settlements:
                continue
            self.metrics.settled(partition, own, settlements[partition], now)
            own.committed(settlements[partition])
            if own.thin:
                self._warn(partition, "too few persons within the delay or window, so events are suppressed")

    def _warn(self, partition: Partition, sentence: str, detail: object = "") -> None:
        """Log a warning about a partition, unless the same sentence was logged a short time ago."""
        if time.monotonic() >= self._warned_at.get((sentence, partition), 0.0):
            self._warned_at[sentence, partition] = time.monotonic() + _WARN_SECONDS
            log.warning("%s/%d: %s%s", *partition, sentence, detail)

    def _tick(self) -> int:
        """The time that is written to records."""
        return commit_tick(self._clock(), self._settings.commit_interval)

    # -- beside the cycle --------------------------------------------------------------------------------------------

    def _measure_lag(self) -> None:
        if time.monotonic() < self._lag_at:
            return
        self._lag_at = time.monotonic() + _LAG_SECONDS
        end = time.monotonic() + _LAG_PATIENCE
        for partition, own in self._owned.running.items():
            try:
                until = self._connections.consumer.end(partition, max(0.0, end - time.monotonic()))
                self.metrics.lagging(partition, max(0, until - own.position))
            except KafkaError as error:  # whatever it is: who needs the broker will find out
                self._measuring.note(error)
                self._lag_at += self._measuring.pause
                return
        self._measuring.over()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Publish what is decided; what is pending stays for the next owner unless the operator asked to flush."""
        if self._settings.on_stop == "flush":
            self._flush()
        # The first transaction publishes what is owed and commits what is fresh, the second publishes that.
        self._commit(self._check_and_encode())
        self._commit(self._check_and_encode())

    def _flush(self) -> None:
        for partition, own in list(self._owned.running.items()):
            self._owned.guarded(partition, own.flush)

    def drain(self, *, keep: bool = False) -> dict[int, int]:
        """Flush and publish every partition of the input, and record the end: a new policy may start there.

        Persons who are remembered are forgotten, or kept for that policy. Returns the input offset at which each
        partition ended.
        """
        try:
            # In a topic that has grown keys have moved: nobody can go on with the persons who are remembered there.
            self._connections.ending = not keep
            self._connections.open()
            self._require_alone()
            self._owned.join()
            for _ in range(_DRAIN_TRIES):
                self._own_everything()
                self._flush()
                self._commit(self._check_and_encode())
                self._commit(self._check_and_encode())
                self._commit(self._check_and_encode(), end="keep" if keep else "forget")
                if len(self._owned.running) == self._connections.topics.input_partitions:
                    return {partition.number: own.position for partition, own in self._owned.running.items()}
            raise UnavailableError("the drain did not commit; nothing is lost, run it again")
        finally:
            self.close()

    def forget(self, persons: Sequence[str]) -> dict[int, int]:
        """Forget persons, and write everything anew, so that compaction removes what was written of them.

        Returns how many of them each partition knew.
        """
        try:
            self._connections.open()
            self._require_alone()
            self._connections.restorer.require_under_way()
            self._owned.join()
            tags = self._connections.tags_of(persons)
            forgotten: Counter[int] = Counter()
            for _ in range(_DRAIN_TRIES):
                self._own_everything()
                # What is decided about them leaves first: it was promised to others too.
                self._commit(self._check_and_encode())
                self._commit(self._check_and_encode())
                for partition, own in self._owned.running.items():
                    forgotten[partition.number] = max(forgotten[partition.number], own.forget(tags))
                since = {partition: own.sequence + 1 for partition, own in self._owned.running.items()}
                self._commit(self._check_and_encode())
                while sum(not own.written_anew(since[partition]) for partition, own in self._owned.running.items()):
                    self._poll(0.0, 1)
                    self._commit(self._check_and_encode())
                if len(self._owned.running) == self._connections.topics.input_partitions:
                    return dict(forgotten)
            raise UnavailableError("forgetting did not commit; run it again")
        finally:
            self.close()

    def _require_alone(self) -> None:
        """Workers beside a drain would hold some of the partitions, or begin anew what it has just ended."""
        with closing(self._connections.client.admin()) as admin:
            members = admin.group_members(self.stream.group)
        if members:
            raise TopicError(
                f"stream {self.stream.name!r} has {members} running {'worker' if members == 1 else 'workers'}: stop "
                "them first. One that was killed counts until its session times out (session_timeout_ms)"
            )

    def _own_everything(self, patience: float = 60.0) -> None:
        """Join the group until every partition is here and restored, taking no new event."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self._poll(0.2, 1)
            self._connections.consumer.pause(self._connections.consumer.assignment())
            if self._owned.stopped:
                raise PartitionError("; ".join(self._owned.stopped.values()))
            if len(self._owned.running) == self._connections.topics.input_partitions:
                return
        raise TopicError(f"stream {self.stream.name!r}: other workers hold some of its partitions; stop them first")

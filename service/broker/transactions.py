"""Transactions: who may write under a transactional id, what belongs together, and how it ends."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from kafka import errors as kp

from service.broker.groups import Groups, Place
from service.broker.topics import BrokerTopics

MAX_EPOCH = 32_767
MAX_TIMEOUT_MS = 900_000


@dataclass(slots=True)
class Transaction:
    """The latest transaction of a transactional id."""

    producer_id: int
    epoch: int = 0
    timeout_ms: int = 0
    started: float | None = None  # None: none is open
    committed: bool | None = None  # how the previous one ended
    partitions: set[Place] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)


class Transactions:
    """The transaction coordinator."""

    def __init__(self, topics: BrokerTopics, groups: Groups) -> None:
        self._topics = topics
        self._groups = groups
        self._by_id: dict[str, Transaction] = {}
        self._next_producer_id = 1000

    def init_producer(self, transactional_id: str | None, timeout_ms: int, known: tuple[int, int]) -> tuple[int, int]:
        """A producer id and epoch; a transactional id is taken over from whoever had it."""
        if transactional_id is None:
            return self._new_producer_id(), 0
        if not transactional_id:
            raise kp.InvalidRequestError("a transactional id is not empty")
        if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
            raise kp.InvalidTransactionTimeoutError(f"the time-out is 1 to {MAX_TIMEOUT_MS} ms, given {timeout_ms}")
        transaction = self._by_id.get(transactional_id)
        if transaction is None:
            transaction = self._by_id[transactional_id] = Transaction(self._new_producer_id())
        else:
            if known[0] >= 0 and known != (transaction.producer_id, transaction.epoch):
                raise kp.ProducerFencedError("another producer has taken over the transactional id")
            self._fence(transaction)
        transaction.timeout_ms = timeout_ms
        transaction.committed = None
        return transaction.producer_id, transaction.epoch

    def _new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id

    def _fence(self, transaction: Transaction) -> None:
        """Shut out the producer of the current epoch and abort what it left open."""
        transaction.epoch += 1
        if transaction.started is not None:
            self._end(transaction, commit=False)
        if transaction.epoch == MAX_EPOCH:
            transaction.producer_id, transaction.epoch = self._new_producer_id(), 0

    def current(self, transactional_id: str | None, producer_id: int, epoch: int) -> Transaction:
        """The transaction of a producer that still owns its transactional id."""
        transaction = self._by_id.get(transactional_id or "")
        if transaction is None or transaction.producer_id != producer_id:
            raise kp.InvalidProducerIdMappingError("the producer id does not belong to the transactional id")
        if transaction.epoch != epoch:
            raise kp.ProducerFencedError(f"the epoch is {transaction.epoch}, given {epoch}")
        return transaction

    def add_partitions(self, transaction: Transaction, places: Collection[Place]) -> None:
        """Open the transaction, if it is not, and extend it."""
        self._open(transaction)
        transaction.partitions |= set(places)

    def add_group(self, transaction: Transaction, group_id: str) -> None:
        """Open the transaction, if it is not, and let it commit offsets of a group."""
        self._open(transaction)
        transaction.groups.add(group_id)

    def _open(self, transaction: Transaction) -> None:
        if transaction.started is None:
            transaction.started = time.monotonic()
            transaction.committed = None

    def check_write(self, transactional_id: str | None, producer_id: int, epoch: int, place: Place) -> None:
        """Whether a transactional batch may be written: by the owner, and announced before."""
        try:
            transaction = self.current(transactional_id, producer_id, epoch)
        except kp.ProducerFencedError as error:
            raise kp.InvalidProducerEpochError(str(error)) from error
        if transaction.started is None or place not in transaction.partitions:
            raise kp.InvalidTxnStateError(f"{place} is not part of an open transaction")

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort; asking twice for the same is fine."""
        if transaction.started is None:
            if transaction.committed is commit:
                return
            raise kp.InvalidTxnStateError("there is no open transaction")
        self._end(transaction, commit=commit)

    def _end(self, transaction: Transaction, *, commit: bool) -> None:
        for name, partition in transaction.partitions:
            try:
                log = self._topics.log(name, partition)
            except kp.UnknownTopicOrPartitionError:
                continue  # the topic was deleted meanwhile
            log.end_transaction(transaction.producer_id, transaction.epoch, commit=commit)
        for group_id in transaction.groups:
            self._groups.ensure(group_id).settle(transaction.producer_id, commit=commit)
        transaction.partitions.clear()
        transaction.groups.clear()
        transaction.started = None
        transaction.committed = commit

    def expire(self, now: float) -> None:
        """Abort what has been open for too long and shut its producer out."""
        for transaction in self._by_id.values():
            if transaction.started is not None and now - transaction.started > transaction.timeout_ms / 1000:
                self._fence(transaction)

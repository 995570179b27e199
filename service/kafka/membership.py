"""What a member of a group owns and where it stands: the part that both adapters share.

Client libraries report rebalances when and on what thread they like. Here they are noted as they come and
told to the worker inside `poll` and `close` only, on the worker's own thread and in order, before any record
is handed out.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator

from service.kafka.errors import FatalError
from service.kafka.port import Partition, PartitionsCallback

_SLICE_SECONDS = 0.2


class Membership:
    """Owned partitions, their positions, and rebalances that the worker has not heard of yet."""

    def __init__(
        self, on_assigned: PartitionsCallback, on_revoked: PartitionsCallback, on_lost: PartitionsCallback
    ) -> None:
        self.owned: frozenset[Partition] = frozenset()
        self.positions: dict[Partition, int] = {}
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost
        self._unheard: deque[tuple[Callable[[list[Partition]], None], list[Partition]]] = deque()

    def note_assigned(self, partitions: Collection[Partition]) -> None:
        """The group gave us these partitions."""
        self._unheard.append((self._gain, sorted(partitions)))

    def note_revoked(self, partitions: Collection[Partition]) -> None:
        """The group takes these partitions away."""
        self._unheard.append((self._revoke, sorted(partitions)))

    def note_lost(self, partitions: Collection[Partition]) -> None:
        """Somebody else may have these partitions already."""
        self._unheard.append((self._lose, sorted(partitions)))

    @property
    def has_news(self) -> bool:
        """Whether the worker has something to hear."""
        return bool(self._unheard)

    def tell(self) -> None:
        """Tell the worker what was noted."""
        while self._unheard:
            change, partitions = self._unheard.popleft()
            change(partitions)

    def slices(self, timeout: float) -> Iterator[float]:
        """A wait cut into short ones, which end with it or with news: neither they nor signals wait for records."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            yield min(max(left, 0.0), _SLICE_SECONDS)
            if left <= _SLICE_SECONDS or self.has_news:
                return

    def require_sought(self, partition: Partition) -> int:
        """The position of an owned partition; an error while nobody has said where to begin."""
        if partition not in self.positions:
            raise FatalError(f"{partition}: seek comes first, and only for an owned partition")
        return self.positions[partition]

    def _gain(self, partitions: list[Partition]) -> None:
        self.owned |= frozenset(partitions)
        if partitions:
            self._on_assigned(partitions)

    def _revoke(self, partitions: list[Partition]) -> None:
        held = self._drop(partitions)
        if held:
            self._on_revoked(held)

    def _lose(self, partitions: list[Partition]) -> None:
        held = self._drop(partitions)
        if held:
            self._on_lost(held)

    def _drop(self, partitions: list[Partition]) -> list[Partition]:
        held = [partition for partition in partitions if partition in self.owned]
        self.owned -= frozenset(held)
        for partition in held:
            self.positions.pop(partition, None)
        return held


def taken(group: str, instance: str | None) -> str:
    """What a member hears whose instance name another one has."""
    return (
        f"group {group!r}: another process has joined under the instance name {instance!r} and has its partitions now; "
        "give each process a name of its own"
    )

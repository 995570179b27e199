"""What engines that remember persons let others keep for them: across restarts, and for longer than the input lasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_algos.engine import Batch, Snapshot

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Entries of a table, side by side: all columns have the same length, and hold numbers."""


class Column(Protocol):
    """Numbers of all entries of a table, in whatever way they are kept."""

    def __len__(self) -> int: ...

    def __getitem__(self, where: slice | NDArray[Any], /) -> NDArray[Any]: ...

    def __setitem__(self, where: slice | NDArray[Any], values: NDArray[Any], /) -> None: ...


Room: TypeAlias = Mapping[str, Column]
"""Columns of a table that others fill."""


@dataclass(frozen=True)
class Terms:
    """Under which terms something is remembered: whoever takes it over must have the same, or ask for less."""

    same: Mapping[str, str]
    """What must be the same: for each name a text that tells whether it is."""
    not_raised: Mapping[str, int]
    """What may be the same or less."""

    def refused(self, before: Terms) -> str | None:
        """Why whoever has these terms cannot take over what was remembered under those before; None where they can."""
        names = sorted({*self.same, *before.same})
        other = [name for name in names if self.same.get(name) != before.same.get(name)]
        if other:
            return f"this policy has another {' and another '.join(other)}"
        for name, most in before.not_raised.items():
            own = self.not_raised.get(name, most + 1)
            if own > most:
                return f"this policy asks for {name}={own}, and {name}={most} was promised: at most that"
        return None


class PublishedWith(NamedTuple):
    """What clusters have in common that are published with the same entry of a memory, until it changes."""

    ids: NDArray[np.uint64]
    parents: NDArray[np.uint64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]


class Memory(ABC):
    """Tables of what is known of persons, whose entries keep their numbers. They hold values: a secret.

    An engine that `remembers` has them beside its snapshot, so that whoever keeps them writes only what has changed.
    What they leave out is in `rest`, which may hold boxes that nobody has seen: a secret too.
    """

    loose: ClassVar[frozenset[str]] = frozenset()
    """Columns of which an old value does no harm: an entry in which nothing else has changed need not be kept again."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The tables, and how many entries each has; those behind were given up."""

    @abstractmethod
    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Numbers of all entries that may have changed since `kept`, ascending; others may be among them."""

    @abstractmethod
    def entries(self, table: str, numbers: NDArray[np.int64]) -> Columns:
        """These entries of a table, as they are now."""

    @abstractmethod
    def kept(self) -> None:
        """Everything is kept as it is now: changes count from here on."""

    @abstractmethod
    def retired(self) -> NDArray[np.uint64]:
        """Ids of published boxes that nothing is decided with any more, but was at the last `kept`."""

    @abstractmethod
    def keep_whole(self, ids: NDArray[np.uint64]) -> None:
        """Rows that were decided with these boxes are not published, though others with them may have been."""

    @abstractmethod
    def parents(self) -> NDArray[np.uint64]:
        """Ids of all boxes that one of a later release may come after: as its parent, or before that."""

    @abstractmethod
    def boxes(self, entries: NDArray[np.int64]) -> PublishedWith:
        """What is published with these entries now, as `Release.entries` names them."""

    @abstractmethod
    def rest(self) -> Snapshot:
        """What the tables leave out."""

    @abstractmethod
    def forget(self, persons: NDArray[np.int64], rows: Batch) -> NDArray[np.int64]:
        """Forget these persons, by both words of each, with all that is known of them; positions of rows given up so.

        `rows` are those that wait. Whoever they were company of has less of it; rows that have too little are given up
        as well. Changes count from here on, as with `kept`.
        """

    @abstractmethod
    def newcomers(self) -> NDArray[np.int64] | None:
        """Codes of all who came for the first time since `kept`; None where that cannot be told."""

    @abstractmethod
    def alike(
        self, person: tuple[int, int], most: int
    ) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64], NDArray[np.float64]] | None:
        """Who is there whom rows of a person leave room for, of those known now: the box, codes, last seen values.

        None of somebody whose rows do not leave, or if it were more than `most`.
        """

    @abstractmethod
    def terms(self) -> Terms:
        """Under which terms it remembers persons."""

    @abstractmethod
    def room(self, sizes: Mapping[str, int]) -> dict[str, Room]:
        """Columns for so many entries of each table, for others to fill with what was kept; then `recall` it."""

    @abstractmethod
    def take_over(self, other: Memory) -> bool:
        """Fill the room with the tables of another one, as they were at its last `kept`; False where it cannot tell.

        More may have come since. Nobody may use the other one afterwards.
        """

    @abstractmethod
    def recall(self, rest: Snapshot, rows: Batch) -> None:
        """Go on with the tables in the room, the rest, and rows that wait; `GuaranteeError` where they disagree."""

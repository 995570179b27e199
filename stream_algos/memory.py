"""What engines that remember persons let others keep for them: across restarts, and for longer than the input lasts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_algos.engine import Batch, Snapshot

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""Entries of a table, side by side: all columns have the same length, and hold numbers."""


class Memory(ABC):
    """Tables of what is known of persons, whose entries keep their numbers. They hold values: a secret.

    An engine that `remembers` has them beside its snapshot, so that whoever keeps them writes only what has changed.
    What they leave out is in `rest`, which holds no value of a person.
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
    def rest(self) -> Snapshot:
        """What the tables leave out."""

    @abstractmethod
    def forget(self, persons: NDArray[np.int64], rows: Batch) -> NDArray[np.int64]:
        """Forget these persons, by their codes, with all that is known of them; the positions of rows given up so.

        `rows` are those that wait. Whoever they were company of has less of it.
        """

    @abstractmethod
    def recalled(self, tables: Mapping[str, Columns], rest: Snapshot) -> Snapshot:
        """The snapshot that `restore` takes, of whole tables and the rest; `GuaranteeError` where they disagree."""

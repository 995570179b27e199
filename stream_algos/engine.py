"""What every stream algorithm is: batches of encoded rows in, releases out.

An engine never sees names, topics or raw text. It knows rows by their position (growing integers; what is left out
counts as passed) and a release names positions only; who pushed the rows joins them again. A snapshot holds no row
either: `restore` is given them, re-read from the input. Only an engine that knows persons again keeps values of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata import Schema, Words, example_table, system_words
from privacy import Model, check_able
from static_algos import Catalogue, Parameters, parse

Snapshot: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays by name: positions, take-times, published boxes and ids, losses.

Never a raw value or a person, but of an engine that `remembers`: then it must be kept as a secret.
"""

MOST_ROWS = 10_000_000
"""Most rows that an engine can be asked to hold: some gigabytes."""

MOST_PERSONS = 1_000_000
"""Largest k, and ℓ."""

LONGEST = 1e9
"""Longest time in seconds that can be asked for: thirty years."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Encoded rows in the order of their positions."""

    positions: NDArray[np.int64]
    times: NDArray[np.float64]
    """When each row was taken, in seconds of the caller's clock."""
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    sensitive: NDArray[np.int32]
    more: NDArray[np.int64] | None = None
    """Of each person a second word, for engines that remember: where `persons` is a hash, two persons may share it.
    None where `persons` tells everybody apart."""
    rejected: NDArray[np.bool_] | None = None
    """Marks rows of rejected events; None where there are none. Only engines that remember persons are given such rows.
    They are never published, and show what is known of a person's values: NaN is a value that cannot be read."""

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def empty(cls, schema: Schema) -> Batch:
        """No rows."""
        return cls(
            positions=np.empty(0, np.int64),
            times=np.empty(0),
            persons=np.empty(0, np.int64),
            quasi=np.empty((0, len(schema.quasi))),
            sensitive=np.empty((0, len(schema.sensitive)), np.int32),
        )

    @classmethod
    def concat(cls, batches: Sequence[Batch]) -> Batch:
        """Batches of one schema, one after the other."""
        columns = zip(*(batch.columns() for batch in batches), strict=True)
        more = rejected = None
        if any(batch.more is not None for batch in batches):
            more = np.concatenate([batch.tags()[:, 1] for batch in batches])
        if any(batch.rejected is not None for batch in batches):
            rejected = np.concatenate([batch.rejections() for batch in batches])
        return replace(cls(*(np.concatenate(column) for column in columns)), more=more, rejected=rejected)

    @classmethod
    def merged(cls, batches: Sequence[Batch]) -> Batch:
        """Return the rows of several batches in the order of their positions."""
        batch = cls.concat(batches)
        return batch.take(np.argsort(batch.positions, kind="stable"))

    def columns(self) -> tuple[NDArray[Any], ...]:
        """Return positions, times, persons, quasi-identifiers and sensitive values as kernels want them."""
        return (
            np.require(self.positions, np.int64, ["C", "W"]),
            np.require(self.times, np.float64, ["C", "W"]),
            np.require(self.persons, np.int64, ["C", "W"]),
            np.require(self.quasi, np.float64, ["C", "W"]),
            np.require(self.sensitive, np.int32, ["C", "W"]),
        )

    def take(self, rows: NDArray[Any] | slice) -> Batch:
        """The rows at these indexes, in this order."""
        return Batch(
            self.positions[rows],
            self.times[rows],
            self.persons[rows],
            self.quasi[rows],
            self.sensitive[rows],
            None if self.more is None else self.more[rows],
            None if self.rejected is None else self.rejected[rows],
        )

    def accepted(self) -> Batch:
        """Return the batch without rows of rejected events."""
        return self if self.rejected is None else replace(self.take(~self.rejected), rejected=None)

    def rejections(self) -> NDArray[np.bool_]:
        """Return for each row whether its event was rejected."""
        return np.zeros(len(self), bool) if self.rejected is None else np.require(self.rejected, np.bool_, ["C", "W"])

    def tags(self) -> NDArray[np.int64]:
        """Both words of each person, side by side."""
        tags = np.zeros((len(self), 2), np.int64)
        tags[:, 0] = self.persons
        if self.more is not None:
            tags[:, 1] = self.more
        return tags


@dataclass(frozen=True, eq=False)
class Release:
    """What one step lets out. Cluster c holds `members[starts[c]:starts[c + 1]]`, shuffled."""

    ids: NDArray[np.uint64]
    """Random id of each cluster; a reuse repeats the id of the cluster it reuses."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """Published (widened) box of each cluster: clusters × quasi-identifiers."""
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    """Positions of the released rows."""
    reused: NDArray[np.bool_]
    """Whether the entry adds rows to a box that was published before."""
    windows: NDArray[np.int64]
    """First and last position of the window that each cluster is close to (clusters × 2); -1 where there is none."""
    suppressed: NDArray[np.int64]
    """Positions of rows that will never be released."""
    decided: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Last position that had been taken when each cluster was decided; -1 where nobody noted it."""
    given_up: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The same for each suppressed row."""
    company: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Persons that stand behind each cluster, with rows in it or without; -1 where only its own rows do."""
    parents: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    """Id of the cluster whose persons published together before these did; 0 for none."""
    entries: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Where the engine's `Memory` had the box of each cluster when it was decided; -1 where it did not."""

    def __post_init__(self) -> None:
        for name, count, missing in (
            ("decided", len(self.ids), np.int64(-1)),
            ("given_up", len(self.suppressed), np.int64(-1)),
            ("company", len(self.ids), np.int64(-1)),
            ("parents", len(self.ids), np.uint64(0)),
            ("entries", len(self.ids), np.int64(-1)),
        ):
            if len(getattr(self, name)) != count:
                object.__setattr__(self, name, np.full(count, missing))

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def empty(cls, width: int) -> Release:
        """Nothing leaves; `width` is the number of quasi-identifiers."""
        return cls(
            ids=np.empty(0, np.uint64),
            lo=np.empty((0, width)),
            hi=np.empty((0, width)),
            starts=np.zeros(1, np.int64),
            members=np.empty(0, np.int64),
            reused=np.empty(0, np.bool_),
            windows=np.empty((0, 2), np.int64),
            suppressed=np.empty(0, np.int64),
        )

    @classmethod
    def concat(cls, releases: Sequence[Release]) -> Release:
        """Releases of one engine, one after the other."""
        if len(releases) == 1:
            return releases[0]
        sizes = np.concatenate([np.diff(release.starts) for release in releases])
        parts = {
            part.name: np.concatenate([getattr(release, part.name) for release in releases])
            for part in fields(cls)
            if part.name != "starts"
        }
        return cls(starts=_starts(sizes), **parts)

    @cached_property
    def distinct(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Clusters that stand for all that have the same id and box, and which of these stands for each cluster.

        Where rows leave alone there are few of them, so what is asked of a box need not be asked of every row.
        """
        _, first, of = np.unique(self.ids, return_index=True, return_inverse=True)
        if not (np.array_equal(self.lo[first][of], self.lo) and np.array_equal(self.hi[first][of], self.hi)):
            first = of = np.arange(len(self))
        return first, of

    def cluster_of(self) -> NDArray[np.int64]:
        """Cluster of each member."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def select(self, clusters: NDArray[Any]) -> Release:
        """The clusters at these indexes (or where this mask is true), in this order; nothing is suppressed."""
        if clusters.dtype == np.bool_ and clusters.all() and not len(self.suppressed):
            return self
        chosen = np.flatnonzero(clusters) if clusters.dtype == np.bool_ else clusters
        sizes = np.diff(self.starts)[chosen]
        starts = _starts(sizes)
        members = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        return self._of(chosen, starts, self.members[members])

    def by_row(self) -> Release:
        """The same with one entry per member; nothing is suppressed."""
        return self._of(self.cluster_of(), np.arange(len(self.members) + 1), self.members)

    def _of(self, clusters: NDArray[np.int64], starts: NDArray[np.int64], members: NDArray[np.int64]) -> Release:
        """What belongs to these clusters, with other members."""
        nothing = np.empty(0, np.int64)
        return Release(
            ids=self.ids[clusters],
            lo=self.lo[clusters],
            hi=self.hi[clusters],
            starts=starts,
            members=members,
            reused=self.reused[clusters],
            windows=self.windows[clusters],
            suppressed=nothing,
            decided=self.decided[clusters],
            given_up=nothing,
            company=self.company[clusters],
            parents=self.parents[clusters],
            entries=self.entries[clusters],
        )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where clusters of these sizes begin, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


@dataclass(frozen=True)
class Hold:
    """How long an engine may hold a row; None where nothing bounds it."""

    tuples: int | None = None
    """Positions that may pass behind a row before it is decided."""
    seconds: float | None = None
    """Time after which a row is decided in any case."""
    window: float | None = None
    """Length in seconds of the windows by time that rows count in, decided ones too."""

    @property
    def readable(self) -> float | None:
        """How long, in seconds, a row must stay readable for whoever restores the engine."""
        return max(self.seconds or 0.0, 2 * (self.window or 0.0)) or None


class StreamParameters(Parameters):
    """Base of every engine's parameters: what others must know of what is asked for, whatever its names are."""

    @property
    @abstractmethod
    def hold(self) -> Hold:
        """How long a row may be held."""

    def within(self, seconds: float) -> Self:
        """The same with another bound in seconds; asked only of those that have one."""
        raise NotImplementedError

    @property
    def adds(self) -> str | None:
        """The switch that lets rows be added to published classes, where it is on: then models must survive adding."""
        return None

    @property
    def alone(self) -> str | None:
        """The parameter that lets a row leave without the rest of its class; None where classes leave whole.

        Where it is set, a class cannot be shown as its mean: of a row alone that would be the row.
        """
        return self.adds or ("order" if self.in_order else None)

    @property
    def steady(self) -> bool:
        """Whether a person's quasi-identifiers are taken to change rarely: a table that shows otherwise is refused."""
        return False

    @property
    def refused(self) -> tuple[str, str] | None:
        """The parameter that a policy must not set, and why; None if a policy may ask for these parameters."""
        return None

    @property
    def in_order(self) -> bool:
        """Whether rows leave one by one in the order of their positions, instead of shuffled."""
        return False

    def shuffled(self) -> Self:
        """The same with rows that leave shuffled."""
        return self


class Engine(ABC):
    """Makes a stream safe. Rows go in by `push`; each of the four verbs returns what may leave now.

    What stands before the constructor, and `StreamParameters`, is all that others know of an engine: policies, workers,
    replays, commands, docs and generic checks look nowhere else.
    """

    Parameters: ClassVar[type[StreamParameters]]
    guarantees: ClassVar[tuple[type[Model], ...]] = ()
    """Every privacy model that it can guarantee; the parameters decide which of them `models` returns."""
    windowed: ClassVar[bool] = False
    """Whether clusters are compared with windows, so that released rows still count until their window has passed."""
    remembers: ClassVar[bool] = False
    """Whether it knows persons again: then rows may leave alone, their company being persons whose rows left before or
    later, and the models are held against a record of all that was published."""
    data: ClassVar[str] = "records"
    """The kind of data that it is for, as a policy names it."""
    merges: ClassVar[bool] = False
    """Whether it unites classes without looking at the models again: then they must survive merging."""
    example: ClassVar[Mapping[str, Any]]
    """Parameters that fit `example_data`: docs and generic checks run it with them."""
    variants: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Other parameters, each to be tried instead of those of the example, or beside them."""

    @classmethod
    def example_data(cls) -> tuple[Schema, Batch]:
        """A small stream that `example` fits."""
        table = example_table(300, persons=100)
        order = np.arange(len(table))
        return table.schema, Batch(order, order / 10, table.persons, table.quasi, table.sensitive)

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        self.schema = schema
        self.words = words
        self.parameters = parse(self.Parameters, given)
        check_able(
            self.models(),
            self.guarantees,
            merges=self.merges,
            adds=self.parameters.adds,
            compares="history" if self.remembers else "window" if self.windowed else "class",
        )

    @abstractmethod
    def models(self) -> tuple[Model, ...]:
        """The privacy models that every released cluster meets: they follow from the schema and the parameters."""

    @abstractmethod
    def push(self, batch: Batch) -> Release:
        """Take rows; positions exceed all earlier ones.

        Time passes between rows of a batch that were taken at different times: what is overdue when the later one
        comes is decided before it is taken, as if `expire` had been called.
        """

    @abstractmethod
    def advance(self, position: int) -> Release:
        """Every position up to this one has passed, with a row or without: decide what may not wait any longer."""

    @abstractmethod
    def expire(self, now: float) -> Release:
        """Decide every row whose time bound has passed at `now`."""

    @abstractmethod
    def flush(self) -> Release:
        """Decide every row that is still held: the end of the stream."""

    @abstractmethod
    def pending(self) -> NDArray[np.int64]:
        """Positions that are taken and undecided, ascending."""

    @abstractmethod
    def needed_from(self) -> int | None:
        """Oldest position whose row `restore` will want again (for windows: released rows too); None for nothing."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The state without any row."""

    @abstractmethod
    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue where `snapshot` was taken, with the re-read rows (pending ones; for windows all of them).

        A pending position that has no row any more is forgotten: whoever restores has found it missing already and
        counts it as suppressed.
        """

    def reusable(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """Ids and boxes (lo, hi) of published clusters that later rows may still be released with."""
        box = np.empty((0, len(self.schema.quasi)))
        return np.empty(0, np.uint64), box, box

    @abstractmethod
    def status(self) -> Mapping[str, float]:
        """Numbers for people who watch: open clusters, tau, buffered rows."""


STREAM_ALGORITHMS: Catalogue[Engine] = Catalogue()

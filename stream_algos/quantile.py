"""Quantile: no delay, for a promise about a declared population and not about the stream.

If n people were spread evenly over D′ combinations of values, each combination would have k of them with a chance of
1 - β; that gives D′, and each column its share of it, as for the algorithm `budget`. A number is cut into that many
intervals with equally many persons of the window, a category climbs to nodes that have their share of them. A row then
leaves when it comes, with the intervals and nodes of its values. The promise is (1 - β, k) over the `universe`, if
columns are independent and the window is like the population: this is not k-anonymity. Somebody may well be the only
one of the stream with a combination.

Persons are counted over a fixed grid of each domain, exactly, each with the last row in the window; no sample of values
is kept. The window moves by panes of an eighth of it, and edges are looked at once a pane. Until the first window is
full, columns are published as their whole domains, and in its first pane nothing is. Afterwards edges only widen:
an interval with too few persons joins a neighbour, and so do nodes, unless next to nobody is there: then their rows are
suppressed. Nothing of it comes back, so whoever ties rows of one person together, whose values stay, learns no more
than from the finest of them.

Lodha and Thomas, Probabilistic Anonymity (PinKDD 2007).

>>> import numpy as np
>>> from microdata import Number, Schema
>>> from stream_algos.engine import Batch
>>> schema = Schema("person", (Number("age", 0, 99, integer=True),))
>>> engine = Quantile(schema, k=3, beta=0.5, universe=40, window=48)
>>> ages = np.random.default_rng(1).integers(20, 60, 60).astype(float)[:, None]
>>> release = engine.push(Batch(np.arange(60), np.zeros(60), np.arange(60), ages, np.empty((60, 0), np.int32)))
>>> sorted(set(zip(release.lo[-12:, 0].tolist(), release.hi[-12:, 0].tolist())))
[(0.0, 27.0), (28.0, 35.0), (41.0, 52.0), (53.0, 99.0)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Category, Hierarchy, InfeasibleError, Schema, Words, system_words
from privacy import ChanceOfK, Model
from privacy.counting import fewest_people, most_combinations
from privacy.keys import MOST
from static_algos.budget import LEAST_WEIGHT, allocate
from static_algos.partitions import cut_evenly
from stream_algos import _quantile_kernels as kernels
from stream_algos._quantile_kernels import BEGIN, END, PERSON, PERSONS, POSITION, State
from stream_algos.at_once import AtOnce, AtOnceParameters, Verdict
from stream_algos.cells import NumberCells, cell_numbers, grid_cells
from stream_algos.engine import MOST_PERSONS, MOST_ROWS, STREAM_ALGORITHMS, Batch, Snapshot

PANES = 8
"""Panes of a window."""
MARGIN = 0.5
"""How much more than its share of the persons an interval has when it is made: else chance would soon widen it."""
UNEVEN = 2
"""Shares that a category may take for each leaf: people are seldom spread evenly over them."""
RARE = 0.05
"""Share of a node's persons whose rows are suppressed rather than publishing the node instead of its children."""
MOST_CELLS = 1 << 16


class QuantileParameters(AtOnceParameters):
    """What quantiles are asked for."""

    k: int = Field(ge=1, le=MOST_PERSONS, description="people of the universe who share a row's values; from 1")
    universe: int = Field(ge=1, le=MOST, description="people of the population that the stream is about")
    beta: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="chance that a combination of values has fewer than k of these people, if columns are independent; "
        "above 0, below 1. Smaller gives coarser columns",
    )
    window: int = Field(ge=PANES, le=MOST_ROWS, description=f"positions whose persons are counted; from {PANES}")
    grid: int = Field(
        default=1024, ge=2, le=MOST_CELLS, description=f"cells of a number's domain; from 2 to {MOST_CELLS}"
    )


@STREAM_ALGORITHMS.register("quantile", QuantileParameters)
class Quantile(AtOnce):
    """No delay: a row leaves with as many parts of each column as a population allows; a chance, not k-anonymity."""

    Parameters = QuantileParameters
    parameters: QuantileParameters
    guarantees = (ChanceOfK,)
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "universe": 500, "window": 80}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = ({"k": 2, "universe": 10_000, "beta": 0.5, "grid": 16},)

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        self._state = self._new_state(1)
        self._pane = np.iinfo(np.int64).min
        self._since: int | None = None
        """The first position of the stream."""
        self._first, self._end = self._whole()
        self._cut = False
        """Whether columns are cut: edges only widen from then on."""
        self._allowed = np.zeros(self._first.shape, bool)
        """Which cells are published: those whose part has its share of the persons."""
        self._sides = self._published()

    @cached_property
    def _cells(self) -> tuple[NumberCells | None, ...]:
        return grid_cells(self.schema, self.parameters.grid)

    @cached_property
    def _sizes(self) -> list[int]:
        """Cells or leaves of each column."""
        both = zip(self.schema.quasi, self._cells, strict=True)
        return [(one.size or 0) if own is None else own.count for one, own in both]

    @cached_property
    def _wider(self) -> list[NDArray[np.int64]]:
        """Of each category's nodes the nearest one above it with more leaves."""
        return [_wider(one.hierarchy) if isinstance(one, Category) else np.empty(0, int) for one in self.schema.quasi]

    @cached_property
    def _model(self) -> ChanceOfK:
        asked = self.parameters
        allowed = most_combinations(asked.universe, asked.k, asked.beta)
        if allowed < 1:
            raise InfeasibleError(
                f"not even one combination has {asked.k} of {asked.universe} people with that chance",
                parameter="universe",
                given=asked.universe,
                nearest=fewest_people(1, asked.k, asked.beta),
            )
        weights = np.maximum(self.schema.weights, LEAST_WEIGHT).tolist()
        domains = [size * UNEVEN if own is None else size for own, size in zip(self._cells, self._sizes, strict=True)]
        values = tuple(allocate(domains, weights, allowed))
        return ChanceOfK(asked.k, asked.beta, asked.universe, values, asked.window, max(asked.window // PANES, 1))

    def models(self) -> tuple[Model, ...]:
        """A chance of k people of the universe, if columns are independent."""
        return (self._model,)

    def needed_from(self) -> int | None:
        """The first row of the window."""
        held = self._held()
        return int(self._state.rows[held[0], POSITION]) if len(held) else None

    def snapshot(self) -> Snapshot:
        """Where columns are cut, and which positions are in the window."""
        positions = self._state.rows[self._held(), POSITION]
        return {
            "begin": positions[:1],
            "first": self._first.copy(),
            "end": self._end.copy(),
            "allowed": self._allowed.copy(),
            "cut": np.array([self._cut]),
            "pane": np.array([self._pane]),
            "since": np.array([] if self._since is None else [self._since], np.int64),
            "last": np.array([self._last]),
        }

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the same edges and window; who is lost is not counted."""
        self._last, self._pane = int(snapshot["last"][0]), int(snapshot["pane"][0])
        self._since = int(snapshot["since"][0]) if len(snapshot["since"]) else None
        self._first, self._end, self._cut = snapshot["first"].copy(), snapshot["end"].copy(), bool(snapshot["cut"][0])
        self._allowed, self._sides = snapshot["allowed"].copy(), self._published()
        held = rows.take(rows.positions >= snapshot["begin"][0]) if len(snapshot["begin"]) else rows.take(slice(0, 0))
        self._state = self._new_state(len(held))
        positions, _, persons, quasi, _ = held.columns()
        kernels.take(self._state, positions, persons, cell_numbers(self._cells, quasi))

    def status(self) -> Mapping[str, float]:
        """Persons of the window, and parts that each column is published in."""
        parts = {
            f"parts_{one.name}": float(len(np.unique(self._first[column, :size])))
            for column, (one, size) in enumerate(zip(self.schema.quasi, self._sizes, strict=True))
        }
        return {
            "window_persons": float(self._state.meta[PERSONS]),
            "suppressed": float(self.decided["suppressed"]),
            **parts,
        }

    def _judge(self, rows: Batch) -> Verdict:
        positions, _, persons, quasi, _ = rows.columns()
        if self._since is None:
            self._since = int(positions[0])
        cells = cell_numbers(self._cells, quasi)
        pane = positions // self._model.pane
        starts = np.append(np.flatnonzero(np.diff(pane, prepend=self._pane)), len(rows))
        if not len(starts) or starts[0] > 0:
            starts = np.append(0, starts)
        leaves = np.zeros(len(rows), bool)
        lo, hi = np.empty(quasi.shape), np.empty(quasi.shape)
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if pane[start] != self._pane:
                self._begin_pane(int(pane[start]))
            own = slice(start, stop)
            leaves[own] = True
            for column, sides in enumerate(self._sides):
                place = cells[own, column]
                lo[own, column], hi[own, column] = sides[0][place], sides[1][place]
                leaves[own] &= self._allowed[column][place]
            self._make_room(stop - start)
            kernels.take(self._state, positions[own], persons[own], cells[own])
        first = np.maximum(pane * self._model.pane - self.parameters.window, 0)
        return Verdict(leaves, lo[leaves], hi[leaves], first[leaves])

    def _pass(self, position: int) -> None:
        kernels.expire(self._state, self._window_begin((position + 1) // self._model.pane))

    def _window_begin(self, pane: int) -> int:
        """The first position that counts for rows of this pane."""
        return pane * self._model.pane - self.parameters.window

    def _begin_pane(self, pane: int) -> None:
        """Look at the edges, with the persons of the window before this pane."""
        self._pane = pane
        kernels.expire(self._state, self._window_begin(pane))
        persons = int(self._state.meta[PERSONS])
        needed = self._model.needed(persons)
        full = self._since is not None and self._window_begin(pane) >= self._since
        for column, (one, size) in enumerate(zip(self.schema.quasi, self._sizes, strict=True)):
            counts = self._state.counts[column, :size]
            first, end = self._first[column, :size], self._end[column, :size]
            least = int(needed[column])
            if persons >= self.parameters.k and (self._cut or full):
                if isinstance(one, Category):
                    if not self._cut:
                        first[:] = end[:] = np.arange(size)
                    _climb(one.hierarchy, self._wider[column], first, end, counts, least)
                else:
                    starts = np.unique(first) if self._cut else _cut_evenly(counts, least)
                    starts = _joined(starts, counts, least)
                    sizes = np.diff(starts, append=size)
                    first[:], end[:] = np.repeat(starts, sizes), np.repeat(starts + sizes - 1, sizes)
            before = np.append(0, np.cumsum(counts))
            self._allowed[column, :size] = before[end + 1] - before[first] >= least
        self._cut = self._cut or (full and persons >= self.parameters.k)
        self._sides = self._published()

    def _whole(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last cell of what each cell is published as, in each column: the whole domain."""
        first = np.zeros((len(self._sizes), max(self._sizes)), np.int64)
        return first, first + np.array(self._sizes)[:, None] - 1

    def _published(self) -> list[tuple[NDArray[np.float64], ...]]:
        """Lower and upper end of what each cell is published as, in each column."""
        sides = []
        for column, (own, size) in enumerate(zip(self._cells, self._sizes, strict=True)):
            first, end = self._first[column, :size], self._end[column, :size]
            sides.append((first.astype(np.float64), end.astype(np.float64)) if own is None else own.sides(first, end))
        return sides

    def _held(self) -> NDArray[np.int64]:
        """Places of the rows of the window, the oldest first."""
        meta = self._state.meta
        return np.arange(meta[BEGIN], meta[END]) & (len(self._state.rows) - 1)

    def _new_state(self, rows: int) -> State:
        """An empty window with room for so many rows, and up to twice as many."""
        return kernels.new_state(len(self._sizes), max(self._sizes), 1 << max(rows - 1, 0).bit_length())

    def _make_room(self, rows: int) -> None:
        """See to room for so many further rows."""
        old, held = self._state, self._held()
        if len(held) + rows <= len(old.rows):
            return
        self._state = self._new_state(len(held) + rows)
        positions, persons = np.ascontiguousarray(old.rows[held][:, [POSITION, PERSON]].T)
        kernels.take(self._state, positions, persons, old.cells[held].astype(np.int64))


def _cut_evenly(counts: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Where intervals begin that have about so many persons and the margin."""
    known = np.flatnonzero(counts)
    starts = cut_evenly(known.astype(np.float64), counts[known], math.ceil((1 + MARGIN) * least)).astype(np.int64)
    return np.append(0, starts[1:])


def _joined(starts: NDArray[np.int64], counts: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """The same intervals, where those with too few persons have joined the neighbour that has fewer."""
    sizes, kept = np.add.reduceat(counts, starts).tolist(), starts.tolist()
    while len(kept) > 1 and min(sizes) < least:
        place = int(np.argmin(sizes))
        left = place > 0 and (place == len(kept) - 1 or sizes[place - 1] <= sizes[place + 1])
        into = place - 1 if left else place
        sizes[into] += sizes.pop(into + 1)
        del kept[into + 1]
    return np.array(kept)


def _wider(tree: Hierarchy) -> NDArray[np.int64]:
    """Of each node the nearest one above it with more leaves, -1 where there is none: an only child tells the same."""
    wider = tree.parent.astype(np.int64)
    while True:
        same = (wider >= 0) & (tree.first[wider] == tree.first) & (tree.last[wider] == tree.last)
        if not same.any():
            return wider
        wider[same] = tree.parent[wider[same]]


def _climb(
    tree: Hierarchy,
    wider: NDArray[np.int64],
    first: NDArray[np.int64],
    end: NDArray[np.int64],
    counts: NDArray[np.int64],
    least: int,
) -> None:
    """Publish wider nodes where too many of their persons are in nodes with too few."""
    before = np.append(0, np.cumsum(counts))
    while True:
        starts = np.unique(first)
        own = before[end[starts] + 1] - before[starts]
        parents = wider[tree.lca(starts.astype(np.float64), end[starts].astype(np.float64))]
        few = np.zeros(len(tree.parent), np.int64)
        poor = (own < least) & (parents >= 0)
        np.add.at(few, parents[poor], own[poor])
        whole = before[tree.last + 1] - before[tree.first]
        climbing = np.flatnonzero(few > RARE * whole)
        if not len(climbing):
            return
        for node in climbing[np.argsort(tree.height[climbing])].tolist():
            own_leaves = slice(int(tree.first[node]), int(tree.last[node]) + 1)
            first[own_leaves], end[own_leaves] = tree.first[node], tree.last[node]

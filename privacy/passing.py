"""Rows that leave one by one, at once: each is held against the rows that came within a window before it.

No class leaves together with such a row. Its company are persons who passed: their rows came before, and left with
other boxes or not at all. So what these models need is the window itself, and whoever checks them finds it by the
positions of the rows, whatever an engine says.

- `ZAnonymity`: z persons with a row in the box. Jha et al., z-anonymity: zero-delay anonymization for data streams
  (IEEE Big Data 2020).
- `ChanceOfK`: each side of the box has its share of the persons, so that with independent columns k people of a
  declared population are in the box with a chance. That is not k-anonymity. Lodha and Thomas, Probabilistic Anonymity
  (PinKDD 2007).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from microdata import GuaranteeError, InfeasibleError, Schema, geometry
from privacy._passing_kernels import box_numbers, cells_of, count_passed, person_numbers
from privacy.counting import fewest_people, most_combinations
from privacy.model import Groups, Model, require_parameter, require_whole


@dataclass(frozen=True, eq=False)
class Passing:
    """Entries, each a row that leaves with a box, and all rows that may be within the window of one of them."""

    positions: NDArray[np.int64]
    times: NDArray[np.float64]
    persons: NDArray[np.int64]
    quasi: NDArray[np.float64]
    """The rows that came, in the order of positions."""
    own: NDArray[np.int64]
    """Index of the row of each entry."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]


class PassingModel(Model):
    """A condition on a row that leaves alone, held against the rows of a window."""

    checked_on = "window"
    survives_merging = False
    survives_adding = False
    more_is_safer = True
    only_widens: ClassVar[bool] = False
    """Whether the sides of boxes that leave later contain those that left before, wherever they meet."""

    @abstractmethod
    def company(self, passing: Passing) -> NDArray[np.int64]:
        """Persons behind each entry, as far as it takes to decide; 0 where it must not leave."""

    def judged(self, passing: Passing) -> Groups:
        """The entries as classes of one row, with the persons behind them."""
        ones = np.ones(len(passing.own), np.int64)
        return Groups(ones, ones, ones, (), self.company(passing))

    def nearest(self, achieved: float) -> int:
        """A number of persons."""
        return int(achieved)

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """Persons behind each row."""
        if groups.company is None:
            raise GuaranteeError(f"{self.name} is checked on the rows of a window; there is none")
        return groups.company.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether there are enough persons."""
        return self.achieved(groups) >= self.asked


@dataclass(frozen=True)
class ZAnonymity(PassingModel):
    """A row leaves only with values that at least `z` persons, its own among them, have shown within the window.

    The window are the last `tuples` positions, the row's own included; with `seconds`, only rows that came less than so
    long before. No more than z persons are counted: what is achieved is z, or less where it does not hold.
    """

    z: int
    tuples: int
    seconds: float | None = None

    name = "z-anonymity"
    parameter = "z"

    def __post_init__(self) -> None:
        require_whole("z", self.z)
        require_whole("tuples", self.tuples)

    @property
    def least_persons(self) -> int:
        """As many as `z`."""
        return self.z

    def company(self, passing: Passing) -> NDArray[np.int64]:
        """Persons with a row in the box within the window, `z` at the most."""
        own, positions = passing.own, passing.positions
        first = np.searchsorted(positions, positions[own] - self.tuples, side="right")
        if self.seconds is not None:
            clock = np.maximum.accumulate(passing.times)  # one that is set back makes nothing younger
            first = np.maximum(first, np.searchsorted(clock, clock[own] - self.seconds, side="right"))
        if not len(own):
            return np.empty(0, np.int64)
        turn = np.argsort(own, kind="stable")
        begin = int(first.min())
        rows = slice(begin, int(own.max()) + 1)
        found = np.empty(len(own), np.int64)
        found[turn] = _persons_in(
            passing.lo[turn],
            passing.hi[turn],
            first[turn] - begin,
            own[turn] - begin,
            passing.persons[rows],
            passing.quasi[rows],
        )
        return np.minimum(found, self.z)


@dataclass(frozen=True)
class ChanceOfK(PassingModel):
    """With a chance of 1 - `beta`, `k` of `universe` people share a row's values, if columns are independent.

    The people are spread over Π `values` combinations, no more than that chance allows. Whether column c really has
    `values[c]` parts with equally many people is checked on the persons of the window, each with the last row: every
    side of a box has its share of them, and k at the least. It is the window before the row's pane: `tuples` positions
    that end at the last multiple of `pane`.
    """

    k: int
    beta: float
    universe: int
    values: tuple[int, ...]
    tuples: int
    pane: int

    name = "chance-of-k"
    parameter = "k"
    only_widens = True

    def __post_init__(self) -> None:
        require_whole("k", self.k)
        require_parameter("beta", self.beta, 0 < self.beta < 1, "above 0 and below 1")
        require_whole("universe", self.universe)
        allowed = most_combinations(self.universe, self.k, self.beta)
        if math.prod(self.values) > allowed:
            raise InfeasibleError(
                f"{math.prod(self.values):,} combinations leave fewer than k of the people in each; at most "
                f"{allowed:,.0f}",
                parameter="universe",
                given=self.universe,
                nearest=fewest_people(math.prod(self.values), self.k, self.beta),
            )

    @property
    def label(self) -> str:
        """What is promised, and that it is no more than a chance."""
        return f"{self.k} of {self.universe:,} people with a chance of {1 - self.beta:g} if columns are independent"

    def basis(self, groups: Groups) -> str:
        """Persons of the window, side by side."""
        del groups
        return "persons of the window who have one column's values"

    def needed(self, persons: int) -> NDArray[np.int64]:
        """Persons of the window that a side of a box must have in each column, where there are so many in all."""
        return np.array([max(self.k, -(-persons // values)) for values in self.values])

    def company(self, passing: Passing) -> NDArray[np.int64]:
        """Persons in the side of each box that has the fewest; 0 where one has less than its share."""
        ends = passing.positions[passing.own] // self.pane * self.pane
        found = np.zeros(len(passing.own), np.int64)
        for end in np.unique(ends):
            chosen = np.flatnonzero(ends == end)
            begin, stop = np.searchsorted(passing.positions, [end - self.tuples, end])
            window = slice(int(begin), int(stop))
            values = np.sort(last_values(passing.persons[window], passing.quasi[window]), axis=0)
            needed, fewest = self.needed(len(values)), np.full(len(chosen), len(values))
            for column, least in enumerate(needed.tolist()):
                lo, hi = passing.lo[chosen, column], passing.hi[chosen, column]
                inside = np.searchsorted(values[:, column], hi, side="right") - np.searchsorted(values[:, column], lo)
                fewest = np.minimum(fewest, np.where(inside >= least, inside, 0))
            found[chosen] = fewest
        return found


def _persons_in(
    lo: NDArray[np.float64],
    hi: NDArray[np.float64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Persons with a row in each box among the rows from first to last, neither of which ever goes back."""
    boxes, examples = box_numbers(lo, hi)
    low, high = lo[examples], hi[examples]
    sides, wide = np.empty(low.shape, np.int64), np.zeros(len(low))
    begin, end, cells = (np.empty(own.shape, np.int32) for own in (low, high, quasi))
    for column in range(quasi.shape[1]):
        sides[:, column] = box_numbers(low[:, [column]], high[:, [column]])[0]
        edges = np.unique(np.concatenate([low[:, column], high[:, column]]))
        for values, own_cells in ((low, begin), (high, end), (quasi, cells)):
            cells_of(edges, values[:, column], own_cells[:, column])
        wide += (high[:, column] - low[:, column]) / max(edges[-1] - edges[0], np.finfo(float).tiny)
    order = np.argsort(-wide, kind="stable")
    people, each = person_numbers(persons)
    return count_passed(order, sides, begin, end, boxes, first, last, cells, people, len(each))


def last_values(persons: NDArray[np.int64], quasi: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of the last row of each person."""
    return quasi[person_numbers(persons)[1]]


class Edges:
    """The sides of boxes that left: whatever leaves later contains them or lies beside them.

    So whoever ties rows of one person together, whose values stay, learns no more than from one of them. A side that is
    the whole domain says nothing and is not remembered.
    """

    def __init__(self, schema: Schema) -> None:
        space = geometry(schema)
        self._ends = list(zip(space.low.tolist(), space.high.tolist(), strict=True))
        self._sides: list[NDArray[np.float64]] = [np.empty((0, 2)) for _ in schema.quasi]

    def widen(self, lo: NDArray[np.float64], hi: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of these boxes, in the order in which they leave, cuts none of those before it."""
        fit = np.ones(len(lo), bool)
        for column, ends in enumerate(self._ends):
            numbers, examples = box_numbers(lo[:, [column]], hi[:, [column]])
            sides = zip(lo[examples, column].tolist(), hi[examples, column].tolist(), strict=True)
            good = np.array([side == ends or self._take(column, *side) for side in sides], bool)
            fit &= good[numbers]
        return fit

    def _take(self, column: int, lo: float, hi: float) -> bool:
        """Remember a side, in the place of those that it contains; False where it cuts one."""
        known = self._sides[column]
        contained = (lo <= known[:, 0]) & (known[:, 1] <= hi)
        beside = (known[:, 1] < lo) | (hi < known[:, 0])
        if hi > lo:  # neighbours of a continuous domain touch
            beside |= (known[:, 0] < known[:, 1]) & ((known[:, 1] == lo) | (hi == known[:, 0]))
        if not (contained | beside).all():
            return False
        self._sides[column] = np.concatenate([known[~contained], [[lo, hi]]])
        return True

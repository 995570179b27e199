"""Full-domain generalization: what every search shares that looks for one level of each quasi-identifier.

The combinations of levels form a lattice: from all values as they are up to nothing known at all. Frequencies are taken
once; more general combinations add them up. Rows of classes that break the guarantee may be left out, up to a limit.

If a combination keeps the guarantee, so does every more general one, as long as the models survive merging. Where rows
may be left out this is not enough: rows of a class that was left out may join one that was not, and break it. Then only
models that survive adding (k, distinct ℓ) are inherited, and whoever searches must look at every combination that these
allow. What is inherited by more general combinations is inherited by those of fewer quasi-identifiers too.
"""

from __future__ import annotations

import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from microdata import Boxes, InfeasibleError, Progress, Publication, Schema, Table, silent
from privacy import KEYS, Groups, Guarantee, Model, SensitiveModel, check, check_feasible
from privacy.exact import exact
from static_algos._full_domain_kernels import gather
from static_algos.algorithm import StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.frequencies import Frequencies
from static_algos.proof import proven
from static_algos.recoding import Height, Recoding, Widths, recodings

Node: TypeAlias = tuple[int, ...]
"""A level for each quasi-identifier."""

MOST_NODES = 2_000_000
"""Largest lattice that is searched."""
MOST_SUPPRESSED = 10**12


class FullDomainParameters(Guarantee, Parameters):
    """Any guarantee, what may be left out, and the levels of numbers."""

    suppression: float = Field(
        default=0, ge=0, lt=1, description="largest share of the rows that may be left out; from 0, below 1"
    )
    max_suppressed: int | None = Field(
        default=None, ge=0, le=MOST_SUPPRESSED, description="the same as a number of rows, instead of suppression"
    )
    height: Height = 4
    widths: Widths = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_limit(self) -> FullDomainParameters:
        if self.suppression and self.max_suppressed is not None:
            raise InfeasibleError("suppression is given too; leave out one of them", parameter="max_suppressed")
        return self

    def limit(self, rows: int) -> int:
        """How many of so many rows may be left out."""
        if self.max_suppressed is not None:
            return min(self.max_suppressed, rows)
        return math.floor(exact(self.suppression) * rows)


class Generalization(NamedTuple):
    """What publishing at these levels means; a suppressed row counts as lost altogether."""

    loss: float
    levels: Node
    classes: int
    suppressed: int

    @property
    def height(self) -> int:
        """Steps above the table as it is."""
        return sum(self.levels)

    def described(self, schema: Schema) -> dict[str, object]:
        """The same by the names of the quasi-identifiers."""
        names = [attribute.name for attribute in schema.quasi]
        return {
            "levels": dict(zip(names, self.levels, strict=True)),
            "loss": self.loss,
            "classes": self.classes,
            "suppressed": self.suppressed,
        }


class FullDomain(StaticAlgorithm):
    """An algorithm that publishes each quasi-identifier at one level. Subclasses say how they search."""

    parameters: FullDomainParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "l": 2, "t": 0.9, "beta": 9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What the parameters ask for."""
        return self.parameters.models(schema)

    @abstractmethod
    def search(
        self, lattice: Lattice, progress: Progress
    ) -> tuple[Generalization | None, Sequence[Generalization] | None]:
        """The combination to publish, None if none keeps the guarantee; and all minimal ones, where they are known."""

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Find the levels and publish at them. Nothing is random; suppressed rows are whole classes."""
        del seed
        asked = self.parameters
        models, limit = self.models(table.schema), asked.limit(len(table))
        if not limit:
            check_feasible(models, table)
        recoded = recodings(table, asked.height, asked.widths)
        check_size(recoded)
        if not len(table):
            return publish(table, recoded, (0,) * len(recoded), models)
        lattice = Lattice(table, recoded, models, limit)
        chosen, minimal = self.search(lattice, progress)
        if chosen is None:
            check_feasible(models, table)
            raise InfeasibleError("no generalization of the table meets it", parameter="guarantee")
        details = {
            **chosen.described(table.schema),
            "looked_at": lattice.looked_at,
            **({} if minimal is None else {"minimal": [one.described(table.schema) for one in minimal]}),
        }
        return proven(publish(table, recoded, chosen.levels, models, details), models)


class Lattice:
    """The nodes over all quasi-identifiers of a table, and whether they keep the guarantee."""

    def __init__(self, table: Table, recoded: Sequence[Recoding], models: Sequence[Model], limit: int) -> None:
        self.schema, self.recoded, self.models, self.limit = table.schema, recoded, models, limit
        self.heights = tuple(len(one.levels) for one in recoded)
        self.base = Frequencies.of(table, np.stack([one.codes for one in recoded], axis=1))
        self.references = table.schema.histograms(table.sensitive)
        # What is inherited by more general nodes, and by subsets of the quasi-identifiers.
        self.inherited = [model for model in models if (model.survives_adding if limit else model.survives_merging)]
        self.others = [model for model in models if model not in self.inherited]
        self.rows = len(table)
        self.looked_at = 0

    def codes(self, frequencies: Frequencies, subset: Sequence[int], node: Sequence[int]) -> NDArray[np.int32]:
        """The codes of groups at this node of this subset."""
        return np.stack(
            [
                self.recoded[a].levels[level].group[frequencies.codes[:, a]]
                for a, level in zip(subset, node, strict=True)
            ],
            axis=1,
        )

    def judged(self, frequencies: Frequencies, models: Sequence[Model]) -> NDArray[np.bool_]:
        """Which groups meet the models; only those about persons are asked if they rule out too many rows."""
        about = [isinstance(model, SensitiveModel) for model in models]
        holds = np.ones(len(frequencies.rows), bool)
        for sensitive in (False, True):
            some = [model for model, one in zip(models, about, strict=True) if one == sensitive]
            if some and frequencies.rows[~holds].sum() <= self.limit:
                holds &= check(some, frequencies.groups(self.schema, self.references, sensitive=sensitive))
        return holds

    def keeps_inherited(self, frequencies: Frequencies) -> bool:
        """Whether no more rows break what is inherited than may be left out."""
        return bool(frequencies.rows[~self.judged(frequencies, self.inherited)].sum() <= self.limit)

    def outcome(self, merged: Frequencies, node: Node) -> Generalization | None:
        """What publishing at this node means; None if it breaks what is inherited, and so does every node below."""
        holds = self.judged(merged, self.inherited)
        if merged.rows[~holds].sum() > self.limit:
            return None
        holds &= self.judged(merged, self.others)
        suppressed = int(merged.rows[~holds].sum())
        codes = self.codes(merged, range(len(node)), node)
        loss = np.zeros(len(codes))
        for a, level in enumerate(node):
            loss += self.schema.weights[a] * self.recoded[a].levels[level].loss[codes[:, a]]
        lost = float(loss[holds] @ merged.rows[holds]) + suppressed
        return Generalization(lost / self.rows, node, int(holds.sum()), suppressed)

    def bound(self) -> NDArray[np.float64]:
        """The loss of every node if nothing is suppressed there: the least it can be."""
        result = np.zeros(self.heights)
        for a, one in enumerate(self.recoded):
            code = self.base.codes[:, a]
            means = [level.loss[level.group[code]] @ self.base.rows / self.rows for level in one.levels]
            shape = [1] * len(self.heights)
            shape[a] = -1
            result += self.schema.weights[a] * np.array(means).reshape(shape)
        return result


class Ladder:
    """Frequencies of the nodes of one subset; a node adds up the fewest groups that any node below it left behind."""

    def __init__(self, lattice: Lattice, subset: Sequence[int], possible: NDArray[np.bool_]) -> None:
        self.lattice, self.subset = lattice, subset
        self.known: list[tuple[Node, Frequencies]] = [((0,) * len(subset), lattice.base)]
        self.room = len(lattice.base.rows)
        if possible.any():
            self.climb(tuple(np.argwhere(possible).min(axis=0).tolist()))

    def climb(self, node: Node) -> Frequencies:
        """The frequencies at this node."""
        below = (found for known, found in self.known if all(map(operator.le, known, node)))
        base = min(below, key=lambda found: len(found.rows))
        merged = base.merged(self.lattice.codes(base, self.subset, node))
        self.lattice.looked_at += 1
        # What is kept never has more groups than the table has distinct rows.
        if len(merged.rows) <= self.room:
            self.room -= len(merged.rows)
            self.known.append((node, merged))
        return merged


def explore(lattice: Lattice, possible: NDArray[np.bool_], progress: Progress, *, every: bool) -> list[Generalization]:
    """Nodes among the possible ones that keep the guarantee, the best first; all minimal ones with `every`.

    Each look settles other nodes too: what is inherited fails below a node that fails, and where everything is
    inherited, nothing above a node that holds is minimal.
    """
    unknown = possible.copy()
    if not unknown.any():
        return []
    ladder, bound = Ladder(lattice, range(unknown.ndim), unknown), lattice.bound()
    found: list[Generalization] = []
    while (left := unknown if every or not found else unknown & (bound < min(found).loss)).any():
        progress("choosing", unknown.size - int(left.sum()), unknown.size)
        node = middle(left)
        outcome = lattice.outcome(ladder.climb(node), node)
        unknown[node] = False
        if outcome is None:
            unknown[below(node)] = False
        elif outcome.suppressed <= lattice.limit:
            found.append(outcome)
            # Above, fewer rows may be suppressed, which can pay for wider intervals.
            if not lattice.others and (every or not lattice.limit):
                unknown[above(node)] = False
    return sorted(found)


def allowed_by_subsets(lattice: Lattice, progress: Progress) -> NDArray[np.bool_]:
    """The nodes over all quasi-identifiers that no smaller subset rules out.

    Larger and larger subsets are searched, as long as they rule out more nodes than they cost to look at.
    """
    heights = lattice.heights
    possible = np.ones(heights, bool)
    holding: dict[Node, NDArray[np.bool_]] = {}
    for size in range(1, len(heights) if lattice.inherited else 1):
        before, cost = int(possible.sum()), lattice.looked_at
        smaller, holding = holding, {}
        for subset in itertools.combinations(range(len(heights)), size):
            progress("pruning", possible.size - int(possible.sum()), possible.size)
            holding[subset] = _holding(lattice, subset, _possible(heights, subset, smaller))
            possible &= np.expand_dims(holding[subset], [a for a in range(len(heights)) if a not in subset])
        if size > 1 and before - possible.sum() < lattice.looked_at - cost:
            break
    return possible


def _holding(lattice: Lattice, subset: Sequence[int], possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which nodes of a subset of the quasi-identifiers keep what is inherited."""
    holding = np.zeros_like(possible)
    unknown = possible.copy()
    ladder = Ladder(lattice, subset, possible)
    while unknown.any():
        node = middle(unknown)
        if lattice.keeps_inherited(ladder.climb(node)):
            holding[above(node)] = True
            unknown[above(node)] = False
        else:
            unknown[below(node)] = False
    return holding


def _possible(heights: Node, subset: Node, smaller: Mapping[Node, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """The nodes of a subset that hold in every subset with one quasi-identifier less."""
    result = np.ones([heights[a] for a in subset], bool)
    for axis in range(len(subset)):
        rest = subset[:axis] + subset[axis + 1 :]
        if rest in smaller:
            result &= np.expand_dims(smaller[rest], axis)
    return result


def minimal_of(found: Sequence[Generalization]) -> list[Generalization]:
    """Those below which none was found."""
    nodes = np.array([one.levels for one in found])
    return [one for one in found if (nodes <= one.levels).all(axis=1).sum() == 1]


def middle(nodes: NDArray[np.bool_]) -> Node:
    """One of the nodes at half height: whatever its answer, it settles many others."""
    found = np.argwhere(nodes)
    order = np.argsort(found.sum(axis=1), kind="stable")
    return tuple(int(level) for level in found[order[len(order) // 2]])


def above(node: Node) -> tuple[slice, ...]:
    """The node and all that are more general, as an index."""
    return tuple(slice(level, None) for level in node)


def below(node: Node) -> tuple[slice, ...]:
    """The node and all that are more special, as an index."""
    return tuple(slice(None, level + 1) for level in node)


def check_size(recoded: Sequence[Recoding]) -> None:
    """Refuse a lattice that is too large to be searched."""
    nodes = math.prod(len(one.levels) for one in recoded)
    if nodes > MOST_NODES:
        counted = str(nodes) if nodes < 10**12 else f"10^{math.floor(math.log10(nodes))}"
        raise InfeasibleError(
            f"{counted} combinations of levels are too many to search (at most {MOST_NODES}); use "
            "fewer quasi-identifiers, flatter hierarchies or a smaller height",
            parameter="height",
        )


def publish(
    table: Table,
    recoded: Sequence[Recoding],
    node: Node,
    models: Sequence[Model],
    details: Mapping[str, object] | None = None,
) -> Publication:
    """The table at this node, without the classes that break the guarantee."""
    chosen = [one.levels[level] for one, level in zip(recoded, node, strict=True)]
    codes = np.stack([level.group[one.codes] for level, one in zip(chosen, recoded, strict=True)], axis=1)
    label, example = gather(codes)
    groups = Groups.of(table.schema, table.persons, table.sensitive, label, len(example), people=table.people)
    holds = check(models, groups)
    number = np.where(holds, np.cumsum(holds) - 1, -1).astype(np.int32)
    kept = codes[example[holds]]
    lo = np.stack([level.lo[kept[:, a]] for a, level in enumerate(chosen)], axis=1)
    hi = np.stack([level.hi[kept[:, a]] for a, level in enumerate(chosen)], axis=1)
    return Publication(table, number[label], Boxes(table.schema, lo, hi), details or {})

"""Incognito: one level of generalization for each quasi-identifier, the same for all rows.

The combinations of levels form a lattice. If a combination keeps the guarantee, so does every more general one; and
what fails for some of the quasi-identifiers fails for all of them. So subsets are searched first, from single
quasi-identifiers up, and only what every smaller subset allows is looked at. Frequencies are taken once; more general
combinations add them up.

Rows of classes that break the guarantee may be suppressed, up to a limit. A guarantee that more rows can break
(t, β, …) is then not inherited along the lattice: subsets are pruned by the others (k, distinct ℓ) alone, and every
combination that is left is looked at. With t this is the literature's tIncognito.

LeFevre, DeWitt and Ramakrishnan, Incognito: Efficient Full-Domain K-Anonymity (2005).

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema, Table
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99, integer=True),))
>>> ages = np.array([[21.0], [22.0], [25.0], [61.0], [63.0], [70.0]])
>>> table = Table(schema, np.arange(6), ages, np.empty((6, 0), np.int32))
>>> publication = Incognito(k=3, widths={"age": [10, 50]}).anonymize(table)
>>> publication.boxes.lo.ravel().tolist(), publication.boxes.hi.ravel().tolist()
([0.0, 50.0], [49.0, 99.0])
>>> publication.details["levels"]
{'age': 2}
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Boxes, InfeasibleError, Progress, Publication, Schema, Table, silent
from privacy import KEYS, Groups, Guarantee, Histogram, Model, SensitiveModel, check, check_feasible
from privacy.exact import exact
from static_algos._histogram_kernels import add_up
from static_algos._incognito_kernels import gather
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.proof import proven
from static_algos.recoding import Recoding, recodings

Node: TypeAlias = tuple[int, ...]
"""A level for each quasi-identifier."""

MOST_NODES = 2_000_000
"""Largest lattice that is searched."""
MOST_WIDTHS = 100
MOST_FIELDS = 1_000
"""Numbers with widths of their own."""


class IncognitoParameters(Guarantee, Parameters):
    """Any guarantee, and how to generalize."""

    suppression: float = Field(
        default=0, ge=0, lt=1, description="largest share of the rows that may be left out; from 0, below 1"
    )
    choose: Literal["best", "minimal"] = Field(
        default="best",
        description="best: search for the least loss; minimal: search for all minimal generalizations, report them, "
        "and publish the one of least loss",
    )
    height: int = Field(
        default=4, ge=1, description="levels above a number's values, the whole domain included; from 1"
    )
    widths: Mapping[str, Annotated[list[float], Field(min_length=1, max_length=MOST_WIDTHS)]] = Field(
        default_factory=dict,
        max_length=MOST_FIELDS,
        description="interval widths of some numbers instead, from small to large, each a multiple of the one before",
    )


@STATIC_ALGORITHMS.register("incognito", IncognitoParameters)
class Incognito(StaticAlgorithm):
    """Generalizes each quasi-identifier to one level for all rows, as little as the guarantee allows."""

    Parameters = IncognitoParameters
    parameters: IncognitoParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "l": 2, "t": 0.9, "beta": 9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What the parameters ask for."""
        return self.parameters.models(schema)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Find the levels and publish at them. Nothing is random; suppressed rows are whole classes."""
        del seed
        asked = self.parameters
        models = self.models(table.schema)
        if not asked.suppression:
            check_feasible(models, table)
        recoded = recodings(table, asked.height, asked.widths)
        if not len(table):
            return publish(table, recoded, (0,) * len(recoded), models)
        lattice = Lattice(table, recoded, models, limit=math.floor(exact(asked.suppression) * len(table)))
        every = asked.choose == "minimal"
        found = search(lattice, progress, every=every)
        if not found:
            check_feasible(models, table)
            raise InfeasibleError("no generalization of the table meets it", parameter="guarantee")
        minimal = _minimal(found)
        chosen = minimal[0] if every else found[0]
        details = {
            **_described(chosen, table.schema),
            "looked_at": lattice.looked_at,
            **({"minimal": [_described(one, table.schema) for one in minimal]} if every else {}),
        }
        return proven(publish(table, recoded, chosen.node, models, details), models)


class Sparse(NamedTuple):
    """Histograms of groups over the values 0 … size - 1."""

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]
    size: int

    def merged(self, label: NDArray[np.int32], groups: int) -> Sparse:
        """Add up the histograms that have the same label."""
        return Sparse(*add_up(label, groups, self.starts, self.values, self.counts, self.size), self.size)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Groups of rows that share their codes, and what the models need to know about them."""

    codes: NDArray[np.int32]
    """Codes of level 0, of one row of each group."""
    rows: NDArray[np.int64]
    persons: Sparse | None
    """None where every row is another person."""
    parts: tuple[Sparse, ...]
    """Sensitive values of finer groups, not yet added up: many nodes fail before anybody asks for them."""
    label: NDArray[np.int32]
    """Group of each of those finer groups."""

    @classmethod
    def of(cls, table: Table, recoded: Sequence[Recoding]) -> Frequencies:
        """Every distinct row of the table."""
        each, ones = np.arange(len(table) + 1), np.ones(len(table), np.int64)
        people, person = np.unique(table.persons, return_inverse=True)
        repeated = len(people) < len(table)
        columns = zip(table.schema.sensitive, table.sensitive.T, strict=True)
        single = cls(
            codes=np.stack([one.codes for one in recoded], axis=1),
            rows=ones,
            persons=Sparse(each, person.astype(np.int32), ones, len(people)) if repeated else None,
            parts=tuple(
                Sparse(each, np.ascontiguousarray(column), ones, attribute.size or 0) for attribute, column in columns
            ),
            label=np.arange(len(table), dtype=np.int32),
        )
        return single.merged(single.codes)

    @cached_property
    def sensitive(self) -> tuple[Sparse, ...]:
        """Histograms of the sensitive attributes."""
        return tuple(one.merged(self.label, len(self.rows)) for one in self.parts)

    def merged(self, codes: NDArray[np.int32]) -> Frequencies:
        """Join the groups whose rows of `codes` are equal."""
        label, example = gather(codes)
        count = len(example)
        return Frequencies(
            codes=self.codes[example],
            rows=np.bincount(label, self.rows, count).astype(np.int64),
            persons=None if self.persons is None else self.persons.merged(label, count),
            parts=self.sensitive,
            label=label,
        )

    def groups(self, schema: Schema, references: Sequence[NDArray[np.int64]], *, sensitive: bool) -> Groups:
        """The groups as the models see them, with histograms if these are needed."""
        if self.persons is None:
            persons, most = self.rows, np.minimum(self.rows, 1)
        else:
            persons = np.diff(self.persons.starts)
            most = np.maximum.reduceat(self.persons.counts, self.persons.starts[:-1])
        described = zip(schema.sensitive, references, self.sensitive, strict=True) if sensitive else ()
        histograms = [Histogram(attribute, known, *one[:3]) for attribute, known, one in described]
        return Groups(self.rows, persons, most, tuple(histograms))


class Outcome(NamedTuple):
    """What publishing at a node means; a suppressed row counts as lost altogether."""

    loss: float
    node: Node
    classes: int
    suppressed: int


class Lattice:
    """The nodes over all quasi-identifiers of a table, and whether they keep the guarantee."""

    def __init__(self, table: Table, recoded: Sequence[Recoding], models: Sequence[Model], limit: int) -> None:
        self.schema, self.recoded, self.models, self.limit = table.schema, recoded, models, limit
        self.heights = tuple(len(one.levels) for one in recoded)
        self.base = Frequencies.of(table, recoded)
        self.references = table.schema.histograms(table.sensitive)
        # What is inherited by more general nodes, and by subsets of the quasi-identifiers.
        self.inherited = [model for model in models if (model.survives_adding if limit else model.survives_merging)]
        self.others = [model for model in models if model not in self.inherited]
        self.rows = len(table)
        self.looked_at = 0
        if math.prod(self.heights) > MOST_NODES:
            raise InfeasibleError(
                f"{_counted(math.prod(self.heights))} combinations of levels are too many to search (at most "
                f"{MOST_NODES}); use "
                "fewer quasi-identifiers, flatter hierarchies or a smaller height",
                parameter="height",
            )

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

    def explore(self, subset: Sequence[int], possible: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which nodes of a subset of the quasi-identifiers keep what is inherited."""
        holding = np.zeros_like(possible)
        unknown = possible.copy()
        ladder = _Ladder(self, subset, possible)
        while unknown.any():
            node = _middle(unknown)
            merged = ladder.climb(node)
            if merged.rows[~self.judged(merged, self.inherited)].sum() <= self.limit:
                holding[_above(node)] = True
                unknown[_above(node)] = False
            else:
                unknown[_below(node)] = False
        return holding

    def outcome(self, merged: Frequencies, node: Node) -> Outcome | None:
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
        return Outcome(lost / self.rows, node, int(holds.sum()), suppressed)

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


def _counted(number: int) -> str:
    """A count for a message, however large."""
    return str(number) if number < 10**12 else f"10^{math.floor(math.log10(number))}"


class _Ladder:
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


def search(lattice: Lattice, progress: Progress, *, every: bool) -> list[Outcome]:
    """Nodes that keep the guarantee, the best first; all minimal ones are among them with `every`."""
    unknown = _prune(lattice, progress)
    if not unknown.any():
        return []
    ladder, bound = _Ladder(lattice, range(unknown.ndim), unknown), lattice.bound()
    found: list[Outcome] = []
    while (left := unknown if every or not found else unknown & (bound < min(found).loss)).any():
        progress("choosing", unknown.size - int(left.sum()), unknown.size)
        node = _middle(left)
        outcome = lattice.outcome(ladder.climb(node), node)
        unknown[node] = False
        if outcome is None:
            unknown[_below(node)] = False
        elif outcome.suppressed <= lattice.limit:
            found.append(outcome)
            # Above, fewer rows may be suppressed, which can pay for wider intervals.
            if not lattice.others and (every or not lattice.limit):
                unknown[_above(node)] = False
    return sorted(found)


def _prune(lattice: Lattice, progress: Progress) -> NDArray[np.bool_]:
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
            holding[subset] = lattice.explore(subset, _possible(heights, subset, smaller))
            possible &= np.expand_dims(holding[subset], [a for a in range(len(heights)) if a not in subset])
        if size > 1 and before - possible.sum() < lattice.looked_at - cost:
            break
    return possible


def _possible(heights: Node, subset: Node, smaller: Mapping[Node, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """The nodes of a subset that hold in every subset with one quasi-identifier less."""
    result = np.ones([heights[a] for a in subset], bool)
    for axis in range(len(subset)):
        rest = subset[:axis] + subset[axis + 1 :]
        if rest in smaller:
            result &= np.expand_dims(smaller[rest], axis)
    return result


def _middle(nodes: NDArray[np.bool_]) -> Node:
    """One of the nodes at half height: whatever its answer, it settles many others."""
    found = np.argwhere(nodes)
    order = np.argsort(found.sum(axis=1), kind="stable")
    return tuple(int(level) for level in found[order[len(order) // 2]])


def _above(node: Node) -> tuple[slice, ...]:
    return tuple(slice(level, None) for level in node)


def _below(node: Node) -> tuple[slice, ...]:
    return tuple(slice(None, level + 1) for level in node)


def _minimal(found: Sequence[Outcome]) -> list[Outcome]:
    """Those below which none was found."""
    nodes = np.array([one.node for one in found])
    return [one for one in found if (nodes <= one.node).all(axis=1).sum() == 1]


def _described(outcome: Outcome, schema: Schema) -> dict[str, object]:
    names = [attribute.name for attribute in schema.quasi]
    return {
        "levels": dict(zip(names, outcome.node, strict=True)),
        "loss": outcome.loss,
        "classes": outcome.classes,
        "suppressed": outcome.suppressed,
    }


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
    holds = check(models, Groups.of(table.schema, table.persons, table.sensitive, label, len(example)))
    number = np.where(holds, np.cumsum(holds) - 1, -1).astype(np.int32)
    kept = codes[example[holds]]
    lo = np.stack([level.lo[kept[:, a]] for a, level in enumerate(chosen)], axis=1)
    hi = np.stack([level.hi[kept[:, a]] for a, level in enumerate(chosen)], axis=1)
    return Publication(table, number[label], Boxes(table.schema, lo, hi), details or {})

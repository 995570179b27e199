"""Top-down local recoding: everything begins at the roots, and is made more special as long as the guarantee holds.

A node of the search is a set of rows with one level for each quasi-identifier. Its rows are parted by the values one
level down, in one quasi-identifier: the theses take the one that lets most rows go down (then: with the fewest parts),
we the one that saves most loss for what the parting costs, which loses a third of that. Parts that break the guarantee
stay behind together; if what stays behind breaks it too, single rows of the other parts stay as well: those that help
most, from parts that can do without them (in the theses, first those that would not go much deeper); where there are
none, the smallest part stays as a whole. What stays is tried again with the other quasi-identifiers. So different rows
end at different levels (local recoding).

Going down costs nothing where all rows of a node go the same way. Numbers climb intervals of given widths, or intervals
that halve the rows again and again; the report says for which numbers the levels came from the rows.

X. Sun, Privacy Preserving Data Sharing in Data Mining Environment (thesis 2010), section 3.6, and T. Sadad, Preventing
Sensitive Attribute Disclosure (thesis 2012), section 4.2.2; both corrected: the whole table must keep the guarantee,
levels are done before the next begin, and nothing is moved where nothing stayed behind.

>>> import numpy as np
>>> from microdata import Category, Hierarchy, PersonSource, Schema, Table
>>> zips = Hierarchy.from_mapping({"*****": {"1424*": ["14247", "14248"]}})
>>> illness = Category("illness", Hierarchy.flat(["HIV", "Indigestion", "Flu", "Cancer"]))
>>> schema = Schema(PersonSource.ROW, (Category("zip", zips),), (illness,))
>>> leaves = np.array([[1.0], [1.0], [1.0], [0.0]])
>>> table = Table(schema, np.arange(4), leaves, np.arange(4, dtype=np.int32)[:, None])
>>> TopDown(k=2, l=2).anonymize(table).classes.tolist()
[0, 0, 1, 1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Boxes, InfeasibleError, Number, Progress, Publication, Schema, Table, silent
from privacy import KEYS, Groups, Guarantee, Model, SensitiveModel, check, check_feasible
from static_algos._top_down_kernels import Levels, levels_of, settle, split
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.frequencies import Sparse, groups_of
from static_algos.proof import proven
from static_algos.recoding import MOST_HEIGHT, Height, Recoding, Widths, recodings

MOST_TRIES = 32
FEW_TRIES = 3
"""Times that rows are taken from other parts before a whole part stays behind; few where more rows may do harm."""

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class TopDownParameters(Guarantee, Parameters):
    """Any guarantee, how to part, and the levels of numbers."""

    prefer: Literal["loss", "rows"] = Field(
        default="loss",
        description="part a node by the quasi-identifier that saves most loss for each bit that tells the parts; rows: "
        "by which most rows go down, then with the fewest parts (as in the theses)",
    )
    height: Height = Field(
        default=8,
        description="levels above a number's values, the whole domain included, each halving the rows; "
        f"from 1 to {MOST_HEIGHT}",
    )
    widths: Widths = Field(default_factory=dict)


@STATIC_ALGORITHMS.register("top_down", TopDownParameters)
class TopDown(StaticAlgorithm):
    """Specializes rows level by level from the roots of hierarchies, each as far as the guarantee allows."""

    Parameters = TopDownParameters
    parameters: TopDownParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "l": 2, "t": 0.9, "beta": 9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What the parameters ask for."""
        return self.parameters.models(schema)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Specialize until no node can be parted. Nothing is random, nothing is suppressed."""
        del seed
        asked, models = self.parameters, self.models(table.schema)
        check_feasible(models, table)
        recoded = recodings(table, asked.height, asked.widths, quantiles=True)
        judge = _Judge.of(table, models)
        if len(table) and not judge.holds(np.arange(len(table)), np.zeros(len(table), np.int32), 1)[0]:
            raise InfeasibleError("the whole table as one class does not meet it", parameter="guarantee")
        codes = np.stack([one.codes for one in recoded], axis=1)
        search = _Search(judge, levels_of(recoded, table.schema.weights), codes, asked.prefer)
        classes, count = search.run(_roots(recoded), progress)
        numbers = [one.name for one in table.schema.quasi if isinstance(one, Number) and one.name not in asked.widths]
        details = {"rounds": search.rounds, "held_back": search.held_back, "levels_by_quantiles": numbers}
        boxes = Boxes.around(table.schema, table.quasi, classes, count)
        return proven(Publication(table, classes, boxes, details), models)


def _kinds(sensitive: NDArray[np.int32]) -> Rows:
    """The same number for rows with the same values."""
    kind = np.zeros(len(sensitive), np.int64)
    for column in sensitive.T:
        kind = np.unique(kind * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].astype(np.int64)
    return kind


def _roots(recoded: Sequence[Recoding]) -> Rows:
    return np.array([len(one.levels) - 1 for one in recoded], np.int64)


@dataclass(eq=False)
class _Judge:
    """Asks the models about sets of rows of one table."""

    schema: Schema
    references: Sequence[NDArray[np.int64]]
    about_persons: Sequence[Model]
    about_values: Sequence[Model]
    person: NDArray[np.int32] | None
    """None where every row is another person."""
    people: int
    sensitive: NDArray[np.int32]
    kind: Rows
    """Rows of one kind have the same sensitive values."""
    least: int
    """No class has fewer persons."""

    @classmethod
    def of(cls, table: Table, models: Sequence[Model]) -> _Judge:
        people, person = np.unique(table.persons, return_inverse=True)
        return cls(
            table.schema,
            table.schema.histograms(table.sensitive),
            [model for model in models if not isinstance(model, SensitiveModel)],
            [model for model in models if isinstance(model, SensitiveModel)],
            person.astype(np.int32) if len(people) < len(table) else None,
            len(people),
            table.sensitive,
            _kinds(table.sensitive),
            max((model.least_persons for model in models), default=1),
        )

    def groups(self, rows: Rows, label: NDArray[np.int32], count: int, *, sensitive: bool) -> Groups:
        """The rows with each label as the models see them."""
        persons = None if self.person is None else Sparse.single(self.person[rows], self.people).merged(label, count)
        columns = zip(self.references, self.sensitive.T, strict=True) if sensitive else ()
        values = [Sparse.single(column[rows], len(known)).merged(label, count) for known, column in columns]
        return groups_of(self.schema, np.bincount(label, minlength=count), persons, values, self.references)

    def persons(self, rows: Rows, label: NDArray[np.int32], count: int) -> NDArray[np.int64]:
        """Distinct persons among the rows with each label."""
        if self.person is None:
            return np.bincount(label, minlength=count)
        return self.groups(rows, label, count, sensitive=False).persons

    def holds(self, rows: Rows, label: NDArray[np.int32], count: int) -> Mask:
        """Whether the rows with each label are a class that meets every model; none is no class."""
        holds = check(self.about_persons, self.groups(rows, label, count, sensitive=False))
        holds &= np.bincount(label, minlength=count) > 0
        if self.about_values and holds.any():
            kept = holds[label]
            number = (np.cumsum(holds) - 1).astype(np.int32)
            some = self.groups(rows[kept], number[label[kept]], int(holds.sum()), sensitive=True)
            holds[holds] = check(self.about_values, some)
        return holds

    @cached_property
    def helped(self) -> Sequence[Model]:
        """Models about values to which every further row brings a class closer, or no farther away."""
        return [model for model in self.about_values if model.survives_adding]

    @cached_property
    def inherits(self) -> bool:
        """Whether what no class keeps, none of fewer rows does."""
        return all(model.survives_adding for model in [*self.about_persons, *self.about_values])

    def progress(self, rows: Rows, label: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        """How far the rows with each label are on the way to what those models ask for: 1 for each that holds."""
        groups = self.groups(rows, label, count, sensitive=True)
        shares = [np.where(model.holds(groups), 1.0, model.achieved(groups) / model.asked) for model in self.helped]
        return np.sum(np.clip(shares, 0.0, 1.0), axis=0)


@dataclass(eq=False)
class _Search:
    """The nodes of one round as segments of an order of the rows."""

    judge: _Judge
    levels: Levels
    codes: NDArray[np.int32]
    prefer: Literal["loss", "rows"]
    rounds: int = 0
    held_back: int = 0
    """Rows that stayed behind although their part kept the guarantee."""
    _finals: list[Rows] = field(default_factory=list)

    def run(self, roots: Rows, progress: Progress) -> tuple[NDArray[np.int32], int]:
        """The class of each row, and the number of classes."""
        rows, width = len(self.codes), len(roots)
        nodes = _Nodes.of([np.arange(rows)] if rows else [], np.tile(roots, (1, 1)), np.zeros((1, width), bool))
        progress("specializing", 0, rows)
        while len(nodes):
            settle(self.levels, self.codes, nodes.order, nodes.begin, nodes.end, nodes.level)
            nodes = self._next(nodes)
            self.rounds += 1
            progress("specializing", rows - len(nodes.order), rows)
        classes = np.empty(rows, np.int32)
        for number, members in enumerate(self._finals):
            classes[members] = number
        return classes, len(self._finals)

    def _next(self, nodes: _Nodes) -> _Nodes:
        """Part every node that can be parted; the others are classes."""
        by = self._chosen(nodes)
        self._finals += [nodes.rows(node) for node in np.flatnonzero(by < 0).tolist()]
        if (by < 0).all():
            return nodes.none()
        label = np.empty(len(nodes.order), np.int32)
        parent = split(self.levels, self.codes, nodes.order, nodes.begin, nodes.end, nodes.level, by, label)
        inside = label >= 0
        parts = _Parts(nodes.order[inside], label[inside], parent, nodes.owner()[inside])
        parts.stay(~self.judge.holds(parts.rows, parts.label, len(parent)))
        if self.prefer == "rows" and len(_poor(parts, self.judge)):
            parts.depth = self._depth(self._after(nodes, by, parts), parts)
        self.held_back += _repair(parts, self.judge)
        return self._after(nodes, by, parts)

    def _depth(self, below: _Nodes, parts: _Parts) -> Rows:
        """How far each row would go on from its part, about: all levels that are left, if it could go down at all."""
        place = np.empty(len(self.codes), np.int64)
        place[parts.rows] = np.arange(len(parts.rows))
        label, goes = np.empty(len(below.order), np.int32), np.zeros(len(below.order), bool)
        for a in range(below.level.shape[1]):
            by = np.where(below.level[:, a] > 0, a, -1)
            parent = split(self.levels, self.codes, below.order, below.begin, below.end, below.level, by, label)
            inside = np.flatnonzero(label >= 0)
            good = self.judge.holds(below.order[inside], label[inside], len(parent))
            goes[inside] |= good[label[inside]]
        depth = np.empty(len(parts.rows), np.int64)
        depth[place[below.order]] = goes * below.level.sum(axis=1)[below.owner()]
        return depth

    def _chosen(self, nodes: _Nodes) -> Rows:
        """The quasi-identifier by which each node is parted best; -1 where none lets any row go down."""
        count, width = nodes.level.shape
        best, most = np.full(count, -1), np.zeros((2, count))
        label, owner = np.empty(len(nodes.order), np.int32), nodes.owner()
        splittable = np.ones(count, bool)
        if self.judge.person is None:
            # Both what goes down and what stays needs enough persons.
            splittable = nodes.end - nodes.begin >= 2 * self.judge.least
        for a in range(width):
            open_ = splittable & (nodes.level[:, a] > 0) & ~nodes.frozen[:, a]
            if not open_.any():
                continue
            by = np.where(open_, a, -1)
            parent = split(self.levels, self.codes, nodes.order, nodes.begin, nodes.end, nodes.level, by, label)
            inside = label >= 0
            parts = _Parts(nodes.order[inside], label[inside], parent, owner[inside])
            good = self.judge.holds(parts.rows, parts.label, len(parent))
            nodes.frozen[np.setdiff1d(np.flatnonzero(open_), parent[good]), a] = True
            rank, goes = self._ranked(parts, good, nodes, a)
            better = (rank[0] > most[0]) | ((rank[0] == most[0]) & (rank[1] > most[1])) | (best < 0)
            better &= open_ & (goes > 0)
            best[better], most[:, better] = a, rank[:, better]
        return best

    def _ranked(self, parts: _Parts, good: Mask, nodes: _Nodes, a: int) -> tuple[NDArray[np.float64], Rows]:
        """How good it is to part each node this way, the first number first; and how many rows go down, about."""
        count, sizes = len(nodes), np.bincount(parts.label, minlength=len(good))
        total = np.bincount(parts.owner, minlength=count)
        fit = np.bincount(parts.parent[good], sizes[good], count).astype(np.int64)
        goes = fit - self._lacking(parts, good, count)
        pieces = np.bincount(parts.parent[good], minlength=count)
        if self.prefer == "rows":
            return np.stack([goes, -pieces]).astype(np.float64), goes
        code = self.levels.start[a] + self.codes[parts.rows, a]
        level, length = nodes.level[parts.owner, a], self.levels.codes[a]
        saved = self.levels.loss[code + level * length] - self.levels.loss[code + (level - 1) * length]
        saved = np.bincount(parts.owner, saved * good[parts.label], count) * goes / np.maximum(fit, 1)
        # The bits that tell a part: a node can be parted only so often, whoever asks for many parts at once pays.
        places = np.concatenate([parts.parent[good], np.arange(count)])
        shares = np.concatenate([sizes[good], total - fit]) / np.maximum(total[places], 1)
        bits = np.bincount(places, -shares * np.log2(np.where(shares > 0, shares, 1.0)), count)
        return np.stack([saved / np.maximum(bits * total, 1e-9), -pieces]), goes

    def _lacking(self, parts: _Parts, good: Mask, count: int) -> Rows:
        """How many further rows of each node have to stay with those that stay, at least."""
        stays = ~good[parts.label]
        nodes, number = np.unique(parts.owner[stays], return_inverse=True)
        lack = np.zeros(count, np.int64)
        persons = self.judge.persons(parts.rows[stays], number.astype(np.int32), len(nodes))
        lack[nodes] = np.maximum(self.judge.least - persons, 0)
        return lack

    def _after(self, nodes: _Nodes, by: Rows, parts: _Parts) -> _Nodes:
        """The nodes of the next round: what went down, and what stayed, which is not parted this way again."""
        going = parts.label >= 0
        down, label = np.unique(parts.label[going], return_inverse=True)
        stayed, rest = np.unique(parts.owner[~going], return_inverse=True)
        order = np.argsort(np.concatenate([label, len(down) + rest]), kind="stable")
        rows = np.concatenate([parts.rows[going], parts.rows[~going]])[order]
        sizes = np.concatenate([np.bincount(label, minlength=len(down)), np.bincount(rest, minlength=len(stayed))])
        source = np.concatenate([parts.parent[down], stayed]).astype(np.int64)
        level, frozen = nodes.level[source], nodes.frozen[source]
        went = np.arange(len(source)) < len(down)
        level[went, by[source[went]]] -= 1
        # What no part of a node can keep, no part of fewer rows can, where more rows never break a class.
        frozen[went] &= self.judge.inherits
        frozen[~went, by[source[~went]]] = True
        ends = np.cumsum(sizes).astype(np.int64)
        return _Nodes(rows, ends - sizes, ends, level, frozen)


@dataclass(eq=False)
class _Nodes:
    """Sets of rows that may still be parted."""

    order: Rows
    begin: Rows
    end: Rows
    level: Rows
    """Nodes × quasi-identifiers."""
    frozen: Mask
    """The same: whether a node cannot be parted by this one."""

    @classmethod
    def of(cls, sets: Sequence[Rows], level: Rows, frozen: Mask) -> _Nodes:
        ends = np.cumsum([len(rows) for rows in sets], dtype=np.int64)
        begin = np.concatenate([np.zeros(1, np.int64), ends])[: len(ends)]
        return cls(np.concatenate([np.empty(0, np.int64), *sets]), begin, ends, level[: len(sets)], frozen[: len(sets)])

    def __len__(self) -> int:
        return len(self.begin)

    def none(self) -> _Nodes:
        """No nodes."""
        return _Nodes.of([], self.level, self.frozen)

    def owner(self) -> Rows:
        """The node at each place of the order."""
        return np.repeat(np.arange(len(self)), self.end - self.begin)

    def rows(self, node: int) -> Rows:
        """The rows of a node."""
        return self.order[self.begin[node] : self.end[node]]


@dataclass(eq=False)
class _Parts:
    """The rows of nodes that are parted, each with its part; -1 for those that stay behind."""

    rows: Rows
    label: NDArray[np.int32]
    parent: Rows
    """The node of each part."""
    owner: Rows
    """The node of each row."""
    depth: Rows | None = None
    """How far each row would go on from its part; None where nobody asks."""

    def stay(self, whole: Mask) -> None:
        """These parts stay behind as a whole."""
        self.label[(self.label >= 0) & whole[self.label]] = -1


def _repair(parts: _Parts, judge: _Judge) -> int:
    """Let more stay behind in every node until what stays is a class as well; how many rows of good parts that took."""
    before = int((parts.label >= 0).sum())
    barred = np.zeros(len(parts.rows), bool)
    tries = MOST_TRIES if judge.inherits else FEW_TRIES
    while len(poor := _poor(parts, judge)):
        moved = _help(parts, judge, poor, barred) if tries else np.empty(0, np.int64)
        tries -= tries > 0
        _absorb(parts, np.setdiff1d(poor, moved))
    return before - int((parts.label >= 0).sum())


def _poor(parts: _Parts, judge: _Judge) -> Rows:
    """Nodes where what stays behind is no class, though something goes down."""
    stays = parts.label < 0
    nodes, label = np.unique(parts.owner[stays], return_inverse=True)
    if not len(nodes):
        return nodes
    going = np.zeros(int(parts.owner.max()) + 1, bool)
    going[parts.owner[~stays]] = True
    return nodes[~judge.holds(parts.rows[stays], label.astype(np.int32), len(nodes)) & going[nodes]]


def _help(parts: _Parts, judge: _Judge, poor: Rows, barred: Mask) -> Rows:
    """Move rows of parts that can spare them to what stays behind in the poor nodes; the nodes where that was tried.

    A part that would be no class any more keeps its rows, which are barred from then on.
    """
    count = len(parts.parent)
    going = parts.label >= 0
    persons = judge.persons(parts.rows[going], parts.label[going], count)
    spare = np.maximum(persons - judge.least, 0)
    offered = np.flatnonzero(going & ~barred & np.isin(parts.owner, poor) & (spare > 0)[parts.label])
    if not len(offered):
        return np.empty(0, np.int64)
    value, need = _wanted(parts, judge, poor, offered)
    size = np.bincount(parts.label[going], minlength=count)
    part, owner = parts.label[offered], parts.owner[offered]
    depth = np.zeros(len(offered)) if parts.depth is None else parts.depth[offered]
    order = np.lexsort((-parts.rows[offered], -size[part], depth, -value, owner))
    offered, part, owner = offered[order], part[order], owner[order]
    within = _place_among(part) < spare[part]
    offered, owner = offered[within], owner[within]
    taken = offered[_place_among(owner) < need[np.searchsorted(poor, owner)]]
    _give(parts, judge, taken, barred)
    return np.unique(owner)


def _give(parts: _Parts, judge: _Judge, taken: Rows, barred: Mask) -> None:
    """Move these rows, except from parts that would be no class without them."""
    donor = parts.label[taken].astype(np.int64)
    parts.label[taken] = -1
    asked, given = np.unique(donor, return_counts=True)
    left = np.flatnonzero(np.isin(parts.label, asked))
    label = np.searchsorted(asked, parts.label[left]).astype(np.int32)
    holds = judge.holds(parts.rows[left], label, len(asked))
    back = ~holds[np.searchsorted(asked, donor)]
    parts.label[taken[back]] = donor[back]
    # Of a part that gave one row, rows with other values may be asked for; one that gave several is asked no more.
    several = np.isin(parts.label, asked[~holds & (given > 1)])
    kinds = int(judge.kind.max(initial=0)) + 1
    kind = judge.kind[parts.rows]
    barred |= several | np.isin(parts.label * np.int64(kinds) + kind, donor[back] * kinds + kind[taken[back]])


def _wanted(parts: _Parts, judge: _Judge, poor: Rows, offered: Rows) -> tuple[NDArray[np.float64], Rows]:
    """How much each offered row would help what stays behind, and how many rows each poor node takes at once."""
    stays = np.flatnonzero((parts.label < 0) & np.isin(parts.owner, poor))
    home: NDArray[np.int32] = np.searchsorted(poor, parts.owner[stays]).astype(np.int32)
    lack = judge.least - judge.persons(parts.rows[stays], home, len(poor))
    need = np.maximum(lack, 1)
    if not judge.helped:
        return np.zeros(len(offered)), need
    # Rows that have the same values help alike: one of each kind is tried in each node.
    owner = np.searchsorted(poor, parts.owner[offered])
    each = judge.kind[parts.rows[offered]] * len(poor) + owner
    kinds, first, kind = np.unique(each, return_index=True, return_inverse=True)
    sizes = np.bincount(home, minlength=len(poor))
    starts = np.cumsum(sizes) - sizes
    ordered = parts.rows[stays][np.argsort(home, kind="stable")]
    trying = kinds % len(poor)
    trial = np.repeat(np.arange(len(kinds)), sizes[trying])
    place = np.arange(len(trial)) - np.repeat(np.cumsum(sizes[trying]) - sizes[trying], sizes[trying])
    rows = np.concatenate([ordered[starts[trying][trial] + place], parts.rows[offered[first]]])
    label = np.concatenate([trial, np.arange(len(kinds))]).astype(np.int32)
    value = judge.progress(rows, label, len(kinds))
    complete = judge.progress(parts.rows[stays], home, len(poor)) >= len(judge.helped)
    return value[kind], np.where(complete, need, 1)


def _absorb(parts: _Parts, nodes: Rows) -> None:
    """The smallest part of each of these nodes stays behind as a whole."""
    going = (parts.label >= 0) & np.isin(parts.owner, nodes)
    if not going.any():
        return
    size = np.bincount(parts.label[going], minlength=len(parts.parent))
    some = np.flatnonzero(size)
    order = some[np.lexsort((some, size[some], parts.parent[some]))]
    smallest = order[_place_among(parts.parent[order]) == 0]
    whole = np.zeros(len(parts.parent), bool)
    whole[smallest] = True
    parts.stay(whole)


def _place_among(names: NDArray[np.integer]) -> Rows:
    """How many entries of the same name stand before each."""
    order = np.argsort(names, kind="stable")
    ordered = names[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]]))
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names)) - np.repeat(first, np.diff(np.append(first, len(names))))
    return place

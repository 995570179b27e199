"""The gate: the last check before anything leaves, on the very rows that are about to be encoded.

Engines assert their guarantee; the gate decides. It uses the same models as they do, and knows nothing of how a cluster
came to be: it looks at the rows, the box and the models of the policy. It runs at every publication and at every
republication.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from microdata import Boxes, Schema
from privacy import Edges, Groups, KAnonymity, KOverTime, Lineages, Model, Passing, PassingModel
from service.publishing.boxes import PublishedBoxes
from service.publishing.rows import Rows
from stream_algos import Release


class Gate:
    """Checks decisions of one schema against the models of one guarantee."""

    def __init__(self, schema: Schema, models: tuple[Model, ...]) -> None:
        self._schema = schema
        self._models = models
        self._reusable = all(model.survives_adding for model in models)
        # What must hold over time is checked for every row, over all that left with its box and those before it.
        self.counts_values = any(not isinstance(model, (KOverTime, KAnonymity)) for model in models)
        """Whether a model looks at sensitive values; the others count persons alone."""
        counted = schema if self.counts_values else replace(schema, sensitive=())
        self._lineages = Lineages(counted) if any(model.checked_on == "history" for model in models) else None
        # Rows that leave one by one are held against those that came within their window, each by its own position.
        self._passing = next((model for model in models if isinstance(model, PassingModel)), None)
        self._edges = Edges(schema)
        self.achieved: dict[str, float] = {}
        """What the clusters that passed have achieved, by model: the least safe of them counts."""
        self.largest_share: float | None = None
        """Of one person in the rows of a cluster that passed; rows that left later with its box are not counted."""

    def remember(self, ids: NDArray[np.uint64], parents: NDArray[np.uint64], sensitive: NDArray[np.int32]) -> None:
        """Rows with these values have left with these boxes, before this gate was made."""
        if self._lineages is not None:
            # Most boxes are named many times, and what is added takes room for each.
            own, last, boxes = np.unique(ids[::-1], return_index=True, return_inverse=True)
            self._lineages.add(own, parents[::-1][last], boxes[::-1], sensitive)

    def keep(self, ids: NDArray[np.uint64]) -> None:
        """Nothing leaves any more with boxes that are neither these nor came before one of them."""
        if self._lineages is not None:
            self._lineages.keep(ids)

    def passes(self, decisions: Release, rows: Rows, published: PublishedBoxes) -> NDArray[np.bool_]:
        """Whether each cluster may leave. `published` are the boxes that left before."""
        if not len(decisions) or not len(rows):
            return np.zeros(len(decisions), bool)
        found = rows.find(decisions.members)
        cluster = decisions.cluster_of()
        fit = self._well_formed(decisions) & ~_marked(cluster, found < 0, len(decisions))
        fit &= ~_marked(cluster, _repeated(decisions.members), len(decisions))
        inside = Boxes(self._schema, decisions.lo, decisions.hi).cover(rows.quasi[found], cluster)
        fit &= ~_marked(cluster, ~inside, len(decisions))
        if self._lineages is not None:
            return self._hold_over_time(decisions, rows, found, cluster, fit, published, self._lineages)
        fresh = fit & ~decisions.reused
        if self._passing is not None:
            fresh &= np.diff(decisions.starts) == 1
            fresh[fresh] = self._hold_in_passing(decisions, rows, found[fresh[cluster]], fresh, self._passing)
        else:
            fresh[fresh] = self._hold(decisions, rows, found, cluster, fresh)
        return fresh | (fit & self._known(decisions, published, fresh))

    def _well_formed(self, decisions: Release) -> NDArray[np.bool_]:
        """Boxes in the form in which they are published, one to an id, with at least one row each."""
        first, of = decisions.distinct
        lo, hi = decisions.lo[first], decisions.hi[first]
        wide = Boxes(self._schema, lo, hi).widened()
        exact = (wide.lo == lo).all(axis=1) & (wide.hi == hi).all(axis=1)
        fit = exact[of] & (np.diff(decisions.starts) > 0)
        if len(first) == len(decisions):
            fit &= ~_with_several_boxes(decisions)
        return np.asarray(fit)

    def _hold(
        self,
        decisions: Release,
        rows: Rows,
        found: NDArray[np.int64],
        cluster: NDArray[np.int64],
        candidates: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Whether every model holds, for each candidate; a cluster of a window is compared with that window's rows."""
        number = np.cumsum(candidates) - 1
        holds = np.ones(int(candidates.sum()), bool)
        for first, last in np.unique(decisions.windows[candidates], axis=0):
            together = candidates & (decisions.windows == (first, last)).all(axis=1)
            own = together[cluster]
            chosen, labels = found[own], np.unique(cluster[own], return_inverse=True)[1]
            groups = Groups.of(
                self._schema,
                rows.persons[chosen],
                rows.sensitive[chosen],
                labels,
                int(together.sum()),
                None if first < 0 else self._schema.histograms(rows.sensitive[rows.between(int(first), int(last))]),
            )
            passed = np.logical_and.reduce([model.holds(groups) for model in self._models])
            holds[number[together]] = passed
            self._note(groups, passed)
        return holds

    def _hold_in_passing(
        self,
        decisions: Release,
        rows: Rows,
        own: NDArray[np.int64],
        candidates: NDArray[np.bool_],
        model: PassingModel,
    ) -> NDArray[np.bool_]:
        """Whether enough persons passed before each candidate, which is one row each."""
        lo, hi = decisions.lo[candidates], decisions.hi[candidates]
        groups = model.judged(Passing(rows.positions, rows.times, rows.persons, rows.quasi, own, lo, hi))
        passed = model.holds(groups)
        if model.only_widens:
            passed[passed] = self._edges.widen(lo[passed], hi[passed])
        self._note(groups, passed)
        return passed

    def _hold_over_time(
        self,
        decisions: Release,
        rows: Rows,
        found: NDArray[np.int64],
        cluster: NDArray[np.int64],
        candidates: NDArray[np.bool_],
        published: PublishedBoxes,
        lineages: Lineages,
    ) -> NDArray[np.bool_]:
        """Whether every model holds for what stands behind each candidate, and reuses repeat what left; else False.

        What is refused lends its values to nobody, now or later: each refusal asks anew about those that are left.
        """
        passed, leaving = candidates, candidates[cluster]
        first, box = decisions.distinct
        ids = decisions.ids[first]
        if len(first) == len(decisions):  # where an id comes with several boxes too
            ids, box = np.unique(decisions.ids, return_inverse=True)
        company = np.full(len(ids), np.iinfo(np.int64).max)
        np.minimum.at(company, box, decisions.company)
        lineages.add(decisions.ids, decisions.parents, cluster[leaving], rows.sensitive[found[leaving]])
        while True:
            groups = lineages.groups(
                ids, company, _distinct(box[cluster[leaving]], rows.persons[found[leaving]], len(ids))
            )
            holds = np.logical_and.reduce([model.holds(groups) for model in self._models])
            held = passed & holds[box]
            passed = held & (~decisions.reused | self._known(decisions, published, held & ~decisions.reused))
            refused = leaving & ~passed[cluster]
            if not refused.any():
                self._note(groups, np.isin(np.arange(len(ids)), box[passed]))
                if self._reusable:
                    lineages.hold(decisions.ids[passed])
                return passed
            lineages.take_back(decisions.ids, cluster[refused], rows.sensitive[found[refused]])
            leaving &= ~refused

    def _note(self, groups: Groups, passed: NDArray[np.bool_]) -> None:
        if not passed.any():
            return
        if self._lineages is None and self._passing is None:
            share = float((groups.most[passed] / groups.rows[passed]).max())
            self.largest_share = max(share, self.largest_share or 0.0)
        for model in self._models:
            values = model.achieved(groups)[passed]
            worse = min if model.more_is_safer else max
            least = float(values.min() if model.more_is_safer else values.max())
            self.achieved[model.name] = worse(self.achieved.get(model.name, least), least)

    def _known(self, decisions: Release, published: PublishedBoxes, fresh: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each is a reuse, of the id and box of a cluster that left before, or leaves with this publication."""
        known = np.zeros(len(decisions), bool)
        if not self._reusable or not decisions.reused.any():
            return known
        leaving, reused = PublishedBoxes(decisions.lo.shape[1]), decisions.reused
        leaving.add(decisions.ids[fresh], decisions.lo[fresh], decisions.hi[fresh])
        ids, lo, hi = decisions.ids[reused], decisions.lo[reused], decisions.hi[reused]
        known[reused] = np.where(leaving.find(ids)[0], leaving.have(ids, lo, hi), published.have(ids, lo, hi))
        return known


def _marked(cluster: NDArray[np.int64], bad: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The clusters with at least one bad member."""
    marked = np.zeros(count, bool)
    marked[cluster[bad]] = True
    return marked


def _with_several_boxes(decisions: Release) -> NDArray[np.bool_]:
    """Clusters whose id stands for another box as well."""
    _, first, of = np.unique(decisions.ids, return_index=True, return_inverse=True)
    other = (decisions.lo[first][of] != decisions.lo) | (decisions.hi[first][of] != decisions.hi)
    return _marked(of, other.any(axis=1), len(first))[of]


def _distinct(labels: NDArray[np.int64], persons: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """How many distinct persons have each label."""
    # One word for both, as these are sorted quickest. Should two of them meet, fewer are counted than there are.
    pairs = labels.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ persons.view(np.uint64)
    order = np.argsort(pairs)
    first = np.diff(pairs[order], prepend=~pairs[order[:1]]) != 0
    return np.bincount(labels[order[first]], minlength=count)


def _repeated(members: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Members that stand in the decisions more than once."""
    order = np.sort(members)
    again = order[1:][order[1:] == order[:-1]]
    return np.isin(members, again) if len(again) else np.zeros(len(members), bool)

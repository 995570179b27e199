"""The audit: an independent look at something published.

It has the models in common with the algorithms, and believes nothing they say about their result. What it says carries
no value of any record.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Publication, Published, Table, means, published_of, table_loss
from privacy.model import Groups, Model
from privacy.outsider import count_surplus, match, published_groups, value_codes
from privacy.over_time import Sightings, candidates
from privacy.passing import PassingModel

LISTED_CLASSES = 20
"""So many failing classes are listed; all of them are counted."""

Persons: TypeAlias = Literal["exact", "at least", "rows"]
"""How persons were counted: as they are; the fewest that the original allows; every row as one, for want of better."""
Bound: TypeAlias = Literal["at least", "at most"]
Outcome: TypeAlias = Literal["holds", "not shown", "does not hold"]
"""What is known of a guarantee. It is not shown where the published table only bounds how many persons it is about, and
the bound neither proves nor disproves it."""


@dataclass(frozen=True)
class Finding:
    """What one model says about all classes."""

    model: str
    asked: float
    achieved: float | None
    """What the least safe class achieves; None where there is no class, or where no parameter would do."""
    outcome: Outcome
    failing: int
    """Classes that are proven not to meet the model."""
    classes: tuple[str, ...]
    """The first of them, then the first of those where it is not shown; as a published file calls them, or by number
    from 0."""
    ground: str | None = None
    """The ground distance of closeness; None for every other model."""
    bound: Bound | None = None
    """Whether `achieved` is a lower or an upper bound; None where it is exact."""
    not_shown: int = 0
    """Classes that may or may not meet the model."""

    @property
    def holds(self) -> bool:
        """Whether every class is shown to meet the model."""
        return self.outcome == "holds"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {**asdict(self), "holds": self.holds}


@dataclass(frozen=True)
class Fault:
    """Something that must not be in a publication, whatever the models say."""

    kind: Literal["uncovered", "undeclared", "surplus", "unlinked", "ambiguous"]
    count: int
    reason: str


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    findings: tuple[Finding, ...]
    faults: tuple[Fault, ...]
    persons: Persons
    classes: int
    rows: int
    suppressed: int | None
    """Rows of the original table that are not published; None where there is no original."""
    rejected: int | None
    """Rows of the original file that fail validation, so that they are not in the table; None where there is none."""
    fewest_persons: int | None
    """Persons (as counted) of the smallest class."""
    largest_share: float | None
    """Largest share of a class's rows that one person has, or at most can have; None where persons are unknown."""
    loss: float | None
    """Mean loss over the published rows; None for a published table of means, which has no boxes."""

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all models; with a fault the guarantee does not hold, whatever the models say."""
        found = {finding.outcome for finding in self.findings}
        if self.faults or "does not hold" in found:
            return "does not hold"
        return "not shown" if "not shown" in found else "holds"

    @property
    def holds(self) -> bool:
        """Whether every model is shown to hold in every class and nothing is there that must not be."""
        return self.outcome == "holds"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        findings = [finding.as_dict() for finding in self.findings]
        return {"holds": self.holds, "outcome": self.outcome, **asdict(self), "findings": findings}


def audit(
    original: Table | Sequence[NDArray[np.int64]], published: Publication | Published, models: Iterable[Model]
) -> Audit:
    """Check a publication in memory, or a published table, against what it was made from.

    `original` is the table, or only the count of every value of each sensitive attribute in it. Persons and coverage
    are exact for a publication of that very table. A published table shows no persons: then the original rows inside a
    class's box tell the fewest and the most persons that it can be about, and a model is not shown where these disagree
    about it. A table of means has no boxes, so that any rows of the original may be behind a class. Without the table,
    every row counts as a person.
    """
    models = tuple(models)
    _refuse_history(models)
    if isinstance(published, Publication):
        if isinstance(original, Table) and _same_rows(original, published.table):
            return _audit_publication(original, published, models)
        published = published_of(published)
    if isinstance(original, Table):
        return _audit_published(original, published, models)
    groups = published_groups(published, original)
    return _summary(models, groups, _undeclared(published), published, persons="rows")


def audit_linked(
    original: Table,
    published: Published,
    links: Sequence[NDArray[np.int64]],
    models: Iterable[Model],
    seen: Sightings | None = None,
) -> Audit:
    """Check a published table whose owner has kept which rows of the original were published together.

    Each link is about as many of the published rows as it has entries, in the order of the file; the links of a table
    have one entry each. Persons are exact then, and all rows of each of them are tied together, in the order of the
    original, for models that are about them. `seen` has the rows of the original and those of rejected events behind
    them, where these are known.
    """
    models = tuple(models)
    _refuse_passing(models)
    rows, sizes = np.concatenate([*links, np.empty(0, np.int64)]), np.array([len(link) for link in links], np.int64)
    together = np.repeat(np.arange(len(links)), sizes)
    persons, count = original.persons[rows], len(published.boxes)
    references = original.schema.histograms(original.sensitive)
    groups = Groups.of(original.schema, persons, original.sensitive[rows], published.classes, count, references)
    boxes = published.boxes
    wrong = len(rows) - len(np.unique(rows)) + _not_linked(original.sensitive[rows], published, together)
    quasi = original.quasi[rows]
    if published.show == "mean":
        # Rows of a table are linked one by one: the mean is that of all rows of their class.
        whole = published.classes.astype(np.int64) if (sizes == 1).all() else together
        outside = ~_are_means(quasi, published, whole)
    else:
        outside = ~boxes.cover(quasi, published.classes)
    faults = [*_undeclared(published), *_uncovered(int(outside.sum()))]
    if wrong:
        faults.append(Fault("unlinked", wrong, "published rows that are not what they are linked with"))
    result = _summary([], groups, faults, published, "exact", original)
    over_time = groups
    if any(model.checked_on == "history" for model in models):
        over_time = _candidates_of(original, published, rows, seen)
    findings = (
        finding(model, over_time) if model.checked_on == "history" else finding(model, groups, published.labels)
        for model in models
    )
    return replace(result, findings=tuple(findings))


def _candidates_of(original: Table, published: Published, rows: NDArray[np.int64], seen: Sightings | None) -> Groups:
    """Per person with published rows, the persons who lie in every box of these rows."""
    boxes, classes = published.boxes, published.classes
    seen = seen or Sightings(np.arange(len(original)), original.persons, original.quasi)
    positions = seen.positions[: len(original)][rows]
    _, left = candidates(seen, positions, original.persons[rows], boxes.lo[classes], boxes.hi[classes])
    return Groups(left, left, left, (), left)


def _are_means(quasi: NDArray[np.float64], published: Published, together: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the class of each row is shown as the mean of the rows that were published together with it."""
    points = means(published.schema, quasi, together, int(together.max(initial=-1)) + 1)
    boxes = published.boxes
    near = np.isclose(points.lo[together], boxes.lo[published.classes]) & np.isclose(
        points.hi[together], boxes.hi[published.classes]
    )
    return np.asarray(near.all(axis=1))


def _not_linked(sensitive: NDArray[np.int32], published: Published, together: NDArray[np.int64]) -> int:
    """How many rows have another class than the first of their link, or sensitive values that its rows do not have."""
    starts = np.searchsorted(together, together)
    other = int((published.classes != published.classes[starts]).sum())
    linked, shown = value_codes(sensitive, published.sensitive)
    links = together * (int(max(linked.max(initial=0), shown.max(initial=0))) + 1)
    return other + count_surplus(links + shown, links + linked)


def _refuse_passing(models: Iterable[Model]) -> None:
    """No published table shows when its rows came."""
    for model in models:
        if isinstance(model, PassingModel):
            raise InfeasibleError(
                f"{model.name} is about who passed within a window, and a published file does not show when its rows "
                "came; a replay checks it before anything is written",
                parameter=model.parameter,
            )


def _refuse_history(models: Iterable[Model]) -> None:
    """No published table shows whose rows it has, so nobody can tie them together; nor when they came."""
    models = tuple(models)
    _refuse_passing(models)
    for model in models:
        if model.checked_on == "history":
            raise InfeasibleError(
                f"{model.name} is about all rows of a person together, and a published file does not show whose rows "
                "it has; its owner can audit what a replay wrote, with the links that it kept (replay --links)",
                parameter=model.parameter,
            )


def _same_rows(original: Table, table: Table) -> bool:
    columns = ("persons", "quasi", "sensitive")
    return original is table or all(np.array_equal(getattr(original, one), getattr(table, one)) for one in columns)


def _audit_publication(original: Table, publication: Publication, models: Iterable[Model]) -> Audit:
    classes, count = publication.classes, len(publication.boxes)
    groups = Groups.of(original.schema, original.persons, original.sensitive, classes, count)
    # However the classes are shown, a row belongs into the box of its class.
    published = published_of(replace(publication, show="interval"))
    outside = ~published.boxes.cover(original.quasi[classes >= 0], published.classes)
    faults = _uncovered(int(outside.sum()))
    return _summary(models, groups, faults, published, persons="exact", original=original)


def _audit_published(original: Table, published: Published, models: Iterable[Model]) -> Audit:
    references = original.schema.histograms(original.sensitive)
    found = match(original, published)
    groups = replace(published_groups(published, references), persons=found.fewest_persons, most=found.most_rows)
    faults = [*_undeclared(published), *_uncovered(int(found.unplaced.sum()))]
    if found.surplus:
        reason = "published rows whose sensitive values occur more often than in the original"
        faults.append(Fault("surplus", found.surplus, reason))
    if original.people == len(original):
        return _summary(models, groups, faults, published, "exact", original)
    return _summary(models, groups, faults, published, "at least", original, found.safest(groups))


def _undeclared(published: Published) -> list[Fault]:
    if not published.undeclared:
        return []
    names = ", ".join(published.undeclared)
    return [Fault("undeclared", len(published.undeclared), f"columns that the schema does not let out: {names}")]


def _ambiguous(published: Published) -> list[Fault]:
    """Classes that share their number with a class of another generalization.

    Means are left out: a cluster that is published several times has the mean of each time.
    """
    if published.show == "mean":
        return []
    named = [label for label in published.labels if label]
    count = len(named) - len(set(named))
    reason = "classes whose number belongs to a class with another generalization, too"
    return [Fault("ambiguous", count, reason)] if count else []


def _uncovered(count: int) -> list[Fault]:
    reason = "published rows that no row of the original explains: it must lie in the box and have the same values"
    return [Fault("uncovered", count, reason)] if count else []


def _summary(
    models: Iterable[Model],
    groups: Groups,
    faults: Sequence[Fault],
    published: Published,
    persons: Persons,
    original: Table | None = None,
    safest: Groups | None = None,
) -> Audit:
    shares = groups.most / np.maximum(groups.rows, 1)
    return Audit(
        findings=tuple(finding(model, groups, published.labels, safest) for model in models),
        faults=(*faults, *_ambiguous(published)),
        persons=persons,
        classes=len(groups),
        rows=len(published),
        suppressed=None if original is None else len(original) - len(published),
        rejected=None if original is None else original.rejected,
        fewest_persons=int(groups.persons.min()) if len(groups) else None,
        largest_share=None if persons == "rows" or not len(groups) else min(float(shares.max()), 1.0),
        loss=None if published.show == "mean" else table_loss(published.boxes, groups.rows),
    )


def finding(model: Model, groups: Groups, labels: Sequence[str] = (), safest: Groups | None = None) -> Finding:
    """What one model says about these classes.

    Where persons are not known, `groups` has the fewest that each class can be about and `safest` the most. A class
    fails that does not meet the model even then.
    """
    met = model.holds(groups)
    failed = ~met if safest is None else ~model.holds(safest)
    failing, not_shown = np.flatnonzero(failed), np.flatnonzero(~met & ~failed)
    lower = _least_safe(model, groups)
    upper = lower if safest is None else _least_safe(model, safest)
    # What proves a violation is what the class achieves at best.
    achieved = upper if len(failing) else lower
    bound: Bound = "at least" if model.more_is_safer != bool(len(failing)) else "at most"
    return Finding(
        model=model.label,
        asked=model.asked,
        achieved=achieved if math.isfinite(achieved) else None,
        outcome="does not hold" if len(failing) else "not shown" if len(not_shown) else "holds",
        failing=len(failing),
        classes=tuple(labels[one] if labels else str(one) for one in [*failing, *not_shown][:LISTED_CLASSES]),
        ground=model.basis(groups),
        bound=None if lower == upper or not math.isfinite(achieved) else bound,
        not_shown=len(not_shown),
    )


def _least_safe(model: Model, groups: Groups) -> float:
    """What the least safe class achieves; infinite without classes."""
    achieved = model.achieved(groups)
    return float(achieved.min() if model.more_is_safer else achieved.max()) if len(groups) else math.inf

"""The report of anonymized ratings, as data: what was achieved, what was lost, what an attacker gets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from privacy.ratings import Linked, preference_attack
from service.kinds.ratings.tables import AnonymizedRatings
from service.policy import Policy
from service.report import Asked, Rejected, Result
from static_algos.ratings import RatingsPublication, utility

ATTACKS = (2, 4, 8)
"""Ratings that somebody knows of a person."""
MOST_BINS = 24
CURVE = 10
"""Parts that items are cut into by how often they were rated."""


class Part(BaseModel):
    """Base of every part."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Counts(Part):
    """What became of persons and open ratings."""

    persons: int
    published_persons: int
    withheld_persons: int = Field(description="who shares no item with the group")
    items: int
    ratings: int = Field(description="open ratings that were read")
    kept: int = Field(description="published as they were")
    changed: int
    suppressed: int
    invented: int
    sensitive: int = Field(description="sensitive ratings, published as they are")
    distortion: float = Field(description="all differences over all ratings, a missing one counted as 0")
    given: int = Field(description="rows of the file")
    rejected: Rejected


class GroupBin(Part):
    """Groups with `first` to `last` persons."""

    first: int
    last: int
    groups: int


class GroupSizes(Part):
    """How large groups are."""

    groups: int
    smallest: int
    median: float
    largest: int
    bins: list[GroupBin]


class AttackFigures(Part):
    """What somebody gets."""

    singled_out: float = Field(description="share of persons whose row is the only one that fits")
    hit: float = Field(description="chance to pick a person's row among those that fit")
    told: float = Field(description="share of persons of whom a sensitive rating is told")


class Attack(Part):
    """Linking by preferences, before and after."""

    known: int
    tolerance: float
    victims: int
    before: AttackFigures
    after: AttackFigures


class KeptItems(Part):
    """Items by how often they were rated, and how many of their ratings are published."""

    first: int = Field(description="rank of the most rated of them, from 1")
    last: int
    published: float


class Learnt(Part):
    """Root mean square error of a recommender."""

    original: float
    published: float


class UtilityFigures(Part):
    """What the published ratings are still good for."""

    mean_error: float | None
    count_error: float | None
    moved: float | None
    centroid: float | None
    spread_before: float | None
    spread_after: float | None
    item_means: Learnt | None
    neighbours: Learnt | None


class RatingsReport(Part):
    """Everything about one publication of ratings."""

    data: Literal["ratings"] = "ratings"
    name: str
    fingerprint: str
    asked: Asked
    holds: bool
    repeatable: bool
    seconds: float
    results: list[Result]
    exact: bool = Field(description="whether it stops somebody who knows ratings exactly")
    counts: Counts
    groups: GroupSizes
    attacks: list[Attack]
    curve: list[KeptItems]
    utility: UtilityFigures


def report_on(policy: Policy, result: AnonymizedRatings, *, seconds: float, repeatable: bool) -> RatingsReport:
    """The report of ratings that were anonymized under a policy."""
    publication = result.publication
    return RatingsReport(
        name=policy.name,
        fingerprint=policy.fingerprint(),
        asked=Asked(algorithm=policy.algorithm_name, parameters=policy.parameters.model_dump(mode="json")),
        holds=result.audit.holds,
        repeatable=repeatable,
        seconds=seconds,
        results=[Result(**asdict(finding)) for finding in result.audit.findings],
        exact=result.exact,
        counts=_counts(result),
        groups=_sizes(publication.sizes),
        attacks=_attacks(publication, policy.parameters.epsilon),  # type: ignore[attr-defined]
        curve=_curve(publication),
        utility=UtilityFigures.model_validate(asdict(utility(publication))),
    )


def _counts(result: AnonymizedRatings) -> Counts:
    publication, original = result.publication, result.publication.original
    changes = publication.changes
    return Counts(
        persons=len(original),
        published_persons=len(publication.released),
        withheld_persons=publication.withheld,
        items=len(original.open_items),
        ratings=len(original.open.values),
        kept=changes.kept,
        changed=changes.changed,
        suppressed=changes.suppressed,
        invented=changes.invented,
        sensitive=len(publication.recoded.sensitive.values),
        distortion=changes.distortion / max(int(original.open.values.sum(dtype=np.int64)), 1),
        given=result.reading.rows,
        rejected=result.rejected,
    )


def _sizes(sizes: NDArray[np.int64]) -> GroupSizes:
    low, high = int(sizes.min()), int(sizes.max())
    edges = np.unique(np.linspace(low, high + 1, min(MOST_BINS, high - low + 1) + 1).round().astype(np.int64))
    counts, _ = np.histogram(sizes, edges)
    return GroupSizes(
        groups=len(sizes),
        smallest=low,
        median=float(np.median(sizes)),
        largest=high,
        bins=[
            GroupBin(first=first, last=last - 1, groups=count)
            for first, last, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
        ],
    )


def _attacks(publication: RatingsPublication, epsilon: float) -> list[Attack]:
    """By somebody who knows ratings within ε, and by somebody who knows them exactly."""
    asked = [(known, epsilon) for known in ATTACKS] + [(known, 0.0) for known in ATTACKS if epsilon > 0]
    found = []
    for known, tolerance in asked:
        truth = publication.original
        before = preference_attack(truth, truth, known=known, tolerance=tolerance)
        after = preference_attack(truth, publication.recoded, known=known, tolerance=tolerance)
        figures = [_figures(one) for one in (before, after)]
        found.append(
            Attack(known=known, tolerance=tolerance, victims=before.victims, before=figures[0], after=figures[1])
        )
    return found


def _figures(linked: Linked) -> AttackFigures:
    return AttackFigures(singled_out=linked.singled_out, hit=linked.hit, told=linked.told)


def _curve(publication: RatingsPublication) -> list[KeptItems]:
    """Items by popularity, in parts of equally many items."""
    width = len(publication.original.names)
    before = np.bincount(publication.original.open.items, minlength=width)[publication.original.open_items]
    after = np.bincount(publication.recoded.open.items, minlength=width)[publication.original.open_items]
    order = np.argsort(-before, kind="stable")
    parts = np.array_split(order, min(CURVE, len(order))) if len(order) else []
    ends = np.cumsum([len(part) for part in parts]).tolist()
    return [
        KeptItems(first=end - len(part) + 1, last=end, published=float(after[part].sum() / max(before[part].sum(), 1)))
        for part, end in zip(parts, ends, strict=True)
    ]

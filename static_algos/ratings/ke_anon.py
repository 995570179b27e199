"""KE-ANON: ratings in groups of k persons, each made an ε-clique at little cost.

Persons who rated the same items and whose ratings differ by at most ε are alike already: they are put together and
published as they are. The others are grouped at the least cost, first among those who rated the same items, then
across patterns, where a group publishes only what all of it rated. Then the ratings of a group are brought within ε of
each other, item by item. Every group is at least k persons who are ε-proximate after that, whatever other groups
publish.

`items: most` is for sparse ratings, where hardly two persons rated the same: groups are found by sketches, and each
publishes the items that it shares. `strategy` says how a group is made alike: `clip` moves each rating the least into
a window of ε, which is the least distortion that a given group can have; `centroid` keeps the mean of every item
(where ε is a step or more); `paper` rewrites groups as the authors do, with what is wrong there repaired; `same` lets
everybody in a group publish its median, so that somebody who knows a person's ratings exactly still finds k persons.

`accept: degree` publishes ratings as they are where everybody has k - 1 others within ε already. It is (k,ε)-anonymity
by definition, but nobody is in a group: those who are close to somebody need not be close to each other.

Grouping depends on the ratings alone, not on the order of the persons and not on chance: an audit makes the same again.

J. Sun, H. Wang, J. Li, J. Pei: Publishing anonymous survey rating data. Data Mining and Knowledge Discovery 23, 2011.
Theorem 3 there is false as stated (an even group breaks ε = 1, ratings leave the scale, missing ratings are mixed with
others); the rules here are the repaired ones.

>>> from microdata.ratings import Scale, ratings_from_rows
>>> rows = [(3, 6, None), (2, 5, None), (4, 7, None), (5, 6, None)]
>>> rows += [(1, None, 5), (2, None, 6), (6, None, 6), (5, None, 5)]
>>> publication = KeAnon(k=3, epsilon=2).anonymize(ratings_from_rows(rows, Scale(1, 10)))
>>> publication.distortion, sorted(publication.sizes.tolist())
(5, [4, 4])
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from microdata import GuaranteeError, InfeasibleError, Progress, silent
from microdata.ratings import Ratings, RatingSchema, Scale, ratings_from_rows
from privacy.ratings import KEpsilon, RatingDiversity, RatingModel, check_persons, hamming_groups, measure
from privacy.ratings._neighbour_kernels import row_hashes
from static_algos.catalogue import Catalogue, Parameters, parse
from static_algos.ratings.cliques import groups_of_alike
from static_algos.ratings.lending import Lending
from static_algos.ratings.publication import RatingsPublication
from static_algos.ratings.recoding import NullPolicy, Recoding, Strategy
from static_algos.ratings.sketches import groups_by_sketch
from static_algos.ratings.spreading import spread_groups

RATING_ALGORITHMS: Catalogue[KeAnon] = Catalogue()


class Spread(BaseModel):
    """How different sensitive ratings must be around every person."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sd: float = Field(gt=0, le=10**6, description="least standard deviation of each sensitive item, in ratings")


class RatingGuarantee(Parameters):
    """What must hold of published ratings."""

    k: int = Field(ge=1, le=10**12, description="persons who are close to each person, that one included")
    epsilon: float = Field(
        ge=0, le=10**6, description="how much ratings of persons who are close may differ; 0: not at all"
    )
    l: Spread | None = Field(None, description="how different the sensitive ratings around a person must be")  # noqa: E741

    def models(self, schema: RatingSchema) -> tuple[RatingModel, ...]:  # noqa: ARG002 - as every guarantee
        """What is to be checked."""
        spread = () if self.l is None else (RatingDiversity(self.l.sd, self.epsilon),)
        return (KEpsilon(self.k, self.epsilon), *spread)


class KeAnonParameters(RatingGuarantee):
    """What KE-ANON is asked for."""

    items: Literal["all", "most"] = Field(
        "all", description="all: group persons who rated the same items first; most: for sparse ratings, by sketches"
    )
    strategy: Strategy = Field(
        "clip",
        description="how a group is made alike: least change, same means, one row for all (which also stops exact "
        "knowledge), or as the authors do",
    )
    null_policy: NullPolicy = Field(
        "suppress",
        description="an item that not all of a group rated is left out, or as most do: then ratings are invented",
    )

    accept: Literal["groups", "degree"] = Field(
        "groups",
        description="groups: everybody is in a group of k; degree: ratings in which everybody has k - 1 others within "
        "epsilon already are published as they are, without groups",
    )


@RATING_ALGORITHMS.register("ke_anon", KeAnonParameters)
class KeAnon:
    """Groups of k persons whose ratings differ by at most ε."""

    Parameters = KeAnonParameters
    guarantees: ClassVar[tuple[type[RatingModel], ...]] = (KEpsilon, RatingDiversity)
    data: ClassVar[str] = "ratings"
    example: ClassVar[dict[str, Any]] = {"k": 3, "epsilon": 1, "l": {"sd": 0.4}}

    @classmethod
    def example_data(cls) -> Ratings:
        """A small survey: three questions, the last one sensitive."""
        rows = [(1 + i % 5, 1 + (i * i) % 5 if i % 3 else None, 1 + (i * 7) % 5) for i in range(24)]
        return ratings_from_rows(rows, Scale(1, 5), names=["q1", "q2", "q3"], sensitive=["q3"])

    def __init__(self, **given: Any) -> None:
        self.parameters = parse(KeAnonParameters, given)

    def models(self, schema: RatingSchema) -> tuple[RatingModel, ...]:
        """What every release meets; one row for all of a group is close at any distance, also at 0."""
        exact = self.parameters.strategy == "same" and self.parameters.epsilon > 0
        return (*self.parameters.models(schema), *([KEpsilon(self.parameters.k, 0)] if exact else []))

    def anonymize(
        self, ratings: Ratings, *, seed: int | None = None, progress: Progress = silent
    ) -> RatingsPublication:
        """Group and recode; an infeasible request raises `InfeasibleError`. Nothing here is random."""
        del seed
        models = self.models(ratings.schema)
        check_persons(models, ratings)
        order = _canonical_order(ratings)
        ordered = ratings.take(order)
        recoding = self._recoding(ratings)
        if self.parameters.accept == "degree" and all(finding.holds for finding, _ in measure(models, ratings)):
            as_they_are = RatingsPublication.of(ratings, np.arange(len(ratings)), recoding, self.parameters.k)
            _prove(as_they_are, models, 1)
            return as_they_are
        groups = group_persons(ordered, self.parameters.k, recoding, by_items=self.parameters.items, progress=progress)
        diverse = [model for model in models if isinstance(model, RatingDiversity)]
        if diverse:
            groups = spread_groups(ordered, groups, recoding, diverse[0], self.parameters.k, progress)
        labels = np.empty(len(ratings), np.int64)
        for number, members in enumerate(groups):
            labels[members] = number
        progress("recode", 0, len(ratings))
        # Recoding breaks ties by the order of the rows, so it needs the order in which the spread was measured.
        publication = RatingsPublication.of(ordered, labels, recoding, self.parameters.k).take(np.argsort(order))
        _prove(publication, models, self.parameters.k)
        return publication

    def _recoding(self, ratings: Ratings) -> Recoding:
        asked, scale = self.parameters, ratings.scale
        steps = 0 if asked.strategy == "same" else scale.steps(asked.epsilon)
        return Recoding(steps, scale.size, max(len(ratings.names), 1), asked.strategy, asked.null_policy)


def group_persons(
    ratings: Ratings, k: int, recoding: Recoding, *, by_items: str = "all", progress: Progress = silent
) -> list[NDArray[np.int64]]:
    """Disjoint groups of at least k persons, everybody in one; of equal choices the first persons are taken."""
    rows, count = ratings.open, len(ratings)
    if k > count:
        raise InfeasibleError("there are not so many persons", parameter="k", given=k, nearest=count)
    patterns = hamming_groups(rows)
    lending = Lending(rows, patterns, recoding, k)
    if by_items == "most":
        groups, rest = groups_by_sketch(rows, k, recoding.width)
        lending.groups, lending.spare = [members.tolist() for members in groups], rest.tolist()
    else:
        order = np.argsort(patterns, kind="stable")
        edges = np.append(0, np.cumsum(np.bincount(patterns)))
        for done, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            members = order[done:end]
            found, left = _alike(rows.take(members).values, len(members), k, recoding)
            lending.groups += [members[own].tolist() for own in found]
            if len(left) and found:
                lending.spare += members[left].tolist()
            elif len(left):
                lending.needy.append(members[left].tolist())
            if found:
                progress("group", end, count)
    return [np.sort(np.array(members, np.int64)) for members in lending.settle()]


def _alike(
    values: NDArray[np.int16], count: int, k: int, recoding: Recoding
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    if count < k:
        return [], np.arange(count)
    return groups_of_alike(values.reshape(count, -1), k, recoding.steps, recoding.size)


def _canonical_order(ratings: Ratings) -> NDArray[np.int64]:
    """Persons by a hash of what they rated, and of what is sensitive where that is the same.

    By hashes, so that equal open ratings are not sorted by sensitive ones; and not by persons, whose codes are random.
    """
    parts = [row_hashes(part.starts, part.items, part.values, True) for part in (ratings.sensitive, ratings.open)]  # noqa: FBT003
    return np.lexsort([part[:, 0] for part in parts])


def _prove(publication: RatingsPublication, models: tuple[RatingModel, ...], k: int) -> None:
    """Nothing leaves that does not hold: groups by themselves, and what is around every person that leaves."""
    small = int(publication.sizes.min(initial=k))
    if small < k:
        raise GuaranteeError(f"a group has {small} persons of {k}")
    if not publication.groups_are_cliques():
        raise GuaranteeError("the ratings of a group differ by more than ε")
    values = publication.recoded.open.values
    if values.min(initial=1) < 1 or values.max(initial=1) > publication.recoding.size:
        raise GuaranteeError("a rating has left the scale")
    if publication.recoding.null_policy == "suppress" and publication.changes.invented:
        raise GuaranteeError("a rating was invented")
    if not publication.sensitive_is_untouched():
        raise GuaranteeError("a sensitive rating was changed")
    failed = [finding for finding, _ in measure(models, publication.released) if not finding.holds]
    if failed:
        raise GuaranteeError(
            "; ".join(f"{one.model} of {one.asked:g} fails for {one.failing} persons" for one in failed)
        )

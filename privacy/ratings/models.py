"""(k,ε)- and (k,ε,ℓ)-anonymity: what must hold of ratings before they leave.

(k,ε): around every person there are k persons who are ε-proximate, the person included. Somebody who knows no better
than within ε what is published of a person then finds at least k candidates, also when only some of the items are
known: knowing less makes more candidates.

It says nothing about somebody who knows what a person really gave: ratings are moved, neighbours may differ within ε,
and a row that was published as it is can be the only one that fits. (k,0), where k persons publish the very same
ratings, stops that too: whoever fits brings k - 1 others along, whatever the attacker knows and however well.

(k,ε,ℓ) adds that sensitive ratings are spread: around every person, each sensitive item has a standard deviation of at
least ℓ. What nobody there rated tells nothing. It is checked in neighbourhoods, which is what an attacker sees, not
only in the groups of an algorithm: a union of overlapping neighbourhoods can be less spread than its parts.

Two statements of the sources are false and used nowhere: that k is bounded by the largest neighbourhood's share
(Theorem 7.1 of the dissertation, and its Lemma 7.1). What is true: k is at most the size of the smallest set of
persons who rated the same items (where ε is below the scale), and ℓ is at most half the width of the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError
from microdata.ratings import Ratings, RatingSchema
from privacy.model import require_parameter, require_whole
from privacy.ratings.neighbours import Neighbourhoods, neighbourhoods

_ROUNDING = 1e-9
"""By how much a standard deviation may miss what was asked because of floating point."""


@dataclass(frozen=True)
class KEpsilon:
    """Every person is within ε of k persons."""

    k: int
    epsilon: float

    name: ClassVar[str] = "(k,ε)-anonymity"
    more_is_safer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_whole("k", self.k)
        require_parameter("epsilon", self.epsilon, 0 <= self.epsilon < np.inf, "from 0", nearest=0)

    @property
    def label(self) -> str:
        """The name with its distance."""
        return f"persons within ε = {self.epsilon:g}"

    @property
    def asked(self) -> float:
        """The number of persons."""
        return float(self.k)

    def achieved(self, around: Neighbourhoods, schema: RatingSchema) -> NDArray[np.float64]:  # noqa: ARG002 - as below
        """Persons around each person."""
        return around.counts.astype(np.float64)


@dataclass(frozen=True)
class RatingDiversity:
    """Around every person sensitive ratings have this standard deviation, each item by itself."""

    sd: float
    epsilon: float

    name: ClassVar[str] = "(k,ε,ℓ)-anonymity"
    more_is_safer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_parameter("l", self.sd, 0 < self.sd < np.inf, "above 0")

    @property
    def label(self) -> str:
        """The name with its distance."""
        return f"spread of sensitive ratings within ε = {self.epsilon:g}"

    @property
    def asked(self) -> float:
        """The standard deviation."""
        return self.sd

    def achieved(self, around: Neighbourhoods, schema: RatingSchema) -> NDArray[np.float64]:
        """The standard deviation of the least spread item around each person; infinite where nobody rated any."""
        return spread(around.sums, schema.scale.step).min(axis=1, initial=np.inf)


RatingModel: TypeAlias = KEpsilon | RatingDiversity


def spread(sums: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """Standard deviations from numbers, sums and sums of squares; infinite where there is no rating.

    Missing ratings are left out. The sources count them as 0, which makes persons look diverse because of those among
    them who said nothing.
    """
    rated, total, squares = (sums[..., part].astype(np.float64) for part in range(3))
    mean = total / np.maximum(rated, 1)
    left = np.maximum(squares - rated * mean * mean, 0)
    return np.where(rated > 0, step * np.sqrt(left / np.maximum(rated, 1)), np.inf)


@dataclass(frozen=True)
class RatingFinding:
    """What one model says about a release."""

    model: str
    asked: float
    achieved: float | None
    holds: bool
    failing: int
    """Persons around whom it does not hold."""
    more_is_safer: bool = True


def measure(models: tuple[RatingModel, ...], ratings: Ratings) -> list[tuple[RatingFinding, NDArray[np.bool_]]]:
    """What each model says about these ratings, and for which persons it does not hold."""
    found = []
    for model in models:
        moments = isinstance(model, RatingDiversity)
        around = neighbourhoods(ratings, model.epsilon, least=None if moments else int(model.asked), moments=moments)
        achieved = model.achieved(around, ratings.schema)
        failing = achieved < model.asked - _ROUNDING
        worst = float(achieved.min(initial=np.inf))
        finding = RatingFinding(
            model=model.label,
            asked=model.asked,
            achieved=worst if np.isfinite(worst) else None,
            holds=not failing.any(),
            failing=int(failing.sum()),
        )
        found.append((finding, failing))
    return found


def check_scale(models: tuple[Any, ...], schema: RatingSchema) -> None:
    """Refuse what no ratings on this scale could satisfy."""
    width = schema.scale.high - schema.scale.low
    for model in models:
        if model.epsilon > width:
            reason = "must be at most the width of the scale: beyond, everybody is close to everybody"
            raise InfeasibleError(reason, parameter="epsilon", given=f"{model.epsilon:g}", nearest=width)
        if isinstance(model, RatingDiversity):
            if not schema.sensitive:
                raise InfeasibleError("needs a sensitive item; the schema has none", parameter="l")
            if model.sd > width / 2:
                reason = "no ratings on this scale have such a standard deviation"
                raise InfeasibleError(reason, parameter="l", given=f"{model.sd:g}", nearest=width / 2)


def check_persons(models: tuple[Any, ...], ratings: Ratings) -> None:
    """Refuse what these ratings cannot satisfy, whatever is done to them."""
    for model in models:
        if isinstance(model, KEpsilon) and model.k > len(ratings):
            reason = "there are not so many persons"
            raise InfeasibleError(reason, parameter="k", given=model.k, nearest=len(ratings))

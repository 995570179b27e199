"""How many persons stand behind a class, and how evenly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from privacy.exact import Real, exact, floor_times
from privacy.keys import KEYS, MOST
from privacy.model import Groups, Model, require_share, require_whole


@dataclass(frozen=True)
class KAnonymity(Model):
    """Every class is about at least `k` distinct persons."""

    k: int

    name = "k-anonymity"
    parameter = "k"
    survives_merging = True
    survives_adding = True
    more_is_safer = True

    def __post_init__(self) -> None:
        require_whole("k", self.k)

    @property
    def least_persons(self) -> int:
        """As many as `k`."""
        return self.k

    def nearest(self, achieved: float) -> int:
        """A number of persons."""
        return int(achieved)

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """Distinct persons."""
        return groups.persons.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether there are enough persons."""
        return groups.persons >= self.k


@dataclass(frozen=True)
class MaxShare(Model):
    """No person has more than this share of a class's rows.

    A class of n persons with one row each has the share 1/n, so a class needs at least 1/share persons.
    """

    share: Real

    name = "max-share"
    parameter = "share"
    survives_merging = True
    survives_adding = False
    more_is_safer = False

    def __post_init__(self) -> None:
        require_share("max_share", self.share)

    @property
    def least_persons(self) -> int:
        """Return 1/share, rounded up."""
        return math.ceil(1 / exact(self.share))

    def achieved(self, groups: Groups) -> NDArray[np.float64]:
        """Return the largest share of one person in each class."""
        return groups.most / np.maximum(groups.rows, 1)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Return whether each class has no person with too many rows."""
        return (groups.most <= floor_times(exact(self.share), groups.rows)).astype(bool)


@KEYS.add(
    "k",
    int,
    KAnonymity,
    requests=[(3, 40)],
    ge=1,
    le=MOST,
    description="distinct persons per class; a whole number from 1",
)
def _persons(given: int, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[KAnonymity]:
    yield KAnonymity(given)


@KEYS.add(
    "max_share",
    float,
    MaxShare,
    requests=[(0.8, 0.1)],
    gt=0,
    le=1,
    description="largest share of a class's rows that one person may have, so that it has at least 1/share persons; "
    "above 0, at most 1",
)
def _share(given: float, _beside: Mapping[str, Any], _schema: Schema) -> Iterator[MaxShare]:
    yield MaxShare(given)

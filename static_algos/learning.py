"""What can be learnt from a publication: how often a model is right that was trained on it and is tested on it.

A decision tree learns a sensitive attribute from the quasi-identifiers of half of the persons and is asked about the
other half, who are anonymized too. Beside it stand the same with the values as they were, and always saying the most
frequent value. It is what whoever analyses the publication may hope for, and not what anybody is promised.

Iyengar, Transforming Data to Satisfy Privacy Constraints (KDD 2002), judges publications in this way.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import InfeasibleError, Publication

MOST_ROWS = 20_000
"""Rows that a model is made of, and tested on, together."""
MOST_LABELS = 100
"""Values that it tells apart; an attribute with more is not one to be classified."""
LEAST_IN_A_LEAF = 20
"""Rows on which a decision stands; with fewer a tree learns rows by heart."""
EXTRA = "scikit-learn is needed: pip install 'portcullis[ml]'"


class Learned(NamedTuple):
    """How often a model was right, as shares of the rows that it was asked for."""

    rows: int
    before: float
    after: float
    baseline: float
    """By the most frequent value of the rows that it learnt from."""


def can_learn() -> bool:
    """Whether there is a library to learn with."""
    return find_spec("sklearn") is not None


def learned(publication: Publication, attribute: int, *, seed: int = 0) -> Learned | None:
    """How well this sensitive attribute can be predicted; None where there are too few rows, or only one value."""
    table = publication.table
    labels = table.schema.sensitive[attribute].size or 0
    if labels > MOST_LABELS:
        reason = f"{labels} values are too many to tell apart; at most {MOST_LABELS}"
        raise InfeasibleError(reason, parameter="learn", given=repr(table.schema.sensitive[attribute].name))
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(publication.classes >= 0)
    rows = np.sort(random.permutation(rows)[:MOST_ROWS])
    # Whoever has several rows is in one half with all of them.
    people, person = np.unique(table.persons[rows], return_inverse=True)
    first = (random.permutation(len(people)) < len(people) // 2)[person]
    asked = table.sensitive[rows, attribute]
    if min(first.sum(), (~first).sum()) < LEAST_IN_A_LEAF or len(np.unique(asked[first])) < 2:
        return None
    shown = publication.shown()
    own = publication.classes[rows]
    after = np.concatenate([shown.lo[own], shown.hi[own]], axis=1)
    frequent = np.bincount(asked[first]).argmax()
    return Learned(
        rows=int((~first).sum()),
        before=_right(table.quasi[rows], asked, first, seed),
        after=_right(after, asked, first, seed),
        baseline=float((asked[~first] == frequent).mean()),
    )


def _right(known: NDArray[np.float64], asked: NDArray[np.int32], first: NDArray[np.bool_], seed: int) -> float:
    """Share of the second half on which a tree is right that has learnt from the first."""
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - half a second, for who asks for it

    tree = DecisionTreeClassifier(min_samples_leaf=LEAST_IN_A_LEAF, random_state=seed)
    tree.fit(known[first], asked[first])
    return float((tree.predict(known[~first]) == asked[~first]).mean())

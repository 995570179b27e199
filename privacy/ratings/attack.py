"""Linking by preferences: what somebody gets who knows how a person rated a few items.

The attacker knows that the person is among the data and how the person rated some open items, each within a tolerance.
The candidates are all rows that fit. One candidate: the person is singled out. All candidates with the same sensitive
rating: it is told, however many they are. In real data eight ratings single out nearly everybody.

The attack is run with what is true (the ratings before) on what somebody sees (the ratings as published).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microdata.ratings import Ratings
from privacy.ratings._attack_kernels import candidates

VICTIMS = 2_000
"""Persons that are attacked where there are more."""


@dataclass(frozen=True)
class Linked:
    """How far the attack gets."""

    known: int
    tolerance: float
    victims: int
    singled_out: float
    """Share of the victims whose row is the only one that fits."""
    hit: float
    """Chance to pick a victim's row among those that fit, on average."""
    told: float
    """Share of the victims of whom a sensitive rating is told, because all that fit have the same."""
    fewest: int | None
    """Candidates of the worst protected victim who is among them; None where nobody is."""


def preference_attack(
    truth: Ratings,
    seen: Ratings,
    *,
    known: int = 8,
    tolerance: float = 0,
    victims: int | None = VICTIMS,
    seed: int = 0,
) -> Linked:
    """Attack persons who are drawn at random (all with `victims=None`), each by `known` items of theirs at random.

    Row i of both is the same person. The seed chooses victims and items; it is no secret.

    >>> from microdata.ratings import Scale, ratings_from_rows
    >>> rows = [(6, 1, None, 6), (1, 6, None, 1), (2, 5, None, 1), (1, None, 5, 1), (2, None, 6, 5)]
    >>> survey = ratings_from_rows(rows, Scale(1, 6), sensitive=["i4"])
    >>> linked = preference_attack(survey, survey, known=2, tolerance=1)
    >>> linked.singled_out, linked.told, linked.fewest
    (0.2, 0.6, 1)
    """
    generator = np.random.default_rng(seed)
    able = np.flatnonzero(truth.open.rated > 0)
    chosen = (
        able if victims is None or len(able) <= victims else np.sort(generator.choice(able, victims, replace=False))
    )
    items, given = _known(truth, chosen, known, generator)
    found = np.zeros(len(chosen), np.int64)
    inside, told = np.zeros(len(chosen), bool), np.zeros(len(chosen), bool)
    rows = seen.open
    order = np.argsort(rows.items, kind="stable")
    starts = np.searchsorted(rows.items[order], np.arange(len(seen.names) + 1))
    candidates(
        rows.starts,
        rows.items,
        rows.values,
        rows.rows[order],
        starts,
        items,
        given,
        chosen,
        truth.scale.steps(tolerance),
        seen.sensitive_matrix,
        found,
        inside,
        told,
    )
    count = max(len(chosen), 1)
    return Linked(
        known=known,
        tolerance=tolerance,
        victims=len(chosen),
        singled_out=float((inside & (found == 1)).sum() / count),
        hit=float((inside / np.maximum(found, 1)).sum() / count),
        told=float(told.sum() / count),
        fewest=int(found[inside].min()) if inside.any() else None,
    )


def _known(
    truth: Ratings, victims: NDArray[np.int64], known: int, generator: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """Items of each victim, drawn at random, and how they are rated; -1 behind those who rated fewer."""
    rows = truth.open.take(victims)
    keys = generator.random(len(rows.items))
    order = np.lexsort((keys, rows.rows))
    rank = np.arange(len(order)) - np.repeat(rows.starts[:-1], rows.rated)
    drawn = rank < known
    items = np.full((len(victims), known), -1, np.int32)
    given = np.zeros((len(victims), known), np.int16)
    items[rows.rows[drawn], rank[drawn]] = rows.items[order][drawn]
    given[rows.rows[drawn], rank[drawn]] = rows.values[order][drawn]
    return items, given

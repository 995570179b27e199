"""What a class of given rows must meet, made ready for kernels: persons, closeness, caps on shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, Hierarchy, InfeasibleError, Table
from privacy.emd import Ground, ranks
from static_algos._limit_kernels import ATTRIBUTE, CAP, CAPS, CATEGORY, NUMBER, VALUE, Limits, Rules
from static_algos.ratios import LARGEST, rounded_down

Reference = NDArray[np.int64]
"""Count of every value of a sensitive attribute's domain."""


@dataclass(frozen=True)
class Cap:
    """The values `first … last` together have at most this share of a class."""

    first: int
    last: int
    share: Fraction


def references_of(table: Table) -> list[Reference]:
    """The distributions of the table's own sensitive attributes."""
    return list(table.schema.histograms(table.sensitive))


def close_limits(table: Table, k: int, t: Fraction, references: Sequence[Reference], ground: Ground = "rank") -> Limits:
    """At least k persons, and within t of the reference in every sensitive attribute.

    Only values that the reference or the table has are walked: between two of them nothing changes but the rank.
    """
    places = places_of(table.schema.sensitive, references, ground)
    units = [unit(attribute, place) for attribute, place in zip(table.schema.sensitive, places, strict=True)]
    for attribute, reference, steps in zip(table.schema.sensitive, references, units, strict=True):
        require_exact(len(table), int(reference.sum()), attribute, steps)
    trees = [one.hierarchy if isinstance(one, Category) else None for one in table.schema.sensitive]
    known = [_known(*pair) for pair in zip(references, table.sensitive.T, strict=True)]
    counts = [reference[own] for reference, own in zip(references, known, strict=True)]
    gaps = [_gaps(place[own]) for place, own in zip(places, known, strict=True)]
    nodes = [_no_nodes(own) if tree is None else tree.leaf_nodes[own] for tree, own in zip(trees, known, strict=True)]
    rules = _rules(trees, units, t, [[] for _ in references], _values(counts, nodes, gaps), counts)
    return Limits(least=k, person=_persons(table), value=_side_by_side(table, known), rules=rules)


def capped_limits(table: Table, k: int, caps: Sequence[Sequence[Cap]]) -> Limits:
    """At least k persons, and within all caps of every sensitive attribute.

    Values are numbered anew among those that the table has: the work goes with them, not with the domain.
    """
    known = present_values(table)
    counts = [np.unique(column, return_counts=True)[1] for column in table.sensitive.T]
    kept = [_among(present, some) for present, some in zip(known, caps, strict=True)]
    nothing = [_no_nodes(present) for present in known]
    rules = _rules([None] * len(caps), [1] * len(caps), None, kept, _values(counts, nothing, nothing), counts)
    return Limits(least=k, person=_persons(table), value=_side_by_side(table, known), rules=rules)


def present_values(table: Table) -> list[NDArray[np.int64]]:
    """The values of each sensitive attribute that the table has, ascending."""
    return [np.unique(column).astype(np.int64) for column in table.sensitive.T]


def _known(reference: Reference, column: NDArray[np.integer]) -> NDArray[np.int64]:
    """The values that the reference or the column has, ascending."""
    known = reference > 0
    known[column] = True
    return np.flatnonzero(known)


def _among(present: NDArray[np.int64], caps: Sequence[Cap]) -> list[Cap]:
    """The caps in terms of places among these values, without those that reach none of them."""
    first = np.searchsorted(present, [cap.first for cap in caps])
    last = np.searchsorted(present, [cap.last for cap in caps], side="right") - 1
    places = zip(first.tolist(), last.tolist(), caps, strict=True)
    return [Cap(begin, end, cap.share) for begin, end, cap in places if begin <= end]


Places = NDArray[np.int64]
"""Rank of every value of a sensitive attribute's domain, from 0."""


def places_of(attributes: Sequence[Attribute], references: Sequence[Reference], ground: Ground) -> list[Places]:
    """The ranks of every attribute whose values are distributed so."""
    return [ranks(one, ground, reference > 0) for one, reference in zip(attributes, references, strict=True)]


def unit(attribute: Attribute, places: Places) -> int:
    """The unit of distances: the hierarchy's height, or the greatest rank; 1 where all are equal."""
    return max(int(attribute.hierarchy.height[0] if isinstance(attribute, Category) else places[-1]), 1)


def require_exact(rows: int, total: int, attribute: Attribute, steps: int) -> None:
    """Refuse tables whose distances, of so many steps at most, would not fit into one word."""
    if rows * total * steps >= LARGEST:
        most = LARGEST // (rows * total)
        raise InfeasibleError(
            f"{steps + 1} ranks cannot be measured exactly over {total} rows; declare a larger step",
            parameter=attribute.name,
            nearest=f"{most} ranks",
        )


def require_persons(limits: Limits) -> None:
    """Refuse tables of fewer than k persons."""
    persons = int(limits.person.max()) + 1 if len(limits.person) else len(limits.value)
    if persons < limits.least:
        raise InfeasibleError(
            f"a class needs {limits.least} distinct persons, the table has {persons}", parameter="k", nearest=persons
        )


def _persons(table: Table) -> NDArray[np.int32]:
    """Each row's person from 0; an empty array when every row is another person."""
    if not (table.persons[1:] > table.persons[:-1]).all():
        names, codes = np.unique(table.persons, return_inverse=True)
        if len(names) < len(table):
            return codes.astype(np.int32)
    return np.empty(0, np.int32)


def _side_by_side(table: Table, known: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    """The values of all attributes as places in one row of those that are known."""
    places = [_places(*pair) for pair in zip(known, table.sensitive.T, strict=True)]
    return np.column_stack(places) + _offsets([len(own) for own in known])[:-1].astype(np.int32)


def _places(known: NDArray[np.int64], column: NDArray[np.integer]) -> NDArray[np.int32]:
    """The place of each value of the column among those that are known: looked up, where that needs no more room."""
    if not len(column) or known[-1] > 8 * len(column):
        return np.searchsorted(known, column).astype(np.int32)
    place = np.empty(known[-1] + 1, np.int32)
    place[known] = np.arange(len(known))
    return place[column]


def _rules(
    trees: Sequence[Hierarchy | None],
    units: Sequence[int],
    t: Fraction | None,
    caps: Sequence[Sequence[Cap]],
    known: NDArray[Any],
    references: Sequence[Reference],
) -> Rules:
    values = _offsets([len(reference) for reference in references])
    nodes = _offsets([0 if tree is None else len(tree.parent) for tree in trees])
    capped = _offsets([len(some) for some in caps])
    over, under = rounded_down(Fraction(0) if t is None else t)
    longest = max(int(np.diff(nodes).max()), int(np.diff(values).max()) + 1)
    return Rules(
        attributes=np.array(
            [
                (
                    CAPS if t is None else NUMBER if tree is None else CATEGORY,
                    *values[number : number + 2],
                    *nodes[number : number + 2],
                    *capped[number : number + 2],
                    references[number].sum(),
                    units[number],
                )
                for number, tree in enumerate(trees)
            ],
            ATTRIBUTE,
        ),
        values=known,
        parent=_joined([tree.parent for tree in trees if tree is not None]),
        height=_joined([tree.height for tree in trees if tree is not None]),
        caps=np.array([(cap.first, cap.last, *rounded_down(cap.share)) for some in caps for cap in some], CAP),
        t_over=over,
        t_under=under,
        room=np.empty((2, longest), np.int64),
    )


def _values(
    references: Sequence[Reference], nodes: Sequence[NDArray[Any]], gaps: Sequence[NDArray[np.int64]]
) -> NDArray[Any]:
    values = np.empty(sum(map(len, references)), VALUE)
    values["reference"], values["node"], values["gap"] = _joined(references), _joined(nodes), _joined(gaps)
    return values


def _gaps(places: Places) -> NDArray[np.int64]:
    """Ranks from each of these values to the next."""
    return np.diff(places, append=places[-1:])


def _no_nodes(known: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.zeros(len(known), np.int64)


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *arrays]).astype(np.int64)

"""What a class of given rows must meet, made ready for kernels: persons, closeness, caps on shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, InfeasibleError, Table
from static_algos._limit_kernels import CAPS, CATEGORY, NUMBER, Limits
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
    return [
        np.bincount(table.sensitive[:, column], minlength=attribute.size or 0)
        for column, attribute in enumerate(table.schema.sensitive)
    ]


def close_limits(table: Table, k: int, t: Fraction, references: Sequence[Reference]) -> Limits:
    """At least k persons, and within t of the reference in every sensitive attribute."""
    for attribute, reference in zip(table.schema.sensitive, references, strict=True):
        require_exact(len(table), int(reference.sum()), attribute)
    return _limits(table, k, references, t, [[] for _ in references])


def capped_limits(table: Table, k: int, caps: Sequence[Sequence[Cap]]) -> Limits:
    """At least k persons, and within all caps of every sensitive attribute."""
    return _limits(table, k, references_of(table), None, caps)


def ground(attribute: Attribute) -> int:
    """The unit of distances: the hierarchy's height, or the number of values less one; 1 where all are equal."""
    steps = int(attribute.hierarchy.height[0]) if isinstance(attribute, Category) else (attribute.size or 1) - 1
    return max(steps, 1)


def require_exact(rows: int, total: int, attribute: Attribute) -> None:
    """Refuse tables whose distances would not fit into one word."""
    if rows * total * ground(attribute) >= LARGEST:
        most = LARGEST // (rows * total)
        raise InfeasibleError(
            f"a domain of {attribute.size} values cannot be measured exactly over {total} rows; declare a larger step",
            parameter=attribute.name,
            nearest=f"{most} values",
        )


def require_persons(table: Table, k: int) -> None:
    """Refuse tables of fewer than k persons; everything else that is asked, one class of all rows meets."""
    persons = len(np.unique(table.persons))
    if persons < k:
        raise InfeasibleError(
            f"a class needs {k} distinct persons, the table has {persons}", parameter="k", nearest=persons
        )


def distinct_persons(table: Table) -> tuple[int, NDArray[np.int32]]:
    """Number of persons, and each row's person from 0; an empty array when every row is another person."""
    if len(np.unique(table.persons)) == len(table):
        return len(table), np.empty(0, np.int32)
    names, codes = np.unique(table.persons, return_inverse=True)
    return len(names), codes.astype(np.int32)


def _limits(
    table: Table, k: int, references: Sequence[Reference], t: Fraction | None, caps: Sequence[Sequence[Cap]]
) -> Limits:
    attributes = table.schema.sensitive
    start = _offsets([len(reference) for reference in references])
    trees = [attribute.hierarchy if isinstance(attribute, Category) else None for attribute in attributes]
    flat = [cap for some in caps for cap in some]
    over, under = rounded_down(Fraction(0) if t is None else t)
    shares = [rounded_down(cap.share) for cap in flat]
    return Limits(
        least=k,
        person=distinct_persons(table)[1],
        value=table.sensitive + start[:-1].astype(np.int32),
        kind=np.array([CAPS if t is None else NUMBER if tree is None else CATEGORY for tree in trees]),
        start=start,
        reference=np.concatenate(references).astype(np.int64),
        total=np.array([int(reference.sum()) for reference in references]),
        unit=np.array([ground(attribute) for attribute in attributes]),
        t_over=over,
        t_under=under,
        node_start=_offsets([0 if tree is None else len(tree.parent) for tree in trees]),
        node_parent=_joined([tree.parent for tree in trees if tree is not None]),
        node_height=_joined([tree.height for tree in trees if tree is not None]),
        node=_joined(
            [
                np.zeros(len(reference)) if tree is None else tree.leaf_nodes
                for tree, reference in zip(trees, references, strict=True)
            ]
        ),
        cap_start=_offsets([len(some) for some in caps]),
        cap_first=np.array([cap.first for cap in flat], np.int64),
        cap_last=np.array([cap.last for cap in flat], np.int64),
        cap_over=np.array([share.numerator for share in shares], np.int64),
        cap_under=np.array([share.denominator for share in shares], np.int64),
    )


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _joined(arrays: Sequence[NDArray[np.number]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *arrays]).astype(np.int64)

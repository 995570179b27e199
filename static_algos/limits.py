"""What a class of given rows must meet, made ready for kernels: persons, closeness, caps on shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, Category, InfeasibleError, Table
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


def _limits(
    table: Table, k: int, references: Sequence[Reference], t: Fraction | None, caps: Sequence[Sequence[Cap]]
) -> Limits:
    start = _offsets([len(reference) for reference in references])
    return Limits(
        least=k,
        person=_persons(table),
        value=table.sensitive + start[:-1].astype(np.int32),
        rules=_rules(table.schema.sensitive, references, t, caps),
    )


def _rules(
    attributes: Sequence[Attribute],
    references: Sequence[Reference],
    t: Fraction | None,
    caps: Sequence[Sequence[Cap]],
) -> Rules:
    trees = [one.hierarchy if isinstance(one, Category) else None for one in attributes]
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
                    ground(attributes[number]),
                )
                for number, tree in enumerate(trees)
            ],
            ATTRIBUTE,
        ),
        values=np.array(
            [
                (count, 0 if tree is None else tree.leaf_nodes[place])
                for tree, reference in zip(trees, references, strict=True)
                for place, count in enumerate(reference)
            ],
            VALUE,
        ),
        parent=_joined([tree.parent for tree in trees if tree is not None]),
        height=_joined([tree.height for tree in trees if tree is not None]),
        caps=np.array([(cap.first, cap.last, *rounded_down(cap.share)) for some in caps for cap in some], CAP),
        t_over=over,
        t_under=under,
        room=np.empty((2, longest), np.int64),
    )


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _joined(arrays: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *arrays])

"""The refinement: classes are cut in two as long as both parts keep the limits by their actual rows.

The constructions of SABRE and BUREL bound what any choice of rows could do. Knowing the rows, much smaller parts turn
out to be safe. A class is lined up in several ways: by each quasi-identifier, and by each quasi-identifier within every
sensitive value, so that any cut takes about the same share of all values. Of the cuts that keep the limits the one that
loses least is taken; coming near a limit has a price, since it forbids later cuts. Where a class varies in more than 32
quasi-identifiers, it is lined up by the 32 that seem to gain most, judged by some of the others: the work then grows
with their number and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Category, Geometry, Progress, Publication, Schema, Table, geometry, range_loss, silent
from privacy import Model
from static_algos._limit_kernels import Limits
from static_algos._refine_kernels import Block, Desk, cut_by_sample, fill_block, find_cut, split_blocks
from static_algos.merging import merge_until_safe
from static_algos.mondrian import mondrian_classes

Refine: TypeAlias = Annotated[
    Literal["table", "classes", "none"],
    Field(
        description="what is cut further while the actual rows keep the guarantee: all rows together (table, least "
        "loss), the classes of the published construction (classes), or nothing (none)"
    ),
]

BLOCK = 1 << 15
"""Rows up to which a class is looked at as a whole."""
_SAMPLE = 1 << 13


def form_classes(
    table: Table,
    limits: Limits,
    refine: Refine,
    construct: Callable[[], tuple[NDArray[np.int32], int]],
    progress: Progress = silent,
    *,
    models: Sequence[Model] = (),
) -> tuple[NDArray[np.int32], dict[str, object]]:
    """Return classes within the limits, constructed from buckets and merged, refined, or both, and details.

    `models` say what the limits stand for. If the whole table is refined and Mondrian loses less under the same models,
    the classes of Mondrian are refined instead. On quasi-identifiers that say little about the sensitive values, cuts
    that keep away from the limits lose up to twice as much as Mondrian's medians.
    """
    details: dict[str, object] = {"domains": {one.name: one.size for one in table.schema.sensitive}}
    classes = np.zeros(len(table), np.int32)
    if refine != "table":
        classes, details["buckets"] = construct()
        classes, details["merges"] = merge_until_safe(table, classes, limits, progress)
    if refine != "none":
        classes = refine_classes(table, classes, limits, progress)
    if refine == "table" and models:
        halved, _ = mondrian_classes(table, models, progress=progress)
        if Publication.of(table, halved).loss < Publication.of(table, classes).loss:
            classes = refine_classes(table, halved, limits, progress)
    return classes, details


def refine_classes(
    table: Table, classes: NDArray[np.int32], limits: Limits, progress: Progress = silent
) -> NDArray[np.int32]:
    """The classes, cut further where the limits allow it, numbered from 0 without gaps."""
    rows = np.argsort(classes, kind="stable").astype(np.int32)
    edges = np.append(np.flatnonzero(np.diff(classes[rows], prepend=-1)), len(rows)).tolist()
    space, whole = geometry(table.schema), _whole(table)
    block, desk = _room(table.quasi.shape[1], limits, min(BLOCK, len(table)))
    result = np.empty(len(table), np.int32)
    formed = 0
    waiting = list(zip(edges[-2::-1], edges[:0:-1], strict=True))
    while waiting:
        begin, end = waiting.pop()
        progress("refine", begin, len(table))
        if end - begin > BLOCK:
            part = rows[begin:end]
            stride = -(-len(part) // _SAMPLE)
            left = cut_by_sample(space, limits, table.quasi, whole, part, stride, block, desk)
            left = left or _cut_by_one(table, limits, space, part)
            if left:
                waiting += [(begin + left, end), (begin, begin + left)]
            else:
                result[part] = formed
                formed += 1
            continue
        bounds = [begin, end]
        while waiting and waiting[-1][1] - begin <= BLOCK:
            bounds.append(waiting.pop()[1])
        formed = split_blocks(space, limits, table.quasi, whole, rows, np.array(bounds), block, desk, formed, result)
    return result


def _cut_by_one(table: Table, limits: Limits, space: Geometry, rows: NDArray[np.int32]) -> int:
    """Cut a large class along one quasi-identifier, where a sample is too rough to find a cut near a limit.

    The left part moves to the beginning of `rows`; returns its number of rows, or 0.
    """
    low, high = table.quasi[rows].min(axis=0), table.quasi[rows].max(axis=0)
    losses = [-space.weight[one] * range_loss(space, one, low[one], high[one]) for one in range(len(low))]
    whole = _whole(table)
    block, desk = _room(1, limits, len(rows))
    for column in np.argsort(losses, kind="stable").tolist():
        alone = geometry(Schema(table.schema.person, (table.schema.quasi[column],)))
        fill_block(np.ascontiguousarray(table.quasi[:, [column]]), limits, whole[[column]], rows, block)
        cut = find_cut(alone, limits, block, desk, 0, len(rows))
        if cut.sequence >= 0:
            rows[:] = block.row[desk.sequence[cut.sequence]]
            return cut.rows
    return 0


def _whole(table: Table) -> NDArray[np.bool_]:
    """Which quasi-identifiers are whole numbers."""
    return np.array([isinstance(one, Category) or one.integer for one in table.schema.quasi])


def _room(columns: int, limits: Limits, size: int) -> tuple[Block, Desk]:
    attributes = limits.value.shape[1]
    persons = int(limits.person.max(initial=-1)) + 1
    sequences, values = columns * (1 + attributes), len(limits.rules.values)
    block = Block(
        row=np.empty(size, np.int32),
        point=np.empty((size, columns)),
        value=np.empty((size, attributes), np.int32),
        person=np.empty(size if persons else 0, np.int32),
        order=np.empty((columns, size), np.int32),
    )
    desk = Desk(
        sequence=np.empty((sequences, size), np.int32),
        cost=np.empty((sequences, size)),
        back=np.empty(size, np.int32),
        ahead=np.empty(size),
        edges=np.empty((3, columns)),
        seen=np.zeros(persons, np.int64),
        mark=np.zeros(1, np.int64),
        left=np.empty(values, np.int64),
        right=np.empty(values, np.int64),
        side=np.empty(size, np.bool_),
        run=np.empty(size, np.int32),
        free=np.empty(size, np.int32),
    )
    return block, desk

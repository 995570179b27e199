"""What microaggregation is made of: attributes that can be compared, and groups of rows that lie close together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Progress, Publication, Schema, Show, Table, silent, squared_error
from privacy import KAnonymity, Model, check_feasible
from static_algos._microaggregation_kernels import GONE, GROUPS, PERSONS, ROWS, form_groups, work_on
from static_algos.algorithm import StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.proof import proven

_AT_ONCE = 1 << 25
"""Distances in one attribute that are measured between two looks at whether somebody wants it to stop."""


class MicroaggregationParameters(Parameters):
    """How many persons are in a group."""

    k: int = Field(ge=1, le=10**12, description="distinct persons per class; a whole number from 1")


class Microaggregation(StaticAlgorithm):
    """Groups rows that lie close together, and shows the mean of each group."""

    Parameters = MicroaggregationParameters
    parameters: MicroaggregationParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = (KAnonymity,)
    merges = True  # what is left at the end joins a group
    shows: ClassVar[Show] = "mean"
    example: ClassVar[Mapping[str, Any]] = {"k": 3}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """Distinct persons."""
        del schema
        return (KAnonymity(self.parameters.k),)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Group the rows. Nothing is random, nothing is suppressed."""
        del seed
        models = self.models(table.schema)
        check_feasible(models, table)
        attributes, details = self.compared(table, progress)
        groups = group_rows(table, attributes, self.parameters.k, progress)
        lost = squared_error(table.schema, table.quasi, groups)
        publication = Publication.of(table, groups, {**details, "squared_error": lost.total}, show="mean")
        return proven(publication, models)

    @abstractmethod
    def compared(self, table: Table, progress: Progress) -> tuple[Sequence[int], Mapping[str, Any]]:
        """The quasi-identifiers that rows are compared in, and what is to be said of the choice."""


def standardized(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns as multiples of their standard deviation around their mean, one per row of the result.

    A column that is the same everywhere is 0: it tells no row from another.
    """
    if not len(columns):
        return np.empty(columns.T.shape)
    centred = columns.T - columns.mean(axis=0)[:, None]
    deviation = np.sqrt((centred**2).mean(axis=1))
    # What rounding leaves of a constant column is no deviation.
    constant = np.ptp(columns, axis=0) == 0
    return np.where(constant[:, None], 0.0, centred / np.where(constant, 1.0, deviation)[:, None])


def group_rows(table: Table, attributes: Sequence[int], k: int, progress: Progress) -> NDArray[np.int64]:
    """Group of each row: at least k persons, close together in these quasi-identifiers.

    The two rows that lie farthest apart (the farthest from the mean, and the farthest from that one) each take those
    nearest to them, until k persons are together; and so on with the rest. If fewer than 2k persons are left they are
    the last group, and if fewer than k, they join the group whose mean is nearest to theirs. Of rows that are equally
    far the first counts.
    """
    values = standardized(table.quasi[:, list(attributes)])
    persons = np.unique(table.persons, return_inverse=True)[1].astype(np.int64)
    work = work_on(values.copy(), persons)
    meta, total = work.meta, len(table)
    progress("grouping", 0, total)
    while meta[PERSONS] >= 2 * k:
        form_groups(work, k, max(1, _AT_ONCE // (len(values) * int(meta[ROWS]))))
        progress("grouping", total - int(meta[ROWS] - meta[GONE]), total)
    groups = work.groups
    rest = groups < 0
    if rest.any():
        groups[rest] = meta[GROUPS] if meta[PERSONS] >= k or not meta[GROUPS] else _nearest(values, groups, rest)
    progress("grouping", total, total)
    return groups


def _nearest(values: NDArray[np.float64], groups: NDArray[np.int64], rest: NDArray[np.bool_]) -> int:
    """The group whose mean is nearest to the mean of the rest."""
    own = groups[~rest]
    sizes = np.bincount(own)
    means = np.stack([np.bincount(own, column) / sizes for column in values[:, ~rest]])
    return int(((means - values[:, rest].mean(axis=1)[:, None]) ** 2).sum(axis=0).argmin())

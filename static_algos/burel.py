"""BUREL: β-likeness by buckets of similarly frequent sensitive values and redistribution.

Idea. Under β-likeness every sensitive value has a cap, the largest share that it may have in a class. Values are
gathered in the fewest buckets such that a whole bucket's share stays below the cap of its rarest value. The table is
then halved again and again, all buckets in proportion, while no bucket exceeds that cap in either half. Which rows a
class draws from a bucket is free, so it takes neighbours along the Hilbert curve. Nothing is suppressed.

The semantic and range-based forms, further sensitive attributes, and k persons where persons have several rows: classes
that miss one of them are merged with their nearest classes.

Refinement. As for SABRE, cutting the whole table while both parts keep the caps by their actual rows
(`refine="table"`, the default) loses least; `refine="classes"` cuts the classes of the construction further, and
`refine="none"` is BUREL as it was published.

Reference: J. Cao, P. Karras, "Publishing Microdata with a Robust Privacy Guarantee", PVLDB 5 (2012).

>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table
>>> import numpy as np
>>> disease = Category("disease", Hierarchy.flat(["flu", "asthma", "ulcer", "colic"]))
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (disease,))
>>> ages = np.arange(40.0)[:, None]
>>> table = Table(schema, np.arange(40), ages, np.arange(40, dtype=np.int32)[:, None] % 4)
>>> publication = Burel(beta=1, k=4).anonymize(table, seed=1)
>>> len(publication.boxes), publication.suppressed
(8, 0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import InfeasibleError, Progress, Publication, Schema, Table, Words, silent, words
from privacy import BetaLikeness, KAnonymity, Likeness, Model, RangeLikeness, SemanticLikeness, check_domains
from privacy.keys import MOST
from static_algos._dichotomy_kernels import CAPS, SplitTest
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.caps import likeness_caps, value_caps
from static_algos.catalogue import Parameters
from static_algos.dichotomy import dichotomize
from static_algos.limits import Cap, Reference, capped_limits, present_values, references_of, require_persons
from static_algos.proof import proven
from static_algos.ratios import rounded_down
from static_algos.refine import Refine, form_classes
from static_algos.retrieval import draw_along_curve


class BurelParameters(Parameters):
    """What BUREL is asked for."""

    beta: Likeness = Field(description="largest relative gain on a sensitive value (enhanced), or another form")
    k: int = Field(6, ge=1, le=MOST, description="least number of distinct persons in a class")
    refine: Refine = "table"


@STATIC_ALGORITHMS.register("burel", BurelParameters)
class Burel(StaticAlgorithm):
    """β-likeness: buckets of similarly frequent sensitive values, and classes that draw from all in proportion."""

    Parameters = BurelParameters
    parameters: BurelParameters
    guarantees = (KAnonymity, BetaLikeness, SemanticLikeness, RangeLikeness)
    merges = True
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "beta": 9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What every class meets: k persons and β-likeness in the form that is asked for."""
        models = KAnonymity(self.parameters.k), *self.parameters.beta.models(schema)
        check_domains(models, schema)
        return models

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Partition the rows into classes; nothing is suppressed."""
        models = self.models(table.schema)
        if not len(table):
            return Publication.of(table, np.empty(0, np.int32))
        classes, details = burel_classes(
            table,
            likeness_caps(models, table.schema, references_of(table), present_values(table)),
            k=self.parameters.k,
            refine=self.parameters.refine,
            draw_words=words(seed),
            progress=progress,
            models=models,
        )
        progress("check", 0, len(table))
        return proven(Publication.of(table, classes, details), models)


def burel_classes(
    table: Table,
    caps: Sequence[Sequence[Cap]],
    *,
    k: int,
    refine: Refine = "table",
    draw_words: Words,
    progress: Progress = silent,
    models: Sequence[Model] = (),
) -> tuple[NDArray[np.int32], dict[str, object]]:
    """Classes of at least k persons within the caps, which are given per sensitive attribute.

    The caps of the first attribute name every value. They may come from a window of which the rows are only a part, as
    long as all rows together keep them.
    """
    own = references_of(table)[0]
    limits = capped_limits(table, k, caps)
    require_persons(limits)
    highest = value_caps(caps[0], len(own))
    if any(int(own[value]) > highest[value] * len(table) for value in np.flatnonzero(own)):
        raise InfeasibleError("the rows as a whole exceed a cap", parameter="beta")

    def construct() -> tuple[NDArray[np.int32], int]:
        buckets = partition_values(own, highest)
        place = np.zeros(len(own), np.int32)
        for number, values in enumerate(buckets):
            place[values] = number
        draws = dichotomize(share_test(own, highest, buckets), least=k)
        return draw_along_curve(table, place[table.sensitive[:, 0]], draws, draw_words, progress), len(buckets)

    return form_classes(table, limits, refine, construct, progress, models=models)


def partition_values(counts: Reference, caps: Sequence[Fraction]) -> list[list[int]]:
    """DPpartition: the fewest buckets whose shares stay below the least of their caps."""
    values = sorted(np.flatnonzero(counts).tolist(), key=lambda value: (caps[value], counts[value], value))
    _, starts = fewest_runs([int(counts[value]) for value in values], [caps[value] for value in values])
    buckets = []
    end = len(values)
    while end > 0:
        begin = starts[end] - 1
        buckets.append(sorted(values[begin:end]))
        end = begin
    return buckets[::-1]


def fewest_runs(counts: Sequence[int], caps: Sequence[Fraction]) -> tuple[list[int], list[int]]:
    """The dynamic program: for the first e values, how few runs cover them, and where (from 1) the last run starts.

    Values stand in ascending order of their caps. A run of several needs a share strictly below the cap of its first;
    once it is too large, so is every longer one.
    """
    total = sum(counts)
    fewest, starts = [0], [0]
    for end in range(1, len(counts) + 1):
        fewest.append(fewest[end - 1] + 1)
        starts.append(end)
        together = counts[end - 1]
        for begin in range(end - 1, 0, -1):
            together += counts[begin - 1]
            cap = caps[begin - 1]
            if together * cap.denominator >= cap.numerator * total:
                break
            if fewest[begin - 1] + 1 < fewest[end]:
                fewest[end], starts[end] = fewest[begin - 1] + 1, begin
    return fewest, starts


def share_test(counts: Reference, caps: Sequence[Fraction], buckets: Sequence[Sequence[int]]) -> SplitTest:
    """When a class keeps all caps whichever rows it draws: no bucket's share exceeds the least cap of its values."""
    least = [rounded_down(min(caps[value] for value in values)) for values in buckets]
    none = np.empty(0, np.int64)
    return SplitTest(
        kind=CAPS,
        sizes=np.array([counts[values].sum() for values in buckets]),
        total=int(counts.sum()),
        unit=1,
        bound=0,
        t_over=0,
        t_under=1,
        parent=none,
        weight=none,
        place=none,
        low=none,
        high=none,
        cap_over=np.array([share.numerator for share in least]),
        cap_under=np.array([share.denominator for share in least]),
    )

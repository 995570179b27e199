"""SABRE: t-closeness by buckets of sensitive values and redistribution.

Idea. Sensitive values are gathered in buckets so coarse that their inner differences just stay below t. The table is
then halved again and again, all buckets in proportion, while the distance that rounding causes still fits under t.
Every leaf says how many rows a class draws from each bucket; which ones is free, so a class takes neighbours. Nothing
is suppressed.

Several sensitive attributes: the first one shapes the classes; those too far from another one's distribution are
merged with their nearest classes. Persons with several rows: classes of fewer than k persons are merged likewise.

Refinement. The construction is safe for any choice of rows. Once the rows are known, classes can be cut further while
their actual distance stays within t (`refine="classes"`). Cutting the whole table that way, halves in proportion to the
actual sensitive values among the cuts that are tried, gives by far the least loss; so it is the default
(`refine="table"`), and `refine="none"` is SABRE as it was published.

Reference: J. Cao, P. Karras, P. Kalnis, K.-L. Tan, "SABRE: a Sensitive Attribute Bucketization and REdistribution
framework for t-closeness", VLDB Journal 20 (2011).

>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table
>>> import numpy as np
>>> disease = Hierarchy.from_mapping({"any": {"lung": ["flu", "asthma"], "gut": ["ulcer", "colic"]}})
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),), (Category("disease", disease),))
>>> ages = np.arange(40.0)[:, None]
>>> table = Table(schema, np.arange(40), ages, np.arange(40, dtype=np.int32)[:, None] % 4)
>>> publication = Sabre(t=0.5, k=4).anonymize(table)
>>> len(publication.boxes), publication.suppressed
(8, 0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import InfeasibleError, Progress, Publication, Schema, Table, Words, silent, words
from privacy import KAnonymity, Model, TCloseness, check_domains, distance
from privacy.emd import Ground
from privacy.exact import exact
from privacy.keys import MOST
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.dichotomy import dichotomize
from static_algos.limits import Reference, close_limits, references_of, require_persons
from static_algos.proof import proven
from static_algos.refine import Refine, form_classes
from static_algos.retrieval import draw_along_curve, draw_by_distance
from static_algos.sabre_buckets import bucketize, closeness_test


class SabreParameters(Parameters):
    """What SABRE is asked for."""

    t: float = Field(ge=0, le=1, description="largest earth mover's distance of a class from the table")
    k: int = Field(6, ge=1, le=MOST, description="least number of distinct persons in a class")
    neighbours: Literal["hilbert", "exact"] = Field(
        "hilbert",
        description="how a class draws its rows: along the Hilbert curve (fast) or by exact distance; "
        "without effect where the whole table is refined",
    )
    refine: Refine = "table"


@STATIC_ALGORITHMS.register("sabre", SabreParameters)
class Sabre(StaticAlgorithm):
    """t-closeness: buckets of similar sensitive values, and classes that draw from all of them in proportion."""

    Parameters = SabreParameters
    parameters: SabreParameters
    guarantees = (KAnonymity, TCloseness)
    merges = True
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "t": 0.9}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What every class meets: k persons and t-closeness."""
        models = KAnonymity(self.parameters.k), TCloseness(self.parameters.t)
        check_domains(models, schema)
        return models

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Partition the rows into classes; nothing is suppressed."""
        models = self.models(table.schema)
        if not len(table):
            return Publication.of(table, np.empty(0, np.int32))
        given = self.parameters
        classes, details = sabre_classes(
            table,
            references_of(table),
            t=exact(given.t),
            k=given.k,
            neighbours=given.neighbours,
            refine=given.refine,
            draw_words=words(seed),
            progress=progress,
            models=models,
        )
        progress("check", 0, len(table))
        return proven(Publication.of(table, classes, details), models)


def sabre_classes(
    table: Table,
    references: Sequence[Reference],
    *,
    t: Fraction,
    k: int,
    neighbours: Literal["hilbert", "exact"] = "hilbert",
    refine: Refine = "table",
    ground: Ground = "rank",
    draw_words: Words,
    progress: Progress = silent,
    models: Sequence[Model] = (),
) -> tuple[NDArray[np.int32], dict[str, object]]:
    """Classes of at least k persons within t of the references, one per sensitive attribute over its whole domain.

    The rows may be a part of what the references count, as in a window: the distance of all rows from the first
    reference is then taken off t before the buckets are made, which needs one ground distance for both: `domain`.
    """
    attribute, own = table.schema.sensitive[0], references_of(table)[0]
    limits = close_limits(table, k, t, references, ground)
    require_persons(limits)
    rest = t - distance(attribute, references[0], own, ground)
    if rest < 0:
        raise InfeasibleError("the rows as a whole are farther than t from the reference", parameter="t")

    def construct() -> tuple[NDArray[np.int32], int]:
        bucketing = bucketize(attribute, own, rest, ground)
        draws = dichotomize(closeness_test(attribute, own, bucketing, rest, ground), least=k)
        draw = draw_along_curve if neighbours == "hilbert" else draw_by_distance
        buckets = bucketing.of_values(len(own))[table.sensitive[:, 0]]
        return draw(table, buckets, draws, draw_words, progress), len(bucketing.buckets)

    return form_classes(table, limits, refine, construct, progress, models=models)

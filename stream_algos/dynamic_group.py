"""dynamicGroup: condensation of a stream into groups of k to 2k persons.

Idea. The first rows make the initial groups: one row and its nearest, until k persons are together. Every later row
joins the group with the nearest centre; a group of 2k rows is halved across the direction in which it is spread most,
where both halves are about k persons. It looks at no sensitive value.

As published it has no bound on the delay: what leaves are the groups at the end of the stream. Here every window is
condensed so; a window as long as the stream gives what was published. It is here to compare with. What leaves are the
boxes around the groups, not values drawn like those of a group.

Reference: C. C. Aggarwal, P. S. Yu, "A condensation approach to privacy preserving data mining", EDBT 2004; the
window's part is in `window.py`.

>>> import numpy as np
>>> from microdata import Number, PersonSource, Schema
>>> from stream_algos.engine import Batch
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 99),))
>>> n, ages = np.arange(6), np.array([30.0, 71.0, 33.0, 70.0, 31.0, 72.0])
>>> engine = DynamicGroup(schema, k=3, window={"size": 6, "advance": 6})
>>> release = engine.push(Batch(n, n.astype(float), n, ages[:, None], np.empty((6, 0), np.int32)))
>>> sorted(zip(release.lo[:, 0].tolist(), release.hi[:, 0].tolist()))
[(30.0, 33.0), (70.0, 72.0)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from microdata import Table, geometry
from privacy import KAnonymity, Model
from stream_algos._condense_kernels import Condensed, condense
from stream_algos.engine import STREAM_ALGORITHMS
from stream_algos.window import References, WindowEngine, WindowParameters


class DynamicGroupParameters(WindowParameters):
    """What dynamicGroup is asked for."""

    first: int = Field(1_000, ge=1, le=100_000, description="rows of a window that make the initial groups")


@STREAM_ALGORITHMS.register("dynamic_group", DynamicGroupParameters)
class DynamicGroup(WindowEngine):
    """k-anonymity: the rows of a window condensed into groups of nearest ones, to compare with."""

    Parameters = DynamicGroupParameters
    parameters: DynamicGroupParameters
    guarantees = (KAnonymity,)
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "window": {"size": 40, "advance": 10}, "first": 15}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"window": {"size": 40, "advance": 40}, "delay": {"seconds": 10.0}},
        {"window": {"seconds": 20.0, "advance_seconds": 5.0}},
    )

    def models(self) -> tuple[Model, ...]:
        """At least k persons."""
        return (KAnonymity(self.parameters.k),)

    def _room(self, rows: Table, references: References) -> float:  # noqa: ARG002 - there is no threshold to use up
        return 1.0

    def _partition(self, rows: Table, references: References) -> NDArray[np.int32]:  # noqa: ARG002 - as above
        space, k = geometry(self.schema), self.parameters.k
        persons, person = np.unique(rows.persons, return_inverse=True)
        most = len(rows) // k
        groups = Condensed(
            point=np.ascontiguousarray((rows.quasi - space.low) * space.scale),
            person=person.astype(np.int32),
            after=np.empty(len(rows), np.int32),
            head=np.empty(most, np.int32),
            rows=np.empty(most, np.int64),
            due=np.empty(most, np.int64),
            centre=np.empty((most, rows.quasi.shape[1])),
            formed=np.zeros(1, np.int64),
            seen=np.zeros(len(persons) + 1, np.int64),
        )
        group = np.empty(len(rows), np.int32)
        condense(groups, k, self.parameters.first, group)
        return group

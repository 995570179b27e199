"""Purpose: what somebody needs the table for, and how far they are trusted, decide how much is generalized.

A purpose is an order of the quasi-identifiers, from the most useful to the least. Each gets a priority between 1 and 0:
along the order, in proportion to how little neighbours depend on each other. Trust becomes a degree of anonymization,
from 0 (as it is) to 1 (nothing is left), and the degree is laid on the quasi-identifiers: each climbs so many levels,
the same for all rows. If classes do not keep the guarantee then, the degree is raised until they do; so trust buys
precision, and never less than the guarantee.

The source gives the most useful attribute the largest share of the degree, which contradicts its own intent, and makes
shares so small that trust has little effect (`mode: literal`). By default (`mode: purpose`) those that the purpose
needs least are generalized first and the mean of all is the degree that was asked for.

X. Sun (2010), chapter 4.

>>> import numpy as np
>>> from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table
>>> tree = Hierarchy.from_mapping({"World": {"Europe": ["France", "Spain"], "Asia": ["Japan", "Korea"]}})
>>> schema = Schema(PersonSource.ROW, (Number("age", 0, 63, integer=True), Category("country", tree)))
>>> rows = np.array([[21.0, 0], [22.0, 1], [25.0, 2], [21.0, 3], [22.0, 0], [25.0, 1]])
>>> table = Table(schema, np.arange(6), rows, np.empty((6, 0), np.int32))
>>> Purpose(k=2, order=["age"], trust=0.8).anonymize(table).details["levels"]
{'age': 0, 'country': 2}
>>> Purpose(k=2, order=["country"], trust=0.8).anonymize(table).details["levels"]
{'age': 4, 'country': 1}
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from microdata import Boxes, InfeasibleError, Progress, Publication, Schema, Table, silent
from privacy import KEYS, Groups, Guarantee, Model, check, check_feasible
from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Parameters
from static_algos.dependency import cells, distances
from static_algos.proof import proven
from static_algos.recoding import MOST_FIELDS, Height, Recoding, Widths, recodings

MOST_POINTS = 100
SLACK = 1e-9
"""Degrees that differ by less are the same: boundaries belong to the lower step."""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PurposeParameters(Guarantee, Parameters):
    """What it is for, how far who asks is trusted, and what must hold in any case."""

    trust: Share = Field(default=0, description="how far who asks is trusted: 0 not at all, 1 as oneself")
    order: tuple[str, ...] = Field(
        default=(),
        max_length=MOST_FIELDS,
        description="quasi-identifiers, the most useful for the purpose first; those that are not named follow by how "
        "much they depend on the first; empty: all are alike",
    )
    projection: Literal["quadratic", "linear", "steep"] = Field(
        default="quadratic",
        description="degree of anonymization for trust t: quadratic 1 - t², linear 1 - t, steep (1 - t)²",
    )
    points: tuple[tuple[Share, Share], ...] | None = Field(
        default=None,
        min_length=2,
        max_length=MOST_POINTS,
        description="pairs of trust and degree instead, from trust 0 to trust 1, degrees falling; in between, straight",
    )
    mode: Literal["purpose", "literal"] = Field(
        default="purpose",
        description="purpose: what is least useful is generalized most; literal: as the source prints it",
    )
    steps: Literal["uniform", "utility"] = Field(
        default="uniform", description="whether all levels of an attribute count alike, or those near the root more"
    )
    power: float = Field(
        default=1,
        ge=1,
        le=10,
        description="with steps: utility, the step from level j to j - 1 weighs 1 / (j - 1)^power",
    )
    height: Height = 4
    widths: Widths = Field(default_factory=dict)

    @model_validator(mode="after")
    def _points_fall(self) -> Self:
        points = self.points
        if points is None:
            return self
        ends = points[0][0] == 0 and points[-1][0] == 1
        if not ends or not all(one[0] < other[0] and one[1] >= other[1] for one, other in pairwise(points)):
            reason = "trust must rise from 0 to 1 and the degree must not rise with it"
            raise InfeasibleError(reason, parameter="points")
        return self

    def degree(self) -> float:
        """The degree of anonymization that this trust asks for."""
        if self.points is not None:
            trust, degrees = np.array(self.points).T
            return float(np.interp(self.trust, trust, degrees))
        match self.projection:
            case "linear":
                return 1 - self.trust
            case "steep":
                return (1 - self.trust) ** 2
            case "quadratic":
                return 1 - self.trust**2


@STATIC_ALGORITHMS.register("purpose", PurposeParameters)
class Purpose(StaticAlgorithm):
    """Generalizes what a purpose needs least, the more the less who asks is trusted, until the guarantee holds."""

    Parameters = PurposeParameters
    parameters: PurposeParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    example: ClassVar[Mapping[str, Any]] = {"k": 2, "trust": 1, "order": ["city", "age"]}

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """What the parameters ask for."""
        return self.parameters.models(schema)

    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Lay the degree on the quasi-identifiers and raise it until the guarantee holds. Nothing is random."""
        del seed
        asked, models = self.parameters, self.models(table.schema)
        names = [attribute.name for attribute in table.schema.quasi]
        priority = self._priorities(table, names, progress)
        check_feasible(models, table)
        recoded = recodings(table, asked.height, asked.widths)
        power = asked.power if asked.steps == "utility" else 0.0
        degrees = [attribute_degrees(len(one.levels), power) for one in recoded]
        climb = rises(degrees, priority, asked.mode)
        requested = asked.degree()
        first = sum(rise.degree < requested - SLACK for rise in climb)
        taken = _least(table, recoded, models, climb, first, progress)
        steps = steps_after(climb, taken, len(names))
        achieved = np.array([degree[step] for degree, step in zip(degrees, steps, strict=True)])
        details = {
            "priorities": dict(zip(names, priority.tolist(), strict=True)),
            "requested_degree": requested,
            "achieved_degree": float(achieved.mean()),
            "weighted_degree": weighted_degree(achieved, priority),
            "levels": dict(zip(names, steps, strict=True)),
            "raised_for_the_guarantee": taken > first,
        }
        return proven(_publication(table, recoded, steps, details), models)

    def _priorities(self, table: Table, names: Sequence[str], progress: Progress) -> NDArray[np.float64]:
        order = self.parameters.order
        for name in order:
            if name not in names or order.count(name) > 1:
                reason = "each name must be that of a quasi-identifier, and stand there once"
                raise InfeasibleError(reason, parameter="order", given=repr(name))
        if not order:
            return np.ones(len(names))
        between = distances([cells(column) for column in table.quasi.T], progress)
        chosen = [names.index(name) for name in order]
        rest = sorted(set(range(len(names))) - set(chosen), key=lambda one: (between[chosen[0], one], one))
        result = np.empty(len(names))
        result[chosen + rest] = priorities(between, chosen + rest)
        return result


def priorities(between: NDArray[np.float64], order: Sequence[int]) -> NDArray[np.float64]:
    """Priority of each attribute of an order, from 1 to 0: it falls with the distance between neighbours.

    The source defines each by its two neighbours; this is the solution of its equations.

    >>> between = np.array([[0, 0.5, 0.367], [0.5, 0, 0.133], [0.367, 0.133, 0]])
    >>> priorities(between, [0, 2, 1]).round(3).tolist()
    [1.0, 0.266, 0.0]
    """
    if len(order) == 1:
        return np.ones(1)
    way = np.concatenate(([0.0], np.cumsum([between[one, other] for one, other in pairwise(order)])))
    return 1 - way / way[-1] if way[-1] > 0 else np.linspace(1, 0, len(order))


def attribute_degrees(levels: int, power: float) -> NDArray[np.float64]:
    """Degree of anonymization after each number of steps, from 0 for none to 1 at the root.

    The step from level j down to j - 1 (1 is the root) weighs 1 / (j - 1)^power; with 0 all steps are alike.

    >>> attribute_degrees(6, 0)[2].item(), round(attribute_degrees(6, 1)[1].item(), 4)
    (0.4, 0.0876)
    """
    weights = 1 / np.arange(levels - 1, 0, -1, dtype=np.float64) ** power
    return np.concatenate(([0.0], np.cumsum(weights) / weights.sum())) if levels > 1 else np.zeros(1)


def weighted_degree(degrees: NDArray[np.float64], priority: NDArray[np.float64]) -> float:
    """The degree of a row as the source defines it: those of its attributes, weighted by their priorities."""
    total = float(priority.sum())
    return float(degrees @ priority) / total if total else 0.0


class Rise(NamedTuple):
    """Above a degree, an attribute is so many steps up."""

    degree: float
    attribute: int
    steps: int


def rises(degrees: Sequence[NDArray[np.float64]], priority: NDArray[np.float64], mode: str) -> list[Rise]:
    """Every step of every attribute, in the order in which a growing degree takes them."""
    share = _literal if mode == "literal" else _by_purpose
    return sorted(
        Rise(share(degree, attribute, priority), attribute, steps + 1)
        for attribute, own in enumerate(degrees)
        for steps, degree in enumerate(own[:-1].tolist())
    )


def _literal(degree: float, attribute: int, priority: NDArray[np.float64]) -> float:
    """The degree of the table at which an attribute has this one: its priority's share of it.

    An attribute of priority 0 never has any: it comes behind all others, for a guarantee that cannot be met without.
    """
    own, total = float(priority[attribute]), float(priority.sum())
    least = float(priority[priority > 0].min(initial=1.0))
    return degree * total / own if own > 0 else max(1.0, total / least) + degree


def _by_purpose(degree: float, attribute: int, priority: NDArray[np.float64]) -> float:
    """The same where attributes get theirs by how little they are needed, and those that are needed most come last."""
    need = 1 - priority
    count, last = len(priority), need <= 0
    if last[attribute]:
        return float((count - last.sum() + degree * last.sum()) / count)
    return float(np.minimum(1.0, degree / need[attribute] * need[~last]).sum() / count)


def steps_after(climb: Sequence[Rise], taken: int, count: int) -> tuple[int, ...]:
    """How far up each of so many attributes is when so many of the rises are taken."""
    steps = [0] * count
    for rise in climb[:taken]:
        steps[rise.attribute] = rise.steps
    return tuple(steps)


def _least(
    table: Table,
    recoded: Sequence[Recoding],
    models: Sequence[Model],
    climb: Sequence[Rise],
    first: int,
    progress: Progress,
) -> int:
    """The fewest rises, at least `first`, after which the guarantee holds; rises at one degree come together."""
    ends = [n for n in range(first, len(climb)) if n == first or climb[n].degree - climb[n - 1].degree > SLACK]
    ends.append(len(climb))

    def holds(place: int) -> bool:
        progress("raising the degree", place, len(ends))
        return _holds(table, recoded, models, steps_after(climb, ends[place], len(recoded)))

    places = range(len(ends))
    if all(model.survives_merging for model in models):
        # Once it holds, it does after all further rises.
        found = bisect.bisect_left(places, True, key=holds)  # noqa: FBT003 - what is looked for
    else:
        found = next((place for place in places if holds(place)), len(ends))
    progress("raising the degree", len(ends), len(ends))
    if found < len(ends):
        return ends[found]
    raise InfeasibleError("no degree of anonymization meets it", parameter="guarantee")


def _holds(table: Table, recoded: Sequence[Recoding], models: Sequence[Model], steps: Sequence[int]) -> bool:
    label, count = _labels(recoded, steps)
    return bool(check(models, Groups.of(table.schema, table.persons, table.sensitive, label, count)).all())


def _labels(recoded: Sequence[Recoding], steps: Sequence[int]) -> tuple[NDArray[np.int32], int]:
    """Class of each row at these levels, and their number."""
    label = np.zeros(len(recoded[0].codes), np.int64)
    for one, step in zip(recoded, steps, strict=True):
        group = one.levels[step].group[one.codes]
        label = np.unique(label * (int(group.max(initial=0)) + 1) + group, return_inverse=True)[1]
    return label.astype(np.int32), int(label.max(initial=-1)) + 1


def _publication(
    table: Table, recoded: Sequence[Recoding], steps: Sequence[int], details: Mapping[str, object]
) -> Publication:
    label, count = _labels(recoded, steps)
    example = np.zeros(count, np.int64)
    example[label] = np.arange(len(label))
    lo, hi = np.empty((2, count, len(recoded)))
    for column, (one, step) in enumerate(zip(recoded, steps, strict=True)):
        group = one.levels[step].group[one.codes[example]]
        lo[:, column], hi[:, column] = one.levels[step].lo[group], one.levels[step].hi[group]
    return Publication(table, label, Boxes(table.schema, lo, hi), details)

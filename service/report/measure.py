"""From a publication to the parts of its report; each part can be measured by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import (
    Attribute,
    Category,
    Publication,
    Schema,
    SquaredError,
    attribute_loss,
    average_class_size,
    discernibility,
    entropy_loss,
    hidden_cells,
    leaf_loss,
    normalized_error,
    rank_difference,
    squared_error,
    weighted_discernibility,
)
from privacy import (
    Audit,
    BetaLikeness,
    DistinctDiversity,
    EntropyDiversity,
    Groups,
    Histogram,
    KAnonymity,
    Model,
    TCloseness,
    audit,
    contributions,
    exposures,
    raising,
    risks,
    risks_before,
)
from privacy import Risk as MeasuredRisk
from service.report.columns import spreads_of
from service.report.outside import tried
from service.report.sections import (
    Asked,
    AttributeLoss,
    Distribution,
    Exposed,
    Higher,
    Loss,
    Measure,
    QueryError,
    Rejected,
    Result,
    Risk,
    RiskFigures,
    Rows,
    SizeBin,
    Sizes,
    SquaredLoss,
    SquaredShare,
    TableReport,
    Utility,
    ValueShare,
    Within,
)
from static_algos import distortion_ratio, query_errors

MOST_BINS = 16
"""Bars of the histogram of class sizes."""
MOST_VALUES = 24
"""Bars of a distribution; rarer values are shown together, numbers in runs."""
QUERIES = 10_000
"""Random counting queries; fewer where there are very many classes."""
ERROR_LIMITS = (0.1, 0.25, 0.5, 1.0)


def table_report(
    publication: Publication,
    models: Sequence[Model],
    *,
    asked: Asked,
    seconds: float,
    name: str | None = None,
    fingerprint: str | None = None,
    audited: Audit | None = None,
    rejected: Rejected | None = None,
    repeatable: bool = False,
) -> TableReport:
    """Everything there is to say about a publication, free of quasi-identifiers' values and persons.

    `rejected` says why rows were rejected; left out, they are counted, and the verdict warns if there are any.
    """
    groups = _groups(publication)
    audited = audited or audit(publication.table, publication, models)
    return TableReport(
        name=name,
        fingerprint=fingerprint,
        asked=asked,
        holds=audited.holds,
        seconds=round(seconds, 3),
        repeatable=repeatable,
        **determined_figures(publication, models, audited, rejected),
        tried=tried(publication),
        queries=_queries(publication),
        columns=spreads_of(publication, int(groups.persons.min()) if len(groups) else 0),
        sensitive=distributions(groups),
        details=dict(publication.details),
    )


def determined_figures(
    publication: Publication, models: Sequence[Model], audited: Audit, rejected: Rejected | None
) -> dict[str, Any]:
    """Return the sections of a report that draw nothing at random, so that they can be measured again."""
    table, groups = publication.table, _groups(publication)
    rejected = rejected or Rejected.of(publication.rejected, publication.given, (), 0.0)
    return {
        "rows": rows_of(len(table), len(table) - publication.suppressed, rejected),
        "results": _results(audited, models),
        "measured": measures(table.schema, groups),
        "loss": loss_of(publication),
        "show": publication.show,
        "squared_error": squared_loss(table.schema, squared_error(table.schema, table.quasi, publication.classes)),
        "sizes": sizes_of(groups),
        "utility": utility_of(publication, models),
        "risk": _risk(publication),
        "attacks": exposed(publication),
    }


def _groups(publication: Publication) -> Groups:
    table = publication.table
    return Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))


def rows_of(read: int, published: int, rejected: Rejected) -> Rows:
    """Return what became of the rows of a file: `read` is the number of those that are valid."""
    given = read + rejected.rows
    return Rows(
        given=given,
        published=published,
        suppressed=read - published,
        suppressed_share=(read - published) / given if given else 0.0,
        rejected=rejected,
    )


def _results(audited: Audit, models: Sequence[Model]) -> list[Result]:
    return [
        Result(
            model=finding.model,
            asked=finding.asked,
            achieved=finding.achieved,
            holds=finding.holds,
            failing=finding.failing,
            more_is_safer=model.more_is_safer,
            ground=finding.ground,
        )
        for finding, model in zip(audited.findings, models, strict=True)
    ]


def measures(schema: Schema, groups: Groups) -> list[Measure]:
    """k, and ℓ, t and β of every sensitive attribute, whether they were asked for or not.

    Closeness bounds no single value's gain, and a bounded gain says nothing about related values: so both are shown.
    """
    models: list[Model] = [KAnonymity(1)]
    for attribute in schema.sensitive:
        name = attribute.name
        models += [
            DistinctDiversity(1, name),
            EntropyDiversity(1, name),
            TCloseness(1, attribute=name),
            BetaLikeness(1, "basic", name),
        ]
    return [_measure(model, groups) for model in models]


def _measure(model: Model, groups: Groups) -> Measure:
    achieved = model.achieved(groups)
    worst = typical = None
    if len(groups):
        worst = _finite(achieved.min() if model.more_is_safer else achieved.max())
        order = np.argsort(achieved)
        running = np.cumsum(groups.rows[order])
        typical = _finite(achieved[order[np.searchsorted(running, running[-1] / 2)]])
    return Measure(
        model=model.label,
        worst=worst,
        typical=typical,
        more_is_safer=model.more_is_safer,
        ground=model.basis(groups),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def loss_of(publication: Publication) -> Loss:
    """Loss over all published rows, and by quasi-identifier."""
    table, sizes, boxes = publication.table, publication.sizes, publication.boxes
    rows = max(int(sizes.sum()), 1)
    each, lm, hidden = (
        sizes @ measured / rows for measured in (attribute_loss(boxes), leaf_loss(boxes), hidden_cells(boxes))
    )
    entropy = entropy_loss(table.quasi, publication.classes, boxes)
    errors, causes = _guessed(publication), contributions(table)
    raised = None if publication.show == "mean" else raising(publication)
    higher = {one.attribute: Higher(risk=one.risk, cost=one.cost) for one in (raised.columns if raised else ())}
    return Loss(
        mean=publication.loss,
        risk=raised.risk if raised else None,
        weighted_discernibility=weighted_discernibility(boxes, sizes, publication.suppressed),
        attributes=[
            AttributeLoss(
                name=attribute.name,
                loss=float(each[a]),
                entropy=float(entropy[a]),
                lm=float(lm[a]),
                unsuppressed=1 - float(hidden[a]),
                normalized_error=errors[a][0],
                rank_error=errors[a][1],
                risk=causes[a],
                higher=higher.get(attribute.name),
                weight=weight,
            )
            for a, (attribute, weight) in enumerate(zip(table.schema.quasi, table.schema.weights, strict=True))
        ],
    )


def squared_loss(schema: Schema, error: SquaredError) -> SquaredLoss:
    """What showing means costs, by quasi-identifier."""
    named = zip(schema.quasi, error.attributes, strict=True)
    attributes = [SquaredShare(name=one.name, share=share) for one, share in named if share is not None]
    return SquaredLoss(total=error.total, attributes=attributes)


def _guessed(publication: Publication) -> list[tuple[float | None, float | None]]:
    """Errors of taking every number for the middle of its interval: of values and of ranks; None for categories."""
    published, own = publication.boxes.widened(), publication.classes >= 0
    classes, found = publication.classes[own], list[tuple[float | None, float | None]]()
    for a, attribute in enumerate(publication.table.schema.quasi):
        if isinstance(attribute, Category) or not own.any():
            found.append((None, None))
            continue
        values = publication.table.quasi[own, a]
        guess = ((published.lo[:, a] + published.hi[:, a]) / 2)[classes]
        found.append((normalized_error(values, guess), rank_difference(values, guess) / len(values) ** 2))
    return found


def sizes_of(groups: Groups) -> Sizes | None:
    """How large the classes are; None where there is none."""
    if not len(groups):
        return None
    rows = groups.rows
    return Sizes(
        classes=len(groups),
        smallest=int(rows.min()),
        median=float(np.median(rows)),
        mean=float(rows.mean()),
        largest=int(rows.max()),
        fewest_persons=int(groups.persons.min()),
        largest_person_share=float((groups.most / rows).max()),
        bins=_bins(rows),
    )


def utility_of(publication: Publication, models: Sequence[Model]) -> Utility:
    """Discernibility, the average class size and the distortion ratio."""
    k = max((model.k for model in models if isinstance(model, KAnonymity)), default=None)
    return Utility(
        discernibility=discernibility(publication.sizes, publication.suppressed),
        average_to_k=None if k is None else average_class_size(publication.sizes, k),
        distortion=distortion_ratio(publication),
    )


def _bins(rows: NDArray[np.int64]) -> list[SizeBin]:
    """One bar per size where there are few, otherwise bars that grow in proportion."""
    low, high = int(rows.min()), int(rows.max())
    edges = np.arange(low, high + 2)
    if len(edges) > MOST_BINS + 1:
        edges = np.unique(np.rint(np.geomspace(low, high + 1, MOST_BINS + 1)).astype(np.int64))
    return [
        SizeBin(first=first, last=last - 1, classes=int(inside.sum()), rows=int(rows[inside].sum()))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for inside in [(rows >= first) & (rows < last)]
    ]


def _risk(publication: Publication) -> Risk:
    before, after = risks_before(publication.table).prosecutor, risks(publication).prosecutor
    return Risk(threshold=after.threshold, before=_figures(before), after=_figures(after))


def _figures(risk: MeasuredRisk) -> RiskFigures:
    return RiskFigures(highest=risk.highest, average=risk.average, above=risk.above)


def exposed(publication: Publication) -> list[Exposed]:
    """What every attack gets."""
    return [
        Exposed(
            attack=one.attack.name,
            attribute=one.attribute,
            gets=one.attack.gets,
            before=one.before,
            after=one.after,
            baseline=one.baseline,
        )
        for one in exposures(publication)
    ]


def _queries(publication: Publication) -> QueryError:
    predicates, selectivity = min(3, len(publication.table.schema.quasi)), 0.1
    count = int(min(QUERIES, max(100, 5e7 / max(len(publication.boxes), 1))))
    errors = query_errors(publication, predicates=predicates, selectivity=selectivity, queries=count)
    low, high = median_interval(errors)
    return QueryError(
        queries=len(errors),
        sensitive=bool(publication.table.schema.sensitive),
        low=low,
        high=high,
        predicates=predicates,
        selectivity=selectivity,
        median=float(np.median(errors)) if len(errors) else None,
        within=[Within(error=limit, queries=float(np.mean(errors <= limit))) for limit in ERROR_LIMITS if len(errors)],
    )


def median_interval(errors: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Where the median of all queries lies with 95 % confidence, by the order of those that were asked."""
    count = len(errors)
    if not count:
        return None, None
    reach = 0.98 * math.sqrt(count)
    first, last = max(math.floor(count / 2 - reach), 0), min(math.ceil(count / 2 + reach), count - 1)
    ordered = np.sort(errors)
    return float(ordered[first]), float(ordered[last])


def distributions(groups: Groups) -> list[Distribution]:
    """Each sensitive attribute overall and in the class that is farthest from it."""
    return [_distribution(histogram, groups) for histogram in groups.histograms if len(groups)]


def _distribution(histogram: Histogram, groups: Groups) -> Distribution:
    attribute = histogram.attribute
    distance = TCloseness(1, attribute=attribute.name).achieved(groups)
    one = int(distance.argmax())
    own = slice(histogram.starts[one], histogram.starts[one + 1])
    inside = np.zeros(len(histogram.reference))
    inside[histogram.values[own]] = histogram.counts[own]
    return Distribution(
        attribute=attribute.name,
        distance=float(distance[one]),
        rows=int(groups.rows[one]),
        values=_shares(attribute, histogram.reference / max(histogram.total, 1), inside / groups.rows[one]),
    )


def _shares(attribute: Attribute, table: NDArray[np.float64], worst: NDArray[np.float64]) -> list[ValueShare]:
    if not attribute.numeric:
        return _frequent_shares(attribute, table, worst)
    starts = np.arange(0, len(table), math.ceil(len(table) / MOST_VALUES))
    ends = np.append(starts[1:], len(table)) - 1
    sums = np.add.reduceat(table, starts), np.add.reduceat(worst, starts)
    return [
        ValueShare(label=attribute.label(first, last), table=float(a), worst=float(b))
        for first, last, a, b in zip(starts.tolist(), ends.tolist(), *sums, strict=True)
    ]


def _frequent_shares(attribute: Attribute, table: NDArray[np.float64], worst: NDArray[np.float64]) -> list[ValueShare]:
    """The most frequent values in the order of the hierarchy, the others together."""
    order = np.argsort(-np.maximum(table, worst), kind="stable")
    shown = np.sort(order if len(order) <= MOST_VALUES else order[: MOST_VALUES - 1])
    result = [
        ValueShare(label=attribute.label(value, value), table=float(table[value]), worst=float(worst[value]))
        for value in shown.tolist()
    ]
    rest = np.setdiff1d(order, shown)
    if len(rest):
        label = f"{len(rest)} other values"
        result.append(ValueShare(label=label, table=float(table[rest].sum()), worst=float(worst[rest].sum())))
    return result

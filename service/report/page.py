"""The report as one page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Protocol

from markupsafe import Markup

from service.report.figures import Bar, bars, bullet, card, facts, histogram, number, parts, percent, tile
from service.report.sections import (
    Asked,
    Distribution,
    Exposed,
    Loss,
    Measure,
    QueryError,
    Refused,
    Result,
    Risk,
    Sizes,
    SquaredLoss,
    TableReport,
    Utility,
)


def report_html(report: TableReport) -> str:
    """The page of one anonymized table."""
    title = f"Report: {report.name}" if report.name else "Report"
    cards = [
        results_card(report.results),
        *([attacks_card(report.attacks)] if report.attacks else []),
        measured_card(report.measured, sensitive=bool(report.sensitive)),
        loss_card(report.loss, report.utility),
        *([causes_card(report.loss)] if any(one.risk is not None for one in report.loss.attributes) else []),
        *([squares_card(report.squared_error)] if report.show == "mean" and report.squared_error else []),
        sizes_card(report.sizes),
        *(sensitive_card(one) for one in report.sensitive),
        risk_card(report.risk),
        queries_card(report.queries),
        *([refused_card(report.rows.refused)] if report.rows.refused else []),
        details_card(report.asked, report.details),
    ]
    return page(title, header(report, title) + tiles(report) + group("cards", cards))


def page(title: str, body: str) -> str:
    """A whole page with the style of all reports."""
    style = files("service.report").joinpath("page.css").read_text(encoding="utf-8")
    return str(parts().page(title, Markup(style), Markup(body)))  # noqa: S704 - ours, and made of escaped parts


def group(kind: str, members: Iterable[str]) -> str:
    """Parts side by side: `cards` or `tiles`."""
    return str(parts().group(kind, [Markup(one) for one in members]))  # noqa: S704 - made of escaped parts


class Headed(Protocol):
    """A report of anything, as far as its header goes."""

    @property
    def asked(self) -> Asked:
        """What was asked for."""

    @property
    def holds(self) -> bool:
        """Whether it is kept."""

    @property
    def seconds(self) -> float:
        """How long it took."""

    @property
    def repeatable(self) -> bool:
        """Whether it was made with a seed."""


def header(report: Headed, title: str) -> str:
    """What was asked, how it went, and whether the result may be released."""
    asked = ", ".join(
        f"{name} = {_short(value)}" for name, value in report.asked.parameters.items() if value not in (None, {}, [])
    )
    how = f"{report.asked.algorithm or 'no algorithm'} · {asked} · {number(report.seconds)} s"
    return str(parts().header(title, report.holds, how, report.repeatable))


def tiles(report: TableReport) -> str:
    """The numbers that people ask for first."""
    rows, risk = report.rows, report.risk
    error = report.queries.median
    return group(
        "tiles",
        [
            tile(number(rows.published), "rows published", f"of {number(rows.given)}"),
            tile(percent(rows.suppressed_share), "suppressed", f"{number(rows.suppressed)} rows"),
            tile(
                number(report.sizes.classes if report.sizes else 0),
                "classes",
                f"{number(report.sizes.fewest_persons)} persons or more" if report.sizes else "",
            ),
            tile(percent(report.loss.mean), "mean loss"),
            tile(percent(risk.after.highest), "highest risk of a row", f"{percent(risk.before.highest)} before"),
            tile("–" if error is None else percent(error), "median query error"),
        ],
    )


def results_card(results: list[Result]) -> str:
    """Achieved against asked."""
    lines = [
        {
            "name": _named(one),
            "drawn": Markup(bullet(one.asked, one.achieved, more_is_safer=one.more_is_safer, holds=one.holds)),  # noqa: S704
            "holds": one.holds,
            "achieved": one.achieved,
            "limit": _limit(one),
        }
        for one in results
    ]
    return card(
        "Asked and achieved",
        "The bar shows the least safe class. It has to end in the shaded part; the line is what was asked.",
        parts().results(lines),
    )


def attacks_card(attacks: list[Exposed]) -> str:
    """What each attack gets, before and after."""
    named = [(f"{one.attack} of {one.attribute}" if one.attribute else one.attack, one) for one in attacks]
    lines = [(name, one.gets, percent(one.baseline)) for name, one in named]
    return card(
        "What an attacker would get",
        "Of the table as it was, and of what is published, by somebody who knows all quasi-identifiers of everybody. "
        "Nobody gets less than without the table.",
        bars([Bar(name, (one.before, one.after)) for name, one in named], ("before", "after")),
        facts(("attack", "share of the rows, or chance", "without the table"), lines),
        wide=True,
    )


def measured_card(measured: list[Measure], *, sensitive: bool) -> str:
    """What holds beside what was asked."""
    lines = [
        (_named(one), number(one.worst), number(one.typical), "more" if one.more_is_safer else "less")
        for one in measured
    ]
    return card(
        "Measured, asked for or not",
        "Closeness says little about single values, likeness little about related ones: look at both."
        if sensitive
        else "The policy protects no attribute beside the persons.",
        facts(("model", "least safe class", "median row", "safer is"), lines),
    )


def loss_card(loss: Loss, utility: Utility | None) -> str:
    """Loss per attribute, and what the literature measures beside it."""
    lines = [Bar(one.name, (one.loss, one.entropy)) for one in loss.attributes]
    return card(
        "Loss by attribute",
        "How much of an attribute's domain a published value covers on average, and how much of the attribute's "
        f"information is gone.{_utility(utility)}",
        bars(lines, ("share of the domain", "information lost")),
    )


def causes_card(loss: Loss) -> str:
    """What each attribute adds to the risk, beside what protecting it costs."""
    lines = [Bar(one.name, (max(one.risk or 0.0, 0.0), one.loss)) for one in loss.attributes]
    return card(
        "Which column causes it",
        "By how much fewer rows of the table as it was are unique without the attribute, and how much of its domain a "
        "published value covers. What adds little to the risk and bears much of the loss may be worth leaving out.",
        bars(lines, ("risk that it adds", "loss that it bears")),
    )


def squares_card(error: SquaredLoss) -> str:
    """What showing means costs."""
    known = "" if error.total is None else f" In all of them together it is {percent(error.total)}."
    return card(
        "Classes are shown as means",
        "How much of an attribute's variance is inside the classes, and so gone (SSE / SST)." + known,
        bars([Bar(one.name, (one.share,)) for one in error.attributes]),
    )


def _utility(utility: Utility | None) -> str:
    if utility is None:
        return ""
    average = utility.average_to_k
    classes = "" if average is None else f", classes are {number(average)} times k on average"
    return (
        f" Values were raised by {percent(utility.distortion)} of the levels of their hierarchies{classes}; "
        f"discernibility {number(utility.discernibility)}."
    )


def sizes_card(sizes: Sizes | None) -> str:
    """Class sizes."""
    if sizes is None:
        return card("Class sizes", "No class is published.")
    columns = [(one.first, one.last, one.classes) for one in sizes.bins]
    sentence = (
        f"From {number(sizes.smallest)} to {number(sizes.largest)} rows, {number(sizes.median)} in the median. "
        f"Nobody has more than {percent(sizes.largest_person_share)} of the rows of a class."
    )
    return card("Class sizes", sentence, histogram(columns, "rows in a class (height: number of classes)"))


def sensitive_card(one: Distribution) -> str:
    """A sensitive attribute overall and in the worst class."""
    top = max((max(value.table, value.worst) for value in one.values), default=1.0) or 1.0
    return card(
        f"Sensitive: {one.attribute}",
        f"All rows against the class that is farthest from them: {number(one.rows)} rows, earth mover's distance "
        f"{number(one.distance)}.",
        bars(
            [Bar(value.label, (value.table, value.worst)) for value in one.values], ("all rows", "that class"), top=top
        ),
    )


def risk_card(risk: Risk) -> str:
    """Risk before and after."""
    lines = [
        Bar("highest", (risk.before.highest, risk.after.highest)),
        Bar("average", (risk.before.average, risk.after.average)),
        Bar(f"rows above {percent(risk.threshold)}", (risk.before.above, risk.after.above)),
    ]
    return card(
        "Re-identification risk",
        "How likely somebody finds the right row who knows that a person is in the table, and all about the person "
        "that is generalized here.",
        bars(lines, ("before", "after")),
    )


def queries_card(queries: QueryError) -> str:
    """How well the publication answers counting queries."""
    lines = [Bar(f"at most {percent(one.error)} off", (one.queries,)) for one in queries.within]
    asked = (
        f"{number(queries.queries)} random counts over {number(queries.predicates)} attributes"
        f"{' and a sensitive one' if queries.sensitive else ''}, each of about {percent(queries.selectivity)} of the "
        f"rows: so many are answered this well."
    )
    if queries.low is not None and queries.high is not None:
        asked += f" The median error lies between {percent(queries.low)} and {percent(queries.high)} (95 %)."
    return card("Query error", asked, bars(lines))


def refused_card(refused: list[Refused]) -> str:
    """Rows that were not read."""
    lines = [(one.field, one.reason, number(one.rows)) for one in refused]
    return card(
        "Refused rows", "They do not fit the schema and are not published.", facts(("field", "reason", "rows"), lines)
    )


def details_card(asked: Asked, details: Mapping[str, object]) -> str:
    """Parameters and what the algorithm says, for those who want to know."""
    text = json.dumps({"asked": asked.model_dump(), "details": details}, indent=2, ensure_ascii=False)
    return str(parts().details(text))


def _named(one: Result | Measure) -> str:
    return f"{one.model} (by {one.ground})" if one.ground else one.model


def _limit(one: Result) -> str:
    asked = f"{'at least' if one.more_is_safer else 'at most'} {number(one.asked)}"
    return asked if one.holds else f"{asked}; {number(one.failing)} classes fail"


def _short(value: object) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_short(one)}' for name, one in value.items() if one is not None)})"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)

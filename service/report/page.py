"""The report as one page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Protocol

from markupsafe import Markup

from service.report.figures import (
    Bar,
    Strip,
    bars,
    bullet,
    card,
    facts,
    histogram,
    isolate,
    number,
    parts,
    percent,
    spreads,
    strips,
    tile,
)
from service.report.sections import (
    Asked,
    AttributeLoss,
    CountsBeside,
    Distribution,
    Exposed,
    Learnt,
    Loss,
    Measure,
    Population,
    QueryError,
    Rejected,
    Result,
    Risk,
    Sizes,
    Spread,
    SquaredLoss,
    TableReport,
    Trial,
    Utility,
)
from service.report.verdict import Verdict, best_raise, named, raise_sentence, table_verdict


def report_html(report: TableReport) -> str:
    """The page of one anonymized table."""
    title = f"Report: {isolate(report.name)}" if report.name else "Report"
    cards = [
        columns_card(report.loss, report.utility),
        *([spreads_card(report.columns)] if report.columns else []),
        *([attacks_card(report.attacks)] if report.attacks else []),
        *([tried_card(report.tried)] if report.tried else []),
        *([population_card(report.population)] if report.population else []),
        *([beside_card(report.beside)] if report.beside else []),
        results_card(report.results),
        measured_card(report.measured, sensitive=bool(report.sensitive)),
        *([squares_card(report.squared_error)] if report.show == "mean" and report.squared_error else []),
        sizes_card(report.sizes),
        *(sensitive_card(one) for one in report.sensitive),
        risk_card(report.risk),
        queries_card(report.queries),
        *([learnt_card(report.learnt)] if report.learnt else []),
        *([rejected_card(report.rows.rejected)] if report.rows.rejected.rows else []),
        details_card(report.asked, report.details),
    ]
    head = header(report, title) + verdict_block(table_verdict(report))
    return page(title, head + tiles(report) + group("cards", cards))


def verdict_block(verdict: Verdict) -> str:
    """Whether to publish, at one look."""
    return str(parts().verdict(verdict.mark, verdict.says, verdict.lines))


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
            tile(percent(rows.rejected.share), "rejected", f"{number(rows.rejected.rows)} rows"),
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
        "The bar shows the least safe class. It has to end in the shaded part; the line is what was asked."
        + "".join(f" {_capital(one.model)} is counted over {one.counted_over}." for one in results if one.counted_over),
        parts().results(lines),
    )


def attacks_card(attacks: list[Exposed]) -> str:
    """What each attack gets, before and after."""
    return card(
        "What an attacker would get",
        "By somebody who knows all quasi-identifiers of everybody: shares of the rows, or chances. All rows were "
        "tried, so that there is nothing to estimate. Nobody gets less than without the table.",
        strips(Strip(named(one), f"{_capital(one.gets)}.", one.after, one.baseline, one.before) for one in attacks),
        wide=True,
    )


def tried_card(tried: list[Trial]) -> str:
    """Attacks with a control."""
    return card(
        "Singling out, linkability, inference",
        f"Each was tried on {number(tried[0].tried)} people in the table, and on as many who were taken out of it: "
        "what succeeds there is known about everybody and does nobody in the table harm. The risk is what being in the "
        "table adds, as a share of what is left to get.",
        strips(
            Strip(
                f"{one.attack} of {one.attribute}" if one.attribute else one.attack,
                f"{_capital(one.gets)}. {percent(one.control)} of those who are not in the table. Risk "
                f"{percent(one.risk)}, between {percent(one.risk_low)} and {percent(one.risk_high)} (95 %).",
                one.after,
                one.baseline,
                one.before,
                one.low,
                one.high,
            )
            for one in tried
        ),
        wide=True,
    )


def population_card(population: Population) -> str:
    """Who could be meant among everybody."""
    counted = population.how == "counted"
    model = "the slide negative binomial" if population.how == "snb" else f"{population.how.capitalize()}'s"
    how = "counted in the table that was given" if counted else f"estimated by {model} model"
    lines = [Bar("unique among them", (population.before.unique, population.after.unique))]
    if population.before.highest is not None and population.after.highest is not None:
        lines.append(Bar("highest risk", (population.before.highest, population.after.highest)))
    if population.before.average is not None and population.after.average is not None:
        lines.append(Bar("average risk", (population.before.average, population.after.average)))
    k_map = population.after.k_map
    fewest = f" {_capital(number(k_map))} of them fit the class that fits fewest (k-map)." if k_map else ""
    return card(
        f"Among {number(population.people)} people",
        f"For somebody who does not know who of them is in the table: rows whose person is the only one of the "
        f"population with such values, {how}.{fewest}",
        bars(lines, ("before", "after")),
    )


def beside_card(found: list[CountsBeside]) -> str:
    """Reconstruction from counts."""
    named_counts = "; ".join(", ".join(fields) or "nothing" for fields in found[0].counts)
    lines = [
        bar
        for one in found
        for bar in (
            Bar(f"{one.attribute}: guessed right", (one.guessed_alone, one.guessed)),
            Bar(f"{one.attribute}: as good as certain", (one.certain_alone, one.certain)),
            *([Bar(f"{one.attribute}: seems so and is not", (0.0, one.wrong))] if one.wrong else []),
        )
    ]
    off = max(one.off for one in found)
    about = f", which are off by {number(off)} on the average," if off else ""
    return card(
        "Counts beside the table",
        f"Whoever also has the counts of each sensitive value by {named_counts}{about} can solve for single rows (a "
        "linear program that misses the counts by the least): shares of "
        f"{number(found[0].rows)} rows whose value comes out.",
        bars(lines, ("the table alone", "with the counts")),
    )


def learnt_card(learnt: list[Learnt]) -> str:
    """What a model can do with it."""
    lines = [
        bar
        for one in learnt
        if one.before is not None and one.after is not None and one.baseline is not None
        for bar in (
            Bar(one.attribute, (one.before, one.after)),
            Bar(f"{one.attribute}, by guessing", (one.baseline,) * 2),
        )
    ]
    without = "".join(f" {isolate(_capital(one.attribute))}: {one.missing}." for one in learnt if one.missing)
    return card(
        "What a model can learn",
        "A decision tree learnt each attribute from the quasi-identifiers of half of the persons. So often it is right "
        f"about the other half, who are anonymized too. By guessing: always the most frequent value.{without}",
        bars(lines, ("before", "after")) if lines else "",
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


SEEN = 0.001
"""A share that can be seen."""
NO_SINGLE_ONE = " Without any single one the others identify as well, so that none adds anything by itself."


def columns_card(loss: Loss, utility: Utility | None) -> str:
    """What each column adds to the risk and bears of the loss, side by side, and what one level more would change."""
    lines = [Bar(one.name, (max(one.risk or 0.0, 0.0), one.loss)) for one in loss.attributes]
    told = [(one.name, percent(one.entropy), *_higher(one)) for one in loss.attributes]
    head = ("column", "information lost", "risk with one level more", "which would cost")
    now = (
        "" if loss.risk is None else f" Risk of a row now: {percent(loss.risk)} on average, going by who fits its box."
    )
    alike = "" if any((one.risk or 0.0) >= SEEN for one in loss.attributes) else NO_SINGLE_ONE
    best = best_raise(loss)
    advice = "" if best is None or not loss.risk else f" {raise_sentence(best, loss.risk)}."
    return card(
        "Which column causes it",
        "Risk: by how much fewer rows of the table as it was are unique without the column. Loss: how much of its "
        f"domain a published value covers.{alike}{_utility(utility)}{now}{advice}",
        bars(lines, ("risk that it adds", "loss that it bears")),
        facts(head, told),
        wide=True,
    )


def _higher(one: AttributeLoss) -> tuple[str, str]:
    return ("–", "–") if one.higher is None else (percent(one.higher.risk), f"{one.higher.cost:.2g}")


def spreads_card(columns: list[Spread]) -> str:
    """Every column before and after."""
    return card(
        "Columns before and after",
        "How rows are spread over the domain of each column, from its lowest to its highest value or in the order of "
        "its hierarchy; what is published is taken to lie evenly in its intervals. No bar stands for fewer persons "
        "than a class has. Moved: the share of the rows that would have to go elsewhere to make both alike.",
        spreads((one.name, [(part.width, part.before, part.after) for part in one.parts]) for one in columns),
        wide=True,
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
        f"Sensitive: {isolate(one.attribute)}",
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


def rejected_card(rejected: Rejected) -> str:
    """Rows that fail validation."""
    lines = [(one.field, one.reason, number(one.rows)) for one in rejected.reasons]
    return card(
        "Rejected rows",
        f"{number(rejected.rows)} rows fail validation and are not published. A row that is wrong in several fields "
        "counts for each of them.",
        facts(("field", "reason", "rows"), lines),
    )


def details_card(asked: Asked, details: Mapping[str, object]) -> str:
    """Parameters and what the algorithm says, for those who want to know."""
    text = json.dumps({"asked": asked.model_dump(), "details": details}, indent=2, ensure_ascii=False)
    return str(parts().details(text))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _named(one: Result | Measure) -> str:
    return f"{one.model} (by {one.ground})" if one.ground else one.model


def _limit(one: Result) -> str:
    asked = f"{'at least' if one.more_is_safer else 'at most'} {number(one.asked)}"
    return asked if one.holds else f"{asked}; {number(one.failing)} classes fail"


def _short(value: object) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_short(one)}' for name, one in value.items() if one is not None)})"
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)

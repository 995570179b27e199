"""The report of a replay as one page, made of the same parts as the page of a table."""

from __future__ import annotations

from collections.abc import Callable

from service.report.figures import Bar, bars, card, histogram, isolate, number, percent, tile
from service.report.page import (
    NO_SINGLE_ONE,
    SEEN,
    details_card,
    group,
    header,
    page,
    rejected_card,
    results_card,
    spreads_card,
    squares_card,
    verdict_block,
)
from service.report.replay_sections import Delays, Point, ReplayReport
from service.report.stream_attacks import linked_card, timing_card
from service.report.verdict import replay_verdict


def replay_html(report: ReplayReport) -> str:
    """The page of one replay."""
    title = f"Replay: {isolate(report.name)}"
    points = report.loss_over_time
    cards = [
        *([columns_card(report), spreads_card(report.columns)] if report.columns else []),
        results_card(report.guarantees),
        over_time("Loss over time", "Mean loss of the events released since the column before.", points, _loss),
        *([squares_card(report.squared_error)] if report.squared_error else []),
        *([delays_card(report.delays)] if report.delays else []),
        *([linked_card(report.linked)] if report.linked else []),
        *([timing_card(report.timing)] if report.timing else []),
        outcome_card(report),
        *([over_time("Suppressed over time", SUPPRESSED, points, _suppressed)] if report.suppressed else []),
        *([over_time("Reuse over time", REUSED, points, _reused)] if report.reused else []),
        *([rejected_card(report.rejected)] if report.rejected.rows else []),
        details_card(report.asked, report.engine),
    ]
    head = header(report, title) + verdict_block(replay_verdict(report))
    return page(title, head + tiles(report) + group("cards", cards))


SUPPRESSED = "Share of the decided events that never leave, since too few persons came within the delay."
SHARE = "of one person in the rows of a cluster"
LINKED = "where all rows of a person are tied together"
QUERIES = "median of random counting queries"
REUSED = "Share of the released events that left alone, with a box published before."


def tiles(report: ReplayReport) -> str:
    """The numbers that people ask for first."""
    delays = report.delays
    return group(
        "tiles",
        [
            tile(number(report.released), "events released", f"of {number(report.events)}"),
            tile(percent(report.suppressed_share), "suppressed", f"{number(report.suppressed)} events"),
            tile(percent(report.rejected.share), "rejected", f"{number(report.rejected.rows)} events"),
            tile(number(report.clusters), "clusters"),
            tile("–" if report.loss is None else percent(report.loss), "mean loss"),
            tile("–" if report.largest_share is None else percent(report.largest_share), "largest share", SHARE),
            tile("–" if report.workload_error is None else percent(report.workload_error), "workload error", QUERIES),
            tile(number(delays.p50 if delays else None), "median delay", "events"),
            tile(number(delays.max if delays else None), "longest delay", "events"),
            tile("–" if report.at_once is None else percent(report.at_once), "left at once"),
            *([tile(number(report.linked.fewest), "fewest candidates", LINKED)] if report.linked else []),
        ],
    )


def columns_card(report: ReplayReport) -> str:
    """What each column adds to the risk and bears of the loss."""
    return card(
        "Which column causes it",
        "Risk: by how much fewer events, as they came, are unique without the column. Loss: how much of its domain a "
        "published value covers on average."
        + ("" if any(one.risk >= SEEN for one in report.columns) else NO_SINGLE_ONE),
        bars(
            [Bar(one.name, (max(one.risk, 0.0), one.loss)) for one in report.columns],
            ("risk that it adds", "loss that it bears"),
        ),
        wide=True,
    )


def over_time(title: str, explanation: str, points: list[Point], measure: Callable[[Point], float]) -> str:
    """A measure as one column per point."""
    starts = [0, *(point.events for point in points)]
    columns = [(start, point.events, measure(point)) for start, point in zip(starts, points, strict=False)]
    return card(title, explanation, histogram(columns, "events taken", show=percent))


def delays_card(delays: Delays) -> str:
    """How long events waited."""
    sentence = (
        f"Half of the events waited for at most {number(delays.p50)} further ones, 99 % for at most "
        f"{number(delays.p99)}, none for more than {number(delays.max)}."
    )
    columns = [(one.first, one.last, one.events) for one in delays.bins]
    return card("Delay", sentence, histogram(columns, "further events (height: events that waited for so many)"))


def outcome_card(report: ReplayReport) -> str:
    """What became of the events that were taken."""
    decided = max(report.released + report.suppressed, 1)
    lines = [
        Bar("in a new cluster", ((report.released - report.reused) / decided,)),
        Bar("with an earlier box", (report.reused / decided,)),
        Bar("suppressed", (report.suppressed / decided,)),
    ]
    return card("What became of the events", "How each event that was taken left, or that it never does.", bars(lines))


def _loss(point: Point) -> float:
    return point.loss


def _suppressed(point: Point) -> float:
    return point.suppressed / max(point.released + point.suppressed, 1)


def _reused(point: Point) -> float:
    return point.reused / max(point.released, 1)

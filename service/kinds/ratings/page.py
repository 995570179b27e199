"""The report of anonymized ratings as one page."""

from __future__ import annotations

from service.kinds.ratings.report import Attack, Counts, GroupSizes, KeptItems, RatingsReport, UtilityFigures
from service.report.figures import Bar, bars, card, facts, histogram, isolate, number, percent, tile
from service.report.page import details_card, group, header, page, rejected_card, results_card, verdict_block
from service.report.verdict import Verdict, guarantee_line, rejected_lines


def report_html(report: RatingsReport) -> str:
    """The page."""
    title = f"Ratings: {isolate(report.name)}"
    cards = [
        results_card(report.results),
        counts_card(report.counts),
        attacks_card(report.attacks, exact=report.exact),
        sizes_card(report.groups),
        curve_card(report.curve),
        recommender_card(report.utility),
        utility_card(report.utility),
        *([rejected_card(report.counts.rejected)] if report.counts.rejected.rows else []),
        details_card(report.asked, {"fingerprint": report.fingerprint}),
    ]
    head = header(report, title) + verdict_block(_verdict(report))
    return page(title, head + tiles(report) + group("cards", cards))


def _verdict(report: RatingsReport) -> Verdict:
    """Whether the guarantee is met, and for how many rows."""
    counts = report.counts
    lines = [
        guarantee_line(report.results, holds=report.holds),
        *rejected_lines(counts.rejected, counts.given, "rows"),
    ]
    return Verdict.of(lines, repeatable=report.repeatable)


def tiles(report: RatingsReport) -> str:
    """The numbers that people ask for first."""
    counts, worst = report.counts, report.attacks[-1]
    return group(
        "tiles",
        [
            tile(number(counts.published_persons), "persons published", f"of {number(counts.persons)}"),
            tile(percent(counts.kept / max(counts.ratings, 1)), "ratings as they were", f"of {number(counts.ratings)}"),
            tile(percent(counts.changed / max(counts.ratings, 1)), "changed", f"{number(counts.changed)} ratings"),
            tile(
                percent(counts.suppressed / max(counts.ratings, 1)), "left out", f"{number(counts.suppressed)} ratings"
            ),
            tile(percent(counts.rejected.share), "rejected", f"{number(counts.rejected.rows)} rows"),
            _groups_tile(report.groups),
            tile(
                percent(worst.after.singled_out),
                f"singled out by {worst.known} exact ratings",
                f"{percent(worst.before.singled_out)} before",
            ),
        ],
    )


def attacks_card(attacks: list[Attack], *, exact: bool) -> str:
    """Who is found, before and after."""
    lines = [Bar(_known(one), (one.before.singled_out, one.after.singled_out)) for one in attacks]
    told = [
        (
            _known(one),
            percent(one.before.hit),
            percent(one.after.hit),
            percent(one.before.told),
            percent(one.after.told),
        )
        for one in attacks
    ]
    promise = (
        "Everybody in a group has the same published row, so nobody is singled out however well ratings are known."
        if exact
        else "The guarantee is about those who know no better than within ε what is published of a person. Who "
        "knows what the person really gave may still find a row; strategy: same stops that too."
    )
    return card(
        "What somebody gets who knows some ratings",
        f"Share of {number(attacks[0].victims)} persons whose row is the only one that fits. {promise}",
        bars(lines, ("before", "after")),
        facts(("known", "right guess before", "after", "sensitive rating told before", "after"), told),
        wide=True,
    )


def _known(one: Attack) -> str:
    how = f"within {number(one.tolerance)}" if one.tolerance else "exactly"
    return f"{one.known} ratings {how}"


def counts_card(counts: Counts) -> str:
    """What became of the ratings."""
    total = max(counts.ratings, 1)
    lines = [
        Bar("as they were", (counts.kept / total,)),
        Bar("changed", (counts.changed / total,)),
        Bar("left out", (counts.suppressed / total,)),
        Bar("invented", (counts.invented / total,)),
    ]
    return card(
        "What became of the ratings",
        f"{number(counts.ratings)} open ratings of {number(counts.items)} items. {number(counts.sensitive)} sensitive "
        f"ratings are published as they are. All changes together are {percent(counts.distortion)} of all ratings.",
        bars(lines),
    )


def curve_card(curve: list[KeptItems]) -> str:
    """Which items are left."""
    lines = [Bar(f"items {number(one.first)} to {number(one.last)}", (min(one.published, 1.0),)) for one in curve]
    return card(
        "Which items are left",
        "Items from the most to the least rated: share of their ratings that leaves. What few rated is lost first.",
        bars(lines),
    )


def _groups_tile(sizes: GroupSizes) -> str:
    if sizes.largest == 1:
        return tile("none", "groups", "ratings are as they were")
    return tile(number(sizes.groups), "groups", f"{number(sizes.smallest)} persons or more")


def sizes_card(sizes: GroupSizes) -> str:
    """Group sizes."""
    if sizes.largest == 1:
        return card("Groups", "Everybody had enough persons around them, so nobody was put into a group.")
    columns = [(one.first, one.last, one.groups) for one in sizes.bins]
    sentence = (
        f"From {number(sizes.smallest)} to {number(sizes.largest)} persons, {number(sizes.median)} in the median."
    )
    return card("Groups", sentence, histogram(columns, "persons in a group (height: number of groups)"))


def recommender_card(figures: UtilityFigures) -> str:
    """What a recommender learns."""
    learnt = (("mean of the item", figures.item_means), ("similar persons", figures.neighbours))
    lines = [(name, number(one.original), number(one.published)) for name, one in learnt if one is not None]
    return card(
        "What a recommender learns",
        "Root mean square error of predicted ratings that were hidden, learnt from the original and from the release.",
        facts(("it predicts by", "original", "published"), lines),
    )


def utility_card(figures: UtilityFigures) -> str:
    """Other measures."""
    lines = [
        ("mean rating of an item: relative error", _share(figures.mean_error)),
        ("counts of persons by three ratings: relative error", _share(figures.count_error)),
        ("persons in another of eight clusters", _share(figures.moved)),
        ("all means together: cosine", number(figures.centroid)),
        ("standard deviation of an item before", number(figures.spread_before)),
        ("and after", number(figures.spread_after)),
    ]
    return card(
        "What it is still good for", "On average over items, queries or persons.", facts(("measure", ""), lines)
    )


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)

"""What the static algorithms make of the data: the claims of the thesis' chapters 3 and 4, checked.

    python -m load_tests.static_quality [--quick] [--json FILE] [--docs FOLDER]

Prints a table per figure and "as claimed / not as claimed" for everything that the thesis claims about it (the data is
CENSUS-like; only orderings and trends can be compared), then real Adult beside the peers. With `--docs` the tables are
also written as a page and the charts as SVG files. Times are processor seconds of single calls.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from load_tests.generators import ADULT_MISSING
from load_tests.harness import arguments, machine_line, print_machine, print_table, show, write_json
from load_tests.plot import write_chart
from load_tests.quality.adult import COLUMNS, COMPARISONS, compare
from load_tests.quality.claims import Claim
from load_tests.quality.closeness import Closeness
from load_tests.quality.figure import Figure
from load_tests.quality.lab import Lab
from load_tests.quality.likeness import Likeness

PAGE = "quality-static-results.md"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="also write a page and SVG charts there")


def panel_rows(figure: Figure) -> Iterable[tuple[str, list[str], list[list[object]]]]:
    """Title, columns and rows of a table for each chart."""
    for panel in figure.panels:
        columns = [panel.x_label, *panel.series]
        lines = zip(panel.x, *panel.series.values(), strict=True)
        yield panel.title, columns, [["–" if value is None else value for value in line] for line in lines]


def print_claims(claims: Sequence[Claim]) -> None:
    if claims:
        print_table("", ["claim", "", "seen"], [[claim.text, claim.answer, claim.seen] for claim in claims])


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table for the page."""
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(show(value) for value in row) + " |" for row in rows),
        "",
    ]


def markdown_claims(claims: Sequence[Claim]) -> list[str]:
    if not claims:
        return []
    return markdown_table(["claim", "ours", "seen"], [[claim.text, claim.answer, claim.seen] for claim in claims])


def write_page(folder: Path, figures: Sequence[Figure], adult: Sequence[tuple[str, Any, Any]]) -> None:
    """The page and its charts."""
    lines = [
        "# Static algorithms: measured quality",
        "",
        "Written by `python -m load_tests.static_quality --docs docs`. What it means: [Quality](quality-static.md).",
        "",
        f"Measured: {machine_line()}.",
        "",
    ]
    for title, rows, claims in adult:
        lines += [f"## Real Adult, occupation sensitive, 7 quasi-identifiers, k = 10, {title}", ""]
        lines += markdown_table(COLUMNS, rows) + markdown_claims(claims)
    for figure in figures:
        write_chart(folder / "plots" / figure.file, figure.panels)
        lines += [f"## {figure.number}: {figure.title}", "", f"![{figure.title}](plots/{figure.file})", ""]
        lines += markdown_claims(figure.claims)
        for title, columns, rows in panel_rows(figure):
            lines += [f"{title}:", "", *markdown_table(columns, rows)]
    (folder / PAGE).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"written: {folder / PAGE}")


def measure_adult(lab: Lab) -> list[tuple[str, Any, Any]]:
    """Title, rows and claims of each comparison on real Adult."""
    results = []
    for comparison in COMPARISONS:
        measured = compare(lab, comparison)
        if measured is None:
            print(ADULT_MISSING)
            return []
        rows, claims = measured
        print_table(f"Real Adult, occupation sensitive, 7 quasi-identifiers, k = 10, {comparison.title}", COLUMNS, rows)
        print_claims(claims)
        results.append((comparison.title, rows, claims))
    return results


def measure_figures(lab: Lab) -> list[Figure]:
    """All figures, printed as they come."""
    figures = []
    for chapter in (Closeness, Likeness):
        for figure in chapter(lab).figures():
            for title, columns, rows in panel_rows(figure):
                print_table(f"{figure.number}: {figure.title}: {title}", columns, rows)
            print_claims(figure.claims)
            figures.append(figure)
    return figures


def main() -> None:
    options = arguments(__doc__, add=add_options)
    print_machine()
    lab = Lab(options.quick)
    adult = measure_adult(lab)
    figures = measure_figures(lab)
    claims = [claim for figure in figures for claim in figure.claims if claim.thesis]
    print(f"{sum(claim.held for claim in claims)} of {len(claims)} claims of the thesis show, as claimed.")
    if options.docs:
        write_page(options.docs, figures, adult)
    results = {
        "adult": [{"asked": title, "columns": COLUMNS, "rows": rows} for title, rows, _ in adult],
        "figures": [
            {
                "figure": figure.number,
                "panels": [
                    {"title": panel.title, "x": panel.x_label, "at": panel.x, "series": panel.series}
                    for panel in figure.panels
                ],
                "claims": [{"claim": c.text, "held": c.held, "seen": c.seen} for c in figure.claims],
            }
            for figure in figures
        ],
    }
    write_json(options.json, "static_quality", results)


if __name__ == "__main__":
    main()

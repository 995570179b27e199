"""What the static algorithms make of the data: the claims of the thesis' chapters 3 and 4, checked.

    python -m load_tests.static_quality [--quick] [--json FILE] [--docs FOLDER]

Prints a table per figure and "as claimed / not as claimed" for everything that the thesis claims about it (the data is
CENSUS-like; only orderings and trends can be compared), then real Adult beside the peers. With `--docs` the tables are
also written as a page and the charts as SVG files. Times are processor seconds of single calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from load_tests.generators import ADULT_MISSING
from load_tests.harness import arguments, machine_line, print_machine, print_table, write_json
from load_tests.quality.adult import COLUMNS, COMPARISONS, compare
from load_tests.quality.closeness import Closeness
from load_tests.quality.figure import Figure
from load_tests.quality.lab import Lab
from load_tests.quality.likeness import Likeness
from load_tests.quality.page import (
    add_options,
    json_figure,
    markdown_claims,
    markdown_figure,
    markdown_table,
    print_claims,
    print_figures,
    write_page,
)

PAGE = "quality-static-results.md"


def write_results(folder: Path, figures: Sequence[Figure], adult: Sequence[tuple[str, Any, Any]]) -> None:
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
        lines += markdown_figure(folder, "static", figure)
    write_page(folder / PAGE, lines)


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


def main() -> None:
    options = arguments(__doc__, add=add_options)
    print_machine()
    lab = Lab(options.quick)
    adult = measure_adult(lab)
    figures = [*print_figures(Closeness(lab).figures()), *print_figures(Likeness(lab).figures())]
    claims = [claim for figure in figures for claim in figure.claims if claim.thesis]
    print(f"{sum(claim.held for claim in claims)} of {len(claims)} claims of the thesis show, as claimed.")
    if options.docs:
        write_results(options.docs, figures, adult)
    results = {
        "adult": [{"asked": title, "columns": COLUMNS, "rows": rows} for title, rows, _ in adult],
        "figures": [json_figure(figure) for figure in figures],
    }
    write_json(options.json, "static_quality", results)


if __name__ == "__main__":
    main()

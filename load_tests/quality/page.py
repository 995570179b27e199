"""Figures and tables of a quality benchmark: on the screen, on a page of the documentation, and as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from load_tests.harness import print_table, show
from load_tests.plot import write_chart
from load_tests.quality.claims import Claim
from load_tests.quality.figure import Figure


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--docs", type=Path, metavar="FOLDER", help="also write a page and SVG charts there")


def print_figures(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Print each figure when it is measured, and pass it on."""
    for figure in figures:
        for title, columns, rows in _panel_rows(figure):
            print_table(f"{figure.number}: {figure.title}: {title}", columns, rows)
        print_claims(figure.claims)
        yield figure


def print_claims(claims: Sequence[Claim]) -> None:
    if claims:
        print_table("", ["claim", "", "seen"], [[claim.text, claim.answer, claim.seen] for claim in claims])


def markdown_figure(folder: Path, kind: str, figure: Figure) -> list[str]:
    """A figure's lines on the page; its charts go into a file whose name begins with `kind`."""
    chart = f"plots/{kind}-{figure.number.replace('.', '-')}.svg"
    write_chart(folder / chart, figure.panels)
    lines = [f"## {figure.number}: {figure.title}", "", f"![{figure.title}]({chart})", ""]
    lines += markdown_claims(figure.claims)
    for title, columns, rows in _panel_rows(figure):
        lines += [f"{title}:", "", *markdown_table(columns, rows)]
    return lines


def markdown_claims(claims: Sequence[Claim]) -> list[str]:
    if not claims:
        return []
    return markdown_table(["claim", "ours", "seen"], [[claim.text, claim.answer, claim.seen] for claim in claims])


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table for the page."""
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(show(value) for value in row) + " |" for row in rows),
        "",
    ]


def write_page(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"written: {path}")


def json_figure(figure: Figure) -> dict[str, Any]:
    """What `headlines` and the numbers page look at."""
    return {
        "figure": figure.number,
        "panels": [{"title": p.title, "x": p.x_label, "at": p.x, "series": p.series} for p in figure.panels],
        "claims": [{"claim": c.text, "held": c.held, "seen": c.seen} for c in figure.claims],
    }


def _panel_rows(figure: Figure) -> Iterator[tuple[str, list[str], list[list[object]]]]:
    """Title, columns and rows of a table for each chart."""
    for panel in figure.panels:
        columns = [panel.x_label, *panel.series]
        lines = zip(panel.x, *panel.series.values(), strict=True)
        yield panel.title, columns, [["–" if value is None else value for value in line] for line in lines]

"""Plots as markup: tables with bars in them, and a histogram.

Bars are small SVG drawings with widths in percent, so that they fit any screen while the text beside them keeps its
size. That is some kilobytes where a plotting library in the page would be megabytes, and needs no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple


class Bar(NamedTuple):
    """One line of a bar chart; every value has a bar of its own, from 0 to 1."""

    label: str
    values: tuple[float, ...]


def percent(share: float) -> str:
    """A share from 0 to 1 as people read it.

    >>> percent(0.1234), percent(0.0002), percent(0), percent(3.21)
    ('12.3 %', '< 0.1 %', '0 %', '321 %')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:,.0f} %" if value == int(value) or value >= 100 else f"{value:.1f} %"


def number(value: float | None) -> str:
    """A number with as many digits as help.

    >>> number(30162), number(0.18765), number(12.0), number(None)
    ('30,162', '0.188', '12', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def card(title: str, explanation: str, *body: str, wide: bool = False) -> str:
    """A figure with its title and a sentence that says how to read it."""
    kind = "card wide" if wide else "card"
    return f'<section class="{kind}"><h2>{escape(title)}</h2><p>{escape(explanation)}</p>{"".join(body)}</section>'


def tile(value: str, label: str, note: str = "") -> str:
    """A number that matters."""
    below = f"<small>{escape(note)}</small>" if note else ""
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(label)}</span>{below}</div>'


def bars(lines: Iterable[Bar], series: Sequence[str] = (), *, top: float = 1.0) -> str:
    """A bar chart of shares; `series` names the bars of each line where there are several."""
    body = "".join(
        f'<tr><th scope="row">{escape(line.label)}</th><td>{_strip(line.values, top)}</td>'
        f'<td class="value">{_values(line.values)}</td></tr>'
        for line in lines
    )
    return f'{_legend(series)}<table class="bars"><tbody>{body}</tbody></table>'


def bullet(asked: float, achieved: float | None, *, more_is_safer: bool, holds: bool) -> str:
    """What was achieved, on a line whose allowed part is shaded and ends at what was asked."""
    top = 1.25 * max(asked, achieved or 0.0) or 1.0
    limit, reached = 100 * asked / top, 100 * min(achieved if achieved is not None else top, top) / top
    start, width = (limit, 100 - limit) if more_is_safer else (0.0, limit)
    state = "good" if holds else "bad"
    return (
        '<svg class="bullet" width="100%" height="18" aria-hidden="true">'
        '<rect class="track" width="100%" height="18"/>'
        f'<rect class="allowed" x="{start:.2f}%" width="{width:.2f}%" height="18"/>'
        f'<rect class="{state}" y="6" width="{reached:.2f}%" height="6"/>'
        f'<line class="limit" x1="{limit:.2f}%" x2="{limit:.2f}%" y1="1" y2="17"/></svg>'
    )


def histogram(columns: Sequence[tuple[int, int, float]], axis: str, *, show: Callable[[float], str] = number) -> str:
    """Vertical bars; each column is (first, last, height), and the first is written below where it fits."""
    highest = max((height for _, _, height in columns), default=0) or 1
    step = 100 / max(len(columns), 1)
    every = max(1, -(-len(columns) // 6))
    drawn = []
    for place, (first, last, value) in enumerate(columns):
        height = 130 * value / highest
        told = f"<title>{first:,} – {last:,}: {show(value)}</title>"
        drawn.append(
            f'<rect class="one" x="{(place + 0.08) * step:.2f}%" y="{146 - height:.1f}" '
            f'width="{step * 0.84:.2f}%" height="{height:.1f}">{told}</rect>'
        )
        if place % every == 0:
            drawn.append(f'<text x="{(place + 0.5) * step:.2f}%" y="162">{first:,}</text>')
    return (
        f'<svg class="histogram" width="100%" height="186" role="img" aria-label="{escape(axis)}">{"".join(drawn)}'
        f'<line x1="0" x2="100%" y1="146" y2="146"/><text class="axis" x="50%" y="182">{escape(axis)}</text>'
        f'<text class="axis most" x="0" y="11">{show(highest)}</text></svg>'
    )


def facts(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A plain table; the first column names the line."""
    top = "".join(f'<th scope="col">{escape(one)}</th>' for one in head)
    body = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>'
        for line in lines
    )
    return f'<table class="facts"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _legend(series: Sequence[str]) -> str:
    if not series:
        return ""
    names = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true"><rect class="{color}" width="12" height="12" rx="2"/>'
        f"</svg>{escape(name)}</li>"
        for name, color in zip(series, ("one", "two"), strict=False)
    )
    return f'<ul class="legend">{names}</ul>'


def _strip(values: Sequence[float], top: float) -> str:
    height = 12 if len(values) == 1 else 9
    drawn = "".join(
        f'<rect class="track" y="{place * (height + 2)}" width="100%" height="{height}" rx="2"/>'
        f'<rect class="{color}" y="{place * (height + 2)}" width="{100 * min(value / top, 1):.2f}%" '
        f'height="{height}" rx="2"/>'
        for place, (value, color) in enumerate(zip(values, ("one", "two"), strict=False))
    )
    total = len(values) * (height + 2) - 2
    return f'<svg class="strip" width="100%" height="{total}" aria-hidden="true">{drawn}</svg>'


def _values(values: Sequence[float]) -> str:
    return "<br>".join(escape(percent(value)) for value in values)

"""Plots as markup: tables with bars in them, and a histogram. The markup itself is in `parts.html.jinja`.

Jinja2 makes the pages and escapes what it is given. Bars are small SVG drawings by hand, with widths in percent, so
that they fit any screen while the text beside them keeps its size, and colours from the page's style, light or dark.
That is some kilobytes where a plotting library in the page would be megabytes, and needs no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

_COLORS = ("one", "two")


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


def place(share: float) -> str:
    """Where a share lies on a line, as SVG takes it.

    >>> place(0.12345), place(1.5)
    ('12.35%', '100.00%')
    """
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"


def isolate(name: str) -> str:
    """Return a name for a sentence, so that text of another direction in it does not reorder the numbers around it."""
    return f"\u2068{name}\u2069"


def isolated(sentence: str) -> Markup:
    """Return a sentence as markup, with an element around each isolated name."""
    return Markup(str(escape(sentence)).replace("\u2068", "<bdi>").replace("\u2069", "</bdi>"))  # noqa: S704 - escaped


@cache
def parts() -> Any:
    """The macros of `parts.html.jinja`."""
    environment = Environment(
        loader=PackageLoader("service.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )
    environment.filters |= {"percent": percent, "number": number, "place": place, "isolated": isolated}
    environment.globals["br"] = Markup("<br>")
    return environment.get_template("parts.html.jinja").module


def card(title: str, explanation: str, *body: str, wide: bool = False) -> str:
    """A figure with its title and a sentence that says how to read it; its body is made of other parts."""
    return str(parts().card(title, explanation, Markup("".join(body)), wide))  # noqa: S704 - made of escaped parts


def tile(value: str, label: str, note: str = "") -> str:
    """A number that matters."""
    return str(parts().tile(value, label, note))


def bars(lines: Iterable[Bar], series: Sequence[str] = (), *, top: float = 1.0) -> str:
    """A bar chart of shares; `series` names the bars of each line where there are several."""
    return str(parts().bars(list(lines), list(zip(series, _COLORS, strict=False)), top))


class Strip(NamedTuple):
    """What an attack gets, on a line from nothing to all."""

    name: str
    says: str
    after: float
    baseline: float
    before: float | None = None
    low: float | None = None
    high: float | None = None


def strips(lines: Iterable[Strip]) -> str:
    """Attacks, each with its sentence, its baseline, and its interval where it is an estimate."""
    return str(parts().attacks(list(lines)))


def spreads(columns: Iterable[tuple[str, Sequence[tuple[float, float, float]]]]) -> str:
    """Small histograms side by side, before and after; the bars of a column are (width, before, after)."""
    return str(parts().spreads([_spread(name, bars) for name, bars in columns]))


def _spread(name: str, bars: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    # As in every histogram with bars of several widths, what counts is the area.
    highest = max((max(before, after) / width for width, before, after in bars), default=0.0) or 1.0
    starts = accumulate((width for width, *_ in bars), initial=0.0)
    drawn = [
        {
            "x": start + 0.08 * width,
            "half": 0.42 * width,
            "before": 68 * before / width / highest,
            "after": 68 * after / width / highest,
        }
        for start, (width, before, after) in zip(starts, bars, strict=False)
    ]
    return {"name": name, "moved": sum(abs(before - after) for _, before, after in bars) / 2, "bars": drawn}


def bullet(asked: float, achieved: float | None, *, more_is_safer: bool, holds: bool) -> str:
    """What was achieved, on a line whose allowed part is shaded and ends at what was asked."""
    top = 1.25 * max(asked, achieved or 0.0) or 1.0
    limit, reached = 100 * asked / top, 100 * min(achieved if achieved is not None else top, top) / top
    start, width = (limit, 100 - limit) if more_is_safer else (0.0, limit)
    return str(parts().bullet(start, width, reached, limit, holds))


def histogram(columns: Sequence[tuple[int, int, float]], axis: str, *, show: Callable[[float], str] = number) -> str:
    """Vertical bars; each column is (first, last, height), and the first is written below where it fits."""
    highest = max((height for _, _, height in columns), default=0) or 1
    every = max(1, -(-len(columns) // 6))
    drawn = [
        {
            "height": 130 * value / highest,
            "told": f"{first:,} – {last:,}: {show(value)}",
            "label": f"{first:,}" if place % every == 0 else "",
        }
        for place, (first, last, value) in enumerate(columns)
    ]
    return str(parts().histogram(drawn, 100 / max(len(columns), 1), show(highest), axis))


def facts(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A plain table; the first column names the line."""
    return str(parts().facts(head, list(lines)))

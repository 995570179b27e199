"""Line charts as small SVG files: a few panels, one legend below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 300, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 28, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#b01e1e")
"""Colours that people with any colour vision can tell apart."""
MARKERS = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True)
class Panel:
    """One chart: a line per series over the same few places on the x axis; None leaves a gap."""

    title: str
    x_label: str
    x: Sequence[float | str]
    series: Mapping[str, Sequence[float | None]]
    log: bool = False


def write_chart(path: Path, panels: Sequence[Panel]) -> None:
    """Draw the panels, two or three to a row; a series has the same colour and marker in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    columns = 2 if len(panels) in {2, 4} else min(len(panels), 3)
    width, bottom = WIDTH * max(columns, 2), HEIGHT * math.ceil(len(panels) / columns)
    legend, height = _legend(names, width, bottom)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        parts += [f'<g transform="translate({column * WIDTH} {row * HEIGHT})">', *_panel(panel, names), "</g>"]
    parts += [*legend, "</svg>"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _panel(panel: Panel, names: Sequence[str]) -> list[str]:
    values = [value for line in panel.series.values() for value in line if value is not None and math.isfinite(value)]
    log = panel.log and min(values, default=0) > 0
    ticks = _log_ticks(values) if log else _ticks(values)
    low, high = (math.log10(ticks[0]), math.log10(ticks[-1])) if log else (ticks[0], ticks[-1])
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    step = (right - LEFT) / max(len(panel.x), 1)

    def at(place: int, value: float) -> tuple[float, float]:
        share = ((math.log10(value) if log else value) - low) / ((high - low) or 1.0)
        return round(LEFT + (place + 0.5) * step, 1), round(bottom - share * (bottom - TOP), 1)

    parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(panel.title)}</text>']
    for tick in ticks:
        y = at(0, tick)[1]
        parts.append(f'<path d="M{LEFT} {y}H{right}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for place, label in enumerate(panel.x):
        text = f"{label:g}" if isinstance(label, int | float) else escape(label)
        parts.append(f'<text x="{at(place, ticks[0])[0]}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 32}" text-anchor="middle">{escape(panel.x_label)}</text>')
    for name, line in panel.series.items():
        points = [at(i, value) for i, value in enumerate(line) if value is not None and math.isfinite(value)]
        parts += _line(points, names.index(name))
    return parts


def _line(points: Sequence[tuple[float, float]], number: int) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    way = " ".join(f"{x},{y}" for x, y in points)
    line = f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
    return [line, *(_marker(x, y, number) for x, y in points)]


def _marker(x: float, y: float, number: int) -> str:
    colour, shape = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    if shape == "circle":
        return f'<circle cx="{x}" cy="{y}" r="3.4" fill="{colour}"/>'
    outline = {
        "square": "M-3 -3H3V3H-3Z",
        "triangle": "M0 -4L4 3H-4Z",
        "diamond": "M0 -4.4L4.4 0L0 4.4L-4.4 0Z",
    }[shape]
    return f'<path transform="translate({x} {y})" d="{outline}" fill="{colour}"/>'


def _legend(names: Sequence[str], width: int, top: int) -> tuple[list[str], int]:
    """Markers with names, as many to a line as fit, and where they end."""
    parts, x, y = [], 14, top + 12
    for number, name in enumerate(names):
        if x + 24 + 7 * len(name) > width:
            x, y = 14, y + 16
        parts += [_marker(x, y, number), f'<text x="{x + 9}" y="{y + 4}">{escape(name)}</text>']
        x += 30 + 7 * len(name)
    return parts, y + 14


def _ticks(values: Sequence[float]) -> list[float]:
    """About five round numbers from 0 to above the greatest value."""
    top = max(values, default=1.0) or 1.0
    raw = top / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw)
    return [round(step * number, 12) for number in range(math.ceil(top / step - 1e-9) + 1)]


def _log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = max(math.ceil(math.log10(max(values)) - 1e-9), low + 1)
    return [10.0**power for power in range(low, high + 1)]

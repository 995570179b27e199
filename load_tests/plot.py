"""Line charts as small SVG files: a few panels, one legend below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.1, 2.5
"""Inches of a panel."""
LEGEND = 0.2
"""Inches of a line of the legend."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#b01e1e")
"""Colours that people with any colour vision can tell apart."""
MARKERS = ("o", "s", "^", "D")
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: small, and found by a search
    "svg.hashsalt": "portcullis",  # the same numbers make the same file
    "font.family": "DejaVu Sans",  # it comes with the library: the same layout on every machine
    "font.size": 8.5,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


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
    looks = dict(zip(names, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    columns = 2 if len(panels) in {2, 4} else min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    per_line = max(1, 2 * columns)
    below = LEGEND * (math.ceil(len(names) / per_line) + 1)
    with mpl.rc_context(STYLE):
        figure = Figure((WIDTH * max(columns, 2), HEIGHT * rows + below), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _draw(axes, panel, looks)
        for axes in grid[len(panels) :]:
            axes.remove()
        handles = {str(line.get_label()): line for axes in figure.axes for line in axes.get_lines()}
        figure.legend(list(handles.values()), list(handles), loc="outside lower left", ncols=per_line, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw(axes: Axes, panel: Panel, looks: Mapping[str, tuple[str, str]]) -> None:
    values = [value for line in panel.series.values() for value in line if value is not None and math.isfinite(value)]
    axes.set_title(panel.title, loc="left", fontweight="bold", fontsize="medium")
    axes.set_xlabel(panel.x_label)
    axes.set_xticks(range(len(panel.x)), [f"{x:g}" if isinstance(x, int | float) else x for x in panel.x])
    if panel.log and min(values, default=0) > 0:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05 * max(values, default=1.0) or 1.0)
    for name, line in panel.series.items():
        points = [(place, value) for place, value in enumerate(line) if value is not None and math.isfinite(value)]
        colour, marker = looks[name]
        drawn = axes.plot(*zip(*points, strict=True), color=colour, marker=marker, label=name) if points else []
        for one in drawn:
            one.set_gid(f"series {name}")
            one.set_markersize(4.5)

"""Charts are well-formed SVG and show every series."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from load_tests.plot import Panel, write_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_a_chart_has_a_line_and_a_legend_entry_per_series(tmp_path):
    panels = [
        Panel("loss & time", "t", [0.1, 0.2], {"A": [0.5, 0.25], "B <b>": [None, 1.0]}),
        Panel("seconds", "rows", ["1 k", "2 k"], {"A": [0.001, 20.0]}, log=True),
    ]
    write_chart(tmp_path / "plots" / "chart.svg", panels)
    root = ET.parse(tmp_path / "plots" / "chart.svg").getroot()
    assert len(root.findall(f".//{SVG}polyline")) == 3
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"loss & time", "A", "B <b>", "1 k", "0.1"} <= set(texts)


def test_points_stay_inside_the_drawing(tmp_path):
    write_chart(tmp_path / "c.svg", [Panel("p", "x", [1, 2, 3], {"A": [0.0, math.inf, 7.3], "B": [3.0, 2.0, 1.0]})])
    root = ET.parse(tmp_path / "c.svg").getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    points = [
        tuple(map(float, p.split(","))) for line in root.iter(f"{SVG}polyline") for p in line.get("points").split()
    ]
    assert len(points) == 5
    assert all(0 <= x <= width and 0 <= y <= height for x, y in points)


def test_a_chart_of_zeros_can_be_drawn(tmp_path):
    write_chart(tmp_path / "c.svg", [Panel("p", "x", [1], {"A": [0.0]}, log=True)])
    assert (tmp_path / "c.svg").stat().st_size < 5_000

"""Charts are well-formed SVG, show every series, and are the same for the same numbers."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

from load_tests.plot import Panel, write_chart

SVG = "{http://www.w3.org/2000/svg}"
PANELS = [
    Panel("loss & time", "t", [0.1, 0.2], {"A": [0.5, 0.25], "B <b>": [None, 1.0]}),
    Panel("seconds", "rows", ["1 k", "2 k"], {"A": [0.001, 20.0]}, log=True),
]


def points_of(path: Path) -> dict[str, int]:
    """How many points each drawn series has."""
    root = ET.parse(path).getroot()
    lines = [group for group in root.iter(f"{SVG}g") if group.get("id", "").startswith("series ")]
    return {f"{number} {line.get('id')}": len(list(line.iter(f"{SVG}use"))) for number, line in enumerate(lines)}


def test_a_chart_has_a_line_for_every_series_of_every_panel_and_a_legend(tmp_path: Path) -> None:
    write_chart(tmp_path / "plots" / "chart.svg", PANELS)
    assert points_of(tmp_path / "plots" / "chart.svg") == {"0 series A": 2, "1 series B <b>": 1, "2 series A": 2}
    texts = [element.text for element in ET.parse(tmp_path / "plots" / "chart.svg").getroot().iter(f"{SVG}text")]
    assert {"loss & time", "A", "B <b>", "1 k", "0.1"} <= set(texts)
    assert texts.count("A") == 1, "one legend for all panels"


def test_what_is_not_finite_leaves_a_gap(tmp_path: Path) -> None:
    write_chart(tmp_path / "c.svg", [Panel("p", "x", [1, 2, 3], {"A": [0.0, math.inf, 7.3], "B": [3.0, 2.0, 1.0]})])
    assert points_of(tmp_path / "c.svg") == {"0 series A": 2, "1 series B": 3}


def test_a_chart_of_zeros_or_of_nothing_can_be_drawn(tmp_path: Path) -> None:
    write_chart(tmp_path / "c.svg", [Panel("p", "x", [1], {"A": [0.0], "B": [None]}, log=True)])
    assert points_of(tmp_path / "c.svg") == {"0 series A": 1}


def test_the_same_numbers_make_the_same_small_file(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        write_chart(tmp_path / name, PANELS)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.svg").stat().st_size < 60_000

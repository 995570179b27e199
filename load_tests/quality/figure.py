"""A figure of the thesis, done again: charts, and what was claimed about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from load_tests.plot import Panel
from load_tests.quality.claims import Claim


@dataclass(frozen=True)
class Figure:
    """Charts and claims under the number of the thesis."""

    number: str
    title: str
    panels: Sequence[Panel]
    claims: Sequence[Claim]

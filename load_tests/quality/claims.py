"""Claims of the literature about curves, checked point by point.

Every check answers whether the claim held and what was seen. A curve may wobble by `TOLERANCE` (of the greater of two
values) without breaking a claim about its direction or order: seeds are random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from load_tests.plot import Panel

TOLERANCE = 0.02

Verdict: TypeAlias = tuple[bool, str]
"""Whether a claim held, and what was seen."""


@dataclass(frozen=True)
class Claim:
    """What is said about a figure, and what ours shows."""

    text: str
    verdict: Verdict
    thesis: bool = True
    """Whether the thesis says so, or we do."""

    @property
    def held(self) -> bool:
        """Whether ours shows it."""
        return self.verdict[0]

    @property
    def answer(self) -> str:
        """In the words of the report."""
        return "as claimed" if self.held else "not as claimed"

    @property
    def seen(self) -> str:
        """The evidence."""
        return self.verdict[1]


def falls(panel: Panel, names: Sequence[str]) -> Verdict:
    """Every one of these curves goes down from left to right."""
    return _directed(panel, names, lambda before, after: not _above(after, before))


def grows(panel: Panel, names: Sequence[str]) -> Verdict:
    """Every one of these curves goes up from left to right."""
    return _directed(panel, names, lambda before, after: not _above(before, after))


def ordered(charts: Panel | Sequence[Panel], *names: str, factor: float = 1.0) -> Verdict:
    """At every point of every chart these curves stand in this order, the least first, each `factor` below the next."""
    held, seen = True, []
    for low, high in pairwise(names):
        points = [pair for chart in _several(charts) for pair in _both(chart, low, high)]
        right = [not _above(one * factor, other) for one, other in points]
        held &= bool(right) and all(right)
        seen.append(f"{low} below {high} at {sum(right)} of {len(right)} points")
    return held, "; ".join(seen)


def flatter(panel: Panel, flat: Sequence[str], steep: Sequence[str]) -> Verdict:
    """From the first to the last point every flat curve grows by less than every steep one."""
    growth = {name: _values(panel, name)[-1] - _values(panel, name)[0] for name in (*flat, *steep)}
    held = max(growth[name] for name in flat) < min(growth[name] for name in steep)
    return held, ", ".join(f"{name} {value:+.3g}" for name, value in growth.items())


def steady(panel: Panel, names: Sequence[str], share: float) -> Verdict:
    """None of these curves varies by more than this share of its greatest value."""
    spread = {name: 1 - min(_values(panel, name)) / max(_values(panel, name)) for name in names}
    return max(spread.values()) <= share, ", ".join(f"{name} varies by {value:.0%}" for name, value in spread.items())


def limited(panel: Panel, names: Sequence[str], limits: Sequence[float]) -> Verdict:
    """At every point every one of these curves is at most the limit there."""
    pairs = [(value, limit) for name in names for value, limit in zip(panel.series[name], limits, strict=True)]
    known = [(value, limit) for value, limit in pairs if value is not None]
    right = sum(value <= limit + 1e-9 for value, limit in known)
    return right == len(known), f"{right} of {len(known)} points"


def both(*verdicts: Verdict) -> Verdict:
    """Several checks that make one claim."""
    return all(held for held, _ in verdicts), "; ".join(seen for _, seen in verdicts)


def _directed(panel: Panel, names: Sequence[str], good: Callable[[float, float], bool]) -> Verdict:
    held, seen = True, []
    for name in names:
        values = _values(panel, name)
        steps = [good(before, after) for before, after in pairwise(values)]
        held &= all(steps) and good(values[0], values[-1]) and values[0] != values[-1]
        seen.append(f"{name} {values[0]:.3g} → {values[-1]:.3g} ({sum(steps)} of {len(steps)} steps)")
    return held, "; ".join(seen)


def _above(value: float, other: float) -> bool:
    return value - other > TOLERANCE * max(abs(value), abs(other))


def _several(charts: Panel | Sequence[Panel]) -> Sequence[Panel]:
    return (charts,) if isinstance(charts, Panel) else charts


def _values(panel: Panel, name: str) -> list[float]:
    return [value for value in panel.series[name] if value is not None]


def _both(panel: Panel, one: str, other: str) -> Iterator[tuple[float, float]]:
    for first, second in zip(panel.series[one], panel.series[other], strict=True):
        if first is not None and second is not None:
            yield first, second

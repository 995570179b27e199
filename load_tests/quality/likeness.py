"""Chapter 4: BUREL against LMondrian and DMondrian, and the comparisons with t-closeness at equal t or equal loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from load_tests.generators import BETA_QUASI
from load_tests.plot import Panel
from load_tests.quality.claims import Claim, Verdict, both, falls, grows, ordered, steady
from load_tests.quality.figure import Figure
from load_tests.quality.lab import (
    AK,
    BUREL,
    BUREL_REFINED,
    D_MONDRIAN,
    L_MONDRIAN,
    REFINED,
    T_MONDRIAN,
    Lab,
    Outcome,
    at,
    loss,
    loss_and_time,
    panel,
    spread,
)
from microdata import Table

THESIS = (BUREL, L_MONDRIAN, D_MONDRIAN)
ALL = (*THESIS, BUREL_REFINED)
ENHANCED, REFINED_ENHANCED = "BUREL, enhanced only", "BUREL, refined, enhanced only"
BETA, WIDTH = 4.0, 3
BISECTIONS = 7
BETAS, THRESHOLDS = (0.05, 40.0), (0.001, 0.9)
"""Between which parameters are searched for."""
CALIBRATED = {BUREL: "beta", AK: "t", T_MONDRIAN: "t", BUREL_REFINED: "beta", REFINED: "t"}
"""Who is compared at equal closeness or loss, and what is searched for."""


@dataclass
class Likeness:
    """The sweeps that several figures look at."""

    lab: Lab

    def __post_init__(self) -> None:
        quick = self.lab.quick
        self.rows = 10_000 if quick else 100_000
        self.betas = (1.0, 4.0) if quick else (1.0, 2.0, 3.0, 4.0, 5.0)
        self.widths = (1, 3, 5) if quick else (1, 2, 3, 4, 5)
        self.sizes = tuple(self.rows * step for step in ((1, 3) if quick else (1, 2, 3, 4, 5)))
        self.table = self.lab.table(self.rows, BETA_QUASI[:WIDTH])
        self.by_beta = self.lab.sweep(ALL, self.betas, lambda beta: (self.table, {"beta": beta, "k": 1}))
        self.by_width = self.lab.sweep(ALL, self.widths, self._at_width)

    def _at_width(self, width: int) -> tuple[Table, dict[str, Any]]:
        return self.lab.table(self.rows, BETA_QUASI[:width]), {"beta": BETA, "k": 1}

    def figures(self) -> Iterator[Figure]:
        """All figures of the chapter, in its order."""
        yield self.against_closeness()
        yield self.varying_beta()
        yield self.varying_quasi()
        yield self.varying_size()
        yield self.query_error()
        yield self.ranges()

    def against_closeness(self) -> Figure:
        """4.4: the calibrated comparisons with algorithms for t-closeness."""
        charts = (self.same_t_by_beta(), self.same_t(), self.same_loss())
        return Figure(
            "4.4",
            "achieved β at equal closeness or equal loss",
            charts,
            (
                *(Claim(f"{c.title}: BUREL reaches a smaller β than SABRE", ordered(c, BUREL, AK)) for c in charts),
                *(
                    Claim(f"{c.title}: SABRE reaches a smaller β than tMondrian", ordered(c, AK, T_MONDRIAN))
                    for c in charts
                ),
                Claim(
                    "(ours) refined, BUREL reaches a smaller β than SABRE and tMondrian at the same t and loss",
                    both(*(ordered(charts[1:], BUREL_REFINED, other) for other in (REFINED, T_MONDRIAN))),
                    thesis=False,
                ),
            ),
        )

    def same_t_by_beta(self) -> Panel:
        """BUREL with β; the others with the t that it turns out to keep."""
        series: dict[str, list[float | None]] = {BUREL: [], AK: [], T_MONDRIAN: []}
        for beta in self.betas:
            ours = self.lab.run(BUREL, self.table, beta=beta, k=1)
            series[BUREL].append(ours.beta)
            for name in (AK, T_MONDRIAN):
                series[name].append(self.lab.run(name, self.table, t=ours.closeness, k=1).beta)
        return Panel("(a) t as BUREL's", "β given to BUREL", self.betas, series, log=True)

    def same_t(self) -> Panel:
        """SABRE and tMondrian with t; BUREL with the largest β that keeps it."""
        thresholds = (0.05, 0.15) if self.lab.quick else (0.05, 0.1, 0.15, 0.2, 0.25)
        series: dict[str, list[float | None]] = {name: [] for name in CALIBRATED}
        for t in thresholds:
            for name, parameter in CALIBRATED.items():
                if parameter == "beta":
                    beta = self._extreme(name, parameter, *BETAS, lambda one: one.closeness, t)
                else:
                    beta = self.lab.run(name, self.table, t=t, k=1).beta
                series[name].append(beta)
        return Panel("(b) same t", "t", thresholds, series, log=True)

    def same_loss(self) -> Panel:
        """Every algorithm with the strictest parameter whose loss is at most the target."""
        targets = (0.5, 0.6) if self.lab.quick else (0.2, 0.3, 0.4, 0.5, 0.6)
        series: dict[str, list[float | None]] = {name: [] for name in CALIBRATED}
        for target in targets:
            for name, parameter in CALIBRATED.items():
                least, most = BETAS if parameter == "beta" else THRESHOLDS
                series[name].append(self._extreme(name, parameter, most, least, loss, target))
        return Panel("(c) same loss", "loss at most", targets, series, log=True)

    def _extreme(
        self, name: str, parameter: str, begin: float, end: float, measure: Callable[[Outcome], float], limit: float
    ) -> float | None:
        """Achieved β of the last run on the way from `begin` to `end`, by bisection, that measures at most `limit`."""
        best = self.lab.run(name, self.table, **{parameter: begin}, k=1)
        if measure(best) > limit:
            return None
        for _ in range(BISECTIONS):
            middle = math.sqrt(begin * end)
            tried = self.lab.run(name, self.table, **{parameter: middle}, k=1)
            if measure(tried) <= limit:
                best, begin = tried, middle
            else:
                end = middle
        return best.beta

    def varying_beta(self) -> Figure:
        """4.5: loss and time over β."""
        losses, times = loss_and_time("β", self.betas, self.by_beta)
        return Figure(
            "4.5",
            "β varies",
            (losses, times),
            (
                Claim("loss falls as β grows", falls(losses, THESIS)),
                Claim("BUREL loses least, LMondrian follows, DMondrian loses most", ordered(losses, *THESIS)),
                _refined_best(losses, "loses"),
                Claim("BUREL loses about half of LMondrian", ordered(losses, BUREL, L_MONDRIAN, factor=1.6)),
                Claim("BUREL takes about half the time of LMondrian", ordered(times, BUREL, L_MONDRIAN, factor=1.6)),
            ),
        )

    def varying_quasi(self) -> Figure:
        """4.6: loss and time over the number of quasi-identifiers."""
        losses, times = loss_and_time("quasi-identifiers", self.widths, self.by_width)
        return Figure(
            "4.6",
            "the number of quasi-identifiers varies",
            (losses, times),
            (
                Claim("loss grows with the quasi-identifiers", grows(losses, THESIS)),
                Claim("BUREL loses least", _best(losses)),
                _refined_best(losses, "loses"),
                Claim("BUREL is the fastest", _best(times)),
            ),
        )

    def varying_size(self) -> Figure:
        """4.7: loss and time over the size."""
        tables = {rows: self.lab.table(rows, BETA_QUASI[:WIDTH]) for rows in self.sizes}
        runs = self.lab.sweep(ALL, self.sizes, lambda rows: (tables[rows], {"beta": BETA, "k": 1}))
        losses, times = loss_and_time("rows", self.sizes, runs)
        return Figure(
            "4.7",
            "the size varies",
            (losses, times),
            (
                Claim("time grows with the size", grows(times, THESIS)),
                Claim("BUREL loses least", _best(losses)),
                _refined_best(losses, "loses"),
                Claim("BUREL is the fastest", _best(times)),
            ),
        )

    def query_error(self) -> Figure:
        """4.8: how wrong counting queries are answered."""
        lab = self.lab
        counts, selectivities = (1, 3, 5) if lab.quick else (1, 2, 3, 4, 5), (0.05, 0.1, 0.15, 0.2, 0.25)
        wide, standard = at(self.by_width, len(self.widths) - 1), at(self.by_beta, self.betas.index(BETA))
        charts = (
            spread("error %, 5 quasi-ids", "λ", counts, wide, lambda one, x: lab.error(one, x, 0.1)),
            panel("error %, λ = 3", "β", self.betas, self.by_beta, lambda one: lab.error(one, 3, 0.1)),
            panel("error %", "quasi-identifiers", self.widths, self.by_width, lambda one: lab.error(one, 3, 0.1)),
            spread("error %, λ = 3", "θ", selectivities, standard, lambda one, x: lab.error(one, 3, x)),
        )
        return Figure(
            "4.8",
            "median relative error of counting queries",
            charts,
            (
                Claim("error falls as β grows", falls(charts[1], THESIS)),
                Claim("error grows with the quasi-identifiers", grows(charts[2], THESIS)),
                Claim("error falls as θ grows", falls(charts[3], THESIS)),
                Claim("BUREL is best", _best(charts)),
                _refined_best(charts, "errs"),
            ),
        )

    def ranges(self) -> Figure:
        """4.9: range-based β-likeness beside the enhanced kind."""
        widths = (2, 10) if self.lab.quick else (2, 4, 6, 8, 10)
        charts = (
            self._range_panel("loss, β = 4", "ε", [(BETA, width) for width in widths], widths),
            self._range_panel("loss, ε = 6", "β", [(beta, 6) for beta in self.betas], self.betas),
        )
        pairs = ((BUREL, ENHANCED), (BUREL_REFINED, REFINED_ENHANCED))
        return Figure(
            "4.9",
            "range-based β-likeness",
            charts,
            (
                Claim(
                    "loss grows slightly with ε", both(grows(charts[0], (BUREL,)), steady(charts[0], (BUREL,), 0.25))
                ),
                Claim("loss falls as β grows", falls(charts[1], (BUREL, L_MONDRIAN))),
                *(
                    Claim(
                        f"{name}: the premium over enhanced β-likeness is marginal (at most a quarter)",
                        ordered(charts, name, reference, factor=0.8),
                        thesis=name == BUREL,
                    )
                    for name, reference in pairs
                ),
                Claim("BUREL loses less than LMondrian", ordered(charts, BUREL, L_MONDRIAN)),
                _refined_best(charts, "loses"),
            ),
        )

    def _range_panel(
        self, title: str, x_label: str, settings: Sequence[tuple[float, float]], x: Sequence[float]
    ) -> Panel:
        names = (BUREL, L_MONDRIAN, ENHANCED, BUREL_REFINED, REFINED_ENHANCED)
        series: dict[str, list[float | None]] = {name: [] for name in names}
        for beta, width in settings:
            ranged = {"range": {"beta": beta, "width": width}}
            for name in (BUREL, L_MONDRIAN, BUREL_REFINED):
                series[name].append(self.lab.run(name, self.table, beta=ranged, k=1).loss)
            for name, line in ((BUREL, ENHANCED), (BUREL_REFINED, REFINED_ENHANCED)):
                series[line].append(self.lab.run(name, self.table, beta=beta, k=1).loss)
        return Panel(title, x_label, x, series)


def _best(charts: Panel | Sequence[Panel]) -> Verdict:
    return both(ordered(charts, BUREL, L_MONDRIAN), ordered(charts, BUREL, D_MONDRIAN))


def _refined_best(charts: Panel | Sequence[Panel], does: str) -> Claim:
    verdict = ordered(charts, BUREL_REFINED, L_MONDRIAN)
    return Claim(f"(ours) refined, BUREL {does} less than LMondrian", verdict, thesis=False)

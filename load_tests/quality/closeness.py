"""Chapter 3: SABRE, in both instantiations, against tMondrian and tIncognito."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from load_tests.generators import CENSUS_QUASI
from load_tests.plot import Panel
from load_tests.quality.claims import TOLERANCE, Claim, Verdict, both, falls, flatter, grows, limited, ordered, steady
from load_tests.quality.figure import Figure
from load_tests.quality.lab import (
    AK,
    K_MONDRIAN,
    KNN,
    REFINED,
    T_INCOGNITO,
    T_MONDRIAN,
    Lab,
    Outcome,
    Runs,
    at,
    loss,
    loss_and_time,
    panel,
    salary_tree,
    spread,
)
from microdata import Table

THESIS = (KNN, AK, T_MONDRIAN, T_INCOGNITO)
ALL = (*THESIS, REFINED)
T, K = 0.35, 6


@dataclass
class Closeness:
    """The sweeps that several figures look at."""

    lab: Lab

    def __post_init__(self) -> None:
        quick = self.lab.quick
        self.rows = 10_000 if quick else 100_000
        self.thresholds = (0.15, 0.35, 0.55) if quick else (0.15, 0.25, 0.35, 0.45, 0.55)
        self.widths = (3, 5, 7) if quick else (3, 4, 5, 6, 7)
        self.sizes = tuple(self.rows * step for step in ((1, 3) if quick else (1, 2, 3, 4, 5)))
        self.persons = (6, 24, 96) if quick else (3, 6, 12, 24, 48, 96)
        table = self.lab.table(self.rows)
        self.by_t = self.lab.sweep(ALL, self.thresholds, partial(_with_t, table))
        self.by_width = self.lab.sweep(ALL, self.widths, lambda width: self._at(CENSUS_QUASI[:width]))

    def _at(self, quasi: tuple[str, ...] = CENSUS_QUASI, rows: int | None = None) -> tuple[Table, dict[str, Any]]:
        return self.lab.table(rows or self.rows, quasi), {"t": T, "k": K}

    def standard(self) -> dict[str, Outcome]:
        """The runs with the parameters that the thesis takes when others vary."""
        return at(self.by_t, self.thresholds.index(T))

    def figures(self) -> Iterator[Figure]:
        """All figures of the chapter, in its order."""
        yield self.varying_t()
        yield self.tight_t()
        yield self.varying_quasi()
        by_size = self.by_size()
        yield self.varying_size(by_size)
        yield self.real_closeness()
        yield self.varying_k()
        yield self.query_error()
        yield self.divergence(by_size)
        yield self.varying_fanout()

    def varying_t(self) -> Figure:
        """3.7: loss and time over t."""
        losses, times = loss_and_time("t", self.thresholds, self.by_t)
        return Figure(
            "3.7",
            "t varies",
            (losses, times),
            (
                Claim("loss falls as t grows, every algorithm", falls(losses, THESIS)),
                Claim("SABRE-KNN loses slightly less than SABRE-AK", ordered(losses, KNN, AK)),
                *_best(losses, "loses less"),
                Claim("SABRE-AK is the fastest", _fastest(times)),
                Claim("SABRE-AK takes at most 4 s", limited(times, [AK], [4.0] * len(self.thresholds))),
                Claim("SABRE-AK is two orders of magnitude faster than SABRE-KNN", ordered(times, AK, KNN, factor=100)),
                Claim("… and than tIncognito", ordered(times, AK, T_INCOGNITO, factor=100)),
            ),
        )

    def tight_t(self) -> Figure:
        """Beside 3.7: the same where t, not k, decides how far classes can be cut."""
        thresholds = (0.03, 0.06, 0.15) if self.lab.quick else (0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15)
        names = (KNN, AK, T_MONDRIAN, REFINED)
        charts = []
        for width in (3, 7):
            table = self.lab.table(self.rows, CENSUS_QUASI[:width])
            runs = self.lab.sweep(names, thresholds, partial(_with_t, table))
            unlimited = self.lab.run(K_MONDRIAN, table, k=K).loss
            chart = panel(f"loss, {width} quasi-identifiers", "t", thresholds, runs, loss)
            charts.append(replace(chart, series={**chart.series, K_MONDRIAN: [unlimited] * len(thresholds)}))
        return Figure("3.7-tight", "t so tight that it binds (not in the thesis)", charts, ())

    def varying_quasi(self) -> Figure:
        """3.8: loss and time over the number of quasi-identifiers."""
        losses, times = loss_and_time("quasi-identifiers", self.widths, self.by_width)
        return Figure(
            "3.8",
            "the number of quasi-identifiers varies",
            (losses, times),
            (
                Claim("loss grows with the quasi-identifiers", grows(losses, THESIS)),
                Claim(
                    "… steeply for tMondrian and tIncognito, only marginally for SABRE",
                    flatter(losses, (KNN, AK), (T_MONDRIAN, T_INCOGNITO)),
                ),
                *_best(losses, "loses less"),
                Claim(
                    "time: SABRE-AK < tMondrian < tIncognito < SABRE-KNN",
                    ordered(times, AK, T_MONDRIAN, T_INCOGNITO, KNN),
                ),
            ),
        )

    def by_size(self) -> Runs:
        """Runs at growing sizes; the two whose time explodes stop early."""
        most = {KNN: 2 * self.rows, T_INCOGNITO: 3 * self.rows}
        return self.lab.sweep(
            ALL, self.sizes, lambda rows: self._at(rows=rows), skip=lambda name, rows: rows > most.get(name, rows)
        )

    def varying_size(self, runs: Runs) -> Figure:
        """3.9: loss and time over the size."""
        losses, times = loss_and_time("rows", self.sizes, runs)
        return Figure(
            "3.9",
            "the size varies",
            (losses, times),
            (
                Claim("loss is nearly flat, tIncognito's aside", steady(losses, (AK, T_MONDRIAN), 0.15)),
                Claim("time grows with the size", grows(times, (AK, T_MONDRIAN, T_INCOGNITO))),
                Claim("SABRE-AK is the fastest", _fastest(times)),
            ),
        )

    def real_closeness(self) -> Figure:
        """3.10: the closeness that publications really have."""
        by_t = panel("real closeness", "t", self.thresholds, self.by_t, lambda one: one.closeness)
        by_width = panel(
            "real closeness, t = 0.35", "quasi-identifiers", self.widths, self.by_width, lambda one: one.closeness
        )
        return Figure(
            "3.10",
            "real closeness",
            (by_t, by_width),
            (
                Claim(
                    "the real closeness of every scheme is below t",
                    both(limited(by_t, ALL, self.thresholds), limited(by_width, ALL, [T] * len(self.widths))),
                ),
                Claim(
                    "SABRE's is smaller than tMondrian's",
                    _below((by_t, by_width), T_MONDRIAN),
                ),
                Claim(
                    "tIncognito's is smaller than tMondrian's",
                    ordered((by_t, by_width), T_INCOGNITO, T_MONDRIAN),
                ),
            ),
        )

    def varying_k(self) -> Figure:
        """3.11: loss over k."""
        table = self.lab.table(self.rows)
        runs = self.lab.sweep(ALL, self.persons, lambda k: (table, {"t": T, "k": k}))
        losses = panel("loss", "k", self.persons, runs, loss)
        return Figure(
            "3.11",
            "k varies",
            (losses,),
            (
                Claim("loss grows with k (tIncognito's irregularly)", grows(losses, (KNN, AK, T_MONDRIAN))),
                *_best(losses, "loses less"),
            ),
        )

    def query_error(self) -> Figure:
        """3.12: how wrong counting queries are answered."""
        lab, standard = self.lab, self.standard()
        counts, selectivities = (1, 3, 5) if lab.quick else (1, 2, 3, 4, 5), (0.05, 0.1, 0.15, 0.2, 0.25)
        charts = (
            spread("error %, θ = 0.1", "λ", counts, standard, lambda one, x: lab.error(one, x, 0.1)),
            panel(
                "error %, λ = 3", "quasi-identifiers", self.widths, self.by_width, lambda one: lab.error(one, 3, 0.1)
            ),
            panel("error %, λ = 3", "t", self.thresholds, self.by_t, lambda one: lab.error(one, 3, 0.1)),
            spread("error %, λ = 3", "θ", selectivities, standard, lambda one, x: lab.error(one, 3, x)),
        )
        return Figure(
            "3.12",
            "median relative error of counting queries",
            charts,
            (
                Claim("error grows with λ", grows(charts[0], THESIS)),
                Claim("error grows with the quasi-identifiers", grows(charts[1], THESIS)),
                Claim("error falls as t grows", falls(charts[2], THESIS)),
                Claim("error falls slightly as θ grows", falls(charts[3], THESIS)),
                *_best(charts, "errs less"),
                Claim("SABRE errs an order of magnitude less than tIncognito", _below(charts, T_INCOGNITO, factor=10)),
            ),
        )

    def divergence(self, by_size: Runs) -> Figure:
        """3.13: how far OLAP cubes diverge."""
        lab, standard, levels = self.lab, self.standard(), (1, 2) if self.lab.quick else (1, 2, 3)
        charts = (
            panel("KL, level 2", "t", self.thresholds, self.by_t, lambda one: lab.divergence(one, 2)),
            spread("KL", "level of the lattice", levels, standard, lab.divergence),
            panel("KL, level 2", "quasi-identifiers", self.widths, self.by_width, lambda one: lab.divergence(one, 2)),
            panel("KL, level 2", "rows", self.sizes, by_size, lambda one: lab.divergence(one, 2)),
        )
        return Figure(
            "3.13",
            "divergence of OLAP cubes",
            charts,
            (
                Claim("divergence falls as t grows", falls(charts[0], THESIS)),
                Claim("a lower level of the lattice is better", grows(charts[1], THESIS)),
                Claim(
                    "SABRE scales better with the quasi-identifiers",
                    flatter(charts[2], (KNN, AK), (T_MONDRIAN, T_INCOGNITO)),
                ),
                Claim("divergence improves slightly with the size", falls(charts[3], (AK, T_MONDRIAN))),
                *_best(charts, "diverges less"),
            ),
        )

    def varying_fanout(self) -> Figure:
        """3.14: salary as a category, under hierarchies of different fanout."""
        fanouts = (2, 7, 50) if self.lab.quick else (2, 3, 4, 5, 7, 10, 25, 50)
        tables = {fanout: salary_tree(self.lab.table(self.rows), fanout) for fanout in fanouts}
        runs = self.lab.sweep((AK, REFINED), fanouts, lambda fanout: (tables[fanout], {"t": T, "k": K}))
        losses = panel("loss", "fanout of the salary hierarchy", fanouts, runs, loss)
        values = [value for value in losses.series[AK] if value is not None]
        half = len(values) // 2
        means = sum(values[:half]) / half, sum(values[half:]) / (len(values) - half)
        tends = (
            means[0] < (1 - TOLERANCE) * means[1],
            f"mean loss {means[0]:.3g} over the smaller fanouts, {means[1]:.3g} over the larger",
        )
        return Figure(
            "3.14",
            "salary as a category",
            (losses,),
            (
                Claim("loss is not monotone in the fanout", _not(grows(losses, (AK,)))),
                Claim("a smaller fanout (deeper hierarchy) tends to be better", tends),
            ),
        )


def _with_t(table: Table, t: float) -> tuple[Table, dict[str, Any]]:
    return table, {"t": t, "k": K}


def _best(charts: Panel | Sequence[Panel], does: str) -> tuple[Claim, ...]:
    """The thesis' claim that SABRE beats both others, in two parts, and ours about the refinement."""
    return (
        Claim(f"SABRE {does} than tIncognito", _below(charts, T_INCOGNITO)),
        Claim(f"SABRE {does} than tMondrian", _below(charts, T_MONDRIAN)),
        Claim(f"(ours) refined, SABRE {does} than tMondrian", ordered(charts, REFINED, T_MONDRIAN), thesis=False),
    )


def _below(charts: Panel | Sequence[Panel], other: str, factor: float = 1.0) -> Verdict:
    return both(*(ordered(charts, ours, other, factor=factor) for ours in (KNN, AK)))


def _fastest(chart: Panel) -> Verdict:
    return both(*(ordered(chart, AK, other) for other in (T_MONDRIAN, T_INCOGNITO, KNN)))


def _not(verdict: Verdict) -> Verdict:
    return not verdict[0], verdict[1]

"""Real Adult, occupation sensitive, 7 quasi-identifiers, k = 10: ours beside what was measured of the peers."""

from __future__ import annotations

from dataclasses import dataclass

from load_tests.generators import ADULT_ROWS, real_adult
from load_tests.quality.claims import Claim
from load_tests.quality.lab import (
    AK,
    BUREL,
    BUREL_CLASSES_REFINED,
    BUREL_REFINED,
    CLASSES_REFINED,
    D_MONDRIAN,
    KNN,
    L_MONDRIAN,
    REFINED,
    T_INCOGNITO,
    T_MONDRIAN,
    Lab,
    Outcome,
)

COLUMNS = ("algorithm", "classes", "suppressed", "loss", "real closeness", "achieved β", "seconds")


@dataclass(frozen=True)
class Comparison:
    """One guarantee: what peers reach (classes, suppressed rows and seconds as in PEERS), and who of ours is asked."""

    title: str
    asked: dict[str, float]
    peers: dict[str, tuple[int, int | None, str]]
    plain: int
    """Classes of the plain construction."""
    best_peer: int
    ours: tuple[str, ...]
    refined: str


COMPARISONS = (
    Comparison(
        "t = 0.2",
        {"t": 0.2, "k": 10},
        {"ARX": (6, 2_682, "0.55"), "ARX, local recoding": (33, 2_682, "7.6")},
        plain=957,
        best_peer=33,
        ours=(AK, KNN, CLASSES_REFINED, REFINED, T_MONDRIAN, T_INCOGNITO),
        refined=REFINED,
    ),
    Comparison(
        "β = 1",
        {"beta": 1.0, "k": 10},
        {"ARX": (3, None, "1.3–1.6")},
        plain=322,
        best_peer=3,
        ours=(BUREL, BUREL_CLASSES_REFINED, BUREL_REFINED, L_MONDRIAN, D_MONDRIAN),
        refined=BUREL_REFINED,
    ),
)


def compare(lab: Lab, comparison: Comparison) -> tuple[list[list[object]], list[Claim]] | None:
    """Rows for `COLUMNS`, and what was promised; None where the data is not there."""
    dataset = real_adult(sensitive=("occupation",))
    if dataset is None:
        return None
    table = dataset.table(ADULT_ROWS)
    outcomes = {name: lab.run(name, table, **comparison.asked) for name in comparison.ours}
    rows: list[list[object]] = [
        [name, classes, "–" if suppressed is None else suppressed, "–", "–", "–", spent]
        for name, (classes, suppressed, spent) in comparison.peers.items()
    ]
    rows += [[name, *_cells(one)] for name, one in outcomes.items()]
    built, refined = outcomes[comparison.ours[0]], outcomes[comparison.refined]
    return rows, [
        Claim(
            f"at least {comparison.plain} classes, nothing suppressed (best peer: {comparison.best_peer} classes)",
            (
                built.classes >= comparison.plain and not built.publication.suppressed,
                f"{built.classes} classes, {built.publication.suppressed} rows suppressed",
            ),
        ),
        Claim(
            "refinement raises the number of classes well beyond, and loses less",
            (
                refined.classes > 1.2 * built.classes and refined.loss < built.loss,
                f"{built.classes} → {refined.classes} classes, loss {built.loss:.3f} → {refined.loss:.3f}",
            ),
        ),
    ]


def _cells(one: Outcome) -> list[object]:
    return [one.classes, one.publication.suppressed, one.loss, one.closeness, one.beta, one.seconds]

"""An audit for people."""

from __future__ import annotations

from service.cli.output import say, say_table, warn
from service.policy.data import Verdict
from service.report import Linked, Timing


def say_verdict(verdict: Verdict) -> None:
    """Asked, achieved and holds for each model; what must not be there; and the numbers around it."""
    say_table(("model", "asked", "achieved", "holds"), verdict.findings)
    for fault in verdict.faults:
        warn(f"fault: {fault}")
    for note in verdict.notes:
        say(note)


def say_attacks(linked: Linked | None, timing: Timing | None) -> None:
    """What an attacker gets of a stream, as far as it was tried."""
    if linked:
        fewer = "" if linked.below is None else f"fewer than {linked.asked} for {linked.below:.1%}, and "
        say(
            f"all rows of a person tied together, for {linked.persons} persons: at least {linked.fewest} could be "
            f"meant, {linked.median:g} in the median; {fewer}nobody else for {linked.identified or 0:.1%}"
        )
    if timing:
        say(
            f"who knows the {timing.seconds:g} s in which somebody acted, for {timing.rows} rows that left alone: rows "
            f"of at least {timing.fewest} others could be meant, of {timing.median:g} in the median; nobody else for "
            f"{timing.nobody:.1%}"
        )


def warn_of_attacks(linked: Linked | None, timing: Timing | None, advice: str) -> None:
    """Warn where an attack on a stream leaves too few persons, as a report does."""
    found = []
    if linked is not None and linked.is_notable:
        few = f"fewer than {linked.asked} persons" if linked.below else "nobody else"
        share = linked.below or linked.identified or 0.0
        found.append(f"tying the rows of a person together leaves {few} for {share:.1%} of the persons")
    if timing is not None and timing.is_notable:
        found.append(f"knowing when a person acted leaves nobody else for {timing.nobody:.1%} of the rows")
    if found:
        warn(f"warning: {'; '.join(found)}; {advice}")

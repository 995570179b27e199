"""An audit for people."""

from __future__ import annotations

from service.cli.output import say, say_table, warn
from service.policy.data import Verdict


def say_verdict(verdict: Verdict) -> None:
    """Asked, achieved and holds for each model; what must not be there; and the numbers around it."""
    say_table(("model", "asked", "achieved", "holds"), verdict.findings)
    for fault in verdict.faults:
        warn(f"fault: {fault}")
    for note in verdict.notes:
        say(note)

"""An audit for people."""

from __future__ import annotations

from privacy import Audit
from service.cli.output import say, say_table, warn

_PERSONS = {
    "exact": "distinct persons",
    "at least": "the fewest that the original allows: a published table does not show whose rows it has",
    "rows": "rows, for want of persons",
}


def say_audit(result: Audit) -> None:
    """Asked, achieved and holds for each model; what must not be there; and the numbers around it."""
    rows = [
        (
            finding.model + (f" (by {finding.ground})" if finding.ground else ""),
            f"{finding.asked:g}",
            "–" if finding.achieved is None else f"{finding.achieved:.4g}",
            "yes" if finding.holds else f"NO, fails in {finding.failing} of {result.classes} classes",
        )
        for finding in result.findings
    ]
    say_table(("model", "asked", "achieved", "holds"), rows)
    for fault in result.faults:
        warn(f"fault: {fault.count} {fault.reason}")
    suppressed = "" if result.suppressed is None else f", {result.suppressed} suppressed"
    say(f"{result.rows} rows in {result.classes} classes{suppressed}; loss {result.loss:.4f} (0 nothing lost, 1 all)")
    if result.fewest_persons is not None:
        say(f"smallest class: {result.fewest_persons} persons (counted as {_PERSONS[result.persons]})")
    if result.largest_share is not None:
        say(f"largest share of one person in a class: {result.largest_share:.1%}")

"""Whether to publish, at one look: is the guarantee met, which attack gets furthest, what was lost, what to change.

Made from a report and nothing else, so that reports of earlier versions have one too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from service.report.figures import isolate, number, percent
from service.report.replay_sections import ReplayReport
from service.report.sections import AttributeLoss, CountsBeside, Exposed, Loss, Rejected, Result, TableReport, Trial

Mark = Literal["good", "look", "bad"]
FAR = 0.2
"""What an attack may get beyond its baseline, and a row's risk, before somebody should look."""
MUCH_LOST = 0.5
MUCH_SUPPRESSED = 0.1
TOLD = 0.01
"""Share of the rows that counts may make certain before somebody should look."""
NOTABLE = 0.2
"""By how much one level more must lower the risk to be told."""
NEARLY_WHOLE = 0.9
"""Share of its domain that a column covers which tells hardly anything any more."""
_SAY = {
    "good": "Nothing here speaks against publishing",
    "look": "Look at this before you publish",
    "bad": "Do not publish this",
}
_HELPS = {
    "prosecutor": "a larger k",
    "marketer": "a larger k",
    "linking": "a larger k",
    "homogeneity": "several values in each class (l, t or beta)",
    "background": "a larger l",
    "inference": "a smaller t or beta",
    "similarity": "closeness by hierarchy (t), or categories of sensitivity",
}
"""What to ask for against each attack. A skewed class names nobody and no value, so it is none of them."""


@dataclass(frozen=True)
class Line:
    """One of the questions, with its answer."""

    mark: Mark
    question: str
    answer: str


@dataclass(frozen=True)
class Verdict:
    """All of them, and what they come to."""

    mark: Mark
    says: str
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, lines: Sequence[Line], *, repeatable: bool) -> Verdict:
        """The worst line decides; what was made with a seed is not for release, however good it is."""
        if repeatable:
            return cls("bad", "An experiment: not for release, since it was made with a seed", tuple(lines))
        marks = {line.mark for line in lines}
        mark: Mark = "bad" if "bad" in marks else "look" if "look" in marks else "good"
        return cls(mark, _SAY[mark], tuple(lines))


def table_verdict(report: TableReport) -> Verdict:
    """Of a table."""
    worst = worst_attack(report.attacks)
    lines = [
        guarantee_line(report.results, holds=report.holds),
        *([_attacked(worst)] if worst else []),
        *_controlled(report.tried),
        *_counts(report.beside),
        *rejected_lines(report.rows.rejected, report.rows.given, "rows"),
        _lost(report),
        _change(list(_changes(report, worst))),
    ]
    return Verdict.of(lines, repeatable=report.repeatable)


def replay_verdict(report: ReplayReport) -> Verdict:
    """Of a stream."""
    lines = [
        guarantee_line(report.guarantees, holds=report.holds),
        *_linked(report),
        *_timed(report),
        *rejected_lines(report.rejected, report.events, "events"),
        _lost_of_stream(report),
    ]
    return Verdict.of([*lines, _change(list(_changes_of_stream(report)))], repeatable=report.repeatable)


def gain(attack: Exposed) -> float:
    """How much of what is left to get without the table an attack gets."""
    return max(attack.after - attack.baseline, 0.0) / max(1 - attack.baseline, 1e-9)


def worst_attack(attacks: Sequence[Exposed]) -> Exposed | None:
    """The one that gets furthest beyond its baseline, of those that name a person or a value."""
    return max((one for one in attacks if one.attack in _HELPS), key=gain, default=None)


def named(attack: Exposed) -> str:
    """An attack for people."""
    return f"{attack.attack} of {isolate(attack.attribute)}" if attack.attribute else attack.attack


def rejected_lines(rejected: Rejected, given: int, what: str) -> Iterator[Line]:
    """Rows that fail validation, and the fields that cost them."""
    if rejected.rows:
        mark: Mark = "look" if rejected.is_notable else "good"
        yield Line(mark, "Rejected", rejected_sentence(rejected, given, what, shown=isolate))


def rejected_sentence(rejected: Rejected, given: int, what: str, *, shown: Callable[[str], str] = str) -> str:
    """How many of the given rows or events were rejected, and which fields cost them; `shown` is used for each name."""
    fields = ", ".join(f"{shown(name)} {number(rows)}" for name, rows in rejected.fields)
    return (
        f"{number(rejected.rows)} of {number(given)} {what} ({percent(rejected.share)}) were rejected and are not "
        f"published{f'; by field: {fields}' if fields else ''}. The policy warns above {percent(rejected.warn_above)}."
    )


def guarantee_line(results: Sequence[Result], *, holds: bool) -> Line:
    """Whether every model is met."""
    if holds:
        met = "; ".join(f"{one.model} {number(one.achieved)} (asked: {number(one.asked)})" for one in results)
        return Line("good", "Guarantee", f"Met in every class: {met}.")
    failed = "; ".join(f"{one.model} fails in {number(one.failing)} classes" for one in results if not one.holds)
    return Line("bad", "Guarantee", f"Not met: {failed or 'what is published does not fit the table'}.")


def _attacked(worst: Exposed) -> Line:
    got = (
        f"{named(worst)}: {percent(worst.after)} ({percent(worst.before)} of the table as it was, "
        f"{percent(worst.baseline)} without any table) – {worst.gets}."
    )
    return Line("look" if gain(worst) > FAR else "good", "Worst attack", got)


def _controlled(tried: Sequence[Trial]) -> Iterator[Line]:
    """An attack that surely gets far because somebody is in the table."""
    worst = max(tried, key=lambda one: one.risk_low, default=None)
    if worst is not None and worst.risk_low > FAR:
        name = f"{worst.attack} of {isolate(worst.attribute)}" if worst.attribute else worst.attack
        got = (
            f"{name}: being in the table adds {percent(worst.risk)} of what is left to get, {percent(worst.risk_low)} "
            "at least."
        )
        yield Line("look", "With a control", got)


def _counts(found: Sequence[CountsBeside]) -> Iterator[Line]:
    """Counts that are to be published beside the table."""
    worst = max(found, key=_told_by_counts, default=None)
    if worst is not None:
        wrong = f"; as many as {percent(worst.wrong)} seem certain and are not" if worst.wrong else ""
        got = (
            f"with them, {isolate(worst.attribute)} is as good as certain for {percent(worst.certain)} of the rows "
            f"({percent(worst.certain_alone)} without{wrong}), and {percent(worst.guessed)} are guessed right "
            f"({percent(worst.guessed_alone)} without)."
        )
        yield Line("look" if _told_by_counts(worst) > TOLD else "good", "Counts beside it", got)


def _told_by_counts(one: CountsBeside) -> float:
    """Rows that counts make certain; who cannot tell these from others that seem so has that much less."""
    return one.certain - one.wrong - one.certain_alone


def _lost(report: TableReport) -> Line:
    rows, error = report.rows, report.queries.median
    most = max(report.loss.attributes, key=lambda one: one.loss, default=None)
    said = [f"{percent(report.loss.mean)} of the detail"]
    if most is not None:
        said[0] += f", most in {isolate(most.name)} ({percent(most.loss)})"
    suppressed = f"{number(rows.suppressed)} of {number(rows.given)} rows are suppressed"
    said.append(suppressed if rows.suppressed else "no row is suppressed")
    if error is not None:
        said.append(f"half of the random counts are off by {percent(error)} or more")
    much = report.loss.mean > MUCH_LOST or rows.suppressed_share > MUCH_SUPPRESSED
    return Line("look" if much else "good", "Lost", "; ".join(said) + ".")


def _change(changes: list[str]) -> Line:
    return Line("good", "To change", " ".join(changes) if changes else "Nothing stands out.")


def _changes(report: TableReport, worst: Exposed | None) -> Iterator[str]:
    """What would help, most of it measured."""
    if not report.holds:
        yield "Anonymize it again, and have it audited before it is written."
        return
    yield from _accept_more(report.rows.rejected)
    if worst is not None and gain(worst) > FAR:
        yield f"Against {named(worst)}: ask for {_HELPS[worst.attack]}."
    if any(_told_by_counts(one) > TOLD for one in report.beside):
        yield "Publish those counts by fewer or coarser fields, or not at all."
    best = best_raise(report.loss)
    if best is not None:
        yield f"{raise_sentence(best, report.loss.risk or 0.0)}."
    for one in report.loss.attributes:
        if one.loss >= NEARLY_WHOLE:
            yield f"{isolate(one.name)} tells hardly anything any more: without it, others could be finer."
    if report.rows.suppressed_share > MUCH_SUPPRESSED:
        yield "Suppressed rows would stay with coarser columns, fewer of them, or a smaller k."


def _accept_more(rejected: Rejected) -> Iterator[str]:
    """What would let more rows pass the validation."""
    if rejected.is_notable:
        names = ", ".join(name for name, _ in rejected.fields)
        yield f"Correct the data, or extend the domain or hierarchy in the policy: {names}."


def best_raise(loss: Loss) -> AttributeLoss | None:
    """The column whose next level lowers the risk most for what it costs; None where none lowers it much."""
    now = loss.risk or 0.0
    worth = [one for one in loss.attributes if one.higher and one.higher.risk <= (1 - NOTABLE) * now]
    return max(worth, key=lambda one: (now - one.higher.risk) / one.higher.cost if one.higher else 0.0, default=None)


def raise_sentence(one: AttributeLoss, now: float) -> str:
    """What one level more in a column would do."""
    assert one.higher is not None
    would = f"{_by(one.higher.risk / now)} and cost {one.higher.cost:.2g}"
    return f"Generalizing {isolate(one.name)} one level more would {would}"


def _by(ratio: float) -> str:
    """By how much a risk falls.

    >>> _by(0.5), _by(0.34), _by(0.1), _by(0.7)
    ('halve the risk', 'bring the risk to a third', 'bring the risk to 10 % of what it is', 'lower the risk by 30 %')
    """
    if 0.45 <= ratio <= 0.55:
        return "halve the risk"
    if 0.31 <= ratio <= 0.36:
        return "bring the risk to a third"
    if ratio < 0.5:
        return f"bring the risk to {percent(round(ratio, 2))} of what it is"
    return f"lower the risk by {percent(round(1 - ratio, 2))}"


def _linked(report: ReplayReport) -> Iterator[Line]:
    if report.linked is None:
        return
    below, asked = report.linked.below, report.linked.asked
    share = "" if below is None else f"; for {percent(below)} of the persons fewer than {number(asked)} are left"
    got = (
        f"rows of one person tied together: {number(report.linked.median)} persons could be meant in the median, "
        f"{number(report.linked.fewest)} at least{share}."
    )
    yield Line("look" if report.linked.is_notable else "good", "Intersection", got)


def _timed(report: ReplayReport) -> Iterator[Line]:
    if report.timing is None:
        return
    nobody = report.timing.nobody
    got = (
        f"for {percent(nobody)} of the rows that left alone, nobody else has one in the same tick that could be "
        "theirs: who knows when a person acted knows their row."
    )
    yield Line("look" if report.timing.is_notable else "good", "Timing", got)


def _lost_of_stream(report: ReplayReport) -> Line:
    said = [] if report.loss is None else [f"{percent(report.loss)} of the detail"]
    said.append(
        f"{percent(report.suppressed_share)} of the events are suppressed"
        if report.suppressed
        else "no event is suppressed"
    )
    if report.delays is not None:
        said.append(f"half of the events wait for {number(report.delays.p50)} further ones or more")
    if report.workload_error is not None:
        said.append(f"half of the random counts are off by {percent(report.workload_error)} or more")
    much = (report.loss or 0.0) > MUCH_LOST or report.suppressed_share > MUCH_SUPPRESSED or not report.released
    return Line("look" if much else "good", "Lost", "; ".join(said) + ".")


def _changes_of_stream(report: ReplayReport) -> Iterator[str]:
    yield from _accept_more(report.rejected)
    if report.linked is not None and (report.linked.identified or 0.0) > 0:
        yield "Persons come back and can be told apart over time: use cohorts, which keep k over time."
    if report.timing is not None and report.timing.is_notable:
        yield "Let no row leave alone (reuse: false, company: present), so that it cannot be timed."
    if report.suppressed_share > MUCH_SUPPRESSED:
        yield "Fewer events would be suppressed with a longer delay, a smaller k, or fewer quasi-identifiers."
    if (report.loss or 0.0) > MUCH_LOST:
        yield "A longer delay or fewer quasi-identifiers would leave more detail."
    for one in report.columns:
        if one.loss >= NEARLY_WHOLE:
            yield f"{isolate(one.name)} tells hardly anything any more: without it, others could be finer."

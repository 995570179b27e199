"""Evidence as one page for people: one screen in plain words, then the details; it can be printed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from microdata import DataError
from service.evidence.checking import Check
from service.evidence.filing import kind_of
from service.report import Linked, Timing, linked_sentence, timing_sentence
from service.report.figures import card, facts, isolate, isolated, number, parts, percent
from service.report.page import attacks_card, group, page, tried_card, verdict_block
from service.report.sections import Exposed, Rejected, Trial
from service.report.verdict import FAR, Line, Mark, Verdict, gain, named, rejected_lines, worst_attack

_KINDS = {"table": "a published table", "replay": "a replay of events", "topic": "a stretch of an output topic"}
_NEEDS = {
    "table": "the policy, the original table and the published one",
    "replay": "the policy, the events, the output and the links that were kept",
    "topic": "the policy and a broker that still has the records, and follows the chain of files",
}


def evidence_html(evidence: Mapping[str, Any], checks: Sequence[Check] | None = None) -> str:
    """Return the page of one file of evidence; `DataError` where its parts are not those of evidence.

    `checks` are what `verify` found. Without them the page says that nothing was verified.
    """
    try:
        return _page(evidence, checks)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DataError("the parts are not those of evidence") from None


def _page(evidence: Mapping[str, Any], checks: Sequence[Check] | None) -> str:
    filed = evidence["parts"]
    title = f"Evidence: {isolate(str(filed['policy'].get('name')))}"
    made = filed["made"]
    who = f"made {made.get('at')} by {isolate(str(made.get('by')))}, Portcullis {made.get('portcullis')}"
    how = f"Of {_KINDS[kind_of(evidence)]}; {who}."
    head = Markup("<header><h1>{}</h1><p>{}</p></header>").format(isolated(title), isolated(how))
    cards = group("cards", _cards(evidence, checks))
    return page(title, str(head) + verdict_block(_verdict(evidence, checks)) + cards)


def _verdict(evidence: Mapping[str, Any], checks: Sequence[Check] | None) -> Verdict:
    """What matters, as questions with their answers; green only if it was verified."""
    mark, says, guarantee = _guarantee(evidence)
    lines = [Line(mark, "Guarantee", guarantee), *_published(evidence), *_attacked(evidence)]
    lines.append(_verification(evidence, checks))
    if mark != "bad":
        if lines[-1].mark == "bad":
            return Verdict("bad", "The evidence does not hold", tuple(lines))
        if lines[-1].mark == "look":
            return Verdict("look", f"Not verified, the file says: {says[0].lower()}{says[1:]}", tuple(lines))
    if mark == "good" and any(line.mark != "good" for line in lines):
        return Verdict("look", f"{says}; look at the marked lines", tuple(lines))
    return Verdict(mark, says, tuple(lines))


def _verification(evidence: Mapping[str, Any], checks: Sequence[Check] | None) -> Line:
    """Whether the file was compared with what it is about, and how to compare it."""
    needs = _NEEDS[kind_of(evidence)]
    if kind_of(evidence) == "table" and "links" in evidence["parts"]:
        needs += ", and the links that were kept"
    how = f"portcullis evidence verify compares it with {needs}; with --key it checks who signed it."
    if checks is None:
        return Line("look", "Verified", f"Nothing: this page shows what the file says. {how}")
    counted = {
        outcome: sum(one.outcome == outcome for one in checks) for outcome in ("holds", "differs", "not checked")
    }
    said = (
        f"{counted['holds']} statements hold, {counted['differs']} differ, {counted['not checked']} were not checked."
    )
    if counted["differs"]:
        differing = ", ".join(one.about for one in checks if one.outcome == "differs")
        return Line("bad", "Verified", f"{said} These differ: {differing}.")
    audited = any(one.about.startswith("audited") for one in checks)
    return Line("good" if audited else "look", "Verified", f"{said} {'' if audited else how}".rstrip())


def _verified(evidence: Mapping[str, Any], checks: Sequence[Check] | None) -> str:
    """Each statement, and whether it was verified."""
    title = "What was verified"
    if checks is None:
        signed = "is signed" if "signature" in evidence else "is not signed"
        return card(title, f"Nothing on this page was verified. The file {signed}.", "", wide=True)
    lines = [(one.about, one.outcome, one.why) for one in checks]
    sentence = "Each statement of the file, compared with what the verifier had."
    return card(title, sentence, facts(("statement", "outcome", "why"), lines), wide=True)


def _guarantee(evidence: Mapping[str, Any]) -> tuple[Mark, str, str]:
    """Whether it holds, in a heading and a sentence."""
    filed = evidence["parts"]
    found, reported = filed["audited"], filed.get("reported", {})
    made = reported.get("results", reported.get("guarantees", []))
    if found.get("unread"):
        return "look", "Nothing to audit", "What was published has no row that could be read again."
    said = "; ".join(f"{one['model']} {number(one['achieved'])} (asked: {number(one['asked'])})" for one in made)
    held = bool(made) and all(one["holds"] for one in made)
    if kind_of(evidence) == "topic":
        counted = f"The smallest class has {number(found.get('fewest_persons'))} rows. {_models(found)}"
        if found["holds"]:
            return "good", "What any reader can check holds", f"{counted} Workers count persons before each release."
        return "bad", "What any reader can check does not hold", counted
    if found["holds"] and held:
        return "good", "The guarantee holds", f"Met in every class: {said}. An audit of what was published agrees."
    if held and found["outcome"] == "not shown":
        heading = "The guarantee held when this was made; the published file alone cannot show it"
        return "look", heading, f"Met when it was made: {said}. {_models(found)}"
    return "bad", "The guarantee does not hold", f"Measured: {said or 'nothing'}. {_models(found)}"


def _models(found: Mapping[str, Any]) -> str:
    """What the audit says, in one line."""
    failed = [_why_not(one) for one in found["findings"] if not one["holds"]]
    faults = [f"{number(one['count'])} {one['reason']}" for one in found["faults"]]
    if failed or faults:
        return f"The audit finds: {'; '.join([*failed, *faults])}."
    kept = ", ".join(f"{one['model']} {_achieved(one)} (asked: {number(one['asked'])})" for one in found["findings"])
    return f"The audit finds nothing wrong: {kept}." if kept else "No model can be checked on this alone."


def _why_not(finding: Mapping[str, Any]) -> str:
    """How a model fails, or why it is not known whether it does."""
    if finding.get("outcome") == "not shown":
        return f"{finding['model']} cannot be shown from the published file: {_achieved(finding)}"
    return f"{finding['model']} fails in {number(finding['failing'])} classes"


def _achieved(finding: Mapping[str, Any]) -> str:
    bound = finding.get("bound")
    return f"{bound} {number(finding['achieved'])}" if bound else number(finding["achieved"])


def _published(evidence: Mapping[str, Any]) -> Iterator[Line]:
    """What left, what was left out, what was lost."""
    filed = evidence["parts"]
    found, reported = filed["audited"], filed.get("reported", {})
    loss = "" if found.get("loss") is None else f" {percent(found['loss'])} of the detail was given up."
    left = f"{number(found.get('rows', 0))} rows in {number(found.get('classes', 0))} classes."
    if "ratings" in found:
        left = f"{number(found['ratings'])} ratings of {number(found.get('persons'))} persons."
    match kind_of(evidence):
        case "table":
            rows = reported.get("rows", {})
            given = f" {number(rows['suppressed'])} of {number(rows['given'])} rows were suppressed." if rows else ""
            yield Line("good", "Published", left + given + loss)
            yield from _rejected(rows or reported.get("counts", {}), "given", "rows")
        case "replay":
            given = f" Of {number(reported['events'])} events {number(reported['suppressed'])} were suppressed."
            yield Line("good", "Published", left + given + loss)
            yield from _rejected(reported, "events", "events")
        case _:
            stretch = filed["stretch"]
            between = f" They left between {_moment(stretch['first_ms'])} and {_moment(stretch['last_ms'])}."
            yield Line("good", "Published", f"{number(stretch['records'])} records, {left}{between}{loss}")
            before = filed["before"]
            told = f"Goes on where {before['file']} ended." if before else "The beginning of its chain."
            yield Line("good", "Before it", told)


def _rejected(counted: Mapping[str, Any], given: str, what: str) -> Iterator[Line]:
    """Rows that fail validation, in the words of a report."""
    if "rejected" in counted:
        yield from rejected_lines(Rejected.model_validate(counted["rejected"]), counted[given], what)


def _attacked(evidence: Mapping[str, Any]) -> Iterator[Line]:
    """The attack that gets furthest, and those on streams."""
    reported = evidence["parts"].get("reported", {})
    worst = worst_attack(_exposed(reported))
    if worst is not None:
        got = (
            f"{named(worst)}: {percent(worst.after)}, where the data as it was gave {percent(worst.before)} and "
            f"no data at all {percent(worst.baseline)}. That is: {worst.gets}."
        )
        yield Line("look" if gain(worst) > FAR else "good", "Worst attack", got)
    if reported.get("linked"):
        linked = Linked.model_validate(reported["linked"])
        yield Line("look" if linked.is_notable else "good", "Tied rows", linked_sentence(linked))
    if reported.get("timing"):
        timing = Timing.model_validate(reported["timing"])
        yield Line("look" if timing.is_notable else "good", "Known moment", timing_sentence(timing))


def _exposed(reported: Mapping[str, Any]) -> list[Exposed]:
    """The attacks on records; those on other kinds of data have another form, and only their own report shows them."""
    attacks = reported.get("attacks", [])
    return [Exposed.model_validate(one) for one in attacks if "attribute" in one]


def _cards(evidence: Mapping[str, Any], checks: Sequence[Check] | None) -> Iterator[str]:
    filed = evidence["parts"]
    words = filed.get("words", {})
    yield card("What is assumed", "", _list(words.get("assumed", [])))
    yield card("What is not said", "", _list(words.get("limits", [])))
    yield _asked(filed)
    yield _found(filed)
    reported = filed.get("reported", {})
    if _exposed(reported):
        yield attacks_card(_exposed(reported))
    if reported.get("tried"):
        yield tried_card([Trial.model_validate(one) for one in reported["tried"]])
    yield _verified(evidence, checks)
    yield card(
        "What it is about, by hashes",
        "They tell whether a file is the one that was meant. Originals and links are named with their owner's secret.",
        facts(("what", "SHA-256"), list(_hashes(evidence))),
        wide=True,
    )
    yield str(parts().details(json.dumps(filed, indent=2, ensure_ascii=False)))


def _asked(filed: Mapping[str, Any]) -> str:
    policy = filed["policy"]
    asked = policy.get("asked") or {}
    parameters = (asked.get("parameters") or {}).items()
    lines = [
        ("algorithm", str(asked.get("algorithm"))),
        *((name, json.dumps(value)) for name, value in parameters if value not in (None, {}, [])),
        *([("purpose", str(policy["purpose"]))] if policy.get("purpose") else []),
        *([("preset", _preset(policy["preset"]))] if policy.get("preset") else []),
        *((f"allowed to {name}", percent(most)) for name, most in (policy.get("attacks") or {}).items()),
    ]
    return card("What was asked", f"Policy {policy.get('name')}.", facts(("parameter", "value"), lines))


def _preset(preset: Mapping[str, Any]) -> str:
    reviewed = ", ".join(preset["reviewed"])
    return f"{preset['name']}, fields reviewed by hand: {reviewed}" if reviewed else str(preset["name"])


_AT_LEAST = "Persons are not told by what is published: so many there are at least. They were counted when it was made."


def _found(filed: Mapping[str, Any]) -> str:
    found = filed["audited"]
    lines = [(one["model"], number(one["asked"]), _achieved(one), _holds(one)) for one in found.get("findings", [])]
    notes = " ".join(f"{note}." for note in found.get("not_repeated", []))
    if found.get("persons") == "at least":
        notes = f"{_AT_LEAST} {notes}"
    sentence = "Found by reading what was published once more, and comparing it with the original where there is one."
    return card("What the audit found", f"{sentence} {notes}", facts(("model", "asked", "achieved", "holds"), lines))


def _holds(finding: Mapping[str, Any]) -> str:
    return str(finding.get("outcome", "yes" if finding["holds"] else "no")).replace("does not hold", "no")


def _hashes(evidence: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    filed = evidence["parts"]
    yield "this evidence", str(evidence.get("hash"))
    yield "the policy (fingerprint)", str(filed["policy"].get("fingerprint"))
    for name in ("original", "links"):
        if name in filed:
            yield f"the {name} (with the secret)", str(filed[name].get("hmac_sha256"))
    known = filed["published"].get("sha256", [])
    named = known.items() if isinstance(known, Mapping) else enumerate(known, start=1)
    what = "what was published, partition" if isinstance(known, Mapping) else "what was published, file"
    for number_, value in named:
        yield f"{what} {number_}", str(value)
    if filed.get("before"):
        yield "the evidence before", str(filed["before"].get("hash"))


def _list(sentences: list[str]) -> str:
    items = Markup("").join(Markup("<li>{}</li>").format(one) for one in sentences)
    return str(Markup("<ul>{}</ul>").format(items))


def _moment(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(" ", "seconds")

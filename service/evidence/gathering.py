"""Evidence of what was just written: it is read and audited once more, as somebody else would.

Only figures of a report are filed. Distributions of sensitive values are not for everybody, and of curves over time a
point may be about a single row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from microdata import DataError, PersonSource, Progress, silent
from service.evidence.filing import file_digest, filed, plain
from service.evidence.form import FIGURES_OF_REPLAYS, FIGURES_OF_TABLES, EvidenceKind
from service.policy import Policy

_ASSUMED = (
    "Who attacks may know all quasi-identifiers of everybody, and who is in the data.",
    "Public fields are passed on as they are and protect nobody.",
)
_ROWS = "Every row is about another person, as the policy says."
_LAST_SEEN = "People are taken to have their last seen quasi-identifiers until they are seen again."
_UNTRIED = "Attacks that are not named were not tried."
_OF_A_TABLE = (
    "Nothing is said about other publications of the same people, nor about who watches when a person acts.",
    _UNTRIED,
)
_OTHERS = "Nothing is said about other streams or tables about the same people."
_EACH = (
    "Each event is hidden by itself: who can tie rows of a person together may know more than a row of theirs tells."
)
_ALONE = "Rows may leave alone: who knows when a person acted may know which row is theirs."
_COUNTED = (
    "Rows are counted, not persons, which no output shows: a worker counts these before each release.",
    "The input was not looked at.",
)
_REHEARSED = "It is about a file of events at a simulated pace, and says nothing about what a worker published."


def gather(
    policy: Policy,
    report: BaseModel,
    *,
    original: Path,
    published: Sequence[Path],
    secret: bytes,
    by: str,
    links: Path | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Evidence of a table that was written, to one file or to several that say the same; the first is audited.

    `links` say which row of the original each row of the first file is: persons are counted exactly with them.
    """
    measured = report.model_dump(mode="json")
    kept = {} if links is None else {"links": {"hmac_sha256": file_digest(links, secret)}}
    basis = {"original": original} | ({} if links is None else {"links": links})
    return filed(
        "table",
        policy,
        by=by,
        original={"hmac_sha256": file_digest(original, secret)},
        **kept,
        published={"sha256": sorted({file_digest(path) for path in published})},
        audited=audited(policy, published[0], basis, progress),
        reported={name: measured[name] for name in FIGURES_OF_TABLES if name in measured},
        words=words_of("table", policy),
    )


def gather_replay(
    policy: Policy,
    report: BaseModel,
    *,
    original: Path,
    published: Path,
    links: Path,
    secret: bytes,
    by: str,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Evidence of what a replay wrote; `links` say which events each line is about."""
    measured = report.model_dump(mode="json")
    reported = {name: measured[name] for name in FIGURES_OF_REPLAYS if name in measured}
    if reported.get("delays"):
        reported["delays"] |= {"bins": []}
    return filed(
        "replay",
        policy,
        by=by,
        original={"hmac_sha256": file_digest(original, secret)},
        links={"hmac_sha256": file_digest(links, secret)},
        published={"sha256": [file_digest(published)]},
        audited=audited(policy, published, {"original": original, "links": links}, progress),
        reported=reported,
        words=words_of("replay", policy),
    )


def audited(policy: Policy, published: Path, basis: Mapping[str, Path], progress: Progress) -> dict[str, Any]:
    """What an audit finds, without what the file calls its classes; `unread` where there is nothing to audit."""
    try:
        shown = policy.data.audit(policy, published, basis, progress=progress).shown
    except DataError:
        # Its words may name the file, which may have another name elsewhere.
        return {"holds": False, "outcome": "not shown", "unread": True}
    return dict(plain(shown))


def words_of(kind: EvidenceKind, policy: Policy) -> dict[str, list[str]]:
    """Return what is assumed and what is not said, as sentences. The kind of evidence and the policy decide it."""
    match kind:
        case "table":
            limits = list(_OF_A_TABLE)
        case "replay":
            limits = [*_limits_of_stream(policy), _REHEARSED]
        case "topic":
            limits = [*_COUNTED, *_limits_of_stream(policy)]
    return {"assumed": _assumed(policy), "limits": limits}


def _assumed(policy: Policy) -> list[str]:
    row = getattr(policy.schema, "person", None) is PersonSource.ROW
    return [*_ASSUMED, *([_ROWS] if row else []), *([_LAST_SEEN] if _over_time(policy) else [])]


def _limits_of_stream(policy: Policy) -> list[str]:
    alone = policy.asked_of_engine.alone is not None
    row = getattr(policy.schema, "person", None) is PersonSource.ROW
    each = [] if row or _over_time(policy) else [_EACH]
    return [_OTHERS, *each, *([_ALONE] if alone else []), _UNTRIED]


def _over_time(policy: Policy) -> bool:
    return any(getattr(model, "checked_on", None) == "history" for model in policy.models())

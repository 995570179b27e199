"""Evidence of what was just written: it is read and audited once more, as somebody else would.

Only figures of a report are filed. Distributions of sensitive values are not for everybody, and of curves over time a
point may be about a single row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from microdata import DataError, PersonSource, Progress, silent
from service.evidence.filing import file_digest, filed
from service.policy import Policy

_OF_TABLES = (
    *("rows", "counts", "results", "measured", "loss", "show", "squared_error", "sizes", "utility", "risk"),
    *("attacks", "tried", "population", "beside", "queries"),
)
_OF_REPLAYS = (
    *("events", "rejected", "released", "suppressed", "suppressed_share", "clusters", "reused", "guarantees"),
    *("largest_share", "at_once", "linked", "timing", "loss", "show", "squared_error", "workload_error", "delays"),
)
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
        asked=measured.get("asked"),
        original={"hmac_sha256": file_digest(original, secret)},
        **kept,
        published={"sha256": [file_digest(path) for path in published]},
        audited=audited(policy, published[0], basis, progress),
        reported={name: measured[name] for name in _OF_TABLES if name in measured},
        words={"assumed": assumed(policy), "limits": list(_OF_A_TABLE)},
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
    reported = {name: measured[name] for name in _OF_REPLAYS if name in measured}
    if reported.get("delays"):
        reported["delays"] = {name: value for name, value in reported["delays"].items() if name != "bins"}
    return filed(
        "replay",
        policy,
        by=by,
        asked=measured.get("asked"),
        original={"hmac_sha256": file_digest(original, secret)},
        links={"hmac_sha256": file_digest(links, secret)},
        published={"sha256": [file_digest(published)]},
        audited=audited(policy, published, {"original": original, "links": links}, progress),
        reported=reported,
        words={"assumed": assumed(policy), "limits": [*limits_of_stream(policy), _REHEARSED]},
    )


def audited(policy: Policy, published: Path, basis: Mapping[str, Path], progress: Progress) -> dict[str, Any]:
    """What an audit finds, without what the file calls its classes; `unread` where there is nothing to audit."""
    try:
        shown = policy.data.audit(policy, published, basis, progress=progress).shown
    except DataError:
        # Its words may name the file, which may have another name elsewhere.
        return {"holds": False, "outcome": "not shown", "unread": True}
    found: dict[str, Any] = json.loads(json.dumps(shown))
    return found


def assumed(policy: Policy) -> list[str]:
    """What is taken for granted, in words."""
    row = getattr(policy.schema, "person", None) is PersonSource.ROW
    return [*_ASSUMED, *([_ROWS] if row else []), *([_LAST_SEEN] if _over_time(policy) else [])]


def limits_of_stream(policy: Policy) -> list[str]:
    """What is not said about a stream, in words."""
    alone = policy.asked_of_engine.alone is not None
    row = getattr(policy.schema, "person", None) is PersonSource.ROW
    each = [] if row or _over_time(policy) else [_EACH]
    return [_OTHERS, *each, *([_ALONE] if alone else []), _UNTRIED]


def _over_time(policy: Policy) -> bool:
    return any(getattr(model, "checked_on", None) == "history" for model in policy.models())

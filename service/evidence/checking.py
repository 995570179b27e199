"""Verify evidence: repeat everything that can be repeated, and compare it with every statement that was filed.

Each statement that a reader sees is in one check. A check whose outcome is "not checked" says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from microdata import Progress, silent
from service.evidence.filing import file_digest, kind_of, plain, policy_part, sealed
from service.evidence.gathering import audited, words_of
from service.evidence.signing import is_signed, own_key
from service.policy import Policy

GUARANTEE = "the guarantee"
"""What the last check of an audit is about, unless the guarantee holds: that is what its findings say."""
KIND = "the kind of evidence"
_UNREAD = "there are no rows that can be read"
_NOT_SHOWN = (
    "it cannot be shown from the published file, which only bounds how many persons it is about; it was checked when "
    "the file was made"
)
_ROUNDING = 1e-9
_ABSENT = object()
"""Stands for a statement that is not there, which differs from every one that is, also from one without a value."""
_AT_RANDOM = frozenset({"tried", "queries"})
_OUTSIDE = frozenset({"population", "beside"})


@dataclass(frozen=True)
class Check:
    """One statement of the evidence, and what came of comparing it."""

    about: str
    outcome: Literal["holds", "differs", "not checked"]
    why: str = ""


@dataclass(frozen=True)
class Given:
    """What the verifier has. The more is given, the more is checked."""

    policy: Policy | None = None
    original: Path | None = None
    published: Path | None = None
    links: Path | None = None
    """Which rows of the original are behind each line of what was published."""
    secret: bytes | None = None
    signer: Ed25519PublicKey | None = None


def verify(evidence: Mapping[str, Any], given: Given, progress: Progress = silent) -> Iterator[Check]:
    """Repeat everything that can be repeated with what is given, for a table or a replay."""
    parts = evidence["parts"]
    yield from verify_form(evidence, given)
    if given.policy is not None and not _fits(evidence, given.policy):
        return
    yield _file("the original", parts["original"], given.original, given)
    basis: dict[str, Path | None] = {"original": given.original}
    if "links" in parts:
        yield _file("the links", parts["links"], given.links, given)
        basis["links"] = given.links
    yield from _published(parts["published"]["sha256"], given.published)
    there = {name: path for name, path in basis.items() if path is not None}
    policy, published, reported = given.policy, given.published, parts["reported"]
    if policy is None or published is None or len(there) < len(basis):
        needed = ", ".join(["the policy", *(f"the {name}" for name in basis)])
        why = f"it takes {needed} and what was published"
        yield Check("what the audit found", "not checked", why)
        yield Check("the figures of the report", "not checked", why)
        return
    found = audited(policy, published, there, progress)
    yield from same_audit(parts["audited"], found)
    if found.get("unread") or found.get("faults"):
        yield Check("the figures of the report", "not checked", "what is published is not a release of this original")
        return
    own = policy.data.figures(policy, there["original"], published, links=there.get("links"), progress=progress)
    yield from _same_figures(reported, _audited_figures(reported, found) | plain(own))
    if "guarantees" in reported:
        yield from _no_safer(reported["guarantees"], found["findings"])


def verify_form(evidence: Mapping[str, Any], given: Given) -> Iterator[Check]:
    """Check what all evidence has: its hashes, its signature, its author, its policy and its words."""
    parts = evidence["parts"]
    own = sealed(parts)
    filed = evidence.get("hashes"), evidence.get("hash")
    yield same("the hashes of the parts", filed, (own["hashes"], own["hash"]))
    yield from _signature(evidence, given.signer)
    if given.policy is None:
        yield Check("the policy", "not checked", "it was not given")
        yield Check("what is assumed and not said", "not checked", "it takes the policy")
        return
    kind = Check(KIND, "holds") if _fits(evidence, given.policy) else Check(KIND, "differs", "the policy makes another")
    yield kind
    expected = plain(policy_part(given.policy))
    for name in sorted(expected):
        yield same(f"the policy: {name}", parts["policy"].get(name), expected[name])
    words = words_of(kind_of(evidence), given.policy)
    yield same("what is assumed and not said", parts["words"], words)


def _fits(evidence: Mapping[str, Any], policy: Policy) -> bool:
    """Return whether a policy makes this kind of evidence: of tables, or of streams."""
    return (kind_of(evidence) == "table") == (policy.kind == "table")


def _signature(evidence: Mapping[str, Any], signer: Ed25519PublicKey | None) -> Iterator[Check]:
    signature, made = "the signature", "author, time and version"
    if signer is not None:
        signed = is_signed(evidence, signer)
        yield Check(signature, "holds") if signed else Check(signature, "differs", "it is not by this key")
        yield (
            Check(made, "holds", "signed") if signed else Check(made, "not checked", "they are not signed by this key")
        )
        return
    yield Check(made, "not checked", "only a signature by a known key shows them: --key")
    if "signature" not in evidence:
        yield Check(signature, "not checked", "it is not signed")
    elif not is_signed(evidence, own_key(evidence)):
        yield Check(signature, "differs", "it is not by the key that it names")
    else:
        yield Check(signature, "not checked", "it fits the key that it names; --key tells whose that is")


def _file(about: str, filed: Mapping[str, Any], path: Path | None, given: Given) -> Check:
    """Compare a file that is named by a hash with the secret."""
    if path is None or given.secret is None:
        return Check(about, "not checked", f"it takes {about}, and the secret that was written with the evidence")
    return same(about, filed.get("hmac_sha256"), file_digest(path, given.secret))


def _published(filed: list[str], published: Path | None) -> Iterator[Check]:
    """Compare what was published, which may be several files with the same rows."""
    about = "what was published"
    if published is None:
        yield Check(about, "not checked", "it was not given")
        return
    own = file_digest(published)
    yield Check(about, "holds") if own in filed else Check(about, "differs", "it is not what was filed")
    others = len(filed) - filed.count(own)
    if others:
        yield Check(f"{others} other files that were published", "not checked", "one file is compared at a time")


def same_audit(filed: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Check]:
    """Compare everything that two audits found, and check that it is good."""
    if own.get("unread") and not filed.get("unread"):
        yield Check("what the audit found", "differs", "what was published cannot be read any more")
        return
    for name in sorted({*filed, *own}):
        # An added name without a value differs too: its page would show the name as verified.
        yield same(f"audited: {name}", filed.get(name, _ABSENT), own.get(name, _ABSENT))
    if own.get("holds"):
        return
    if own.get("outcome") == "not shown" and filed.get("outcome") == "not shown":
        yield Check(GUARANTEE, "not checked", _UNREAD if own.get("unread") else _NOT_SHOWN)
    else:
        yield Check(GUARANTEE, "differs", "it does not hold for what is published now")


def _audited_figures(reported: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of a report that an audit determines: models, and what is counted of ratings."""
    known: dict[str, Any] = {}
    if "results" in reported and all(one.get("bound") is None for one in found["findings"]):
        shown = ("model", "asked", "achieved", "holds", "failing", "more_is_safer")
        known["results"] = [{name: one[name] for name in shown} for one in found["findings"]]
    if "counts" in reported:
        known["counts"] = {"published_persons": found["persons"], "rejected": {"rows": found["rejected"]}}
    return known


def _same_figures(filed: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Check]:
    """Compare each section of a report with what was measured again, and name what was not."""
    for name, section in filed.items():
        about = f"reported: {name}"
        if name not in own:
            yield Check(about, "not checked", _why_unmeasured(name))
            continue
        left = list(_unmeasured(section, own[name]))
        yield same(about, _part(section, own[name]), own[name])
        if left:
            why = "known from the run alone, or from links that were kept"
            yield Check(f"{about} ({', '.join(sorted(set(left)))})", "not checked", why)


def _no_safer(filed: list[Mapping[str, Any]], found: list[Mapping[str, Any]]) -> Iterator[Check]:
    """Check that no figure of a replay is safer than what its file shows. A cluster only gains rows after the gate."""
    known = {one["model"]: one for one in found if one["achieved"] is not None}
    for claimed in filed:
        own = known.get(claimed["model"])
        if own is None or claimed["achieved"] is None or claimed["counted_over"] is not None:
            continue
        gained = claimed["achieved"] - own["achieved"]
        safer = gained if claimed["more_is_safer"] else -gained
        about = f"reported: {claimed['model']} is no safer than what is published"
        yield Check(about, "differs", "the file shows less") if safer > _ROUNDING else Check(about, "holds")


def _why_unmeasured(name: str) -> str:
    if name in _AT_RANDOM:
        return "it is measured with random draws"
    if name in _OUTSIDE:
        return "it takes what was declared when the release was made"
    return "it is known from the run alone, or from links that were kept"


def _part(filed: Any, own: Any) -> Any:
    """Return of a section what was measured again, with the names that it is missing left out."""
    if isinstance(filed, Mapping) and isinstance(own, Mapping):
        return {name: _part(filed[name], own[name]) for name in own if name in filed}
    if isinstance(filed, list) and isinstance(own, list) and len(filed) == len(own):
        return [_part(one, other) for one, other in zip(filed, own, strict=True)]
    return filed


def _unmeasured(filed: Any, own: Any) -> Iterator[str]:
    """Return the names of a section that were not measured again."""
    if isinstance(filed, Mapping) and isinstance(own, Mapping):
        yield from (name for name in filed if name not in own)
        for name in filed.keys() & own.keys():
            yield from _unmeasured(filed[name], own[name])
    elif isinstance(filed, list) and isinstance(own, list):
        for one, other in zip(filed, own, strict=False):
            yield from _unmeasured(one, other)


def same(about: str, filed: object, own: object) -> Check:
    """Compare a filed value with the value that was found."""
    return Check(about, "holds") if _same(filed, own) else Check(about, "differs", "it is not what was filed")


def _same(filed: object, own: object) -> bool:
    """Return whether values are equal but for the last digits of a measure, which differ between machines."""
    if isinstance(filed, Mapping) and isinstance(own, Mapping):
        return filed.keys() == own.keys() and all(_same(filed[name], own[name]) for name in own)
    if isinstance(filed, list | tuple) and isinstance(own, list | tuple):
        return len(filed) == len(own) and all(map(_same, filed, own))
    if isinstance(filed, float) and isinstance(own, float):
        return math.isclose(filed, own, rel_tol=1e-9, abs_tol=1e-12)
    return type(filed) is type(own) and filed == own

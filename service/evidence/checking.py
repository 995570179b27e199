"""Evidence, checked: everything that can be done again is, and compared with what was filed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from microdata import Progress, silent
from service.evidence.filing import file_digest, sealed
from service.evidence.gathering import audited
from service.evidence.signing import is_signed
from service.policy import Policy

_UNREAD = "there are no rows that can be read"
_NOT_SHOWN = (
    "it cannot be shown from the published file, which only bounds how many persons it is about; it was checked when "
    "the file was made"
)


@dataclass(frozen=True)
class Check:
    """One thing that was compared."""

    about: str
    outcome: Literal["holds", "differs", "not checked"]
    why: str = ""


@dataclass(frozen=True)
class Given:
    """What somebody has who checks; the more, the more is checked."""

    policy: Policy | None = None
    original: Path | None = None
    published: Path | None = None
    links: Path | None = None
    """Which rows of the original are behind each line of what was published."""
    secret: bytes | None = None
    signer: Ed25519PublicKey | None = None


def verify(evidence: Mapping[str, Any], given: Given, progress: Progress = silent) -> Iterator[Check]:
    """Everything that can be done again with what is given, for a table or a replay."""
    parts = evidence["parts"]
    yield from verify_form(evidence, given)
    yield _file("the original", parts["original"], given.original, given)
    basis: dict[str, Path | None] = {"original": given.original}
    if "links" in parts:
        yield _file("the links", parts["links"], given.links, given)
        basis["links"] = given.links
    if given.published is None:
        yield Check("what was published", "not checked", "it was not given")
    else:
        known = parts["published"].get("sha256")
        own = file_digest(given.published)
        yield same("what was published", True, isinstance(known, list) and own in known)  # noqa: FBT003 - compared
    there = {name: path for name, path in basis.items() if path is not None}
    if given.policy is None or given.published is None or len(there) < len(basis):
        needed = ", ".join(["the policy", *(f"the {name}" for name in basis)])
        yield Check("what the audit found", "not checked", f"it takes {needed} and what was published")
    else:
        yield from same_audit(parts["audited"], audited(given.policy, given.published, there, progress))
    yield Check("attacks, loss and errors of the report", "not checked", "they are measured when it is made")


def verify_form(evidence: Mapping[str, Any], given: Given) -> Iterator[Check]:
    """What all evidence has: its hashes, its signature and its policy."""
    parts = evidence["parts"]
    own = sealed(parts)
    filed = evidence.get("hashes"), evidence.get("hash")
    yield same("the hashes of the parts", filed, (own["hashes"], own["hash"]))
    yield _signature(evidence, given.signer)
    if given.policy is None:
        yield Check("the policy", "not checked", "it was not given")
    else:
        yield same("the policy", parts["policy"].get("fingerprint"), given.policy.fingerprint())


def _file(about: str, filed: Mapping[str, Any], path: Path | None, given: Given) -> Check:
    """A file that is named by a hash with the secret."""
    if path is None or given.secret is None:
        return Check(about, "not checked", f"it takes {about}, and the secret that was written with the evidence")
    return same(about, filed.get("hmac_sha256"), file_digest(path, given.secret))


def _signature(evidence: Mapping[str, Any], signer: Ed25519PublicKey | None) -> Check:
    about = "the signature"
    if signer is None:
        signed = "signature" in evidence
        return Check(about, "not checked", "it takes the public key of who signed" if signed else "it is not signed")
    return Check(about, "holds") if is_signed(evidence, signer) else Check(about, "differs", "it is not by this key")


def same_audit(filed: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Check]:
    """Each thing that two audits found; and that it is good."""
    if own.get("unread") and not filed.get("unread"):
        yield Check("what the audit found", "differs", "what was published cannot be read any more")
        return
    for name in sorted({*filed, *own}):
        yield same(f"audited: {name}", filed.get(name), own.get(name))
    if own.get("holds"):
        return
    if own.get("outcome") == "not shown" and filed.get("outcome") == "not shown":
        yield Check("the guarantee", "not checked", _UNREAD if own.get("unread") else _NOT_SHOWN)
    else:
        yield Check("the guarantee", "differs", "it does not hold for what is published now")


def same(about: str, filed: object, own: object) -> Check:
    """Whether something is what was filed."""
    return Check(about, "holds") if _same(filed, own) else Check(about, "differs", "it is not what was filed")


def _same(filed: object, own: object) -> bool:
    """Equal, but for the last digits of a measure, which may differ from machine to machine."""
    if isinstance(filed, Mapping) and isinstance(own, Mapping):
        return filed.keys() == own.keys() and all(_same(filed[name], own[name]) for name in own)
    if isinstance(filed, list | tuple) and isinstance(own, list | tuple):
        return len(filed) == len(own) and all(map(_same, filed, own))
    if isinstance(filed, float) and isinstance(own, float):
        return math.isclose(filed, own, rel_tol=1e-9, abs_tol=1e-12)
    return type(filed) is type(own) and filed == own

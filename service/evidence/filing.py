"""What was asked, achieved and attacked, in one file that somebody else can check.

It is canonical JSON. Each part has its SHA-256, and these have one together, so that whatever is changed shows. What
was published is in it by its hash. The original is there by a hash with a secret, which is kept in another file, beside
the original: who has the evidence alone could otherwise try whether a small table that he guesses is the one. No value
of a record and no class is in it.

Hashes only tell of accidents, since who changes a part can change them too; a signature tells of everything. Without
one a check still does it all again: it reads the published table, audits it against the original, and compares.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import BaseModel

from microdata import DataError, PersonSource, Progress, silent
from service.evidence.signing import is_signed
from service.policy import Policy

FORMAT = 1
MOST_BYTES = 16 << 20
_SECRET_BYTES = 32
_BLOCK = 1 << 20
_REPORTED = (
    *("rows", "results", "measured", "loss", "show", "squared_error", "sizes", "utility", "risk", "attacks", "queries"),
)
"""Parts of a report that are filed. Distributions of sensitive values, of a class too, are not for everybody."""
_ROWS = "Every row is about another person, as the policy says."
_ASSUMED = (
    "Who attacks may know all quasi-identifiers of everybody, and who is in the table.",
    "Public fields are passed on as they are and protect nobody.",
)
_LIMITS = (
    "Nothing is said about other publications of the same people, nor about who watches when a person acts.",
    "Attacks that are not named were not tried.",
)


def new_secret() -> bytes:
    """A secret for the hash of an original."""
    return secrets.token_bytes(_SECRET_BYTES)


def gather(
    policy: Policy,
    report: BaseModel,
    *,
    original: Path,
    published: Path,
    secret: bytes,
    by: str,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Evidence of a table that was written: it is read and audited once more, as somebody else would."""
    audited = policy.data.audit(policy, published, {"original": original}, progress=progress).shown
    measured = report.model_dump(mode="json")
    row = getattr(policy.schema, "person", None) is PersonSource.ROW
    at = datetime.now(UTC).isoformat("T", "seconds")
    parts = {
        "made": {"format": FORMAT, "portcullis": _version(), "at": at, "by": by},
        "policy": {
            "name": policy.name,
            "fingerprint": policy.fingerprint(),
            "purpose": policy.purpose,
            "asked": measured.get("asked"),
            "attacks": dict(policy.attacks),
        },
        "original": {"hmac_sha256": _digest(original, hmac.new(secret, digestmod="sha256"))},
        "published": {"sha256": _digest(published, hashlib.sha256())},
        "audited": json.loads(json.dumps(audited)),
        "reported": {name: measured[name] for name in _REPORTED if name in measured},
        "words": {"assumed": [*_ASSUMED, *([_ROWS] if row else [])], "limits": list(_LIMITS)},
    }
    return {"parts": parts, "hashes": _hashes(parts), "hash": _hash(_hashes(parts))}


def write(evidence: Mapping[str, Any], path: Path) -> None:
    """Write evidence in its one canonical form."""
    path.write_bytes(canonical(evidence))


def canonical(value: object) -> bytes:
    """The same bytes for the same content."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def read(path: Path) -> dict[str, Any]:
    """Evidence from a file; `DataError` where it is something else."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path.name}: is larger than evidence may be ({MOST_BYTES >> 20} MB)")
    try:
        given = json.loads(path.read_bytes(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        given = None
    parts = given.get("parts") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(parts, dict) or not _is_evidence(parts):
        raise DataError(f"{path.name}: is no evidence of Portcullis")
    if parts["made"].get("format") != FORMAT:
        raise DataError(f"{path.name}: is evidence of another version; this one reads {FORMAT}")
    return given


def _is_evidence(parts: Mapping[str, Any]) -> bool:
    needed = {"made", "policy", "original", "published", "audited"}
    return needed <= set(parts) and all(isinstance(part, dict) for part in parts.values())


def _refuse(constant: str) -> None:
    """No evidence has a number that JSON does not know."""
    raise ValueError(constant)


@dataclass(frozen=True)
class Check:
    """One thing that was compared."""

    about: str
    outcome: Literal["holds", "differs", "not checked"]
    why: str = ""


def verify(
    evidence: Mapping[str, Any],
    policy: Policy | None = None,
    *,
    original: Path | None = None,
    published: Path | None = None,
    secret: bytes | None = None,
    signer: Ed25519PublicKey | None = None,
    progress: Progress = silent,
) -> Iterator[Check]:
    """Everything that can be done again with what is given."""
    parts = evidence["parts"]
    yield _compared("the hashes of the parts", (evidence.get("hashes"), evidence.get("hash")), _own_hashes(parts))
    yield _signature(evidence, signer)
    if policy is None:
        yield Check("the policy", "not checked", "it was not given")
    else:
        yield _compared("the policy", parts["policy"].get("fingerprint"), policy.fingerprint())
    if original is None or secret is None:
        yield Check("the original", "not checked", "it takes the original, and the secret that was written beside it")
    else:
        own = _digest(original, hmac.new(secret, digestmod="sha256"))
        yield _compared("the original", parts["original"].get("hmac_sha256"), own)
    if published is None:
        yield Check("what was published", "not checked", "it was not given")
    else:
        yield _compared("what was published", parts["published"].get("sha256"), _digest(published, hashlib.sha256()))
    if policy is None or original is None or published is None:
        yield Check("what the audit found", "not checked", "it takes the policy, the original and what was published")
    else:
        yield from _audited(parts["audited"], policy, original, published, progress)
    yield Check("attacks, loss and errors of the report", "not checked", "they are measured when a table is made")


def _signature(evidence: Mapping[str, Any], signer: Ed25519PublicKey | None) -> Check:
    about = "the signature"
    if signer is None:
        signed = "signature" in evidence
        return Check(about, "not checked", "it takes the public key of who signed" if signed else "it is not signed")
    return Check(about, "holds") if is_signed(evidence, signer) else Check(about, "differs", "it is not by this key")


def _audited(
    filed: Mapping[str, Any], policy: Policy, original: Path, published: Path, progress: Progress
) -> Iterator[Check]:
    """The audit, done again."""
    try:
        found = policy.data.audit(policy, published, {"original": original}, progress=progress).shown
    except DataError as error:
        yield Check("what the audit found", "differs", f"it cannot be read any more: {error}")
        return
    own = json.loads(json.dumps(found))
    for name in sorted({*filed, *own}):
        yield _compared(f"audited: {name}", filed.get(name), own.get(name))
    if not own.get("holds"):
        yield Check("the guarantee", "differs", "it does not hold for what is published now")


def _compared(about: str, filed: object, own: object) -> Check:
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


def _own_hashes(parts: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    return _hashes(parts), _hash(_hashes(parts))


def _hashes(parts: Mapping[str, Any]) -> dict[str, str]:
    return {name: _hash(part) for name, part in parts.items()}


def _hash(value: object) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


def _digest(path: Path, digest: Any) -> str:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return str(digest.hexdigest())


def _version() -> str | None:
    try:
        return version("portcullis")
    except PackageNotFoundError:
        return None

"""The form of evidence: what was asked, achieved and attacked, in one file that somebody else can check.

It is canonical JSON. Each part has its SHA-256, and these have one together, so that whatever is changed shows. What
was published is in it by its hash. The original is there by a hash with a secret, which is kept in another file, beside
the original: who has the evidence alone could otherwise try whether a small table that he guesses is the one. No value
of a record and no class is in it.

Hashes only tell of accidents, since who changes a part can change them too; a signature tells of everything. Without
one a check still does it all again (`checking.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeAlias

from microdata import DataError
from service.policy import Policy

FORMAT = 1
MOST_BYTES = 16 << 20
_SECRET_BYTES = 32
_BLOCK = 1 << 20
EvidenceKind: TypeAlias = Literal["table", "replay", "topic"]
_NEEDED: Mapping[str, frozenset[str]] = {
    "table": frozenset({"made", "policy", "original", "published", "audited"}),
    "replay": frozenset({"made", "policy", "original", "links", "published", "audited"}),
    "topic": frozenset({"made", "policy", "stretch", "before", "published", "audited"}),
}
"""The parts without which a file is no evidence, by what it is about."""


def new_secret() -> bytes:
    """A secret for the hash of an original."""
    return secrets.token_bytes(_SECRET_BYTES)


def filed(kind: EvidenceKind, policy: Policy, *, by: str, asked: object, **parts: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence with these parts, and with what all of it begins with: who made it, when, and under which policy."""
    at = datetime.now(UTC).isoformat("T", "seconds")
    begun = {
        "made": {"format": FORMAT, "kind": kind, "portcullis": _version(), "at": at, "by": by},
        "policy": {
            "name": policy.name,
            "fingerprint": policy.fingerprint(),
            "purpose": policy.purpose,
            "asked": asked,
            "attacks": dict(policy.attacks),
        },
    }
    # As it will be read again: what JSON makes of it.
    return sealed(json.loads(json.dumps(begun | parts, allow_nan=False)))


def sealed(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts with their hashes."""
    hashes = {name: digest(part) for name, part in parts.items()}
    return {"parts": parts, "hashes": hashes, "hash": digest(hashes)}


def write(evidence: Mapping[str, Any], path: Path) -> None:
    """Write evidence in its one canonical form."""
    written = canonical(evidence)
    if len(written) > MOST_BYTES:
        raise DataError(f"{path.name}: would be larger than evidence may be ({MOST_BYTES >> 20} MB)")
    path.write_bytes(written)


def canonical(value: object) -> bytes:
    """The same bytes for the same content."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def read(path: Path) -> dict[str, Any]:
    """Evidence from a file; `DataError` where it is something else."""
    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise DataError(f"{path.name}: is larger than evidence may be ({MOST_BYTES >> 20} MB)")
    try:
        given = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        given = None
    parts = given.get("parts") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(parts, dict) or not _is_evidence(parts):
        raise DataError(f"{path.name}: is no evidence of Portcullis")
    if parts["made"].get("format") != FORMAT or kind_of(given) not in _NEEDED:
        raise DataError(f"{path.name}: is evidence of another version; this one reads {FORMAT}")
    if not set(parts) >= _NEEDED[kind_of(given)]:
        raise DataError(f"{path.name}: is no evidence of Portcullis")
    return given


def kind_of(evidence: Mapping[str, Any]) -> str:
    """What it is about."""
    return str(evidence["parts"]["made"].get("kind"))


def _is_evidence(parts: Mapping[str, Any]) -> bool:
    return {"made", "policy", "audited"} <= set(parts) and all(isinstance(part, dict) for part in parts.values())


def _refuse(constant: str) -> None:
    """No evidence has a number that JSON does not know."""
    raise ValueError(constant)


def digest(value: object) -> str:
    """SHA-256 of something as canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def file_digest(path: Path, secret: bytes | None = None) -> str:
    """SHA-256 of a file, with a secret where there is one."""
    running: Any = hashlib.sha256() if secret is None else hmac.new(secret, digestmod="sha256")
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            running.update(block)
    return str(running.hexdigest())


def _version() -> str | None:
    try:
        return version("portcullis")
    except PackageNotFoundError:
        return None

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
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from microdata import DataError
from service.evidence.form import FORMAT, EvidenceKind, wrong_form
from service.policy import Policy

MOST_BYTES = 16 << 20
_SECRET_BYTES = 32
_BLOCK = 1 << 20


def new_secret() -> bytes:
    """A secret for the hash of an original."""
    return secrets.token_bytes(_SECRET_BYTES)


def keep_secret(secret: bytes, path: Path) -> None:
    """Write a secret so that others on this machine cannot read it, in the place of an earlier one."""
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(secret.hex() + "\n")


def filed(kind: EvidenceKind, policy: Policy, *, by: str, **parts: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence with these parts, and with what all of it begins with: who made it, when, and under which policy."""
    at = datetime.now(UTC).isoformat("T", "seconds")
    begun = {
        "made": {"format": FORMAT, "kind": kind, "portcullis": _version(), "at": at, "by": by},
        "policy": policy_part(policy),
    }
    # As it will be read again: what JSON makes of it.
    return sealed(plain(begun | parts))


def policy_part(policy: Policy) -> dict[str, Any]:
    """Return what evidence says of a policy: all that its page tells, and a fingerprint of everything."""
    return {
        "name": policy.name,
        "data": policy.data.name,
        "fingerprint": policy.fingerprint(),
        "purpose": policy.purpose,
        "preset": None if policy.preset is None else policy.preset.model_dump(mode="json"),
        "asked": {"algorithm": policy.algorithm_name, "parameters": policy.parameters.model_dump(mode="json")},
        "attacks": dict(policy.attacks),
    }


def plain(value: object) -> Any:
    """Return a value as it is read again from JSON."""
    return json.loads(json.dumps(value, allow_nan=False))


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
    """Evidence from a file; `DataError` where it is something else.

    The file must be in canonical form, so that it means one thing: JSON with a name twice, for example, is refused.
    """
    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise DataError(f"{path.name}: is larger than evidence may be ({MOST_BYTES >> 20} MB)")
    try:
        given = json.loads(text, parse_constant=_refuse)
        is_canonical = canonical(given) == text
    except (ValueError, RecursionError):
        raise DataError(f"{path.name}: is no evidence of Portcullis") from None
    if not is_canonical:
        raise DataError(f"{path.name}: is no evidence of Portcullis: it is not written in canonical form")
    place = wrong_form(given)
    if place is not None:
        raise DataError(f"{path.name}: is no evidence of Portcullis: {place} is missing, unknown or of another type")
    return dict(given)


def kind_of(evidence: Mapping[str, Any]) -> EvidenceKind:
    """What it is about."""
    kind: EvidenceKind = evidence["parts"]["made"]["kind"]
    return kind


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

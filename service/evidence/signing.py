"""Signatures of evidence: Ed25519, with a key of whoever files it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from microdata import DataError

_MOST_BYTES = 1 << 16


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file."""
    try:
        key = load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{path.name}: must be an Ed25519 private key as PEM, without a password")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise DataError(f"{path.name}: must be an Ed25519 public key as PEM")
    return key


def signature(evidence: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, str]:
    """Signs the hash over all parts."""
    return {
        "algorithm": "Ed25519",
        "public_key": key.public_key().public_bytes_raw().hex(),
        "value": key.sign(_signed(evidence)).hex(),
    }


def is_signed(evidence: Mapping[str, Any], key: Ed25519PublicKey) -> bool:
    """Whether the owner of this key signed the evidence as it is."""
    given = evidence.get("signature")
    value = given.get("value") if isinstance(given, Mapping) else None
    try:
        key.verify(bytes.fromhex(value if isinstance(value, str) else ""), _signed(evidence))
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(evidence: Mapping[str, Any]) -> bytes:
    # Said before the hash, so that a signature under something else is never one under evidence.
    return f"portcullis evidence\n{evidence.get('hash')}".encode()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)

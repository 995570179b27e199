"""Signatures of evidence by Ed25519, with the key of the person or service that files it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from microdata import DataError
from service.evidence.filing import canonical, sealed

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
    """Sign who made the evidence, when, with which version, and the hash over all parts."""
    return {
        "algorithm": "Ed25519",
        "public_key": _hex(key.public_key()),
        "value": key.sign(_signed(evidence)).hex(),
    }


def own_key(evidence: Mapping[str, Any]) -> Ed25519PublicKey:
    """Return the public key that the signature of the evidence names. Anybody can name any key."""
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(evidence["signature"]["public_key"]))


def is_signed(evidence: Mapping[str, Any], key: Ed25519PublicKey) -> bool:
    """Return whether the owner of this key signed the evidence as it is."""
    given = evidence.get("signature")
    if given is None or given["public_key"] != _hex(key):
        return False
    try:
        key.verify(bytes.fromhex(given["value"]), _signed(evidence))
    except InvalidSignature:
        return False
    return True


def _signed(evidence: Mapping[str, Any]) -> bytes:
    """Return what is signed: a text for this purpose alone, so that a signature of anything else is none of evidence.

    Hashes are computed from the parts, not taken from the file.
    """
    parts = evidence["parts"]
    return b"\n".join([b"portcullis evidence", canonical(parts["made"]), sealed(parts)["hash"].encode()])


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES)

"""Sealed bytes: what a worker keeps of persons can be read only with its key file, and moved nowhere else.

A key file holds the key by which persons are known again, which is never another one, and the keys that seal: the one
that is named seals what is written, all of them open what is there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from microdata import DataError, PersonKey
from service.kafka import Partition
from service.settings import SettingsError

_MAGIC = b"PCM2"
_NONCE = 12
_SEAL_BYTES = 32
_PERSON_BYTES = 16
_MOST_BYTES = 1 << 20
HOW = "`portcullis key new FILE` makes one; whoever ran this stream before has the one that its memory is sealed with"


class SealError(DataError):
    """Bytes that these keys do not open, or that were not sealed for this place."""


@dataclass(frozen=True)
class Keys:
    """What a key file holds."""

    persons: PersonKey = field(repr=False)
    current: str
    """Id of the key that seals what is written."""
    seals: Mapping[str, bytes] = field(repr=False)

    @property
    def persons_check(self) -> str:
        """By what it shows whether two files know persons by the same key: a hash under that key, of nobody."""
        return hashlib.blake2b(b"the key of persons", key=bytes(self.persons), digest_size=16).hexdigest()

    def seal(self, content: bytes, where: Partition, key: bytes, sequence: int) -> bytes:
        """Bytes that open only at this place."""
        name, nonce = self.current.encode(), os.urandom(_NONCE)
        head = _MAGIC + struct.pack("<BQ", len(name), sequence) + name
        return head + nonce + AESGCM(self.seals[self.current]).encrypt(nonce, content, _place(where, key, sequence))

    @staticmethod
    def is_sealed(value: bytes) -> bool:
        """Return whether a value begins as everything that a worker seals."""
        return value.startswith(_MAGIC)

    def open(self, sealed: bytes, where: Partition, key: bytes) -> tuple[bytes, int]:
        """What was sealed for this place, and its sequence."""
        try:
            length, sequence = struct.unpack_from("<BQ", sealed, len(_MAGIC))
        except struct.error:
            length, sequence = 0, 0
        begin = len(_MAGIC) + 9
        name, body = sealed[begin : begin + length], sealed[begin + length :]
        if sealed[: len(_MAGIC)] != _MAGIC or len(body) < _NONCE or not name.isascii():
            raise SealError("a record that no worker of this version has sealed")
        own = self.seals.get(name.decode())
        if own is None:
            raise SealError(f"a record is sealed with key {name.decode()!r}, which is not in the key file")
        try:
            return AESGCM(own).decrypt(body[:_NONCE], body[_NONCE:], _place(where, key, sequence)), sequence
        except InvalidTag:
            raise SealError(
                f"a record does not open with key {name.decode()!r}: it is another key of that name, or the record was "
                "changed or moved"
            ) from None


def _place(where: Partition, key: bytes, sequence: int) -> bytes:
    """Associated data: where a record belongs."""
    topic = where.topic.encode()
    return struct.pack("<HIQ", len(topic), where.number, sequence) + topic + key


def load_keys(path: Path, current: str | None = None) -> Keys:
    """The keys in a file; the one of the id `current` seals, the newest if left out."""
    document = _document(path)
    try:
        persons = PersonKey.from_bytes(_secret(document["persons"], _PERSON_BYTES)).wide()
        seals = {str(name): _secret(one, _SEAL_BYTES) for name, one in document["seals"].items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise SettingsError(f"key file {path} is not one that `portcullis key new` has written") from None
    if not seals:
        raise SettingsError(f"key file {path} holds no key that seals; `portcullis key new {path}` adds one")
    chosen = current if current is not None else list(seals)[-1]
    if chosen not in seals:
        raise SettingsError(f"key file {path} holds no key {chosen!r}; it has: {', '.join(seals)}")
    return Keys(persons, chosen, seals)


def add_key(path: Path, name: str | None = None) -> str:
    """Add a key that seals to a file, which is made if it is not there; the key's id."""
    document: dict[str, Any]
    if path.exists():
        load_keys(path)
        document = _document(path)
    else:
        document = {"persons": _told(secrets.token_bytes(_PERSON_BYTES)), "seals": {}}
    chosen = name or f"{time.strftime('%Y-%m-%d', time.gmtime())}-{secrets.token_hex(3)}"
    if chosen in document["seals"]:
        raise SettingsError(f"key file {path} has a key {chosen!r} already: choose another id")
    document["seals"][chosen] = _told(secrets.token_bytes(_SEAL_BYTES))
    _replace(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return chosen


def _replace(path: Path, content: bytes) -> None:
    """Write a file for its owner alone, whole or not at all: half a key file would lose what is sealed."""
    if not path.parent.is_dir():
        raise SettingsError(f"key file {path}: there is no directory {path.parent}")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _document(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES))
    except OSError as error:
        reason = f"key file {path} cannot be read ({error.strerror or type(error).__name__}); {HOW}"
        raise SettingsError(reason) from None
    except msgspec.DecodeError:
        raise SettingsError(f"key file {path} is not one that `portcullis key new` has written") from None


def _secret(text: str, size: int) -> bytes:
    try:
        secret = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    if len(secret) != size:
        raise ValueError("another length")
    return secret


def _told(secret: bytes) -> str:
    return base64.b64encode(secret).decode()

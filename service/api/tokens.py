"""Bearer tokens: what the service knows of them is their hash, their name and what they may do.

A token is 256 bits from the operating system, so a plain SHA-256 of it cannot be reversed by guessing; slow password
hashes would only make every request slow.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Scope(StrEnum):
    """What a token may do."""

    SUBMIT = "submit"
    """Submit jobs and audits; cancel and delete one's own."""
    READ_OWN = "read:own"
    """See one's own jobs, policies, algorithms and streams."""
    READ_ALL = "read:all"
    """See everybody's jobs."""
    ADMIN = "admin"
    """Everything, policies and other people's jobs included."""


_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class Token(BaseModel):
    """One token as it is configured."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=_NAME)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    scopes: frozenset[Scope] = Field(min_length=1)
    group: str | None = Field(None, pattern=_NAME, description="tokens of one group release the same data sets")


class Caller(BaseModel):
    """Who asks, and what they may do."""

    model_config = ConfigDict(frozen=True)

    name: str
    scopes: frozenset[Scope]
    group: str | None = None

    def may(self, *scopes: Scope) -> bool:
        """Whether one of these scopes is granted; an admin may do all."""
        return Scope.ADMIN in self.scopes or bool(self.scopes.intersection(scopes))

    @property
    def owner(self) -> str:
        """To whom its data sets belong: its group, or the token alone."""
        return f"token:{self.name}" if self.group is None else f"group:{self.group}"

    @property
    def asks_as(self) -> str | None:
        """Whose purposes it may ask for; None for an admin, who may ask for all."""
        return None if self.may() else self.name


EVERYBODY = Caller(name="local", scopes=frozenset({Scope.ADMIN}))
"""Who asks where no tokens are configured."""


def new_token(name: str, scopes: Collection[Scope], group: str | None = None) -> tuple[str, Token]:
    """A new token: the text that its owner keeps, and what goes into the configuration."""
    text = f"pc_{secrets.token_urlsafe(32)}"
    return text, Token(name=name, sha256=_hash(text), scopes=frozenset(scopes), group=group)


def find(text: str, tokens: Collection[Token]) -> Caller | None:
    """The caller who shows this token. All are compared, each in constant time, so that time tells nothing."""
    given = _hash(text)
    found = None
    for token in tokens:
        if hmac.compare_digest(given, token.sha256):
            found = Caller(name=token.name, scopes=token.scopes, group=token.group)
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogateescape")).hexdigest()

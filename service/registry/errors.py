"""What can go wrong between us and a schema registry, sorted by what the caller must do about it."""

from __future__ import annotations

from microdata.errors import PortcullisError, UnavailableError


class RegistryError(UnavailableError):
    """It did not answer, or not as a registry does; it may later. `code` is one of a fixed set, for counting."""

    def __init__(self, message: str, code: str = "REGISTRY_NO_ANSWER") -> None:
        super().__init__(message)
        self.code = code


class RegistryDeniedError(PortcullisError):
    """It refused who we are, or what we want to do: repeating will not help."""


class SchemaConflictError(PortcullisError):
    """A schema that a subject does not take, or does not have: somebody has to look."""

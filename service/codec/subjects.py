"""Subjects of a schema registry, and the ids of the schemas by which a stream reads and writes."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from microdata import SchemaError
from microdata.errors import PortcullisError
from service.registry import Registered, Registry, RegistryError


class SchemaIds(msgspec.Struct, frozen=True):
    """Ids of a registry's schemas by which a stream reads values and keys, and writes; None where it needs none."""

    input: int | None = None
    key: int | None = None
    output: int | None = None

    def __bool__(self) -> bool:
        return any(number is not None for number in (self.input, self.key, self.output))


NO_SCHEMAS = SchemaIds()


class NewerSchemaError(PortcullisError):
    """A record names a schema that was registered after the decoder was made: make a decoder by the newest schema."""

    code: ClassVar[str] = "NEWER_SCHEMA"


class Subject:
    """The schemas of one subject, one of which says what fields mean: the newest, or the one with a given id.

    With `follow`, a record of an unknown id raises `NewerSchemaError` if the subject has got a newer schema meanwhile.
    """

    def __init__(
        self, registry: Registry, name: str, kind: str, number: int | None = None, *, follow: bool = False
    ) -> None:
        self.registry = registry
        self.name = name
        self.number = number
        """Id of the schema that says what fields mean."""
        self._kind = kind
        self._follow = follow
        self._newest: int | None = None

    def reader(self) -> Registered:
        """Return the schema that says what fields mean."""
        newest = self.registry.newest(self.name) if self._follow or self.number is None else None
        self._newest = None if newest is None else newest.number
        found = newest if self.number is None else self.registry.by_id(self.number)
        if found is None and self.number is not None:
            raise SchemaError(
                f"the schema registry at {self.registry.name} does not have schema id {self.number} any more"
            )
        if found is None:
            raise RegistryError(
                f"the schema registry at {self.registry.name} has no subject {self.name!r} yet", "REGISTRY_NO_SUBJECT"
            )
        if found.kind != self._kind:
            raise SchemaError(f"subject {self.name!r} is not of {self._kind.capitalize()}", given=found.kind)
        self.number = found.number
        return found

    def check_newest(self) -> None:
        """Raise `NewerSchemaError` if the subject has another newest schema than when the reader was chosen."""
        if not self._follow:
            return
        newest = self.registry.newest(self.name)
        if newest is not None and newest.number != self._newest:
            raise NewerSchemaError(f"subject {self.name!r} has a newer schema (id {newest.number})")

"""What a file of Protobuf declares: messages, their fields, enumerations, and who is meant by a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SCALARS = (
    "double",
    "float",
    "int64",
    "uint64",
    "int32",
    "fixed64",
    "fixed32",
    "bool",
    "string",
    "group",
    "message",
    "bytes",
    "uint32",
    "enum",
    "sfixed32",
    "sfixed64",
    "sint32",
    "sint64",
)
"""Types in the order of their numbers in descriptors, from 1."""
_MOST_DECLARED = 20_000


class ProtobufSchemaError(ValueError):
    """Not a schema, or one that is too large; what is wrong with it."""


@dataclass(eq=False)
class Field:
    """One field of a message."""

    name: str
    number: int
    kind: str
    """One of `SCALARS`; empty for a name until it is known whose, and where nobody has it."""
    type_name: str = ""
    repeated: bool = False
    """Also of a map."""
    present: bool = True
    """Whether a record says that it has none; else that is the same as zero or nothing."""
    oneof: str = ""
    default: str | None = None
    """Of proto2, as a file has it."""
    tags: tuple[str, ...] = ()
    """What a company says of it: `(confluent.field_meta).tags`."""
    type: Message | Enum | None = None


@dataclass(eq=False)
class Message:
    """One message; it may hold itself."""

    full_name: str
    fields: list[Field] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    """Those that are declared inside of it, in their order."""
    tags: tuple[str, ...] = ()
    """What a company says of it: `(confluent.message_meta).tags`."""
    others: tuple[str, ...] = ()
    """The other messages of the file, where this is the first one and nobody named it."""

    def own_name(self) -> str:
        """The name without its package."""
        return self.full_name.rpartition(".")[2]

    def is_called(self, name: str) -> bool:
        """Whether this is its name, with or without package and the messages that it is declared in."""
        return f".{self.full_name}".endswith(f".{name}")

    def field(self, name: str) -> Field | None:
        """The field of this name."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(eq=False)
class Enum:
    """One enumeration."""

    full_name: str
    names: dict[int, str] = field(default_factory=dict)
    """Of each number, the first where there are several."""


@dataclass(eq=False)
class File:
    """What one file declares."""

    package: str = ""
    messages: list[Message] = field(default_factory=list)
    declared: dict[str, Message | Enum] = field(default_factory=dict)
    """All of them by their full names."""

    def add(self, one: Message | Enum) -> None:
        """Declare it."""
        if one.full_name in self.declared:
            raise ProtobufSchemaError("declares a name twice")
        if len(self.declared) >= _MOST_DECLARED:
            raise ProtobufSchemaError(f"declares more than {_MOST_DECLARED} names")
        self.declared[one.full_name] = one

    def at(self, path: Sequence[int]) -> Message | None:
        """The message at this place: among the file's, then among those inside of it, and so on."""
        found, inside = None, self.messages
        for place in path:
            if not 0 <= place < len(inside):
                return None
            found = inside[place]
            inside = found.messages
        return found

    def every(self) -> Iterator[Message]:
        """Every message."""
        return (one for one in self.declared.values() if isinstance(one, Message))

    def link(self, others: Mapping[str, Message | Enum]) -> None:
        """Find out who is meant by the names of types; a name that nobody has matters only to who reads that field."""
        known = {**self.declared, **others}
        for message in self.every():
            for each in message.fields:
                if each.type_name and each.kind != "group":
                    each.type = _meant(each.type_name, message.full_name, known)
                    each.kind = {Message: "message", Enum: "enum"}.get(type(each.type), "")
                    if each.kind == "message" and not each.repeated:
                        each.present = True


def _meant(name: str, scope: str, known: Mapping[str, Message | Enum]) -> Message | Enum | None:
    """Whose name it is, looked for from the innermost scope outwards."""
    if name.startswith("."):
        return known.get(name[1:])
    while scope:
        if f"{scope}.{name}" in known:
            return known[f"{scope}.{name}"]
        scope = scope.rpartition(".")[0]
    return known.get(name)


def check_message(message: Message) -> None:
    """No two fields of one name or number."""
    names, numbers = [each.name for each in message.fields], [each.number for each in message.fields]
    if len(set(names)) < len(names) or len(set(numbers)) < len(numbers):
        raise ProtobufSchemaError("has a message with two fields of one name or number")
    if not all(0 < number < 1 << 29 for number in numbers):
        raise ProtobufSchemaError("has a field whose number Protobuf does not have")

"""Tags of fields: what a company says of the fields in a schema, in its registry or beside it.

A tag on a record, on a type inside of a field, or on an object applies to everything below it. The registry may keep
tags beside the schema (`metadata.tags`), by patterns of field names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from service.codec import protobuf_schema
from service.codec.protobuf_types import Message, ProtobufSchemaError
from service.registry import Registered

_PROPERTIES = ("confluent:tags", "tags", "labels")
"""Where Avro and JSON Schema have tags; the first is Confluent's."""
_DEEPEST = 8
MOST_FIELDS = 2_000
"""Fields of a schema that are read."""
_MOST_STEPS = 20_000
"""Types and references that are followed, as a schema may refer to itself in many ways."""
_UNITED = ("allOf", "anyOf", "oneOf")
Tags: TypeAlias = tuple[str, ...]


class _Above(NamedTuple):
    """What a field is in."""

    name: str = ""
    """In front of the names of its fields."""
    paths: tuple[str, ...] = ()
    tags: Tags = ()
    depth: int = 0

    def field(self, own: str, owner: str, tags: Tags) -> _Tagged:
        """Return a field of this record, which has this name in it."""
        name = f"{self.name}{own}"
        return _Tagged(name, (*self.paths, name, f"{owner}.{own}"), (*self.tags, *tags))


class _Tagged(NamedTuple):
    """A field that holds no further fields, or a reference that is not followed, with its tags."""

    name: str
    """Dotted, from the outermost record."""
    paths: tuple[str, ...]
    """What a pattern may mean: the field and those that it is in, each as it is and behind the name of its record."""
    tags: Tags

    def above(self, depth: int) -> _Above:
        """Return the field as what its own fields are in."""
        return _Above(f"{self.name}.", self.paths, self.tags, depth)


def field_tags(registered: Registered) -> dict[str, Tags]:
    """Return the tags of each field that has some, by its (dotted) name, as far as the schema can be read."""
    found: list[_Tagged] = []
    with suppress(ProtobufSchemaError, ValueError, TypeError, AttributeError, RecursionError, KeyError):
        for one in islice(_READERS[registered.kind](registered), MOST_FIELDS):
            found.append(one)  # noqa: PERF402 - what was read before an error counts
    patterns = [(_pattern(pattern), tags) for pattern, tags in registered.tags]
    result: dict[str, Tags] = {}
    for one in found:
        beside = [tag for pattern, tags in patterns for tag in tags if any(map(pattern.fullmatch, one.paths))]
        tags = tuple(dict.fromkeys((*result.get(one.name, ()), *one.tags, *beside)))
        if tags:
            result[one.name] = tags
    return result


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of a registry: `?` is a character, `*` a part of a name, `**` any number of parts."""
    parts = re.split(r"(\*\*|\*|\?)", text)
    meant = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
    return re.compile("".join(meant.get(part, re.escape(part)) for part in parts))


def _texts(properties: Any) -> Tags:
    """Return the tags among properties: a text, a list of texts, or the names of labels."""
    found: list[str] = []
    for name in _PROPERTIES:
        given = properties.get(name) if isinstance(properties, Mapping) else None
        several = given if isinstance(given, list | dict) else [given]
        found += [each for each in several if isinstance(each, str)]
    return tuple(found)


# -- Avro --------------------------------------------------------------------------------------------------------------


def _avro_fields(registered: Registered) -> Iterator[_Tagged]:
    reader = _Avro()
    for text in registered.references:
        reader.declare(json.loads(text), "")
    schema = json.loads(registered.text)
    reader.declare(schema, "")
    yield from reader.fields(schema, "", _Above())


class _Avro:
    """Walks over the JSON of a schema, since tags stand anywhere in it."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Any, str]] = {}
        self._steps = 0

    def declare(self, given: Any, space: str) -> None:
        """Note every type with a name, and the namespace inside of it."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ValueError("too many types")
        if isinstance(given, list):
            for each in given:
                self.declare(each, space)
        elif isinstance(given, dict):
            inside = _space(given, space)
            if isinstance(given.get("name"), str) and given.get("type") in {"record", "error", "enum", "fixed"}:
                self._named[_full_name(given, space)] = given, inside
            for each in (given.get("type"), given.get("items"), given.get("values")):
                self.declare(each, inside)
            for each in given.get("fields") or ():
                self.declare(each.get("type"), inside)

    def fields(self, given: Any, space: str, above: _Above) -> Iterator[_Tagged]:
        """Yield the fields of every record that this type may be."""
        for record, own_space in self._records(given, space):
            owner, inside = _full_name(record, own_space), _space(record, own_space)
            for each in record.get("fields") or ():
                tags = (*_texts(record), *_texts(each), *self._tags(each.get("type"), inside))
                own = above.field(each["name"], owner, tags)
                below = any(True for _ in self._records(each.get("type"), inside))
                if below and above.depth < _DEEPEST:
                    yield from self.fields(each.get("type"), inside, own.above(above.depth + 1))
                else:
                    yield own

    def _tags(self, given: Any, space: str) -> Tags:
        """Return the tags of a type, of the branches of a union, and of what lists and maps hold."""
        return tuple(tag for each, _ in self._types(given, space) for tag in _texts(each))

    def _records(self, given: Any, space: str) -> Iterator[tuple[Any, str]]:
        """Yield the records among the branches of a type; what lists and maps hold has no names of its own."""
        for each, own_space in self._types(given, space, into_lists=False):
            if isinstance(each.get("fields"), list):
                yield each, own_space

    def _types(self, given: Any, space: str, *, into_lists: bool = True) -> Iterator[tuple[Any, str]]:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ValueError("too many types")
        if isinstance(given, list):
            for each in given:
                yield from self._types(each, space, into_lists=into_lists)
        elif isinstance(given, str):
            full = next((name for name in (f"{space}.{given}", given) if name in self._named), None)
            if full is not None:
                declared, _ = self._named[full]
                yield declared, full.rpartition(".")[0]
        elif isinstance(given, dict):
            yield given, space
            inner = [given.get("type")]
            if into_lists:
                inner += [given.get("items"), given.get("values")]
            for each in inner:
                if isinstance(each, dict | list):
                    yield from self._types(each, space, into_lists=into_lists)


def _full_name(given: Mapping[str, Any], space: str) -> str:
    name, space = str(given.get("name", "")), str(given.get("namespace", space))
    return name if "." in name or not space else f"{space}.{name}"


def _space(given: Mapping[str, Any], space: str) -> str:
    """Return the namespace inside of a type."""
    return _full_name(given, space).rpartition(".")[0] if isinstance(given.get("name"), str) else space


# -- Protobuf ----------------------------------------------------------------------------------------------------------


def _protobuf_fields(registered: Registered) -> Iterator[_Tagged]:
    file = protobuf_schema.parse(registered.text, registered.references)
    yield from _of_message(protobuf_schema.message_of(file, None))


def _of_message(message: Message, above: _Above | None = None) -> Iterator[_Tagged]:
    above = above or _Above()
    for each in message.fields:
        inside = each.type if isinstance(each.type, Message) and above.depth < _DEEPEST else None
        tags = (*message.tags, *each.tags, *(inside.tags if inside else ()))
        own = above.field(each.name, message.full_name, tags)
        yield own
        if inside is not None:
            yield from _of_message(inside, own.above(above.depth + 1))


# -- JSON Schema -------------------------------------------------------------------------------------------------------


def _json_fields(registered: Registered) -> Iterator[_Tagged]:
    texts = map(json.loads, registered.references)
    names = registered.reference_names or [""] * len(registered.references)
    others = dict(zip(names, texts, strict=True))
    others |= {each["$id"]: each for each in others.values() if isinstance(each, dict) and "$id" in each}
    whole = json.loads(registered.text)
    yield from _Json(others).fields(whole, whole, _Above())


class _Json:
    """Walks over a JSON Schema and the schemas that it refers to."""

    def __init__(self, others: Mapping[str, Any]) -> None:
        self._others = others
        self._steps = 0

    def fields(self, schema: Any, whole: Any, above: _Above) -> Iterator[_Tagged]:
        """Yield the properties of an object, whatever it is put together from."""
        parts = [*self._parts(schema, whole, 0)]
        tags = tuple(tag for part, _ in parts for tag in _texts(part))
        owner = f"$.{above.name}".removesuffix(".")
        for part, own_whole in parts:
            inside = part.get("properties")
            for key, each in (inside if isinstance(inside, dict) else {}).items():
                held = self._parts(each, own_whole, 0)
                own = above.field(key, owner, (*tags, *(tag for one, _ in held for tag in _texts(one))))
                yield own
                if above.depth < _DEEPEST:
                    yield from self.fields(each, own_whole, own.above(above.depth + 1))

    def _parts(self, schema: Any, whole: Any, depth: int) -> Iterator[tuple[Any, Any]]:
        """Yield a schema, those that it is put together from, and those of the items of a list."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ValueError("too many types")
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return
        yield schema, whole
        for name in _UNITED:
            for each in schema.get(name) or () if isinstance(schema.get(name), list) else ():
                yield from self._parts(each, whole, depth + 1)
        yield from self._parts(schema.get("items"), whole, depth + 1)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield from self._parts(*self._meant(reference, whole), depth + 1)

    def _meant(self, reference: str, whole: Any) -> tuple[Any, Any]:
        """Return what a reference means, and the document that it is in; nothing where there is no such thing."""
        document, _, path = reference.partition("#")
        if document:
            whole = self._others.get(document)
        found = whole
        for part in path.strip("/").split("/") if path.strip("/") else ():
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        return found, whole


_READERS: Mapping[str, Callable[[Registered], Iterator[_Tagged]]] = {
    "AVRO": _avro_fields,
    "PROTOBUF": _protobuf_fields,
    "JSON": _json_fields,
}

"""Avro schemas: what is in their JSON, where declared fields are in them, and what columns they become.

A schema comes from a registry or a file, so it may be anything: whatever is not a schema raises `AvroSchemaError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from service.codec._avro_kernels import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    LONG,
    MAP,
    NULL,
    RECORD,
    UNION,
    Program,
)

_PLAIN = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": BYTES,
}
_OTHERS = {"array", "map", "record", "error", "enum", "fixed"}
_MOST_TYPES = 20_000
_DEEPEST = 100
"""Types inside of each other; no record is read that goes down so far."""
_MOST_SIZE = 1 << 20
MOST_DIGITS = 38
"""Of a decimal in a public field."""
MOST_CALCULATED_DIGITS = 18
"""Of a decimal in any other field."""
_UUID_BYTES = 16
_EXACT = Context(prec=2 * MOST_DIGITS)
MISSING = object()
"""The default of a field that has none."""
Aliases: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Of (dotted) fields the other names that they have in the same record."""


class AvroSchemaError(ValueError):
    """Not a schema, or one that is too large; what is wrong with it."""


@dataclass(eq=False)
class Type:
    """One type. Records may hold themselves."""

    name: str
    """As Avro has it: `int`, `record` …"""
    kind: int
    full_name: str = ""
    logical: str = ""
    size: int = 0
    """Of a fixed type."""
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """Of an enumeration: what stands in for symbols that it does not have."""
    digits: tuple[int, int] = (0, 0)
    """Precision and scale of a decimal."""
    inner: list[Type] = field(default_factory=list)
    """Branches of a union, values of a map or list, types of a record's fields."""
    fields: list[Field] = field(default_factory=list)

    def choices(self) -> list[Type]:
        """What a value may be, besides null."""
        return [each for each in (self.inner if self.kind == UNION else [self]) if each.kind != NULL]

    def own_name(self) -> str:
        """The name without its namespace."""
        return self.full_name.rpartition(".")[2]


@dataclass(eq=False)
class Field:
    """One field of a record."""

    name: str
    type: Type
    default: Any = MISSING
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    """All that the schema says of it."""


def parse(text: str, references: Sequence[str] = (), *, connect: bool = False) -> Type:
    """Return the type that this text is; names may come from the texts that it refers to.

    With `connect`, the names of types that Kafka Connect and Debezium keep beside a type count as logical types.
    """
    names: dict[str, Type] = {}
    try:
        for reference in references:
            _Parser(names, connect=connect).type_of(json.loads(reference), "")
        return _Parser(names, connect=connect).type_of(json.loads(text), "")
    except RecursionError:
        raise AvroSchemaError("is nested too deeply") from None
    except json.JSONDecodeError:
        raise AvroSchemaError("is not JSON") from None


class _Parser:
    def __init__(self, names: dict[str, Type], *, connect: bool) -> None:
        self._names = names
        self._connect = connect
        self._types = 0
        self._depth = 0

    def type_of(self, given: Any, space: str) -> Type:
        self._types += 1
        self._depth += 1
        if self._types > _MOST_TYPES:
            raise AvroSchemaError(f"has more than {_MOST_TYPES} types")
        if self._depth > _DEEPEST:
            raise AvroSchemaError("is nested too deeply")
        found = self._type_of(given, space)
        self._depth -= 1
        return found

    def _type_of(self, given: Any, space: str) -> Type:
        if isinstance(given, str):
            return self._named(given, space)
        if isinstance(given, list):
            branches = [self.type_of(each, space) for each in given]
            if any(each.kind == UNION for each in branches):
                raise AvroSchemaError("has a union directly inside of a union")
            return Type("union", UNION, inner=branches)
        if not isinstance(given, dict):
            raise AvroSchemaError("has a type that is neither a name, a list nor an object")
        name = given.get("type")
        if isinstance(name, dict | list):
            return self.type_of(name, space)
        if not isinstance(name, str):
            raise AvroSchemaError("has an object without a type")
        if name not in _OTHERS:
            found = self._named(name, space)
            if name not in _PLAIN:
                return found
            return _logical(Type(found.name, found.kind), _as_logical(given) if self._connect else given)
        if name in {"array", "map"}:
            inside = self.type_of(given.get("items" if name == "array" else "values"), space)
            return Type(name, ARRAY if name == "array" else MAP, inner=[inside])
        return self._new(name, given, space)

    def _named(self, name: str, space: str) -> Type:
        if name in _PLAIN:
            return Type(name, _PLAIN[name])
        for full in (name,) if "." in name or not space else (f"{space}.{name}", name):
            if full in self._names:
                return self._names[full]
        raise AvroSchemaError("names a type that it does not have")

    def _new(self, name: str, given: Mapping[str, Any], space: str) -> Type:
        own, space = given.get("name"), given.get("namespace", space)
        if not isinstance(own, str) or not own or not isinstance(space, str):
            raise AvroSchemaError(f"has a type of kind {name} without a name")
        if "." in own:
            space = own.rpartition(".")[0]
        made = Type(name, RECORD, own if "." in own or not space else f"{space}.{own}")
        self._names[made.full_name] = made
        match name:
            case "fixed":
                size = given.get("size")
                if type(size) is not int or not 0 <= size <= _MOST_SIZE:
                    raise AvroSchemaError("has a fixed type without a size")
                made.kind, made.size = FIXED, size
                return _logical(made, given)
            case "enum":
                symbols = given.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
                    raise AvroSchemaError("has an enumeration without symbols")
                made.kind, made.symbols = ENUM, tuple(symbols)
                made.default = given["default"] if given.get("default") in symbols else None
                return made
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError("has a record without fields")
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or "type" not in each:
                raise AvroSchemaError("has a field without name or type")
            inside = self.type_of(each["type"], space)
            aliases = tuple(alias for alias in each.get("aliases") or () if isinstance(alias, str))
            made.fields.append(Field(each["name"], inside, each.get("default", MISSING), aliases, each))
            made.inner.append(inside)
        return made


_CONNECT = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time-millis",
    "io.debezium.time.MicroTime": "time-micros",
    "io.debezium.time.Timestamp": "local-timestamp-millis",
    "io.debezium.time.MicroTimestamp": "local-timestamp-micros",
}
"""Of names that Kafka Connect gives to a type, the logical types that are the same. The others are plain numbers."""
_CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def _as_logical(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a type as Avro would say it, where only Kafka Connect says what it means."""
    name = given.get("connect.name")
    if name in _CONNECT:
        return {"logicalType": _CONNECT[name], **given}
    if name != _CONNECT_DECIMAL:
        return given
    parameters = given.get("connect.parameters")
    said = parameters if isinstance(parameters, dict) else {}
    scale, precision = (
        int(number) if (number := str(said.get(key, ""))).isdecimal() and len(number) < 4 else default
        for key, default in (("scale", 0), ("connect.decimal.precision", MOST_DIGITS))
    )
    # The converter writes 64 digits if their number is not given.
    precision = min(given.get("precision", precision), MOST_DIGITS) if given.get("precision") != 64 else MOST_DIGITS
    return {"scale": scale, **given, "logicalType": "decimal", "precision": precision}


def _logical(made: Type, given: Mapping[str, Any]) -> Type:
    """With its logical type, where that is one; Avro passes over others."""
    logical = given.get("logicalType")
    if logical in _LOGICAL.get(made.name, {}) and (made.kind != FIXED or made.size == _UUID_BYTES):
        made.logical = logical
    if logical == "decimal" and made.kind in {BYTES, FIXED} and made.name != "string":
        precision, scale = given.get("precision"), given.get("scale", 0)
        if type(precision) is int and type(scale) is int and precision > 0 and 0 <= scale <= precision:
            made.logical, made.digits = "decimal", (precision, scale)
    return made


_LOGICAL: dict[str, dict[str, pa.DataType]] = {
    "int": {"date": pa.date32(), "time-millis": pa.time32("ms")},
    "long": {
        "time-micros": pa.time64("us"),
        "timestamp-millis": pa.timestamp("ms", "UTC"),
        "timestamp-micros": pa.timestamp("us", "UTC"),
        "local-timestamp-millis": pa.timestamp("ms"),
        "local-timestamp-micros": pa.timestamp("us"),
    },
    "string": {"uuid": pa.large_string()},
    "fixed": {"uuid": pa.large_string()},
}
"""Others, such as moments in nanoseconds, are the plain type that carries them."""
_FIRST_DAY, _LAST_DAY, _DAY = -719_162, 2_932_896, 86_400
"""Of the years 1 to 9999, which every writer knows; seconds of a day."""


def _moments(per_second: int) -> tuple[int, int]:
    return _FIRST_DAY * _DAY * per_second, (_LAST_DAY + 1) * _DAY * per_second - 1


RANGES = {
    "date": (_FIRST_DAY, _LAST_DAY),
    "time-millis": (0, _DAY * 1_000 - 1),
    "time-micros": (0, _DAY * 1_000_000 - 1),
    **dict.fromkeys(("timestamp-millis", "local-timestamp-millis"), _moments(1_000)),
    **dict.fromkeys(("timestamp-micros", "local-timestamp-micros"), _moments(1_000_000)),
}
"""The whole numbers that are a date or time."""
_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.large_binary(),
    "string": pa.large_string(),
    "fixed": pa.large_binary(),
    "enum": pa.large_string(),
}


def arrow_type(one: Type) -> pa.DataType | None:
    """The column that values of a type become; None for what holds further values, or more digits than we keep."""
    if one.logical == "decimal":
        return pa.decimal128(one.digits[0], one.digits[1]) if one.digits[0] <= MOST_DIGITS else None
    return _LOGICAL.get(one.name, {}).get(one.logical) or _ARROW.get(one.name)


def decimal_of(data: bytes, one: Type) -> Decimal:
    """Return the number that these bytes are in a decimal type."""
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-one.digits[1], _EXACT)


# -- where declared fields are -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Default:
    """What stands in for a field that a record's schema does not have, as the reader's schema writes it."""

    type: Type
    value: Any


@dataclass(frozen=True, eq=False)
class Plan:
    """How records of one schema are read for declared fields."""

    program: Program
    choices: Mapping[str, list[Type | Default]]
    """What the value of each declared field may be; those that there may be something of."""


class _Assembler:
    """Writes types down as a program; those that hold no declared field once, whoever holds them."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._numbers = {name: place for place, name in enumerate(fields)}
        self._nodes: list[list[int]] = []
        self._inner: list[list[int]] = []
        self._passed_over: dict[int, int] = {}
        self.choices: dict[str, list[Type | Default]] = {}

    def add(self, one: Type, below: Mapping[str, str], reader: Type | None) -> int:
        """The node of a type in which these fields are looked for, by their path in it; '' is the type itself.

        Paths have the names of the reader's schema, of which `reader` is the type in the same place.
        """
        if not below and id(one) in self._passed_over:
            return self._passed_over[id(one)]
        number = self._node(one.kind, one.size or len(one.symbols))
        if not below:
            self._passed_over[id(one)] = number
        name = below.get("")
        if one.kind == UNION:
            self._inner[number] = [
                self.add(each, below if name or each.kind == RECORD else {}, reader) for each in one.inner
            ]
            return number
        if name is not None:
            below = {}
            self._nodes[number][2:] = self._numbers[name], -1 if one.kind == NULL else self._choice(name, one, reader)
        if one.kind == RECORD:
            self._inner[number] = self._record(one, below, _as_read(one, reader))
        else:
            self._inner[number] = [self.add(each, {}, None) for each in one.inner]
        return number

    def _node(self, kind: int, size: int, field: int = -1, choice: int = -1) -> int:
        self._nodes.append([kind, size, field, choice])
        self._inner.append([])
        return len(self._nodes) - 1

    def _choice(self, name: str, one: Type | Default, reader: Type | None = None) -> int:
        if isinstance(one, Type) and one.kind == ENUM:
            own = _as_read(one, reader)
            if own is not None and own.default is not None:
                known = tuple(each if each in own.symbols else own.default for each in one.symbols)
                one = replace(one, symbols=known)
        self.choices.setdefault(name, []).append(one)
        return len(self.choices[name]) - 1

    def _record(self, one: Type, below: Mapping[str, str], reader: Type | None) -> list[int]:
        """The nodes inside of a record; what it lacks takes no byte, where the reader has a default for it."""
        called = _called(one, {path.partition(".")[0] for path in below}, reader)
        inner = []
        for each in one.fields:
            own = called.get(each.name)
            read = None if own is None or reader is None else _field(reader, own)
            inside = {} if own is None else _inside(below, own)
            inner.append(self.add(each.type, inside, None if read is None else read.type))
        there = set(called.values())
        for path, name in below.items():
            default = None if reader is None or path.partition(".")[0] in there else default_of(reader, path)
            if default is not None:
                inner.append(self._node(NULL, 0, self._numbers[name], self._choice(name, default)))
        return inner

    def program(self) -> Program:
        kinds, sizes, fields, choices = np.array(self._nodes, np.int64).reshape(-1, 4).T
        counts = np.array([len(each) for each in self._inner], np.int64)
        first = np.where(counts > 0, np.cumsum(counts) - counts, sizes)
        inner = np.array([each for inner in self._inner for each in inner] or [0], np.int64)
        parts = (kinds, first, counts, inner, fields, choices)
        return Program(*(np.ascontiguousarray(each) for each in parts))


def _inside(below: Mapping[str, str], name: str) -> dict[str, str]:
    """Of paths those that go through this name, without it."""
    found = {}
    for path, field_name in below.items():
        head, _, rest = path.partition(".")
        if head == name:
            found[rest] = field_name
    return found


def _called(one: Type, wanted: Iterable[str], reader: Type | None) -> dict[str, str]:
    """Of a record's fields those that are wanted, with the names by which they are; none that the reader lacks."""
    names, found = {each.name for each in one.fields}, []
    for name in wanted:
        own = None if reader is None else _field(reader, name)
        called = (name,) if reader is None else () if own is None else (own.name, *own.aliases)
        there = next((each for each in called if each in names), None)
        if there is not None:
            found.append((there != name, there, name))
    # A name goes before an alias.
    return {there: name for _, there, name in sorted(found, reverse=True)}


def _as_read(one: Type, reader: Type | None) -> Type | None:
    """What the reader's schema has in the place of a type with a name: the same name, or the first of its kind."""
    alike = [] if reader is None else [each for each in reader.choices() if each.kind == one.kind]
    return next((each for each in alike if each.own_name() == one.own_name()), alike[0] if alike else None)


def plan(
    writer: Type, fields: Sequence[str], reader: Type | None = None, paths: Mapping[str, str] | None = None
) -> Plan:
    """How records of the writer's schema are read, as the reader's understands them.

    `paths` tells where a field is in a record, if not under its name.
    """
    assembler = _Assembler(fields)
    assembler.add(writer, {(paths or {}).get(name, name): name for name in fields}, reader)
    return Plan(assembler.program(), assembler.choices)


def wrapped(one: Type, name: str) -> Type:
    """Return a record whose only field is of this type: both are encoded to the same bytes."""
    return Type("record", RECORD, inner=[one], fields=[Field(name, one)])


def find(record: Type, name: str) -> list[Type]:
    """Return what the value of a (dotted) field may be, found by its name or an alias; nothing if there is none."""
    there = [record]
    for part in name.split("."):
        found = [_field(each, part) for each in there]
        there = [one for each in found if each is not None for one in each.type.choices()]
    return there


def with_aliases(record: Type, aliases: Aliases) -> Type:
    """Return the record with further aliases of its fields; the policy's name of a field counts as one of them."""
    for path, names in aliases:
        above, _, last = path.rpartition(".")
        for each in find(record, above) if above else [record]:
            own = next(filter(None, (_field(each, name) for name in (last, *names))), None)
            if own is not None:
                own.aliases = tuple(dict.fromkeys((*own.aliases, last, *names)))
    return record


def default_of(record: Type, name: str) -> Default | None:
    """The type and value of a (dotted) field that is not there, where the schema has a default for it."""
    *path, last = name.split(".")
    given: Any = MISSING
    for part in path:
        own = _field(record, part)
        if own is None:
            return None
        given = _below(given, part, own.default)
        inside = next((one for one in own.type.choices() if one.kind == RECORD), None)
        if inside is None or given is None:
            return None
        record = inside
    own = _field(record, last)
    given = MISSING if own is None else _below(given, last, own.default)
    if own is None or given is MISSING or given is None:
        return None
    # The default of a union is of its first branch.
    return next((Default(one, given) for one in own.type.choices()), None)


def _below(given: Any, name: str, default: Any) -> Any:
    return given.get(name, default) if isinstance(given, dict) else default


def _field(record: Type, name: str) -> Field | None:
    """The field with this name, else the one with this alias."""
    by_name = next((each for each in record.fields if each.name == name), None)
    return by_name or next((each for each in record.fields if name in each.aliases), None)


def leaves(record: Type, above: str = "", depth: int = 0) -> Iterator[tuple[str, Field]]:
    """Every field that is no record, by its (dotted) name."""
    for each in record.fields:
        name = f"{above}{each.name}"
        inside = [one for one in each.type.choices() if one.kind == RECORD]
        if not inside:
            yield name, each
        elif depth < 8:
            yield from leaves(inside[0], f"{name}.", depth + 1)

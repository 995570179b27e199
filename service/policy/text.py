"""Policy texts as mappings: YAML or JSON, with limits, and without YAML's surprises.

YAML here follows the core schema of YAML 1.2, so `NO` is a country and `2020-01-01` a text. Digits behind a leading
zero (`008`) are a text as well, because PyYAML writes such codes without quotes. A key given twice is an error, and
aliases count with everything they stand for, so that a small text cannot become a large one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from microdata import invisible_character, shown_escaped
from service.policy.errors import PolicyError, PolicyProblem, dotted, shown

MAX_BYTES = 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 60
MAX_DIGITS = 400
_LAYOUT = {ord(mark): " " for mark in "\r\n\t"}
_GIVEN_TWICE = "a key is there twice in one mapping"
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_TOO_LONG = f"more than {MAX_BYTES} characters, aliases expanded"
_TOO_MANY = f"more than {MAX_NODES} values, aliases expanded; put large hierarchies into CSV files"


def read_policy_text(path: Path) -> str:
    """The text of a policy file."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused(f"cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise _refused(f"at most {MAX_BYTES} bytes are read; put large hierarchies into CSV files")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(f"not UTF-8 text (byte {error.start})") from None


def invisible(given: object, path: tuple[str | int, ...] = ()) -> Iterator[PolicyProblem]:
    """Yield each text of a policy with an invisible or direction-changing character. Line feeds and tabs are neither.

    Names and values of a policy are shown on pages and terminals, where such a character could reverse a number.
    """
    if isinstance(given, dict):
        for key, value in given.items():
            below = (*path, shown_escaped(str(key)))
            yield from _invisible(str(key), below, "the key")
            yield from invisible(value, below)
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from invisible(value, (*path, number))
    elif isinstance(given, str):
        yield from _invisible(given.translate(_LAYOUT), path, "it")


def _invisible(text: str, path: tuple[str | int, ...], what: str) -> Iterator[PolicyProblem]:
    found = invisible_character(text)
    if found is not None:
        place, name = found
        yield PolicyProblem(
            dotted(path), f"{what} has an invisible character, {name}, at position {place + 1}; remove it"
        )


def parse_text(text: str, *, json_only: bool = False) -> dict[str, Any]:
    """The mapping that a policy's text holds."""
    if len(text) > MAX_BYTES:
        raise _refused(f"at most {MAX_BYTES} characters are read")
    if not text.strip():
        raise _refused("empty; a policy has the keys name, schema and guarantee")
    if json_only:
        value = _parse_json(text)
    elif text.lstrip().startswith("{"):
        value = _parse_json_or_yaml(text)
    else:
        value = _parse_yaml(text)
    # Somebody may have named a data file by mistake: nothing of what it holds is shown.
    if not isinstance(value, dict) or not {"schema", "guarantee"} & value.keys():
        raise _refused("this is no policy: needed is a mapping with the keys name, schema and guarantee")
    return value


def _refused(reason: str, given: str = "") -> PolicyError:
    return PolicyError([PolicyProblem("", reason, given)])


def _parse_json_or_yaml(text: str) -> Any:
    """A text in braces is JSON, or YAML in its flow style."""
    try:
        return _loads(text)
    except json.JSONDecodeError:
        return _parse_yaml(text)


def _parse_json(text: str) -> Any:
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        raise _refused(f"JSON syntax, line {error.lineno}, column {error.colno}: {error.msg}") from None


def _loads(text: str) -> Any:
    try:
        value = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_no_constant, parse_int=_whole, parse_float=_fraction
        )
    except RecursionError:
        raise _refused(_TOO_DEEP) from None
    _check_size(value)
    return value


def _check_size(value: Any) -> None:
    level, nodes = [value], 1
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level for child in _children(node)]
        nodes += len(level)
        if nodes > MAX_NODES:
            raise _refused(_TOO_MANY)
        if not level:
            return
    raise _refused(_TOO_DEEP)


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _refused(_GIVEN_TWICE, shown(next(key for key, count in counts.items() if count > 1)))
    return result


def _no_constant(name: str) -> Any:
    raise _refused("numbers must be finite", name)


def _whole(text: str) -> int:
    return int(_short(text))


def _fraction(text: str) -> float:
    return float(_short(text))


def _short(number: str) -> str:
    """Reading a number takes longer than in proportion to its length, and nobody means one of a thousand digits."""
    if len(number) > MAX_DIGITS:
        raise _refused(f"a number has at most {MAX_DIGITS} characters; write a longer one in quotes, as a text")
    return number


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The compiled loader where PyYAML has it. Only its events are used."""

_SCALARS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"null|Null|NULL|~|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"0|-?[1-9][0-9]*"), _whole),
    (re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), _fraction),
)
_SPECIAL = frozenset("nN~tTfF-+.0123456789")
"""How every scalar that is not a text begins."""


def _parse_yaml(text: str) -> Any:
    reader = _Reader()
    try:
        for event in yaml.parse(text, _Loader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        # What the parser was at is in its own words; what it found there it quotes.
        what = f": {error.context}" if error.context else ""
        raise _refused(f"YAML syntax{where}{what}", error.problem or "") from None
    except yaml.YAMLError:
        raise _refused("YAML syntax: a character that YAML does not allow") from None
    return reader.value


class _Size(NamedTuple):
    """How much of a text something is, with what its aliases stand for."""

    values: int
    characters: int


class _Reader:
    """Makes values of YAML's events as they come, and stops at the first that would make them too many or too deep."""

    def __init__(self) -> None:
        self.value: Any = None
        self._documents = 0
        self._open: list[_Open] = []
        self._values = self._characters = 0
        self._anchored: dict[str, tuple[Any, _Size]] = {}
        """What an anchor stands for, and how large that is."""

    def take(self, given: Any) -> None:
        """Take the next event."""
        event: Any = given
        if getattr(event, "tag", None) is not None:
            raise _refused(f"line {event.start_mark.line + 1}: tags (!…) are not allowed")
        match event:
            case yaml.ScalarEvent(anchor=anchor):
                self._scalar(event, anchor)
            case yaml.AliasEvent(anchor=anchor):
                self._alias(event, anchor)
            case yaml.CollectionStartEvent(anchor=anchor):
                self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event, anchor)
            case yaml.CollectionEndEvent():
                one = self._open.pop()
                size = _Size(self._values - one.before.values, self._characters - one.before.characters)
                self._put(one.value, one.anchor, size)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _refused(f"line {given.start_mark.line + 1}: expected a single document, here begins another")

    def _scalar(self, event: Any, anchor: str | None) -> None:
        length = len(event.value)
        if self._open and self._open[-1].wants_key:
            self._open[-1].take_key(event)
            self._count(1, length)
        else:
            self._count(1, length)
            self._put(_scalar(event.value) if event.implicit[0] else event.value, anchor, _Size(1, length))

    def _alias(self, event: Any, anchor: str | None) -> None:
        if anchor is None or anchor not in self._anchored:
            raise _refused("an alias has no anchor before it, or contains itself", shown(anchor))
        if self._open and self._open[-1].wants_key:
            raise _wrong_key(event)
        value, size = self._anchored[anchor]
        self._count(*size)
        self._put(value, None, size)

    def _begin(self, value: dict[str, Any] | list[Any], event: Any, anchor: str | None) -> None:
        if self._open and self._open[-1].wants_key:
            raise _wrong_key(event)
        self._open.append(_Open(value, anchor, _Size(self._values, self._characters)))
        self._count(1, 0)
        if len(self._open) > MAX_DEPTH:
            raise _refused(_TOO_DEEP)

    def _count(self, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > MAX_NODES:
            raise _refused(_TOO_MANY)
        if self._characters > MAX_BYTES:
            raise _refused(_TOO_LONG)

    def _put(self, value: Any, anchor: str | None, size: _Size) -> None:
        if anchor is not None:
            self._anchored[anchor] = value, size
        if self._open:
            self._open[-1].add(value)
        else:
            self.value = value


@dataclass
class _Open:
    """A mapping or a list that has begun."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    before: _Size
    """What there was before it."""
    key: str | None = None

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)

    def take_key(self, event: Any) -> None:
        if event.value in self.value:
            raise yaml.MarkedYAMLError(_GIVEN_TWICE, None, shown(event.value), event.start_mark)
        self.key = event.value

    def add(self, value: Any) -> None:
        if isinstance(self.value, dict):
            assert self.key is not None
            self.value[self.key] = value
            self.key = None
        else:
            self.value.append(value)


def _wrong_key(event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError("a key must be a text", None, None, event.start_mark)


def _scalar(text: str) -> Any:
    """What a text without quotes stands for."""
    if text and text[0] not in _SPECIAL:
        return text
    for pattern, value in _SCALARS:
        if pattern.fullmatch(text):
            return value(text)
    return text

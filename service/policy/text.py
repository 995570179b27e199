"""Policy texts as mappings: YAML or JSON, with limits, and without YAML's surprises.

YAML here follows the core schema of YAML 1.2, so `NO` is a country and `2020-01-01` a text. A key given twice is an
error, and aliases count with everything they stand for, so that a small text cannot become a large one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from service.policy.errors import PolicyError, Problem

MAX_BYTES = 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 60
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"


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


def _refused(reason: str) -> PolicyError:
    return PolicyError([Problem("", reason)])


def _parse_json_or_yaml(text: str) -> Any:
    """A text in braces is JSON, or YAML in its flow style."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _parse_yaml(text)
    return _parse_json(text)


def _parse_json(text: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _refused(f"JSON syntax, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _refused(_TOO_DEEP) from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level for child in _children(node)]
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
        keys = [key for key, _ in pairs]
        twice = next(key for key in result if keys.count(key) > 1)
        raise _refused(f"key {twice!r} is given twice in one mapping")
    return result


def _no_constant(name: str) -> Any:
    raise _refused(f"numbers must be finite, given {name}")


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc] # the compiled loader where PyYAML has it
    """Safe YAML with the core schema's scalars and without duplicate keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's class attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ARG002 - PyYAML's
        seen = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key_node.start_mark)
            if key_node.value in seen:
                problem = f"key {key_node.value!r} is given twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key_node.value)
        return {key_node.value: self.construct_object(value, deep=True) for key_node, value in node.value}


_SCALARS = {
    "null": (r"null|Null|NULL|~|", "nN~"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"0|-?[1-9][0-9]*", "-0123456789"),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
}
for _tag, (_pattern, _first) in _SCALARS.items():
    _starts = [*_first, ""] if _tag == "null" else [*_first]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _starts)


def _parse_yaml(text: str) -> Any:
    try:
        _measure(text)
        return yaml.load(text, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise _refused(f"YAML syntax{where}: {what}") from None
    except yaml.YAMLError:
        raise _refused("YAML syntax: a character that YAML does not allow") from None


def _measure(text: str) -> None:
    """Walk over the text's events, without building anything, and refuse what would grow too large."""
    growth = _Growth()
    for event in yaml.parse(text, _Loader):
        if getattr(event, "tag", None) is not None:
            raise _refused(f"line {event.start_mark.line + 1}: tags (!…) are not allowed")
        growth.add(event)
        if growth.total > MAX_NODES:
            raise _refused(f"more than {MAX_NODES} values, aliases expanded; put large hierarchies into CSV files")
        if len(growth.open_nodes) > MAX_DEPTH:
            raise _refused(_TOO_DEEP)


class _Growth:
    """How many values a text stands for, aliases expanded."""

    def __init__(self) -> None:
        self.total = 0
        self.open_nodes: list[tuple[str | None, int]] = []
        self._sizes: dict[str | None, int] = {}

    def add(self, event: Any) -> None:
        match event:
            case yaml.AliasEvent(anchor=anchor):
                if anchor not in self._sizes:
                    raise _refused(f"alias {anchor!r} has no anchor before it, or contains itself")
                self.total += self._sizes[anchor]
            case yaml.ScalarEvent(anchor=anchor):
                self.total += 1
                self._sizes[anchor] = 1
            case yaml.CollectionStartEvent(anchor=anchor):
                self.open_nodes.append((anchor, self.total))
                self.total += 1
            case yaml.CollectionEndEvent():
                anchor, before = self.open_nodes.pop()
                self._sizes[anchor] = self.total - before

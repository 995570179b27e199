"""Hierarchy files that came along with a policy, written into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from microdata import Hierarchy, HierarchyError
from service.policy import PolicyError, Problem
from service.policy.errors import dotted
from service.policy.hierarchies import Hierarchies
from service.problems import utf8_text


def embed(mapping: Mapping[str, Any], hierarchies: Mapping[str, bytes]) -> None:
    """Put trees in the place of the names of their files."""
    trees = Hierarchies(None)
    for path, field in _fields(mapping):
        name = field.get("hierarchy")
        if isinstance(name, str):
            field["hierarchy"] = _inline(name, hierarchies, trees, f"{path}.hierarchy")


def _fields(mapping: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    schema = mapping.get("schema")
    if not isinstance(schema, dict):
        return
    for role in ("quasi", "sensitive"):
        fields = schema.get(role)
        for name, field in fields.items() if isinstance(fields, dict) else ():
            if isinstance(field, dict):
                yield dotted(("schema", role, name)), field


def _inline(name: str, hierarchies: Mapping[str, bytes], trees: Hierarchies, path: str) -> dict[str, Any]:
    raw = hierarchies.get(name.replace("\\", "/").rpartition("/")[2])
    if raw is None:
        reason = "names a file; send it along as a part `hierarchies` with this file name, or write the tree inline"
        raise PolicyError([Problem(path, reason)])
    try:
        return _nested(trees.from_text(utf8_text(raw, "hierarchy")))
    except HierarchyError as error:
        raise PolicyError([Problem(path, str(error))]) from None


def _nested(tree: Hierarchy) -> dict[str, Any]:
    """The tree as a policy writes it."""
    below: list[dict[str, Any]] = [{} for _ in tree.labels]
    for node in range(len(tree.labels) - 1, 0, -1):
        parent = below[int(tree.parent[node])]
        parent[tree.labels[node]] = dict(reversed(below[node].items())) or None
    return {tree.labels[0]: dict(reversed(below[0].items())) or None}

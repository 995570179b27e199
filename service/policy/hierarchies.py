"""Hierarchies of a policy: read from a file beside it, written into it, or built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microdata import Hierarchy, HierarchyError


def resolve_hierarchy(source: str | Mapping[str, Any], base: Path | None) -> Hierarchy:
    """The tree that a policy names. Without `base`, a policy came from outside and no file is opened for it."""
    if isinstance(source, str):
        if base is None:
            raise HierarchyError("a policy that is not a file on this machine cannot name files; write it inline")
        return Hierarchy.from_csv(base / source)
    _check_labels(source)
    return Hierarchy.from_mapping(source)


def _check_labels(source: Mapping[str, Any]) -> None:
    """Whole numbers may be labels; what YAML may have rewritten on the way (1.10, true) must be quoted."""
    stack: list[Any] = [source]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, float | bool):
            raise HierarchyError(f"label {node!r} is not a text; write it in quotes")

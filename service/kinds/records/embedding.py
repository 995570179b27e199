"""Hierarchies in the place of the names of their files, so that a policy needs no file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microdata import Category, Hierarchy, Schema


def embed(mapping: Mapping[str, Any], schema: Schema) -> None:
    """Put trees in the place of the names of their files."""
    for role, attributes in (("quasi", schema.quasi), ("sensitive", schema.sensitive)):
        for attribute in attributes:
            field = mapping["schema"][role][attribute.name]
            if isinstance(attribute, Category) and isinstance(field["hierarchy"], str):
                # Another mapping: in YAML several fields may be one and the same.
                mapping["schema"][role][attribute.name] = {**field, "hierarchy": nested_tree(attribute.hierarchy)}


def nested_tree(tree: Hierarchy) -> dict[str, Any]:
    """The tree as a policy writes it."""
    below: list[dict[str, Any]] = [{} for _ in tree.labels]
    for node in range(len(tree.labels) - 1, 0, -1):
        parent = below[int(tree.parent[node])]
        parent[tree.labels[node]] = dict(reversed(below[node].items())) or None
    return {tree.labels[0]: dict(reversed(below[0].items())) or None}

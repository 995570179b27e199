"""Generalization hierarchies: trees over the values of a category, made for lookups instead of walks.

Nodes are numbered in pre-order, leaves from left to right. Every node covers one contiguous run of leaves, so a set
of values is a pair of leaf indexes and its lowest common ancestor (LCA) is a range query over the ancestors of
neighbouring leaves: two lookups in a sparse table, whatever the size of the tree.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microdata.errors import HierarchyError
from microdata.invisible import invisible_character

Nested: TypeAlias = Mapping[str, "Nested"] | Sequence[str] | None

# Characters that make a CSV cell ambiguous unless it is quoted.
_CYCLE = "a label is its own ancestor: the rows form a cycle"
_SPECIAL = re.compile(r'[,;"\r\n]')


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A tree with distinct labels; arrays are indexed by node (pre-order) or by leaf (left to right).

    >>> tree = Hierarchy.from_mapping({"World": {"Europe": ["France", "Spain"], "Asia": ["Japan"]}})
    >>> tree.leaves
    ('France', 'Spain', 'Japan')
    >>> tree.labels[int(tree.lca(0, 1))]
    'Europe'
    """

    labels: tuple[str, ...]
    parent: NDArray[np.int32]
    """Parent of each node; -1 for the root, which is node 0."""
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    """First and last leaf below each node."""
    leaf_count: NDArray[np.int32]
    """Number of leaves below each node."""
    height: NDArray[np.int32]
    """Longest way down to a leaf: 0 for leaves."""
    leaf_nodes: NDArray[np.int32]
    """Node of each leaf."""
    neighbours: NDArray[np.int32]
    """Sparse table: row r, column i holds the LCA of leaves i … i + 2**r."""

    @classmethod
    def from_mapping(cls, tree: Mapping[str, Nested]) -> Hierarchy:
        """Build from a nested mapping with one root: `{root: {inner: [leaf, leaf], …}}`."""
        if len(tree) != 1:
            raise HierarchyError(f"a hierarchy has one root, this mapping has {len(tree)}")
        edges: dict[str, str | None] = {}
        _collect(tree, None, edges)
        return cls.from_parents(edges)

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[str]]) -> Hierarchy:
        """Build from rows of labels, each from a leaf to the root.

        A label repeated along a row (`Other;Other;*`) is one node: that is how unbalanced trees are commonly written.
        """
        edges: dict[str, str | None] = {}
        leaves: set[str] = set()
        ways_up: set[tuple[str, ...]] = set()
        number = 0
        for number, row in enumerate(rows, start=1):
            path = _path(row, number)
            if path[0] in leaves:
                raise HierarchyError(f"a label appears twice as a leaf (row {number})", given=repr(path[0]))
            leaves.add(path[0])
            above = tuple(path[1:])
            # Most leaves have neighbours below the same ancestors, which need to be looked at only once.
            known = above in ways_up and path[0] not in edges
            for label, parent in [(path[0], path[1])] if known else zip(path, [*above, None], strict=True):
                if edges.setdefault(label, parent) != parent:
                    both = " and ".join(repr(p) if p else "nothing" for p in (edges[label], parent))
                    raise HierarchyError(f"a label has two parents (row {number})", given=f"{label!r} below {both}")
            if above:
                ways_up.add(above)
        if not number:
            raise HierarchyError("there are no rows")
        inner = leaves & {parent for parent in edges.values() if parent is not None}
        if inner:
            raise HierarchyError("a label is both a leaf and an inner node", given=repr(min(inner)))
        return cls.from_parents(edges)

    @classmethod
    def from_csv(cls, path: str | Path, *, most_cells: int | None = None) -> Hierarchy:
        """Read the field's common format: one row per leaf, leaf to root, separated by `;` or `,`."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise HierarchyError(f"{path}: not UTF-8 text") from None
        except OSError as error:
            raise HierarchyError(f"{path}: cannot be read ({error.strerror})") from None
        try:
            return cls.from_csv_text(text, most_cells=most_cells)
        except HierarchyError as error:
            raise HierarchyError(f"{path}: {error.reason}", given=error.given) from None

    @classmethod
    def from_csv_text(cls, text: str, *, most_cells: int | None = None, most_levels: int | None = None) -> Hierarchy:
        """The same, from the text of such a file; at most so many labels in all its rows, and in each of them."""
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
        try:
            return cls.from_rows(row for row in _within(rows, most_cells, most_levels) if any(row))
        except csv.Error:
            raise HierarchyError("not readable as CSV") from None

    @classmethod
    def flat(cls, leaves: Iterable[str], root: str = "*") -> Hierarchy:
        """The tree in which every leaf hangs from the root: a value is published as it is or not at all."""
        return cls.from_mapping({root: list(leaves)})

    @classmethod
    def from_parents(cls, edges: Mapping[str, str | None]) -> Hierarchy:
        """Build from a mapping of every label to its parent (None for the root), siblings in their final order."""
        children: dict[str, list[str]] = {}
        roots = [label for label, parent in edges.items() if parent is None]
        for label, parent in edges.items():
            if parent is not None:
                children.setdefault(parent, []).append(label)
        if not roots:
            raise HierarchyError(_CYCLE, given=repr(next(iter(edges))))
        if len(roots) > 1:
            named = ", ".join(repr(label) for label in roots[:3])
            raise HierarchyError(f"a hierarchy has one root, this one has {len(roots)}", given=named)
        for label in edges:
            found = invisible_character(label)
            if found is not None:
                place, name = found
                raise HierarchyError(
                    f"a label has an invisible character, {name}, at position {place + 1}; remove it",
                    given=ascii(label),
                )
        labels, parent_of = _preorder(roots[0], children)
        if len(labels) != len(edges):
            reached = set(labels)
            missing = next(label for label in edges if label not in reached)
            raise HierarchyError(_CYCLE, given=repr(missing))
        return cls(labels, parent_of, *_ranges(parent_of))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Labels of the leaves, left to right."""
        return tuple(self.labels[node] for node in self.leaf_nodes)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self.leaf_nodes)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<Hierarchy {self.labels[0]!r}: {self.size} leaves, {len(self.labels)} nodes, height {self.height[0]}>"

    def lca(self, lo: ArrayLike, hi: ArrayLike) -> NDArray[np.int32]:
        """Node of the lowest common ancestor of the leaves `lo … hi`, for whole arrays at once."""
        low, high = np.broadcast_arrays(np.asarray(lo, np.int64), np.asarray(hi, np.int64))
        span = high - low
        # frexp's exponent is the bit length, exactly, for every span below 2**53.
        level = np.maximum(np.frexp(np.maximum(span, 1).astype(np.float64))[1] - 1, 0)
        if self.size == 1:
            return self.leaf_nodes[low]
        left = self.neighbours[level, np.minimum(low, self.size - 2)]
        right = self.neighbours[level, np.maximum(high - (1 << level), 0)]
        wider = np.where(self.leaf_count[left] >= self.leaf_count[right], left, right)
        return np.where(span == 0, self.leaf_nodes[low], wider).astype(np.int32)

    @cached_property
    def codes(self) -> dict[str, int]:
        """Leaf index of each leaf label."""
        return {label: index for index, label in enumerate(self.leaves)}

    @cached_property
    def nodes(self) -> dict[str, int]:
        """Node of each label."""
        return {label: node for node, label in enumerate(self.labels)}

    def rows(self) -> list[list[str]]:
        """One row per leaf, leaf to root."""
        result = []
        for leaf in self.leaf_nodes:
            row, node = [], int(leaf)
            while node >= 0:
                row.append(self.labels[node])
                node = int(self.parent[node])
            result.append(row)
        return result

    def to_csv(self, path: str | Path) -> None:
        """Write the format that `from_csv` reads."""
        lines = (";".join(_cell(label) for label in row) + "\n" for row in self.rows())
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)

    def level_nodes(self, level: int) -> NDArray[np.int32]:
        """Ancestor of each leaf after climbing `level` edges (the root where the way is shorter)."""
        nodes = self.leaf_nodes.copy()
        for _ in range(level):
            nodes = np.where(self.parent[nodes] < 0, nodes, self.parent[nodes]).astype(np.int32)
        return nodes


def _collect(tree: Nested, parent: str | None, edges: dict[str, str | None]) -> None:
    """Flatten a nested mapping into label → parent, depth first, refusing what is no tree."""
    stack: list[tuple[str, Nested, str | None]] = [*reversed(_entries(tree, parent))]
    while stack:
        label, below, above = stack.pop()
        if label in edges:
            raise HierarchyError("a label appears twice", given=repr(label))
        edges[label] = above
        stack.extend(reversed(_entries(below, label)))


def _entries(tree: Nested, parent: str | None) -> list[tuple[str, Nested, str | None]]:
    if tree is None:
        return []
    if isinstance(tree, str) or not isinstance(tree, Mapping | Sequence):
        raise HierarchyError("below a label there is a mapping or a list of labels", given=_below(parent, tree))
    pairs: list[tuple[object, Nested]] = (
        list(tree.items()) if isinstance(tree, Mapping) else [(label, None) for label in tree]
    )
    if not pairs:
        raise HierarchyError("a label has an empty list of children: write it as a leaf", given=repr(parent))
    return [(_label(label, parent), below, parent) for label, below in pairs]


def _below(parent: str | None, value: object) -> str:
    return f"{type(value).__name__} below {parent!r}"


def _label(value: object, parent: str | None) -> str:
    """A label as values are written: YAML reads 53711, true and 2024-01-31 as other things than text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if not isinstance(value, str | int | float | date) or not str(value).strip():
        raise HierarchyError("a label must be a text that is not empty", given=_below(parent, value))
    return str(value).strip()


def _cell(label: str) -> str:
    """A label for a CSV file, quoted where it could be misread."""
    return '"' + label.replace('"', '""') + '"' if _SPECIAL.search(label) else label


def _delimiter(text: str) -> str:
    """`;` where the first row uses it outside of quotes, else `,`."""
    bare = re.sub(r'"[^"]*"', "quoted", text)
    first = re.search(r"[^\s][^\r\n]*|$", bare)
    return ";" if first and ";" in first.group() else ","


def _within(rows: Iterable[list[str]], most_cells: int | None, most_levels: int | None) -> Iterator[list[str]]:
    """These rows, while they are not too many; empty ones count too, since they are read."""
    cells = 0
    for number, row in enumerate(rows, start=1):
        cells += max(1, len(row))
        if most_cells is not None and cells > most_cells:
            raise HierarchyError(f"there are more than {most_cells} labels in its rows, which is the limit")
        if most_levels is not None and len(row) > most_levels:
            raise HierarchyError(f"row {number} has more than {most_levels} labels, which is the limit")
        yield row


def _path(row: Sequence[str], number: int) -> list[str]:
    """One row as a path of distinct labels from leaf to root."""
    path: dict[str, None] = {}
    last = None
    cells = [cell.strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    if not cells:
        raise HierarchyError(f"row {number} is empty")
    if len(set(cells)) == len(cells) and "" not in cells:
        return cells
    for cell in cells:
        if not cell:
            raise HierarchyError(f"row {number} has an empty label", given=f"{cells[0]!r} … {cells[-1]!r}")
        if cell == last:
            continue
        if cell in path:
            raise HierarchyError(f"row {number} has a cycle: a label is its own ancestor", given=repr(cell))
        path[cell] = None
        last = cell
    return list(path)


def _preorder(root: str, children: Mapping[str, list[str]]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    labels: list[str] = []
    parents: list[int] = []
    stack = [(root, -1)]
    while stack:
        label, parent = stack.pop()
        if label in children:
            stack.extend(zip(reversed(children[label]), repeat(len(labels))))
        labels.append(label)
        parents.append(parent)
    return tuple(labels), np.array(parents, np.int32)


def _ranges(parents: NDArray[np.int32]) -> tuple[NDArray[np.int32], ...]:
    """Leaf ranges, heights, leaf nodes and the sparse table of a pre-order parent array."""
    nodes = len(parents)
    inner = np.zeros(nodes, bool)
    inner[parents[1:]] = True
    leaf_nodes = np.flatnonzero(~inner).astype(np.int32)
    # Plain lists: element by element they are several times faster than arrays.
    parent = parents.tolist()
    last = (np.cumsum(~inner) - 1).tolist()
    first = (np.cumsum(~inner) - ~inner).tolist()
    height = [0] * nodes
    for node in range(nodes - 1, 0, -1):
        above = parent[node]
        last[above] = max(last[above], last[node])
        if height[node] >= height[above]:
            height[above] = height[node] + 1
    base = _neighbours(parent, last, leaf_nodes.tolist())
    arrays = [np.array(values, np.int32) for values in (first, last, height)]
    leaf_count = arrays[1] - arrays[0] + 1
    return arrays[0], arrays[1], leaf_count, arrays[2], leaf_nodes, _sparse_table(base, leaf_count)


def _neighbours(parent: list[int], last: list[int], leaf_nodes: list[int]) -> NDArray[np.int32]:
    """Lowest common ancestor of each leaf and the next one."""
    base = []
    for leaf, start in enumerate(leaf_nodes[:-1]):
        node = start
        while last[node] <= leaf:
            node = parent[node]
        base.append(node)
    return np.array(base, np.int32)


def _sparse_table(base: NDArray[np.int32], leaf_count: NDArray[np.int32]) -> NDArray[np.int32]:
    gaps = len(base)
    if gaps < 1:
        return np.zeros((1, 1), np.int32)
    rows = [base]
    while (1 << len(rows)) <= gaps:
        below, half = rows[-1], 1 << (len(rows) - 1)
        row = below.copy()
        left, right = below[: gaps - half], below[half:]
        row[: gaps - half] = np.where(leaf_count[left] >= leaf_count[right], left, right)
        rows.append(row)
    return np.stack(rows)

"""Random trees, and a naive tree to compare with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from microdata import invisible_character

LABELS = (
    st.text(
        st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]) | st.sampled_from(',;"|'),
        min_size=1,
        max_size=6,
    )
    .map(str.strip)
    .filter(lambda label: invisible_character(label) is None)
)


@st.composite
def nested_trees(draw: Any, most_nodes: int = 24) -> Any:
    """A nested mapping with one root, of any shape: flat, deep, unbalanced, with only children."""
    labels = draw(st.lists(LABELS.filter(bool), min_size=1, max_size=most_nodes, unique=True))
    children = {label: [] for label in labels}  # type: ignore[var-annotated]
    for position, label in enumerate(labels[1:], start=1):
        children[labels[draw(st.integers(0, position - 1))]].append(label)

    def below(label: Any) -> Any:
        inner = children[label]
        if not inner:
            return None
        if not any(children[child] for child in inner):
            return inner
        return {child: below(child) for child in inner}

    return {labels[0]: below(labels[0])}


class NaiveTree:
    """The same questions, answered by walking."""

    def __init__(self, nested: Any) -> None:
        self.parents: dict[Any, Any] = {}
        self.leaves: list[Any] = []
        ((self.root, below),) = nested.items()
        self._walk(self.root, below, None)

    def _walk(self, label: Any, below: Any, parent: Any) -> None:
        self.parents[label] = parent
        if not below:
            self.leaves.append(label)
        for child in below or []:
            self._walk(child, below[child] if isinstance(below, dict) else None, label)

    def path(self, label: Any) -> Any:
        return [label] if self.parents[label] is None else [label, *self.path(self.parents[label])]

    def lca(self, labels: Any) -> Any:
        paths = [self.path(label) for label in labels]
        return next(label for label in paths[0] if all(label in path for path in paths))

    def leaves_below(self, label: Any) -> Any:
        return [leaf for leaf in self.leaves if label in self.path(leaf)]

    def height(self, label: Any) -> Any:
        return max(self.path(leaf).index(label) for leaf in self.leaves_below(label))

"""Hierarchies against a tree that walks, and what is no tree."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Hierarchy, HierarchyError
from tests.microdata.trees import NaiveTree, nested_trees

WORLD = {"World": {"Europe": ["France", "Spain"], "Asia": ["Japan"]}}


@given(nested_trees())
@settings(max_examples=150)
def test_every_range_agrees_with_a_walk(nested: Any) -> None:
    tree, naive = Hierarchy.from_mapping(nested), NaiveTree(nested)
    assert list(tree.leaves) == naive.leaves
    size = len(naive.leaves)
    ranges = [(low, high) for low in range(size) for high in range(low, size)]
    found = tree.lca([low for low, _ in ranges], [high for _, high in ranges])
    for (low, high), node in zip(ranges, found, strict=True):
        label = naive.lca(naive.leaves[low : high + 1])
        assert tree.labels[node] == label
        assert tree.leaf_count[node] == len(naive.leaves_below(label))
        assert tree.height[node] == naive.height(label)
        assert naive.leaves[tree.first[node] : tree.last[node] + 1] == naive.leaves_below(label)


@given(nested=nested_trees())
@settings(max_examples=150)
def test_rows_and_files_round_trip(tmp_path_factory: pytest.TempPathFactory, nested: Any) -> None:
    tree = Hierarchy.from_mapping(nested)
    path = tmp_path_factory.getbasetemp() / "tree.csv"
    tree.to_csv(path)
    for again in (Hierarchy.from_rows(tree.rows()), Hierarchy.from_csv(path)):
        assert again.rows() == tree.rows()
        assert again.labels == tree.labels
        assert again.parent.tolist() == tree.parent.tolist()


@given(nested_trees(), st.integers(0, 5))
def test_climbing_levels(nested: Any, level: int) -> None:
    tree, naive = Hierarchy.from_mapping(nested), NaiveTree(nested)
    for leaf, node in zip(naive.leaves, tree.level_nodes(level), strict=True):
        path = naive.path(leaf)
        assert tree.labels[node] == path[min(level, len(path) - 1)]


@pytest.mark.parametrize("text", ["France;Europe;World\nSpain;Europe;World\nJapan;Asia;World\n"])
@pytest.mark.parametrize("change", [str, lambda text: text.replace(";", ","), lambda text: "\ufeff" + text + "\n\n"])
def test_csv_is_read_with_either_delimiter(tmp_path: Path, text: str, change: Any) -> None:
    path = tmp_path / "world.csv"
    path.write_text(change(text), encoding="utf-8")
    assert Hierarchy.from_csv(path).rows() == Hierarchy.from_mapping(WORLD).rows()


def test_repeated_labels_along_a_row_are_one_node() -> None:
    tree = Hierarchy.from_rows([["a", "A", "*"], ["other", "other", "*"], ["third", "*", "*"]])
    assert tree.labels == ("*", "A", "a", "other", "third")
    assert tree.height[0] == 2


def test_labels_read_by_yaml_become_text() -> None:
    tree = Hierarchy.from_mapping({"any": {2.0: [53711, 2.5], True: None}})  # type: ignore[dict-item, list-item]
    assert tree.labels == ("any", "2", "53711", "2.5", "true")


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([["a", "b", "a"]], "is its own ancestor, given 'a'"),
        ([["x", "b", "c"], ["y", "c", "b"]], "has two parents .*, given '[bc]'"),
        ([["a", "A", "*"], ["a", "A", "*"]], "appears twice as a leaf .row 2., given 'a'"),
        ([["a", "A", "*"], ["b", "A", "+"]], "two parents .row 2., given 'A' below '\\*' and '\\+'"),
        ([["a", "A"], ["b", "B"]], "one root, this one has 2, given 'A', 'B'"),
        ([["a", "*"], ["b", "a", "*"]], "both a leaf and an inner node, given 'a'"),
        ([["a", "", "*"]], "empty label, given 'a' … '\\*'"),
        ([["a", "*"], ["", ""]], "row 2 is empty"),
        ([], "no rows"),
    ],
)
def test_rows_that_are_no_tree(rows: Any, named: str) -> None:
    with pytest.raises(HierarchyError, match=named):
        Hierarchy.from_rows(rows)


def test_a_cycle_beside_a_tree_is_named() -> None:
    edges = {"*": None, "a": "*", "x": "y", "y": "x"}
    with pytest.raises(HierarchyError, match=r"is its own ancestor: .*, given 'x'"):
        Hierarchy.from_parents(edges)
    with pytest.raises(HierarchyError, match=r"is its own ancestor: .*, given 'x'"):
        Hierarchy.from_parents({"x": "y", "y": "x"})


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({}, "one root, this mapping has 0"),
        ({"a": None, "b": None}, "one root, this mapping has 2"),
        ({"a": {"b": ["a"]}}, "appears twice, given 'a'"),
        ({"a": ["b", "b"]}, "appears twice, given 'b'"),
        ({"a": ["b", " b "]}, "appears twice, given 'b'"),
        ({"a": {"b": []}}, "an empty list of children.* given 'b'"),
        ({"a": {}}, "an empty list of children.* given 'a'"),
        ({"a": ["b", ""]}, "below 'a'"),
        ({"a": ["b", None]}, "below 'a'"),
        ({"a": [["b"]]}, "below 'a'"),
        ({"a": {"b": 5}}, "a mapping or a list of labels, given int below 'b'"),
        ({"a": "bcd"}, "a mapping or a list of labels, given str below 'a'"),
    ],
)
def test_mappings_that_are_no_tree(tree: Any, named: str) -> None:
    with pytest.raises(HierarchyError, match=named):
        Hierarchy.from_mapping(tree)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "no rows"),
        (b"\n;\n", "no rows"),
        (b"a;\xff\n", "not UTF-8"),
        (b"a;b;a\n", "cycle: a label is its own ancestor, given 'a'"),
    ],
)
def test_bad_files_name_file_and_fault(tmp_path: Path, content: bytes, named: str) -> None:
    path = tmp_path / "tree.csv"
    path.write_bytes(content)
    with pytest.raises(HierarchyError, match=f"tree.csv.*{named}"):
        Hierarchy.from_csv(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"none\.csv: cannot be read"):
        Hierarchy.from_csv(tmp_path / "none.csv")


def test_a_hundred_thousand_leaves_and_a_deep_chain() -> None:
    rows = [[f"{number}", f"{number // 10}x", f"{number // 1000}y", "*"] for number in range(100_000)]
    tree = Hierarchy.from_rows(rows)
    assert tree.labels[int(tree.lca(4_000, 4_999))] == "4y"
    assert tree.labels[int(tree.lca(4_999, 5_000))] == "*"
    assert tree.labels[int(tree.lca(70, 79))] == "7x"
    chain = ["end"]
    for number in range(20_000):
        chain = {f"link {number}": chain}  # type: ignore[assignment]
    deep = Hierarchy.from_mapping(chain)  # type: ignore[arg-type]
    assert deep.height[0] == 20_000
    assert Hierarchy.from_rows(deep.rows()).labels == deep.labels

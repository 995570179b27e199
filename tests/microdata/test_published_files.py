"""What is published can be read again, says nothing else, and has lost the order of the original."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Cancelled,
    Category,
    DataError,
    GuaranteeError,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    boxes_from,
    class_column,
    generalizations,
    published_columns,
    published_of,
    publishing,
    read_published,
    seeded_words,
    write_published,
)
from tests.microdata.trees import nested_trees

WORLD = Hierarchy.from_mapping({"World": {"Europe, west": ["France", "Spain"], "Asia": ["Japan"]}})
SCHEMA = Schema(
    "id",
    (Number("age", 0, 120, integer=True), Number("pay", 0, 1, step=0.1), Number("x", -1, 1), Category("land", WORLD)),
    (Category("ill", Hierarchy.flat(['the "flu"', "cold"])), Number("debt", 0, 2, step=0.5)),
    ("shop",),
)
NAMES = ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet", "t.arrow"]


def publication(quasi: Any, sensitive: Any, classes: Any, shops: Any = None, schema: Any = SCHEMA) -> Any:
    rows = len(classes)
    public = pa.table({"shop": shops or [f"s{row}" for row in range(rows)]}) if schema.public else None
    quasi = np.array(quasi, float).reshape(rows, len(schema.quasi))
    sensitive = np.array(sensitive, np.int32).reshape(rows, len(schema.sensitive))
    return Publication.of(Table(schema, np.arange(rows), quasi, sensitive, public), np.array(classes))


SMALL = publication(
    [[25, 0.3, -0.5, 0], [30, 0.35, 0.25, 1], [40, 0.1, 0, 2], [40, 0.1, 0, 2], [9, 0, 0, 0]],
    [[0, 1], [1, 4], [1, 0], [0, 3], [0, 0]],
    [0, 0, 1, 1, -1],
)


def facts(published: Any) -> Any:
    """The published rows as a bag: class sizes, boxes, sensitive and public values."""
    boxes, classes = published.boxes, published.classes
    shops = published.public.column("shop").to_pylist() if published.public is not None else [None] * len(published)
    sizes = np.bincount(classes)
    return Counter(
        (sizes[one], tuple(boxes.lo[one]), tuple(boxes.hi[one]), tuple(values), shop)
        for one, values, shop in zip(classes, published.sensitive.tolist(), shops, strict=True)
    )


@st.composite
def publications(draw: Any) -> Any:
    tree = Hierarchy.from_mapping(draw(nested_trees(most_nodes=12)))
    low = draw(st.floats(-100, 100))
    step = draw(st.sampled_from([None, 0.1, 0.25, 3, 1 / 3]))
    quasi = (
        Number("n", -5, 5, integer=True, step=draw(st.sampled_from([None, 3]))),
        Number("r", low, low + 10, step=step),
        Category("c", tree),
    )
    schema = Schema(PersonSource.ROW, quasi, (Category("s", tree), Number("d", 0, 1, step=0.1)), ("shop",))
    rows = draw(st.integers(1, 15))
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    values = [
        random.integers(-5, 6, rows),
        np.minimum(low + random.random(rows) * 10, low + 10),
        random.integers(0, tree.size, rows),
    ]
    sensitive = np.stack([random.integers(0, tree.size, rows), random.integers(0, 11, rows)], axis=1)
    classes = random.integers(-1, draw(st.integers(1, 6)), rows)
    classes[0] = 0
    shops = draw(st.lists(st.text(max_size=4), min_size=rows, max_size=rows))
    return publication(np.stack(values, axis=1), sensitive, classes, shops, schema)


@pytest.mark.parametrize("name", NAMES)
@given(published=publications())
@settings(max_examples=15)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, name: Any, published: Any) -> None:
    path = tmp_path_factory.getbasetemp() / name
    write_published(published, path)
    again = read_published(path, published.table.schema)
    assert facts(again) == facts(published_of(published))
    assert again.undeclared == ()


@pytest.mark.parametrize("name", NAMES)
def test_suppressed_rows_and_persons_never_leave(tmp_path: Path, name: Any) -> None:
    write_published(SMALL, tmp_path / name)
    again = read_published(tmp_path / name, SCHEMA)
    assert len(again) == 4
    assert again.public.column("shop").to_pylist().count("s4") == 0  # type: ignore[union-attr]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_text_forms(tmp_path: Path) -> None:
    write_published(SMALL, tmp_path / "t.csv", words=seeded_words(1))
    head, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert head == "class,age,pay,x,land,ill,debt,shop"
    assert {re.sub(r"^\d+,", "", line) for line in lines} == {
        '"[25,30]","[0.3,0.4]","[-0.5,0.25]","Europe, west","the ""flu""",0.5,s0',
        '"[25,30]","[0.3,0.4]","[-0.5,0.25]","Europe, west",cold,2,s1',
        "40,0.1,0,Japan,cold,0,s2",
        '40,0.1,0,Japan,"the ""flu""",1.5,s3',
    }
    write_published(SMALL, tmp_path / "t.jsonl")
    objects = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert {"age": [25, 30], "pay": [0.3, 0.4], "land": "Europe, west"}.items() <= next(
        item for item in objects if item["shop"] == "s0"
    ).items()
    point = next(item for item in objects if item["shop"] == "s2")
    assert (point["age"], point["x"], point["debt"]) == ([40, 40], [0, 0], 0)


def test_frames_of_publications() -> None:
    columns = published_columns(SMALL)
    assert columns.column_names == ["class", "age", "pay", "x", "land", "ill", "debt", "shop"]
    assert set(columns.to_pandas()["land"]) == {"Europe, west", "Japan"}
    assert set(pl.from_arrow(columns)["debt"]) == {0.5, 2.0, 0.0, 1.5}  # type: ignore[index]
    assert isinstance(columns.to_pandas(), pd.DataFrame)


def test_order_and_class_numbers_come_from_the_words(tmp_path: Path) -> None:
    rows = 500
    many = publication(
        np.tile([25, 0.3, 0, 0], (rows, 1)) + np.arange(rows)[:, None] % 5 * [1, 0, 0, 0],
        np.zeros((rows, 2)),
        np.arange(rows) // 10,
    )

    def written(words: Any) -> Any:
        frame = published_columns(many, words=words).to_pandas()
        return frame["shop"].tolist(), frame.drop_duplicates("class").set_index("class")["shop"].to_dict()

    shops, numbers = written(seeded_words(7))
    assert (shops, numbers) == written(seeded_words(7))
    assert shops != written(seeded_words(8))[0]
    assert shops != many.table.public.column("shop").to_pylist()
    assert sorted(numbers) == list(range(1, 51))
    by_class = [int(numbers[number][1:]) // 10 for number in sorted(numbers)]
    assert by_class != sorted(by_class)
    # Where a row stands and what its class is called must not say where it came from.
    places = np.array([int(shop[1:]) for shop in written(seeded_words(3))[0]])
    assert abs(np.corrcoef(places, np.arange(rows))[0, 1]) < 0.2


def test_a_row_outside_its_box_stops_the_writing(tmp_path: Path) -> None:
    narrow = Publication(SMALL.table, SMALL.classes, Boxes(SCHEMA, SMALL.boxes.lo, SMALL.boxes.lo))
    for name in NAMES:
        with pytest.raises(GuaranteeError, match="1 rows lie outside"):
            write_published(narrow, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "_ROWS", 1)
    calls = []

    def stop(phase: Any, done: Any, total: Any) -> None:
        calls.append((phase, done, total))
        if done == 2:
            raise Cancelled

    for name in NAMES:
        with pytest.raises(Cancelled):
            write_published(SMALL, tmp_path / name, progress=stop)
    assert calls[:2] == [("write", 1, 4), ("write", 2, 4)]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match=r"t\.csv: cannot be written"):
        write_published(SMALL, tmp_path / "nowhere" / "t.csv")


def test_chunks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_published(SMALL, tmp_path / "whole.csv", words=seeded_words(5))
    monkeypatch.setattr(publishing, "_ROWS", 1)
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.arrow"):
        write_published(SMALL, tmp_path / name, words=seeded_words(5))
        assert facts(read_published(tmp_path / name, SCHEMA)) == facts(published_of(SMALL))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_an_empty_publication_is_a_header(tmp_path: Path) -> None:
    nothing = Publication.of(SMALL.table, np.full(5, -1))
    write_published(nothing, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "class,age,pay,x,land,ill,debt,shop\n"
    write_published(nothing, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0
    with pytest.raises(DataError, match="no rows"):
        read_published(tmp_path / "t.parquet", SCHEMA)


FOREIGN = Schema(
    "id", (Number("age", 0, 120), Category("land", WORLD)), (Category("ill", Hierarchy.flat(["flu", "cold"])),)
)


def test_files_of_others_are_understood(tmp_path: Path) -> None:
    rows = ["World;flu;[25, 30]", "*;cold;[25.0,30]", "Europe, west;flu;*", "Europe, west;flu;[0,120]", "Japan;cold;7"]
    (tmp_path / "t.csv").write_text("\n".join(["land;ill;age", *rows]))
    again = read_published(tmp_path / "t.csv", FOREIGN)
    assert again.boxes.lo[again.classes].tolist() == [[25, 0], [25, 0], [0, 0], [0, 0], [7, 2]]
    assert again.boxes.hi[again.classes].tolist() == [[30, 2], [30, 2], [120, 1], [120, 1], [7, 2]]
    assert again.sensitive[:, 0].tolist() == [0, 1, 0, 0, 1]
    assert len(again.boxes) == 3
    assert again.public is None


@pytest.mark.parametrize(
    "lines",
    [
        ['{"age": [25, 30], "land": "World", "ill": "flu"}', '{"age": 7, "land": "Japan", "ill": "cold"}'],
        ['{"age": [25, 30.0], "land": "World", "ill": "flu"}', '{"age": [7, 7], "land": "Japan", "ill": "cold"}'],
        ['{"age": "[25,30]", "land": "*", "ill": "flu"}', '{"age": "7", "land": "Japan", "ill": "cold"}'],
    ],
)
def test_json_of_others_is_understood(tmp_path: Path, lines: Any) -> None:
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    again = read_published(tmp_path / "t.jsonl", FOREIGN)
    assert again.boxes.lo[again.classes].tolist() == [[25, 0], [7, 2]]
    assert again.boxes.hi[again.classes].tolist() == [[30, 2], [7, 2]]


def test_a_star_that_is_a_label_keeps_its_meaning(tmp_path: Path) -> None:
    schema = Schema("id", (Category("c", Hierarchy.from_mapping({"top": {"*": ["a", "b"], "z": None}})),))
    (tmp_path / "t.csv").write_text("c\n*\ntop\n")
    again = read_published(tmp_path / "t.csv", schema)
    assert again.boxes.hi[again.classes][:, 0].tolist() == [1, 2]


def test_a_class_is_never_larger_than_rows_that_look_alike(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("class,age,land,ill\n1,5,Japan,flu\n1,5,Japan,flu\n1,6,Japan,flu\n2,5,Japan,flu\n")
    again = read_published(tmp_path / "t.csv", FOREIGN)
    assert sorted(np.bincount(again.classes)) == [1, 1, 2]


def test_undeclared_columns_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,class,age,land,ill,zip\na,1,5,Japan,flu,x\n")
    assert read_published(tmp_path / "t.csv", FOREIGN).undeclared == ("id", "zip")
    table = pa.table({"age": [5], "land": ["Japan"], "ill": ["flu"], "who": [{"id": 1, "name": "x"}]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_published(tmp_path / "t.parquet", FOREIGN).undeclared == ("who.id", "who.name")
    nested = Schema("who.id", (Number("who.age", 0, 9),))
    (tmp_path / "t.jsonl").write_text('{"who": {"age": 5, "name": "x"}}')
    assert read_published(tmp_path / "t.jsonl", nested).undeclared == ("who.name",)


def test_a_schema_may_use_the_name_class(tmp_path: Path) -> None:
    schema = Schema(PersonSource.ROW, (Number("class", 0, 9, integer=True),), (), ("class_",))
    assert class_column(schema) == "class__"
    table = Table(
        schema, np.arange(2), np.array([[1.0], [2.0]]), np.empty((2, 0), np.int32), pa.table({"class_": [1, 2]})
    )
    write_published(Publication.of(table, np.array([0, 0])), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == "class__,class,class_"
    assert read_published(tmp_path / "t.csv", schema).boxes.hi.tolist() == [[2]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("[30,25];Japan;flu", r"age: not an interval \[low,high\] in 1 row \(2\)"),
        ("25-30;Japan;flu", "age: not an interval"),
        ("[25,30;Japan;flu", "age: not an interval"),
        ("[25];Japan;flu", "age: not an interval"),
        ("nan;Japan;flu", "age: not an interval"),
        ("[25,200];Japan;flu", "age: outside the declared domain"),
        (";Japan;flu", "age: missing value"),
        ("25;Mars;flu", "land: not a label of the hierarchy"),
        ("25;Japan;*", "ill: not a leaf of the hierarchy"),
        ("25;Japan", "another number of cells"),
    ],
)
def test_what_is_not_understood_is_told_without_the_value(tmp_path: Path, row: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(f"age;land;ill\n25;Japan;flu\n{row}\n")
    with pytest.raises(DataError, match=said) as caught:
        read_published(tmp_path / "t.csv", FOREIGN)
    assert "Mars" not in str(caught.value)
    assert "200" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"age": [1, 2, 3], "land": "Japan", "ill": "flu"}', "age: not an interval"),
        (b'{"age": [null, 2], "land": "Japan", "ill": "flu"}', "age: not an interval"),
        (b'{"age": {"low": 1}, "land": "Japan", "ill": "flu"}', "age: wrong type"),
        (b'{"age": [1, 2], "land": ["Japan", "Spain"], "ill": "flu"}', "land: not a label"),
        (b'{"land": "Japan", "ill": "flu"}', "columns are missing, given columns 'land', 'ill':\nage: is missing"),
        (b"{", "not a JSON object"),
    ],
)
def test_json_that_is_not_understood(tmp_path: Path, line: bytes, said: str) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(line))
    with pytest.raises(DataError, match=said):
        read_published(tmp_path / "t.jsonl.gz", FOREIGN)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,ill\n5,flu\n")
    with pytest.raises(DataError, match="land: is missing"):
        read_published(tmp_path / "t.csv", FOREIGN)


@given(publications())
def test_objects_round_trip(published: Any) -> None:
    boxes = published.boxes.widened()
    again = boxes_from(boxes.schema, json.loads(json.dumps(generalizations(boxes))))
    assert again.lo.tolist() == boxes.lo.tolist()
    assert again.hi.tolist() == boxes.hi.tolist()


@pytest.mark.parametrize(
    "item", [{}, {"age": "x", "land": "Japan"}, {"age": [5, 1], "land": "Japan"}, {"age": 5, "land": "?"}]
)
def test_objects_that_are_not_understood(item: Any) -> None:
    with pytest.raises(DataError):
        boxes_from(FOREIGN, [item])


def test_labels_of_others_may_have_spaces_around_them(tmp_path: Path) -> None:
    tree = Hierarchy.from_mapping({"any": {"warm": ["red", "orange"], "cold": ["blue"]}})
    schema = Schema(PersonSource.ROW, (Category("colour", tree),), (Category("taste", tree),))
    path = tmp_path / "safe.csv"
    path.write_text('colour,taste\n" warm"," red "\n"* ",blue\n')
    published = read_published(path, schema)
    assert sorted(zip(published.boxes.lo[:, 0].tolist(), published.boxes.hi[:, 0].tolist(), strict=True)) == [
        (0, 1),
        (0, 2),
    ]
    assert sorted(published.sensitive[:, 0].tolist()) == [0, 2]

"""Classes shown as means: what stands for a class, how it is written, and how it is read again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Category,
    DataError,
    GuaranteeError,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    generalizations,
    means,
    publication,
    published_columns,
    published_of,
    read_published,
    write_published,
)
from static_algos import Mondrian
from tests.worlds import tables

TREE = Hierarchy.from_mapping({"World": {"Europe": ["France", "Spain"], "Asia": ["Japan"]}})
SCHOOL = Category("school", Hierarchy.flat(["none", "primary", "secondary", "university"]), ordered=True)
SCHEMA = Schema(
    PersonSource.ROW,
    (
        Number("age", 0, 99, integer=True),
        Number("income", -50, 1000, step=100),
        Number("score", 0, 1),
        SCHOOL,
        Category("country", TREE),
    ),
    (Category("item", Hierarchy.flat(["x", "y"])),),
)
ROWS = np.array(
    [[20, 940, 0.1, 0, 0], [31, 999, 0.1, 3, 1], [32, 1000, 0.1, 2, 0], [50, -50, 0.25, 1, 2], [53, 20, 0.5, 2, 2]]
)
SMALL = Publication.of(
    Table(SCHEMA, np.arange(5), ROWS.astype(float), np.zeros((5, 1), np.int32)),
    np.array([0, 0, 0, 1, 1]),
    show="mean",
)


def test_a_class_is_the_mean_of_its_numbers_the_median_of_what_has_an_order_and_else_the_lowest_node() -> None:
    assert generalizations(SMALL.shown(), "mean") == [
        # 27.67 is 28; 979.67 is nearest to 950, since steps begin at -50; three times 0.1 is 0.1.
        {"age": 28, "income": 950.0, "score": 0.1, "school": "secondary", "country": "Europe"},
        # Of 50 and 53 the even one of two whole numbers that are as near, of two schools the lower one.
        {"age": 52, "income": -50.0, "score": 0.375, "school": "primary", "country": "Japan"},
    ]


@settings(max_examples=60)
@given(tables(), st.integers(1, 5), st.booleans())
def test_means_by_the_definition_and_inside_of_the_boxes(table: Any, count: int, ordered: bool) -> None:
    quasi = tuple(replace(one, ordered=ordered) if isinstance(one, Category) else one for one in table.schema.quasi)
    table = replace(table, schema=replace(table.schema, quasi=quasi))
    labels = np.arange(len(table)) % count - 1
    made = Publication.of(table, labels, show="mean")
    shown, boxes = made.shown(), made.boxes.widened()
    assert (boxes.lo <= shown.lo).all()
    assert (shown.hi <= boxes.hi).all()
    for one in range(len(boxes)):
        own = table.quasi[made.classes == one]
        for column, attribute in enumerate(quasi):
            lo, hi = shown.lo[one, column], shown.hi[one, column]
            if isinstance(attribute, Number):
                grid = attribute.grid or 0.0
                assert lo == hi
                assert abs(lo - own[:, column].mean()) <= grid / 2 + 1e-9 or lo == attribute.high
                assert (
                    not grid
                    or lo == attribute.high
                    or abs(round((lo - attribute.low) / grid) * grid + attribute.low - lo) < 1e-9
                )
            elif ordered:
                assert lo == hi == sorted(own[:, column])[(len(own) - 1) // 2]
            else:
                assert (lo, hi) == (boxes.lo[one, column], boxes.hi[one, column])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_of_means_has_numbers_and_is_read_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"safe.{ending}"
    write_published(SMALL, path)
    read = read_published(path, SCHEMA, show="mean")
    shown = published_of(SMALL)
    assert read.show == shown.show == "mean"
    assert sorted(map(tuple, read.boxes.lo[read.classes])) == sorted(map(tuple, shown.boxes.lo[shown.classes]))
    assert sorted(map(tuple, read.boxes.hi[read.classes])) == sorted(map(tuple, shown.boxes.hi[shown.classes]))
    if ending == "csv":
        assert "28,950.0,0.1,secondary,Europe,x" in path.read_text().replace("950,", "950.0,")
        assert "[" not in path.read_text()
    elif ending == "jsonl":
        assert '"age":28,' in path.read_text()
        assert "[" not in path.read_text()
    else:
        kinds = pyarrow.parquet.read_schema(path)
        assert [str(kinds.field(name).type) for name in ("age", "income", "school")] == ["int64", "double", "string"]


def test_frames_have_them_too() -> None:
    assert sorted(published_columns(SMALL)["age"].to_pylist()) == [28, 28, 28, 52, 52]
    boxes = replace(SMALL, show="interval")
    assert sorted(published_columns(boxes)["age"].to_pylist()) == [[20, 32]] * 3 + [[50, 53]] * 2


def test_intervals_are_no_means(tmp_path: Path) -> None:
    write_published(replace(SMALL, show="interval"), tmp_path / "safe.csv")
    with pytest.raises(DataError) as refusal:
        read_published(tmp_path / "safe.csv", SCHEMA, show="mean")
    assert {name for name, *_ in refusal.value.fields} >= {"age", "income", "school"}


def test_what_is_shown_outside_of_its_box_never_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: Any) -> Boxes:
        right = means(*given)
        return Boxes(right.schema, right.lo + 40, right.hi + 40)

    monkeypatch.setattr(publication, "means", wrong)
    with pytest.raises(GuaranteeError, match="2 classes are shown outside"):
        write_published(SMALL, tmp_path / "safe.csv")
    assert not list(tmp_path.iterdir())


def test_rows_outside_of_the_box_of_their_class_never_leave_as_a_mean(tmp_path: Path) -> None:
    broken = replace(SMALL, classes=SMALL.classes[::-1].copy())
    with pytest.raises(GuaranteeError, match="outside the box"):
        write_published(broken, tmp_path / "safe.csv")


def test_large_numbers_keep_their_mean() -> None:
    top = 2.0**53 - 1
    schema = Schema(PersonSource.ROW, (Number("n", top - 100, top, integer=True),))
    rows = np.full((1000, 1), top - 1)
    shown = means(schema, rows, np.zeros(1000, np.int64), 1)
    assert shown.lo.tolist() == [[top - 1]]


def test_every_algorithm_can_show_them() -> None:
    table = Table(SCHEMA, np.arange(5), ROWS.astype(float), np.zeros((5, 1), np.int32))
    made = replace(Mondrian(k=2).anonymize(table), show="mean")
    assert all(isinstance(one["age"], int) for one in generalizations(made.shown(), "mean"))

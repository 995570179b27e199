"""Worked examples of the Ordered Greed Framework: ten rows of Adult, all orders of their eight columns."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Schema, published_of
from static_algos import Datafly, Ogf
from static_algos.datafly import cells_of
from static_algos.ogf import every_order
from tests.one_key import encode

NAMES = ("age", "work", "education", "marital", "occupation", "race", "sex", "country")
ROWS = """\
39 State-gov Bachelors Never-married Adm-clerical White Male United-States
50 Self-emp-not-inc Bachelors Married-civ-spouse Exec-managerial White Male United-States
38 Private HS-grad Divorced Handlers-cleaners White Male United-States
53 Private 11th Married-civ-spouse Handlers-cleaners Black Male United-States
28 Private Bachelors Married-civ-spouse Prof-specialty Black Female Cuba
37 Private Masters Married-civ-spouse Exec-managerial White Female United-States
49 Private 9th Married-spouse-abse Other-service Black Female Jamaica
52 Self-emp-not-inc HS-grad Married-civ-spouse Exec-managerial White Male United-States
31 Private Masters Never-married Prof-specialty White Female United-States
42 Private Bachelors Married-civ-spouse Exec-managerial White Male United-States"""


def ten_rows() -> Any:
    columns = list(zip(*(line.split() for line in ROWS.splitlines()), strict=True))
    quasi = [Number("age", 17, 90, integer=True)]
    quasi += [Category(NAMES[i], Hierarchy.flat(sorted(set(columns[i])))) for i in range(1, 8)]  # type: ignore[misc]
    raw = pa.table({"age": [int(age) for age in columns[0]], **dict(zip(NAMES[1:], columns[1:], strict=True))})
    return encode(Schema(PersonSource.ROW, tuple(quasi)), raw).table


def names(*order: int) -> list[str]:
    return [NAMES[column] for column in order]


def test_the_printed_order() -> None:
    table = ten_rows()
    order = (5, 6, 7, 3, 4, 0, 1, 2)
    publication = Datafly(k=2, order=names(*order)).anonymize(table)
    classes = {frozenset((np.flatnonzero(publication.classes == one) + 1).tolist()) for one in range(4)}
    assert classes == {frozenset(one) for one in ({1, 3}, {2, 8, 10}, {4, 5, 7}, {6, 9})}
    shares = publication.details["suppressed_cells"]
    assert [round(10 * shares[NAMES[column]]) for column in order] == [0, 3, 3, 7, 7, 10, 5, 8]  # type: ignore[index]
    assert publication.details["unsuppressed"] == pytest.approx(37 / 80)
    assert _released(publication) == {
        1: "* * * * * White Male United-States",
        2: "* * * Married-civ-spouse Exec-managerial White Male United-States",
        4: "* Private * * * Black * *",
        6: "* Private Masters * * White Female United-States",
    }


def _released(publication: Any) -> dict[int, str]:
    """What is published about some rows, suppressed cells as stars."""
    published, shown = published_of(publication), {}
    for row in (1, 2, 4, 6):
        lo, hi = (ends[published.classes[row - 1]] for ends in (published.boxes.lo, published.boxes.hi))
        assert lo[0] == 17
        assert hi[0] == 90  # the age is suppressed everywhere: its whole domain
        trees = [attribute.hierarchy for attribute in publication.table.schema.quasi[1:]]
        cells = zip(trees, lo[1:], hi[1:], strict=True)
        shown[row] = " ".join(["*", *(tree.labels[int(tree.lca(low, high))] for tree, low, high in cells)])
    return shown


def test_by_distinct_values_and_the_order_that_adult_has() -> None:
    table = ten_rows()
    assert [len(np.unique(column)) for column in table.quasi.T] == [10, 3, 5, 4, 5, 2, 2, 3]
    plain = Datafly(k=2).anonymize(table)
    assert plain.details["order"] == names(0, 2, 4, 3, 1, 7, 5, 6)
    assert plain.details["unsuppressed"] == pytest.approx(36 / 80)
    other = Datafly(k=2, order=names(0, 7, 2, 4, 1, 3, 5, 6)).anonymize(table)
    assert other.details["unsuppressed"] == pytest.approx(34 / 80)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "best", "orders", "worst", "mean"), [(2, 42, 416, 17, 32.53), (3, 29, 1_152, 7, None), (5, 0, 40_320, 0, 0)]
)
def test_all_orders(k: int, best: int, orders: int, worst: int, mean: float | None) -> None:
    table = ten_rows()
    kept = np.array([80 - done.suppressed for _, done in every_order(cells_of(table, k, "suppress"), range(8))])
    assert len(kept) == 40_320
    assert (kept.max(), (kept == best).sum(), kept.min()) == (best, orders, worst)
    assert mean is None or round(kept.mean(), 2) == mean
    if k < 5:
        assert Ogf(k=k, search="exhaustive").anonymize(table).details["unsuppressed"] == pytest.approx(best / 80)


def test_the_gain_of_the_printed_table() -> None:
    from load_tests.column_orders import PRINTED  # noqa: PLC0415 - a benchmark, which draws and prints

    gains = [searched - plain for plain, searched in PRINTED.values()]
    assert np.mean(gains) == pytest.approx(35.4, abs=0.05)  # the text says 34.6


def test_legal_strings_of_work_class() -> None:
    from load_tests.quality.bit_searches import legal, repaired  # noqa: PLC0415

    below = {
        "Private": None,
        "Self-emp": ["Self-emp-not-inc", "Self-emp-inc"],
        "Gov": ["Federal-gov", "Local-gov", "State-gov"],
        "Unemployed": ["Without-pay", "Never-worked"],
    }
    tree = Hierarchy.from_mapping({"*": below})
    every = [[bool(number >> place & 1) for place in range(7)] for number in range(128)]
    assert sum(legal(one, tree) for one in every) == 9
    illegal = np.array([1, 0, 1, 0, 1, 1, 1], bool)  # Federal and Local without State
    assert not legal(illegal, tree)
    assert repaired(illegal, tree).astype(int).tolist() == [1, 0, 1, 0, 0, 1, 1]

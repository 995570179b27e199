"""Worked examples of two theses about searches: Sun 2010, chapter 2, and Sadad 2012, sections 4.2.1 and 4.2.2.

Where a printed example is wrong, the test says what is right.
"""

from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, PersonSource, Schema, Table
from privacy import KAnonymity
from static_algos import (
    Incognito,
    LatticeSearch,
    PrivacyTable,
    Samarati,
    TopDown,
    along,
    average_class_size,
    discernibility,
    distortion_ratio,
    minimal_generalizations,
    strategies,
    strategy_count,
)
from tests.golden.category_tables import DISEASE, SADAD_4_1, SADAD_4_3, SADAD_4_4, SUN_3_6

GENDER = Category("gender", Hierarchy.from_mapping({"person": ["male", "female"]}))
ZIP = Category("zip", Hierarchy.from_mapping({"43**": {"437*": ["4370", "4373"], "435*": ["4352", "4350"]}}))
ILLNESS = Category("illness", Hierarchy.flat(["Cancer", "Chest Pain", "Obesity", "Flu"]))


def table_of(quasi: Any, sensitive: Any, rows: Any) -> Any:
    """A table from the labels of its leaves."""
    columns = [*quasi, *sensitive]
    codes = [[one.hierarchy.leaves.index(str(value)) for one, value in zip(columns, row, strict=True)] for row in rows]
    encoded = np.array(codes, np.float64).reshape(len(rows), len(columns))
    schema = Schema(PersonSource.ROW, tuple(quasi), tuple(sensitive))
    held = encoded[:, len(quasi) :].astype(np.int32)
    return Table(schema, np.arange(len(rows)), encoded[:, : len(quasi)].copy(), held)


SUN = table_of(
    (GENDER, ZIP),
    (ILLNESS,),
    [
        ("male", 4370, "Cancer"),
        ("male", 4370, "Cancer"),
        ("male", 4352, "Cancer"),
        ("female", 4373, "Chest Pain"),
        ("female", 4373, "Obesity"),
        ("female", 4350, "Flu"),
    ],
)
"""Table 2.1 of Sun without ages (TC-2B)."""


def models(table: Any, **asked: Any) -> Any:
    return LatticeSearch(**asked).models(table.schema)


@pytest.mark.parametrize(
    ("levels", "k"), [((0, 0), 1), ((0, 1), 1), ((0, 2), 3), ((1, 0), 1), ((1, 1), 2), ((1, 2), 6)]
)
def test_anonymity_of_every_vector(levels: Any, k: int) -> None:
    way = next(way for way in strategies([1, 2]) if levels in way)
    assert min(along(SUN, way, models(SUN, k=1)).sizes[sum(levels)]) == k


def test_minimal_vectors() -> None:
    """TC-2D; in the printed definition `≤` would exclude every vector, itself included."""
    for k, minimal in ((2, {(0, 2), (1, 1)}), (3, {(0, 2)}), (6, {(1, 2)})):
        assert {one.levels for one in minimal_generalizations(SUN, [KAnonymity(k)])} == minimal
        least = min(map(sum, minimal))
        assert sum(Samarati(k=k).anonymize(SUN).details["levels"].values()) == least  # type: ignore[attr-defined]


def test_a_table_that_is_safe_as_it_is_is_not_generalized() -> None:
    """Printed, algorithm 2 never puts height 0 into its last bucket."""
    twice = SUN.take(np.array([0, 1, 3, 4]))
    assert [one.levels for one in minimal_generalizations(twice, [KAnonymity(2)])] == [(0, 0)]
    assert along(twice, next(strategies([1, 2])), [KAnonymity(2)]).height == 0


def test_strategy_counts() -> None:
    """TC-2C; the base case of the printed corollary holds only where all heights, or all but one, are 0."""
    assert (strategy_count([1, 2]), strategy_count([2, 2]), strategy_count([0, 3]), strategy_count([1, 0, 1])) == (
        3,
        6,
        1,
        2,
    )


@pytest.mark.parametrize("second", [(1, 0), (0, 1)])
def test_a_strategy_by_itself(second: Any) -> None:
    """TC-2G1: rows below each class, the buckets, and the answer, on both ways that fit the lost figure."""
    walk = along(SUN, [(0, 0), second, (1, 1), (1, 2)], models(SUN, k=2))
    assert walk.sizes[1:] == ((2, 2, 1, 1), (4, 2), (6,))
    assert walk.buckets(2) == (6, 2, 5)
    assert walk.height == 2


def test_a_strategy_finds_what_is_minimal_on_its_way_alone() -> None:
    walk = along(SUN, [(0, 0), (1, 0), (1, 1), (1, 2)], models(SUN, k=3))
    assert walk.height == 3
    assert {one.height for one in minimal_generalizations(SUN, [KAnonymity(3)])} == {2}


@pytest.mark.parametrize(
    ("asked", "height"),
    [
        ({"l": 2}, 2),
        ({"l": {"entropy": 2}}, 2),
        ({"l": 3}, 3),
        ({"l": {"entropy": 3}}, 3),
        ({"l": {"recursive": {"c": 2, "l": 2}}}, 2),
        ({"l": {"recursive": {"c": 1, "l": 2}}}, None),
    ],
)
def test_diversity_along_a_strategy(asked: Any, height: int | None) -> None:
    """TC-2I; "for any data" of the printed algorithms means all classes of a height."""
    walk = along(SUN, [(0, 0), (1, 0), (1, 1), (1, 2)], models(SUN, k=2, **asked))
    assert walk.height == height


def test_table_2_8() -> None:
    """TC-2G2: eight rows become three classes at height 2, which the text counts as level 3."""
    ages = Hierarchy.from_mapping({"*": {"[17-24]": list("abcd"), "[29-34]": list("ef"), "[39-45]": list("gh")}})
    pay = Category("pay", Hierarchy.flat([str(number) for number in range(8)]))
    table = table_of(
        (Category("age", ages), Category("zip", ages)), (pay,), [(one, one, n) for n, one in enumerate("abcdefgh")]
    )
    walk = along(table, [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)], models(table, k=2, l=2))
    assert [len(sizes) for sizes in walk.sizes] == [8, 8, 3, 3, 1]
    assert (walk.buckets(2), walk.height) == ((8, 8, 7), 2)
    assert [one.levels for one in minimal_generalizations(table, models(table, k=2, l=2))] == [(1, 1)]
    published = LatticeSearch(k=2, l=2).anonymize(table)
    assert published.classes.tolist() == [0, 0, 0, 0, 1, 1, 2, 2]


def test_the_privacy_hash_table() -> None:
    """TC-2F: (25,4370) and (28,4373) where the text prints (25,4350) and (28,4353)."""
    rows = [(25, 4370, 0), (25, 4370, 0), (22, 4352, 0), (28, 4373, 1), (28, 4373, 2), (34, 4350, 3)]
    codes = np.array(rows)
    live = PrivacyTable(quasi=2, k=2, distinct=[2])
    live.add(codes[:, :2], np.arange(6), codes[:, 2:])
    assert (len(live), live.achieved, live.failing, live.holds) == (4, (1, 1), (2, 3), False)
    live.remove(codes[[2, 5], :2], np.array([2, 5]), codes[[2, 5], 2:])
    assert (len(live), live.achieved, live.failing, live.holds) == (2, (2, 1), (0, 1), False)
    live.remove(codes[:2, :2], np.array([0, 1]), codes[:2, 2:])
    assert (live.achieved, live.holds) == ((2, 2), True)


SADAD = table_of(
    (
        Category("zip", Hierarchy.from_mapping({"220**": {"2203*": ["22030", "22032"], "2204*": ["22045", "22047"]}})),
        Category(
            "marital",
            Hierarchy.from_mapping({"*": {"Been": ["Married", "Divorced", "Widow"], "Never": ["Single"]}}),
        ),
        Category("gender", Hierarchy.from_mapping({"Gender": ["Male", "Female"]})),
    ),
    (),
    [row[:3] for row in SADAD_4_3],
)


@pytest.mark.parametrize(
    ("spare", "minimal"),
    [
        (3, {(1, 1, 0), (0, 2, 1)}),
        (2, {(0, 2, 1), (2, 1, 1), (2, 2, 0)}),
        (1, {(0, 2, 1), (2, 1, 1), (2, 2, 0)}),
        (0, {(1, 2, 1), (2, 1, 1), (2, 2, 0)}),
    ],
)
def test_incognito_with_suppression(spare: int, minimal: Any) -> None:
    """The thesis says MaxSup = 2; what it marks is what holds with 3."""
    assert {one.levels for one in minimal_generalizations(SADAD, [KAnonymity(3)], max_suppressed=spare)} == minimal
    found = Incognito(k=3, max_suppressed=spare, choose="minimal").anonymize(SADAD)
    assert {tuple(one["levels"].values()) for one in found.details["minimal"]} == minimal  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("levels", "rows"),
    [((1, 1, 0), 3), ((0, 2, 1), 1), ((2, 0, 1), 4), ((1, 2, 1), 0), ((0, 0, 0), 10), ((2, 1, 0), 3), ((0, 1, 1), 10)],
)
def test_rows_to_suppress_at_a_vector(levels: Any, rows: int) -> None:
    way = next(way for way in strategies([2, 2, 1]) if levels in way)
    sizes = along(SADAD, way, [KAnonymity(3)]).sizes[sum(levels)]
    assert sum(size for size in sizes if size < 3) == rows


def zips_of(codes: Any) -> Any:
    """Digit by digit up to nothing: five steps."""
    rows = [[code[:kept] + "*" * (5 - kept) for kept in range(5, -1, -1)] for code in sorted(set(codes))]
    return Category("zip", Hierarchy.from_rows(rows))


PREFER = pytest.mark.parametrize("prefer", ["rows", "loss"])
"""The theses' way to choose a quasi-identifier, and ours: here both do the same."""


ASKED = pytest.mark.parametrize(
    "asked",
    [{"l": 2}, {"p": 2, "alpha_weight": 1}, {"p_categories": 2}, {"p_categories": 2, "alpha_weight": 1}],
    ids="+".join,
)


@PREFER
@ASKED
@pytest.mark.parametrize("rows", [SUN_3_6, [(zip_, condition) for zip_, _, condition in SADAD_4_4]])
def test_top_down_moves_one_row_up(rows: Any, asked: Any, prefer: Any) -> None:
    """TC-3H and table 4.4: the row alone in its part stays behind, and one of the others stays with it.

    Rows 2 and 3 would do, row 1 would not: what is left would weigh 0, or be of one category. The thesis of Sadad moves
    a row of "73455", where only the other part has any to spare; and both tables have four sensitive values, not two.
    """
    zips = zips_of([zip_ for zip_, _ in rows])
    publication = TopDown(k=2, **asked, prefer=prefer).anonymize(table_of((zips,), (DISEASE,), rows))
    assert publication.classes.tolist() == [0, 0, 1, 1]
    wide, tree = publication.boxes.widened(), zips.hierarchy
    own = rows[0][0]
    assert [tree.labels[int(node)] for node in tree.lca(wide.lo[:, 0], wide.hi[:, 0])] == [own, own[:4] + "*"]
    assert publication.details["held_back"] == 1
    assert distortion_ratio(publication) == pytest.approx(2 / 20)


@PREFER
@ASKED
def test_top_down_with_two_quasi_identifiers(asked: Any, prefer: Any) -> None:
    zips, sex = zips_of([row[0] for row in SADAD_4_4]), Category("sex", Hierarchy.flat(["M", "F"]))
    publication = TopDown(k=2, **asked, prefer=prefer).anonymize(table_of((zips, sex), (DISEASE,), SADAD_4_4))
    assert publication.classes.tolist() == [0, 0, 1, 1]
    assert distortion_ratio(publication) == pytest.approx(2 / 24)


def table_4_1() -> Any:
    """Table 4.1 of Sadad: digits of zip codes, decades and continents."""
    lands = {
        "Europe": ["Denmark", "France", "Germany"],
        "Asia": ["Japan", "China", "Pakistan"],
        "America": ["Canada", "USA"],
    }
    decades = {f"{tens}*": [str(age) for _, age, *_ in SADAD_4_1 if age // 10 == tens] for tens in (2, 3, 4)}
    quasi = (
        zips_of([row[0] for row in SADAD_4_1]),
        Category("age", Hierarchy.from_mapping({"*": decades})),
        Category("land", Hierarchy.from_mapping({"*": lands})),
    )
    return table_of(quasi, (DISEASE,), SADAD_4_1)


@PREFER
@pytest.mark.parametrize("asked", [{}, {"p": 2}])
def test_top_down_on_table_4_1(asked: Any, prefer: Any) -> None:
    """k = 4, also 2-sensitive: three classes at the levels (2, 1, 1), of 108 levels 48."""
    publication = TopDown(k=4, **asked, prefer=prefer).anonymize(table_4_1())
    numbers = publication.classes.reshape(3, 4)
    assert (numbers == numbers[:, :1]).all()
    assert len(np.unique(numbers)) == 3
    assert distortion_ratio(publication) == pytest.approx(48 / 108)
    assert discernibility(publication) == 48
    assert average_class_size(publication, 4) == 1


@PREFER
@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"p": 2, "alpha_weight": 1}, 60),
        ({"p_categories": 2, "alpha_weight": 1}, 60),
        ({"p_categories": 3, "alpha_weight": 2}, 64),
    ],
)
def test_top_down_on_table_4_1_with_categories(asked: Any, most: int, prefer: Any) -> None:
    """Rows 9-12 are most secret all: they mix with others. No more levels than the specification's prototype raises."""
    publication = TopDown(k=4, **asked, prefer=prefer).anonymize(table_4_1())
    assert distortion_ratio(publication) * 108 <= most + 1e-9
    assert not (publication.classes[8:] == publication.classes[8]).all() or publication.sizes.max() > 4


@pytest.mark.parametrize("alpha", [1, 2, 3])
def test_a_greater_weight_is_stricter(alpha: int) -> None:
    """Both theses say that distortion falls as α grows; by their definitions it is the stricter demand."""
    table = table_4_1()
    asked = [models(table, k=3, p=2, alpha_weight=one) for one in (max(alpha - 1, 0) or 0.1, alpha or 0.1)]
    loose, strict = (min(one.height for one in minimal_generalizations(table, some)) for some in asked)
    assert strict >= loose

"""Worked examples of the specification: sections 1.6, 2.3, 4.1 and 4.7, as far as they are about models."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Category, Hierarchy, Number, PersonSource, Publication, Schema, Table, class_loss
from privacy import (
    BetaLikeness,
    DistinctDiversity,
    Groups,
    Histogram,
    KAnonymity,
    RangeLikeness,
    SemanticLikeness,
    TCloseness,
    audit,
    distance,
    divergence,
    homogeneity,
    linking,
    risks,
    skewness,
)

SEX = Category("sex", Hierarchy.from_mapping({"Person": ["Male", "Female"]}))
MALE, FEMALE = 0, 1
RESPIRATORY = ["SARS", "pneumonia", "bronchitis"]
FIG_3_1 = Category(
    "disease",
    Hierarchy.from_mapping({"RD": {"R": RESPIRATORY, "D": ["gastric flu", "gastric ulcer", "intestinal cancer"]}}),
)
FIG_4_1 = Category(
    "disease",
    Hierarchy.from_mapping({"RD": {"R": RESPIRATORY, "D": ["hepatitis", "gastric ulcer", "intestinal cancer"]}}),
)
PAIR = Category("pair", Hierarchy.flat(["yes", "no"]))


def groups_of(attribute: Any, reference: Any, *classes: Any) -> Any:
    """One sensitive attribute, counts of the reference and of each class."""
    values = [np.flatnonzero(counts).astype(np.int32) for counts in classes]
    starts = np.cumsum([0, *map(len, values)])
    held = np.concatenate([np.array(counts)[own] for counts, own in zip(classes, values, strict=True)])
    rows = np.array([sum(counts) for counts in classes])
    histogram = Histogram(attribute, np.array(reference), starts, np.concatenate(values), held)
    return Groups(rows, rows, np.ones_like(rows), (histogram,))


class TestTableOneOne:
    """Table 1.1: Bob, Mike, John | Jack, Kate, Jane."""

    schema = Schema(
        PersonSource.ROW,
        (Number("age", 0, 100, integer=True), SEX, Number("zip", 53700, 53720, integer=True)),
        (Category("disease", Hierarchy.flat(["Bronchitis", "Broken arm", "AIDS", "Hepatitis"])),),
    )
    quasi = np.array(
        [
            [26, MALE, 53711],
            [27, MALE, 53710],
            [27, MALE, 53712],
            [25, MALE, 53711],
            [25, FEMALE, 53712],
            [28, FEMALE, 53711],
        ],
        float,
    )
    table = Table(schema, np.arange(6), quasi, np.array([[0], [1], [2], [3], [3], [3]], np.int32))
    publication = Publication.of(table, np.array([0, 0, 0, 1, 1, 1]))

    def test_boxes(self) -> None:
        boxes = self.publication.boxes.widened()
        assert boxes.lo.tolist() == [[26, MALE, 53710], [25, MALE, 53711]]
        assert boxes.hi.tolist() == [[27, MALE, 53712], [28, FEMALE, 53712]]
        assert SEX.hierarchy.labels[SEX.hierarchy.lca(MALE, FEMALE)] == "Person"

    def test_three_anonymous_but_open_to_the_homogeneity_attack(self) -> None:
        k, diversity = audit(self.table, self.publication, [KAnonymity(3), DistinctDiversity(2)]).findings
        assert (k.holds, k.achieved) == (True, 3)
        assert (diversity.holds, diversity.achieved, diversity.classes) == (False, 1, ("1",))
        groups = Groups.of(self.schema, self.table.persons, self.table.sensitive, self.publication.classes, 2)
        (learned,) = homogeneity(groups)
        assert learned.values == ("Hepatitis",)
        assert learned.classes.tolist() == [1]
        assert learned.posterior.tolist() == [1]


class TestTableOneFour:
    """Table 1.4: Mike, John, Bob | Alice, Beth, Carol: diverse, and yet every class tells the organ."""

    schema = Schema(
        PersonSource.ROW, (Number("weight", 50, 80, integer=True), Number("age", 40, 70, integer=True)), (FIG_3_1,)
    )
    quasi = np.array([[60, 40], [70, 50], [60, 60], [50, 50], [80, 50], [70, 70]], float)
    table = Table(schema, np.arange(6), quasi, np.array([[0], [5], [1], [2], [3], [4]], np.int32))
    publication = Publication.of(table, np.array([0, 1, 0, 0, 1, 1]))

    def test_boxes_and_loss(self) -> None:
        assert self.publication.boxes.lo.tolist() == [[50, 40], [70, 50]]
        assert self.publication.boxes.hi.tolist() == [[60, 60], [80, 70]]
        assert class_loss(self.publication.boxes).tolist() == pytest.approx([0.5, 0.5])
        assert self.publication.loss == pytest.approx(0.5)
        assert Publication.of(self.table, np.zeros(6, int)).loss == 1

    def test_three_anonymous_and_three_diverse_but_half_away(self) -> None:
        checked = audit(self.table, self.publication, [KAnonymity(3), DistinctDiversity(3), TCloseness(0.49)])
        assert [finding.holds for finding in checked.findings] == [True, True, False]
        assert checked.findings[2].achieved == 0.5
        assert audit(self.table, self.publication, [TCloseness(0.5)]).holds


class TestTableFiveOne:
    """Table 5.1: Mike, John, Bob | Alice, Beth, Carol."""

    schema = Schema(
        PersonSource.ROW, (SEX, Number("zip", 53700, 53720, integer=True), Number("age", 0, 99, integer=True))
    )
    quasi = np.array(
        [
            [MALE, 53708, 31],
            [FEMALE, 53715, 21],
            [MALE, 53703, 28],
            [MALE, 53706, 26],
            [FEMALE, 53703, 24],
            [FEMALE, 53706, 22],
        ],
        float,
    )
    table = Table(schema, np.arange(6), quasi, np.empty((6, 0), np.int32))
    publication = Publication.of(table, np.array([0, 1, 0, 0, 1, 1]))

    def test_boxes(self) -> None:
        boxes = self.publication.boxes
        assert boxes.lo.tolist() == [[MALE, 53703, 26], [FEMALE, 53703, 21]]
        assert boxes.hi.tolist() == [[MALE, 53708, 31], [FEMALE, 53715, 24]]

    def test_weak_anonymity_is_no_anonymity(self) -> None:
        """One record in a box that three known persons fit: whoever knows that Mike is in it has found him."""
        boxes = self.publication.boxes
        box = Boxes(self.schema, boxes.lo[:1], boxes.hi[:1])
        alone = Publication(self.table, np.array([0, -1, -1, -1, -1, -1], np.int32), box)
        assert linking(box, alone.sizes, self.table).persons.tolist() == [3]
        found = risks(alone, population=self.table)
        assert found.journalist is not None
        assert found.journalist.highest == pytest.approx(1 / 3)
        assert found.prosecutor.highest == 1
        assert not audit(self.table, alone, [KAnonymity(3)]).holds


def test_skewness_example() -> None:
    """0.1 % overall, 1 of 10 in a class: a hundredfold."""
    groups = groups_of(PAIR, [1, 999], [1, 9], [0, 10])
    (learned,) = skewness(groups, factor=100)
    assert learned.classes.tolist() == [0]
    assert learned.values == ("yes",)
    assert learned.posterior / learned.prior == pytest.approx(100)
    assert not len(skewness(groups, factor=101)[0])


class TestEarthMoversDistance:
    """Section 2.3."""

    uniform = np.ones(6, int)

    def test_example_3_1(self) -> None:
        assert distance(FIG_3_1, self.uniform, np.array([1, 1, 1, 0, 0, 0])) == Fraction(1, 2)

    @pytest.mark.parametrize(("respiratory", "digestive"), list(product(range(3), range(3, 6))))
    def test_example_3_2(self, respiratory: Any, digestive: Any) -> None:
        counts = np.zeros(6, int)
        counts[[respiratory, digestive]] = 1
        assert distance(FIG_3_1, self.uniform, counts) == Fraction(1, 3)

    def test_scenario_of_3_4_1(self) -> None:
        table = np.array([5, 3, 2, 4, 2, 2])
        assert distance(FIG_3_1, table, np.array([4, 2, 4, 0, 4, 4])) == Fraction(1, 6)
        assert distance(FIG_3_1, table, np.array([0, 0, 10, 0, 8, 0])) == Fraction(7, 18)

    @pytest.mark.parametrize(("reference", "counts", "gain"), [([40, 60], [50, 50], 0.25), ([1, 99], [11, 89], 10)])
    def test_the_same_distance_for_very_different_gains(self, reference: Any, counts: Any, gain: Any) -> None:
        groups = groups_of(PAIR, reference, counts)
        assert TCloseness(0.1).holds(groups).all()
        assert not TCloseness(0.0999).holds(groups).any()
        assert BetaLikeness(gain, "basic").holds(groups).all()
        assert not BetaLikeness(gain - 0.001, "basic").holds(groups).any()

    def test_divergence_ranks_a_trebled_rare_value_as_safer(self) -> None:
        usual, rare = groups_of(PAIR, [40, 60], [50, 50]), groups_of(PAIR, [1, 99], [3, 97])
        assert divergence(usual, usual.histograms[0]) == pytest.approx([0.0073], abs=5e-5)
        assert divergence(rare, rare.histograms[0]) == pytest.approx([0.0038], abs=5e-5)
        assert BetaLikeness(1, "basic").achieved(usual) < BetaLikeness(1, "basic").achieved(rare)


class TestLikeness:
    """Sections 4.1 and 4.7."""

    def test_example_4_1(self) -> None:
        whole = groups_of(FIG_4_1, [1] * 6, [1] * 6)
        assert BetaLikeness(0.001).achieved(whole).tolist() == [0]
        # Each class takes one of {SARS, pneumonia}, {bronchitis, hepatitis}, {gastric ulcer, intestinal cancer}.
        halves = groups_of(FIG_4_1, [1] * 6, [1, 0, 0, 1, 0, 1], [0, 1, 1, 0, 1, 0])
        assert BetaLikeness(1).holds(halves).all()
        assert not BetaLikeness(0.999).holds(halves).any()

    @staticmethod
    def allowed(attribute: Any, reference: Any, value: Any, count: Any, rows: Any, beta: Any) -> Any:
        """Whether a class may have so many rows of one value, the rest spread as in the table."""
        reference = np.array(reference)
        others = np.delete(np.arange(len(reference)), value)
        counts = np.zeros(len(reference), int)
        counts[others] = (rows - count) * reference[others] // reference[others].sum()
        counts[others[-1]] += rows - count - counts.sum()
        counts[value] = count
        return bool(BetaLikeness(beta).holds(groups_of(attribute, reference, counts))[0])

    def test_caps_of_example_4_2(self) -> None:
        counts = [2, 3, 3, 3, 4, 4]
        assert self.allowed(FIG_4_1, counts, 0, 60_000, 190_000, beta=2)  # exactly 6/19
        assert not self.allowed(FIG_4_1, counts, 0, 60_001, 190_000, beta=2)
        for value, cap in ((1, 0.4493), (4, 0.5386)):
            assert self.allowed(FIG_4_1, counts, value, round((cap - 5e-5) * 10**6), 10**6, beta=2)
            assert not self.allowed(FIG_4_1, counts, value, round((cap + 5e-5) * 10**6), 10**6, beta=2)

    def test_leaves_of_example_4_2(self) -> None:
        """Buckets {1, 2}, {3, 4}, {5, 6}; at worst all of a bucket's rows have its rarer value."""
        leaves = [[1, 0, 1, 0, 2, 0], [1, 0, 2, 0, 2, 0], [3, 0, 3, 0, 4, 0]]
        refused = [2, 0, 2, 0, 2, 0]
        groups = groups_of(FIG_4_1, [2, 3, 3, 3, 4, 4], *leaves, refused)
        assert BetaLikeness(2).holds(groups).tolist() == [True, True, True, False]

    @pytest.mark.parametrize(("beta", "value", "cap"), [(1, 0, 0.0968), (4, 0, 0.19497), (4, 1, 0.01009)])
    def test_caps_of_census(self, beta: int, value: int, cap: float) -> None:
        """Salary in 50 classes: the most frequent has 4.8402 %, the least 0.2018 %."""
        salary = Number("salary", 0, 49, integer=True)
        rest = (1_000_000 - 48_402 - 2_018) // 48
        reference = [48_402, 2_018, *[rest] * 47, 1_000_000 - 48_402 - 2_018 - 47 * rest]
        assert self.allowed(salary, reference, value, round((cap - 1e-5) * 10**7), 10**7, beta)
        assert not self.allowed(salary, reference, value, round((cap + 1e-5) * 10**7), 10**7, beta)

    def test_lemma_4_3_enhanced_implies_neither_extension(self) -> None:
        """Two related values, each within its own bound, together beyond the bound of their sum."""
        counts = [20, 20, 30, 30], [46, 46, 4, 4]
        tree = Category("illness", Hierarchy.from_mapping({"all": {"lungs": ["a", "b"], "gut": ["c", "d"]}}))
        groups = groups_of(tree, *counts)
        assert BetaLikeness(4).holds(groups).all()
        assert not SemanticLikeness(4, height=1).holds(groups).any()
        groups = groups_of(Number("pay", 1, 4, integer=True), *counts)
        assert BetaLikeness(4).holds(groups).all()
        assert not RangeLikeness(4, width=1).holds(groups).any()
        assert RangeLikeness(4, width=0).holds(groups).all()

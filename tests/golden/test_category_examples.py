"""Worked examples about categories of sensitivity: Sun, chapters 2 and 3, and Sadad, as far as they are about models
and attacks. What is printed wrong there is tested as it must be."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from microdata import (
    Category,
    Hierarchy,
    Number,
    PersonSource,
    Publication,
    Schema,
    Sensitivity,
    Table,
    read_published,
    write_published,
)
from privacy import (
    CategoryWeight,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    Guarantee,
    KAnonymity,
    PPlusSensitivity,
    PSensitivity,
    RecursiveDiversity,
    TCloseness,
    audit,
    disclosures,
    homogeneity,
    inference,
    linking,
    observed,
    similarity,
    skewness,
)
from privacy.emd import work
from tests.golden import category_tables as tables

ANY = (Number("number", 0, 99, integer=True),)


def groups_of(classes: Any, attribute: Any = tables.DISEASE) -> Groups:
    """Classes with these values of one attribute, every row another person."""
    schema = Schema(PersonSource.ROW, ANY, (attribute,))
    values = [attribute.code_of(str(value)) for one in classes for value in one]
    labels = np.repeat(np.arange(len(classes)), [len(one) for one in classes])
    return Groups.of(schema, np.arange(len(values)), np.array(values, np.int32)[:, None], labels, len(classes))


def sun(persons: Any) -> Any:
    """The diseases of these persons of Table 3.1, class by class."""
    return [[tables.SUN_3_1[person - 1][3] for person in one] for one in persons]


def measures(groups: Groups) -> Any:
    """Size, distinct values, categories and weight of each class."""
    found = [model.achieved(groups) for model in (PSensitivity(1), PPlusSensitivity(1), CategoryWeight(1))]
    return list(zip(groups.rows.tolist(), *(np.round(one, 9).tolist() for one in found), strict=True))


def holds(groups: Groups, k: int = 4, **asked: Any) -> bool:
    models = Guarantee(k=k, **asked).models(Schema(PersonSource.ROW, ANY, (tables.DISEASE,)))
    return bool(np.logical_and.reduce([model.holds(groups) for model in models]).all())


class TestWeights:
    def test_table_3_3(self) -> None:
        assert tables.SENSITIVITY.weights == tuple(Fraction(number, 3) for number in range(4))

    @pytest.mark.parametrize(
        "values", [("Cancer", "Phthisis", "Asthma", "Flu"), ("Indigestion", "Obesity", "Hepatitis", "HIV")]
    )
    def test_one_of_each_weighs_two(self, values: Any) -> None:
        assert measures(groups_of([values])) == [(4, 4, 4, 2)]

    def test_income_by_ranges(self) -> None:
        """Table 3.9, on a grid of thousands: (20k,40k] begins at 21k."""
        ranges = (((1_000, 20_000),), ((21_000, 40_000),), ((41_000, 70_000),), ((71_000, 100_000),))
        income = Number("income", 1_000, 100_000, step=1_000, sensitivity=Sensitivity(ranges))
        assert np.bincount(income.category_of).tolist() == [20, 20, 30, 30]

    def test_even_weights_are_as_far_apart_as_their_categories(self) -> None:
        """dist(HIV, Indigestion) = 1, dist(Hepatitis, Obesity) = 1/3."""
        weights = tables.SENSITIVITY.weights
        assert (abs(weights[0] - weights[3]), abs(weights[1] - weights[2])) == (Fraction(1), Fraction(1, 3))

    def test_the_row_that_table_3_9_lost(self) -> None:
        """Its third class is printed with a total of 3, and the three rows that are left weigh 2."""
        left = ("Asthma", "Phthisis", "Flu")
        assert [one[3] for one in measures(groups_of([left, (*left, "Indigestion")]))] == [2, 3]

    def test_one_category_weighs_one(self) -> None:
        assert Sensitivity((("a", "b"),)).weights == (Fraction(1),)


class TestSunTables:
    def test_3_2_is_2_sensitive_and_no_more(self) -> None:
        groups = groups_of(sun(tables.SUN_3_2))
        assert measures(groups) == [(4, 2, 1, 0), (4, 4, 2, 2), (4, 2, 1, 4)]
        assert holds(groups, p=2)
        assert not holds(groups, p_categories=2)
        assert not holds(groups, p=2, alpha_weight=1)
        (alike,) = similarity(groups)
        assert alike.classes.tolist() == [0, 2]
        assert alike.values == ("HIV, Cancer", "Flu, Indigestion")
        assert alike.exposed(groups) == 8

    def test_3_4_is_2_plus_sensitive(self) -> None:
        groups = groups_of(sun(tables.SUN_3_4))
        assert measures(groups) == [(4, 4, 2, 2), (4, 4, 2, 2), (4, 3, 2, 2)]
        assert holds(groups, p_categories=2)
        assert holds(groups, p=3, alpha_weight=2)
        assert holds(groups, p_categories=2, alpha_weight=2)
        assert not len(similarity(groups)[0])

    def test_3_5_weighs_rows_not_values(self) -> None:
        groups = groups_of(tables.SUN_3_5)
        assert measures(groups) == [(4, 3, 2, 1), (4, 4, 2, 2), (4, 3, 2, 3)]
        assert holds(groups, p=3, alpha_weight=1)
        assert holds(groups, p_categories=2, alpha_weight=1)
        assert not holds(groups, alpha_weight={"every": 2.5, "over": "values"})

    def test_weight_does_not_prevent_similarity(self) -> None:
        """Three rows of secret diseases weigh 1 and are one category."""
        groups = groups_of([("Phthisis", "Hepatitis", "Hepatitis")])
        assert holds(groups, k=3, p=2, alpha_weight=1)
        assert len(similarity(groups)[0]) == 1


SADAD_CLASSES = [
    ("Flu Asthma Flu Indigestion", (3, 2, "11/3"), (True, True, True, True, False, False)),
    ("Hepatitis Obesity Flu Phthisis", (4, 3, "7/3"), (True, True, True, True, True, True)),
    ("HIV Cancer Cancer HIV", (2, 1, "0"), (True, False, False, False, False, False)),
    ("HIV Cancer HIV Flu", (3, 2, "1"), (True, True, True, True, False, False)),
    ("Hepatitis Phthisis Asthma Obesity", (4, 2, "2"), (True, True, True, True, False, False)),
    ("Indigestion Obesity Hepatitis HIV", (4, 4, "2"), (True, True, True, True, True, True)),
]
"""Values; how many are distinct, of how many categories and what they weigh; which of the models below hold."""
SADAD_MODELS: list[dict[str, Any]] = [
    {"p": 2},
    {"p": 2, "alpha_weight": 1},
    {"p": 3, "alpha_weight": 1},
    {"p_categories": 2, "alpha_weight": 1},
    {"p_categories": 3, "alpha_weight": 1},
    {"p_categories": 3, "alpha_weight": 2},
]


@pytest.mark.parametrize(("values", "measured", "expected"), SADAD_CLASSES, ids=lambda one: str(one)[:30])
def test_sadad_classes(values: str, measured: Any, expected: Any) -> None:
    groups = groups_of([values.split()])
    distinct, categories, weight = measured
    assert measures(groups) == [(4, distinct, categories, pytest.approx(float(Fraction(weight))))]
    assert tuple(holds(groups, **asked) for asked in SADAD_MODELS) == expected


def test_the_flaw_of_the_enhanced_model_and_its_fix() -> None:
    """Three of four rows are most secret, and (2,1)-sensitive enhanced all the same: a share is what forbids it."""
    groups = groups_of(tables.SADAD_3_10)
    assert holds(groups, p_categories=2, alpha_weight=1)
    likely = inference(groups, certainty=0.75)[1]
    assert (likely.classes.tolist(), likely.values, likely.posterior.tolist()) == ([0], ("HIV, Cancer",), [0.75])
    assert not holds(groups, p_categories=2, alpha_weight=1, max_category_share=0.5)
    assert not holds(groups, max_category_share={"every": 0.74, "of": "first"})
    assert holds(groups, max_category_share={"every": 0.75, "of": "first"})


def test_four_categories_weigh_two_whatever_they_are() -> None:
    """p = 4 of 4 categories makes every α up to 2 redundant."""
    groups = groups_of([("HIV", "Phthisis", "Asthma", "Flu"), ("Cancer", "Hepatitis", "Obesity", "Indigestion", "HIV")])
    assert holds(groups, p_categories=4)
    assert holds(groups, p_categories=4, alpha_weight=2)


def test_table_2_3_is_2_anonymous_only() -> None:
    """It is called 3-anonymous."""
    races = tables.SADAD_2_3
    labels = np.unique(races, return_inverse=True)[1]
    groups = Groups.of(Schema(PersonSource.ROW, ANY), np.arange(8), np.empty((8, 0), np.int32), labels, 3)
    assert KAnonymity(3).holds(groups).tolist() == [True, False, True]
    assert KAnonymity(2).holds(groups).all()


def condition_of(values: Any) -> Category:
    return Category("condition", Hierarchy.flat(dict.fromkeys(values)))


def test_diversity_of_table_3_3() -> None:
    """Distinct 3-diverse, but 80 % HIV."""
    values = tables.SADAD_3_3
    groups = groups_of([values], condition_of(values))
    assert DistinctDiversity(3).holds(groups).all()
    assert EntropyDiversity(2).achieved(groups).tolist() == pytest.approx([1.895], abs=1e-3)
    assert FrequencyDiversity(1).achieved(groups).tolist() == [1.25]
    (likely,) = inference(groups, certainty=0.8)
    assert (likely.values, likely.posterior.tolist()) == (("HIV",), [0.8])


def test_entropies_of_table_3_2() -> None:
    values = [row[3] for row in tables.SADAD_3_1]
    groups = groups_of([values[:4], values[4:8], values[8:]], condition_of(values))
    assert EntropyDiversity(2).achieved(groups).tolist() == pytest.approx([1, 2, 2])
    assert EntropyDiversity(2).holds(groups).tolist() == [False, True, True]
    assert homogeneity(groups)[0].values == ("Viral Infection",)


def test_closeness_of_salaries() -> None:
    """Table 3.5: by rank among the values that occur, and by equal distances."""
    salaries = [row[2] for row in tables.SADAD_3_4]
    classes = [salaries[:3], salaries[3:6], salaries[6:]]
    groups = groups_of(classes, Number("salary", 40_000, 110_000, step=10_000))
    ranked, equal = [
        work(groups.histograms[0], groups.rows, ground).distance().tolist() for ground in ("rank", "equal")
    ]
    assert ranked == pytest.approx([5 / 27, 1 / 6, 7 / 54])
    assert equal == pytest.approx([4 / 9, 2 / 3, 4 / 9])


def test_closeness_of_categories() -> None:
    """Table 4.1: the categories of its classes, as ordered values."""
    order = Number("category", 0, 3, integer=True)
    codes = [int(tables.DISEASE.category_of[tables.DISEASE.code_of(row[3])]) for row in tables.SADAD_4_1]
    groups = groups_of([codes[:4], codes[4:8], codes[8:]], order)
    assert TCloseness(1).achieved(groups).tolist() == pytest.approx([5 / 12, 5 / 36, 1 / 2])


class TestSun21:
    """Tables 2.1, 2.2 and 2.6: persons, what is published of them, what an attacker knows."""

    sex = Category("gender", Hierarchy.from_mapping({"person": ["Male", "Female"]}))
    zips = Category("zip", Hierarchy.from_mapping({"43**": {"437*": ["4370", "4373"], "435*": ["4350", "4352"]}}))
    disease = Category("disease", Hierarchy.flat(["Cancer", "Chest Pain", "Obesity", "Flu"]))
    schema = Schema(PersonSource.ROW, (sex, Number("age", 0, 99, integer=True), zips), (disease,))

    def table(self, rows: Any) -> Table:
        quasi = [[self.sex.code_of(sex), age, self.zips.code_of(code)] for sex, age, code in rows]
        return Table(self.schema, np.arange(len(rows)), np.array(quasi, float), np.zeros((len(rows), 1), np.int32))

    def published(self, classes: Any) -> Publication:
        rows = self.table([row[:3] for row in tables.SUN_2_1])
        diseases = [self.disease.code_of(row[3]) for row in tables.SUN_2_1]
        return Publication.of(
            Table(rows.schema, rows.persons, rows.quasi, np.array(diseases, np.int32)[:, None]), np.array(classes)
        )

    def test_levels_of_anonymity(self) -> None:
        assert KAnonymity(1).achieved(observed(self.published([0, 0, 1, 2, 2, 3]))).min() == 1
        assert KAnonymity(1).achieved(observed(self.published([0, 0, 0, 1, 1, 1]))).min() == 3

    @pytest.mark.parametrize("as_file", [False, True])
    def test_linking_discloses_whose_class_has_one_disease(self, as_file: bool, tmp_path: Any) -> None:
        publication: Any = self.published([0, 0, 0, 1, 1, 1])
        if as_file:
            write_published(publication, tmp_path / "published.csv")
            publication = read_published(tmp_path / "published.csv", self.schema)
        (found,) = disclosures(publication, self.table([row[1:] for row in tables.SUN_2_6]))
        assert found.values == ("Cancer", None, "Cancer", None)
        assert found.rows.tolist() == [3, 3, 3, 3]

    @pytest.mark.parametrize(("classes", "l", "entropy"), [([0, 0, 1, 0, 0, 1], 2, [1.5, 1.0]), ([0] * 6, 4, [1.7925])])
    def test_entropies_in_bits(self, classes: Any, l: int, entropy: Any) -> None:  # noqa: E741
        """TC-2I: heights 2 and 3 of the strategy over gender and zip."""
        groups = observed(self.published(classes))
        assert np.log2(EntropyDiversity(1).achieved(groups)).tolist() == pytest.approx(entropy, abs=1e-4)
        assert DistinctDiversity(l).holds(groups).all()
        assert not DistinctDiversity(l + 1).holds(groups).all()
        assert RecursiveDiversity(2, 2).holds(groups).all()
        assert not RecursiveDiversity(1, 2).holds(groups).all()


class TestSadadLinking:
    """Section 1.1: the external table knows no gender, and only Rajesh is found."""

    def test_only_rajesh(self) -> None:
        nations = Category("nationality", Hierarchy.flat(["Pakistani", "Indian", "Canadian", "Japanese"]))
        codes = Category("zip", Hierarchy.flat(["24064", "24078", "13053"]))
        sex = Category("gender", Hierarchy.flat(["M", "F"]))
        condition = Category("condition", Hierarchy.flat(["HIV", "Viral Infection", "Cancer"]))
        schema = Schema(PersonSource.ROW, (codes, Number("age", 0, 99, integer=True), sex, nations), (condition,))
        released = [
            [codes.code_of(one), age, sex.code_of(gender), nations.code_of(nation)]
            for one, age, gender, nation, _ in tables.SADAD_RELEASED
        ]
        conditions = np.array([condition.code_of(row[-1]) for row in tables.SADAD_RELEASED], np.int32)[:, None]
        table = Table(schema, np.arange(4), np.array(released, float), conditions)
        raw = Publication.of(table, np.arange(4))
        known = [[codes.code_of(row[1]), row[2], np.nan, nations.code_of(row[3])] for row in tables.SADAD_EXTERNAL]
        external = Table(schema, np.arange(3), np.array(known, float), np.zeros((3, 1), np.int32))
        (found,) = disclosures(raw, external)
        assert found.rows.tolist() == [0, 1, 0]
        assert found.values == (None, "HIV", None)
        assert linking(raw.boxes, raw.sizes, external).singled_out.tolist() == [1]
        together = Publication.of(table, np.zeros(4, int))
        assert audit(table, together, [KAnonymity(4)]).holds


class TestSadad31:
    """Tables 3.1 and 3.2: homogeneity finds David's condition, background knowledge Liza's."""

    def test_david_and_liza(self) -> None:
        rows = tables.SADAD_3_1
        codes = Category("zip", Hierarchy.flat(dict.fromkeys(row[0] for row in rows)))
        nations = Category("nationality", Hierarchy.flat(dict.fromkeys(row[2] for row in rows)))
        condition = condition_of(row[3] for row in rows)
        schema = Schema(PersonSource.ROW, (codes, Number("age", 0, 99, integer=True), nations), (condition,))
        quasi = np.array([[codes.code_of(row[0]), row[1], nations.code_of(row[2])] for row in rows], float)
        values = np.array([condition.code_of(row[3]) for row in rows], np.int32)[:, None]
        table = Table(schema, np.arange(12), quasi, values)
        published = Publication.of(table, np.repeat([0, 1, 2], 4))
        assert KAnonymity(4).holds(observed(published)).all()
        victims = table.take(np.array([0, 11]))
        assert disclosures(published, victims)[0].values == ("Viral Infection", None)
        knowing = disclosures(published, victims, {1: {"condition": ["Heart Disease"]}})
        assert knowing[0].values == ("Viral Infection", "Cancer")


def test_skewness_of_examinations() -> None:
    """Section 3.3.1.1: 1 % of 2,000 fail; in a class of one half, and in one of 49 of 50."""
    schema = Schema(PersonSource.ROW, ANY, (condition_of(["pass", "fail"]),))
    values = np.array([0] * 25 + [1] * 25 + [0] + [1] * 49, np.int32)[:, None]
    reference = [np.array([1_980, 20])]
    groups = Groups.of(schema, np.arange(100), values, np.repeat([0, 1], 50), 2, reference)
    (gained,) = skewness(groups, factor=10)
    assert gained.values == ("fail", "fail")
    assert gained.prior.tolist() == [0.01, 0.01]
    assert gained.posterior.tolist() == [0.5, 0.98]


def test_similarity_of_table_3_5() -> None:
    """All classes are 3-diverse; the first shows a stomach disease and a salary of 60,000 to 80,000."""
    stomach = ["Gastric malignancy", "Stomach inflammation", "Gastric ulcer", "Stomach cancer"]
    others = ["HIV", "Indigestion", "Fever", "Headache", "Flu"]
    tree = Hierarchy.from_mapping({"any": {"stomach": stomach, "other": others}})
    values = [row[3] for row in tables.SADAD_3_4]
    groups = groups_of([values[:3], values[3:6], values[6:]], Category("condition", tree))
    assert EntropyDiversity(3).achieved(groups).tolist() == pytest.approx([3, 3, 3])
    (alike,) = similarity(groups)
    assert (alike.classes.tolist(), alike.values) == ([0, 1], ("stomach", "other"))
    salaries = [row[2] for row in tables.SADAD_3_4]
    salary = Number("salary", 40_000, 110_000, step=10_000)
    (near,) = similarity(groups_of([salaries[:3], salaries[3:6], salaries[6:]], salary), width=0.3)
    assert (near.classes.tolist(), near.values) == ([0], ("60000 … 80000",))


def test_how_many_homogeneous_classes_to_expect() -> None:
    """Printed as 6,000 rows, 1,200 classes, one in eight: 60,000 rows, three values and classes of five are meant."""
    classes = 60_000 // 5
    chance = 3 * Fraction(1, 3) ** 5
    assert (classes, chance) == (12_000, Fraction(1, 81))
    assert (round(classes * chance), round(float(classes * chance * 5), -1)) == (148, 740.0)
    random = np.random.default_rng(1).integers(0, 3, 60_000)
    groups = groups_of(random.reshape(-1, 5).tolist(), Number("value", 0, 2, integer=True))
    assert len(homogeneity(groups)[0]) == pytest.approx(float(classes * chance), rel=0.3)

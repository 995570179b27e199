"""The worked examples of SABRE: Cao (2010), chapter 3; section 3.9 of the specification."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table, words
from privacy import Groups, TCloseness, distance
from static_algos._dichotomy_kernels import allowed
from static_algos.dichotomy import dichotomize
from static_algos.limits import references_of
from static_algos.sabre import sabre_classes
from static_algos.sabre_buckets import Bucket, Bucketing, bucketize, category_buckets, closeness_test, number_buckets

DISEASES = Hierarchy.from_mapping(
    {"RD": {"R": ["SARS", "pneumonia", "bronchitis"], "D": ["gastric flu", "gastric ulcer", "intestinal cancer"]}}
)
DISEASE = Category("disease", DISEASES)
SALARY = Number("salary", 1, 4, integer=True)
COUNTS = np.array([5, 3, 2, 4, 2, 2])
TWO = Bucketing((Bucket(0, 2, DISEASES.nodes["R"]), Bucket(3, 5, DISEASES.nodes["D"])), bound=14)
"""R and D of example 3.3: U = 7/18, which is 14 in units of 1 / (18 rows · height 2)."""


def labels(bucketing: Any) -> Any:
    return [DISEASES.labels[bucket.node] for bucket in bucketing.buckets]


def patients() -> Any:
    """Table 3.1."""
    rows = [(60, 40, 0), (70, 50, 5), (60, 60, 1), (50, 50, 2), (80, 50, 3), (70, 70, 4)]
    schema = Schema(PersonSource.ROW, (Number("weight", 50, 80), Number("age", 40, 70)), (DISEASE,))
    values = np.array(rows)
    return Table(schema, np.arange(6), values[:, :2].astype(float), values[:, 2:].astype(np.int32))


def test_example_3_2_singletons_make_one_class_two_buckets_make_three() -> None:
    table = patients()
    six = bucketize(DISEASE, np.ones(6, np.int64), Fraction(0))
    assert [
        leaf.tolist() for leaf in next(dichotomize(closeness_test(DISEASE, np.ones(6, int), six, Fraction(0)), 1))
    ] == [[1] * 6]
    two = bucketize(DISEASE, np.ones(6, np.int64), Fraction(7, 10))
    assert labels(two) == ["R", "D"]
    leaves = next(dichotomize(closeness_test(DISEASE, np.ones(6, int), two, Fraction(7, 10)), 1))
    assert leaves.tolist() == [[1, 1]] * 3
    for seed in range(5):
        classes, _ = sabre_classes(
            table,
            references_of(table),
            t=Fraction(7, 10),
            k=2,
            draw_words=words(seed),
            neighbours="exact",
            refine="none",
        )
        groups = Groups.of(table.schema, table.persons, table.sensitive, classes, 3)
        assert list(TCloseness(0.5).achieved(groups)) == pytest.approx([1 / 3] * 3)


def test_example_3_3_bounds_of_the_two_buckets() -> None:
    two = bucketize(DISEASE, COUNTS * 10, Fraction(4, 10))
    assert labels(two) == ["R", "D"]
    assert Fraction(two.bound, 180 * 2) == Fraction(7, 18)
    # A class that attains the bound: all rows have the least frequent value of their bucket.
    assert distance(DISEASE, COUNTS, np.array([0, 0, 10, 0, 8, 0])) == Fraction(7, 18)


def test_example_3_4_the_tree_of_categories() -> None:
    root = category_buckets(DISEASES, COUNTS, Fraction(9, 10))
    assert (labels(root), Fraction(root.bound, 36)) == (["RD"], Fraction(8, 9))
    halves = category_buckets(DISEASES, COUNTS, Fraction(4, 10))
    assert (labels(halves), Fraction(halves.bound, 36)) == (["R", "D"], Fraction(7, 18))
    final = category_buckets(DISEASES, COUNTS, Fraction(2, 10))
    assert (labels(final), Fraction(final.bound, 36)) == (["SARS", "pneumonia", "bronchitis", "D"], Fraction(1, 6))


def test_example_3_5_the_tree_of_numbers() -> None:
    counts = np.array([2, 3, 3, 2])
    root = number_buckets(counts, Fraction(6, 10), np.arange(4))
    assert (root.buckets, Fraction(root.bound, 10 * 3)) == ((Bucket(0, 3),), Fraction(1, 2))
    final = number_buckets(counts, Fraction(1, 4), np.arange(4))
    assert final.buckets == (Bucket(0, 1), Bucket(2, 3))
    assert Fraction(final.bound, 10 * 3) == Fraction(1, 5)


@pytest.mark.parametrize(
    ("draws", "least_t"),
    [([3, 2], Fraction(2, 45)), ([2, 2], Fraction(1, 18)), ([2, 1], Fraction(1, 9)), ([5, 4], Fraction(0))],
)
def test_examples_3_6_and_3_7_distances_between_buckets(draws: Any, least_t: Any) -> None:
    threshold = least_t + Fraction(7, 18)
    drawn = np.array(draws)
    assert allowed(closeness_test(DISEASE, COUNTS, TWO, threshold), drawn, sum(draws))
    assert not allowed(closeness_test(DISEASE, COUNTS, TWO, threshold - Fraction(1, 10**9)), drawn, sum(draws))


def test_example_3_7_the_tree_of_sizes() -> None:
    test = closeness_test(DISEASE, COUNTS, TWO, Fraction(45, 100))
    (leaves,) = dichotomize(test, least=1)
    assert leaves.tolist() == [[3, 2], [1, 1], [1, 1], [3, 2], [1, 1], [1, 1]]
    (larger,) = dichotomize(test, least=4)
    assert larger.tolist() == [[3, 2], [2, 2], [3, 2], [2, 2]]


def test_halves_are_never_rounded_to_even() -> None:
    test = closeness_test(DISEASE, np.array([5, 0, 0, 7, 0, 0]), Bucketing(TWO.buckets, bound=0), Fraction(1))
    (leaves,) = dichotomize(test, least=5)
    assert leaves.tolist() == [[3, 4], [2, 3]]


def test_strict_proportionality_would_need_large_classes() -> None:
    """50,000 rows with a bucket of share 0.1333: the test allows far smaller classes than 10,000."""
    counts = np.array([6665, 0, 0, 43335, 0, 0])
    bucketing = Bucketing(TWO.buckets, bound=0)
    leaves = np.concatenate(list(dichotomize(closeness_test(DISEASE, counts, bucketing, Fraction(1, 100)), least=1)))
    assert leaves.sum(axis=0).tolist() == [6665, 43335]
    assert 10 < leaves.sum(axis=1).max() < 1000

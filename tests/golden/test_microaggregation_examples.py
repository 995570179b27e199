"""The worked example of approximate microaggregation: X. Sun (2010), chapter 5; section TC-5 of the specification."""

import math

import numpy as np
import pytest

from microdata import Number, PersonSource, Schema, Table
from static_algos import Ama, dependency_tree, key_attributes, variation_of_information
from static_algos.dependency import distances, entropy

RECORDS = (7, 26, 52, 15, 28, 9, 57, 24, 59, 29, 28, 63)
ROWS = np.array([[record >> place & 1 for place in range(5, -1, -1)] for record in RECORDS])
"""Table 5.1: 12 records of 6 attributes, 000111 and so on."""
PRINTED = {
    (1, 2): 1.3796, (1, 3): 1.5339, (1, 4): 1.8777, (1, 5): 1.8777, (1, 6): 1.8126,
    (2, 3): 1.3753, (2, 4): 1.7772, (2, 5): 1.6681, (2, 6): 1.3180,
    (3, 4): 1.3368, (3, 5): 1.6217, (3, 6): 1.6217,
    (4, 5): 1.9586, (4, 6): 1.9586, (5, 6): 1.7510,
}  # fmt: skip


def test_the_distances_between_attributes_are_those_of_the_source() -> None:
    between = distances(list(ROWS.T))
    assert {pair: between[pair[0] - 1, pair[1] - 1] for pair in PRINTED} == pytest.approx(PRINTED, abs=1.1e-4)
    assert np.array_equal(between, between.T)
    assert not between.diagonal().any()


def test_the_tree_is_minimal_where_the_printed_one_is_not() -> None:
    between = distances(list(ROWS.T))
    tree = [(one + 1, other + 1) for one, other in dependency_tree(between)]
    assert tree == [(2, 6), (3, 4), (2, 3), (1, 2), (3, 5)]
    printed = [(2, 6), (3, 4), (2, 3), (1, 2), (2, 5)]  # with A2-A5 for A3-A5: deg(A2) = 4, deg(A3) = 2
    assert sum(PRINTED[pair] for pair in tree) < sum(PRINTED[pair] for pair in printed)
    assert [key + 1 for key in key_attributes(dependency_tree(between), 6)] == [2, 3]
    assert [key + 1 for key in key_attributes([(a - 1, b - 1) for a, b in printed], 6)] == [2, 3]


def test_the_algorithm_finds_them_and_groups_by_them() -> None:
    schema = Schema(PersonSource.ROW, tuple(Number(f"A{n}", 0, 1, integer=True) for n in range(1, 7)))
    table = Table(schema, np.arange(12), ROWS.astype(float), np.empty((12, 0), np.int32))
    publication = Ama(k=3).anonymize(table)
    assert publication.details["key_attributes"] == ["A2", "A3"]
    # By hand: r1 is farthest from the mean and takes r3 and r4, r2 is farthest from r1 and takes r5 and r7; and so on.
    together = {frozenset((np.flatnonzero(publication.classes == one) + 1).tolist()) for one in range(4)}
    assert together == {frozenset(one) for one in ({1, 3, 4}, {2, 5, 7}, {6, 9, 10}, {8, 11, 12})}


def test_the_entropies_of_the_other_example() -> None:
    # Table 4.1(a): gender, age, postcode; the conditionals are swapped in print, which leaves their sum.
    gender, age, postcode = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 2, 2], [0, 0, 1, 2, 3, 3]])
    assert [round(entropy(one), 4) for one in (gender, age, postcode)] == [1.0, 1.585, 1.9183]
    both = entropy(gender * 3 + age)
    assert (round(both - entropy(age), 4), round(both - entropy(gender), 4)) == (0.3333, 0.9183)
    pairs = [(gender, age), (gender, postcode), (age, postcode)]
    assert [round(variation_of_information(*pair), 4) for pair in pairs] == [1.2516, 0.9183, 0.3333]
    assert math.isclose(variation_of_information(gender, gender), 0, abs_tol=1e-12)


@pytest.mark.parametrize(("count", "keys"), [(1, 1), (2, 2), (3, 2), (5, 3), (7, 4), (8, 4)])
def test_on_a_path_the_bound_is_half_rounded_up(count: int, keys: int) -> None:
    # Theorem 5.1 says m / 2, which an odd path exceeds.
    path = [(n, n + 1) for n in range(count - 1)]
    assert len(key_attributes(path, count)) == keys <= math.ceil(count / 2) + (count <= 2)

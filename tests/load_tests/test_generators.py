"""The generators' data has the shapes, domains and frequencies that the specification states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from load_tests.generators import (
    ADULT_MISSING,
    ADULT_QUASI,
    ADULT_ROWS,
    adult_like,
    bursts,
    census_like,
    power_law,
    real_adult,
    transactions,
)
from load_tests.generators.ratings import made_survey, sparse_ratings
from load_tests.generators.real_adult import adult_folder
from microdata import Category
from privacy.ratings import hamming_groups, largest_k
from tests.one_key import encode

GENERATORS = {
    "adult_like": adult_like(sensitive=("occupation", "salary")),
    "adult_like, repeated persons": adult_like(rows_per_person=4),
    "census_like": census_like(),
    "census_like, repeated persons": census_like(rows_per_person=2.5),
    "power_law": power_law(1.2, 100, 4),
    "transactions": transactions(5),
    "bursts": bursts(quasi=4),
}
ROWS = 200_000


def share(column: Any, value: Any) -> Any:
    return (np.asarray(column) == value).mean()


@pytest.mark.parametrize("name", GENERATORS)
@settings(max_examples=10, deadline=None)
@given(rows=st.integers(0, 300), seed=st.integers(0, 2**32))
def test_encoding_the_raw_rows_gives_the_encoded_rows(name: Any, rows: int, seed: int) -> None:
    dataset = GENERATORS[name]
    table, raw = dataset.table(rows, seed), dataset.arrow(rows, seed)
    encoded = encode(dataset.schema, raw).table
    assert len(table) == len(encoded) == rows
    np.testing.assert_array_equal(table.quasi, encoded.quasi)
    np.testing.assert_array_equal(table.sensitive, encoded.sensitive)
    # Codes of persons differ from run to run; who shares one does not.
    pairs = set(zip(table.persons.tolist(), encoded.persons.tolist(), strict=True))
    assert len(pairs) == len(np.unique(table.persons)) == len(np.unique(encoded.persons))


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_repeats_and_another_does_not(name: Any) -> None:
    dataset = GENERATORS[name]
    assert dataset.arrow(500, 7).equals(dataset.arrow(500, 7))
    assert not dataset.arrow(500, 7).equals(dataset.arrow(500, 8))


def test_adult_like_has_the_attributes_of_table_5_4() -> None:
    schema = adult_like().schema
    assert tuple(attribute.name for attribute in schema.quasi) == ADULT_QUASI
    shape = {
        a.name: (a.size, int(a.hierarchy.height[0]) + 1) if isinstance(a, Category) else (a.low, a.high)
        for a in schema.quasi
    }
    assert shape == {
        "age": (17, 90),
        "final-weight": (13492, 1490400),
        "education-num": (1, 16),
        "capital-gain": (0, 99999),
        "capital-loss": (0, 4356),
        "hours-per-week": (1, 99),
        "education": (16, 5),
        "marital-status": (7, 4),
        "occupation": (14, 3),
        "native-country": (40, 5),
    }


def test_adult_like_has_the_frequencies_of_adult() -> None:
    rows = adult_like(sensitive=("occupation", "salary")).arrow(ROWS)
    assert share(rows["capital-gain"], 0) == pytest.approx(27624 / 30162, abs=0.005)
    assert share(rows["capital-loss"], 0) == pytest.approx(28735 / 30162, abs=0.005)
    assert share(rows["native-country"], "United-States") == pytest.approx(0.912, abs=0.005)
    assert share(rows["occupation"], "Prof-specialty") == pytest.approx(0.134, abs=0.005)
    assert share(rows["salary"], ">50K") == pytest.approx(0.249, abs=0.01)
    assert share(rows["hours-per-week"], 40) == pytest.approx(0.472, abs=0.01)
    assert len(set(rows["occupation"].to_pylist())) == 14


def test_adult_like_has_the_main_correlations_of_adult() -> None:
    rows = adult_like(sensitive=("salary",)).arrow(ROWS).to_pydict()
    rich = np.array(rows["salary"]) == ">50K"
    married = np.array(rows["marital-status"]) == "Married-civ-spouse"
    assert rich[married].mean() > 5 * rich[~married].mean()
    assert np.corrcoef(rows["education-num"], rich)[0, 1] == pytest.approx(0.33, abs=0.05)
    assert np.corrcoef(rows["age"], married)[0, 1] == pytest.approx(0.32, abs=0.05)
    assert not (np.array(rows["capital-gain"])[np.array(rows["capital-loss"]) > 0] > 0).any()


def test_adult_like_attributes_are_selectable() -> None:
    names = [attribute.name for attribute in adult_like(4).schema.quasi]
    assert names == ["age", "final-weight", "education-num", "capital-gain"]
    occupation_protected = adult_like(sensitive=("occupation",)).schema
    assert "occupation" not in {attribute.name for attribute in occupation_protected.quasi}
    assert len(occupation_protected.quasi) == 9
    with pytest.raises(ValueError, match="no attribute 'shoe-size'"):
        adult_like(["shoe-size"])


@pytest.mark.parametrize("make", [adult_like, census_like])
def test_repeated_persons_keep_their_values(make: Any) -> None:
    table = make(rows_per_person=5).table(20_000)
    persons, first = np.unique(table.persons, return_index=True)
    assert 3_900 < len(persons) <= 4_000
    position = first[np.searchsorted(persons, table.persons)]
    np.testing.assert_array_equal(table.quasi, table.quasi[position])
    with pytest.raises(ValueError, match="rows_per_person"):
        make(rows_per_person=0.5)


def test_census_like_has_the_attributes_of_table_3_4() -> None:
    shape = {
        a.name: (a.size, int(a.hierarchy.height[0])) if isinstance(a, Category) else a.size
        for a in census_like().schema.quasi
    }
    assert shape == {
        "age": 79,
        "sex": (2, 1),
        "education": 17,
        "marital-status": (6, 2),
        "race": (9, 1),
        "work-class": (10, 3),
        "birth-place": (83, 2),
    }
    assert [attribute.size for attribute in census_like().schema.sensitive] == [50]


@pytest.mark.parametrize("rows", [20_000, ROWS])
def test_census_like_salary_reaches_the_stated_extremes(rows: Any) -> None:
    shares = np.bincount(census_like().table(rows).sensitive[:, 0], minlength=50) / rows
    assert (shares.argmax(), shares.argmin()) == (12, 49)
    assert shares[12] == pytest.approx(0.048402, abs=1.5 / rows)
    assert shares[49] == pytest.approx(0.002018, abs=1.5 / rows)


def test_census_like_salary_depends_on_age_education_and_work_class() -> None:
    rows = census_like().arrow(ROWS).to_pydict()
    salary, age = np.array(rows["salary"]), np.array(rows["age"])
    assert np.corrcoef(rows["education"], salary)[0, 1] > 0.25
    assert salary[(age > 35) & (age < 60)].mean() > salary[(age < 23) | (age > 75)].mean() + 3
    work = np.array(rows["work-class"])
    assert salary[work == "Incorporated"].mean() > salary[work == "Family business"].mean() + 5


@pytest.mark.parametrize("alpha", [0.0, 0.8, 1.5])
def test_power_law_follows_its_law(alpha: float) -> None:
    values = power_law(alpha, 50, 2).table(ROWS).quasi
    law = np.arange(1, 51) ** -alpha
    law /= law.sum()
    for column in values.T:
        np.testing.assert_allclose(np.bincount(column.astype(int), minlength=51)[1:] / ROWS, law, atol=0.004)


@pytest.mark.parametrize("dup", [5, 10, 15])
def test_transactions_repeat_persons_with_constant_values(dup: int) -> None:
    table = transactions(dup).table(ROWS)
    persons, first = np.unique(table.persons, return_index=True)
    position = first[np.searchsorted(persons, table.persons)]
    np.testing.assert_array_equal(table.quasi, table.quasi[position])
    purchases = 1 + (np.diff(table.persons) != 0).sum()
    assert ROWS / purchases == pytest.approx(dup, rel=0.05)
    assert ROWS / len(persons) == pytest.approx(2 * dup, rel=0.2)
    assert len(np.unique(table.sensitive)) == 120


def test_real_adult_is_there_whole_or_says_that_it_is_not() -> None:
    dataset = real_adult(sensitive=("occupation",))
    if dataset is None:
        assert adult_folder() is None
        assert "not there" in ADULT_MISSING
        return
    table = dataset.table(ADULT_ROWS)
    np.testing.assert_array_equal(table.quasi, encode(dataset.schema, dataset.arrow(ADULT_ROWS)).table.quasi)
    assert (len(table), table.quasi.shape[1], len(np.unique(table.sensitive))) == (30_162, 7, 14)
    assert len(np.unique(table.quasi, axis=0)) == 11_089
    assert dataset.arrow(1).to_pylist()[0]["workclass"] == "State-gov"
    plain = real_adult(categories="number")
    assert plain is not None
    assert not any(isinstance(attribute, Category) for attribute in plain.schema.quasi)
    assert len(np.unique(plain.table(ADULT_ROWS).quasi, axis=0)) == 18_109
    with pytest.raises(ValueError, match="30162 rows"):
        plain.table(ADULT_ROWS + 1)


def test_made_surveys_have_tastes_and_gaps() -> None:
    survey = made_survey(400, 10, tastes=3, noise=0.3, missing=0.2)
    assert (len(survey), survey.scale.size, len(survey.sensitive.values)) == (400, 5, 400)
    assert len(survey.open.values) == pytest.approx(0.8 * 4000, rel=0.05)
    full = made_survey(400, 10, tastes=3, noise=0.3)
    alike = largest_k(full, 2)
    assert alike > 50, "people of one taste answer alike"
    assert len(np.unique(hamming_groups(survey.open))) > 100


def test_sparse_ratings_are_like_those_of_a_film_club() -> None:
    ratings = sparse_ratings(300, 1_000, each=50)
    counts = np.sort(np.bincount(ratings.open.items, minlength=1_000))[::-1]
    assert counts[:100].sum() > 2 * counts[-500:].sum(), "some items are popular"
    assert ratings.open.rated.min() >= 5
    assert len(np.unique(hamming_groups(ratings.open))) == 300, "nobody rated the same as somebody else"

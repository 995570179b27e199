"""CENSUS-like persons: the seven quasi-identifiers of the thesis' Table 3.4 and salary in 50 classes.

Cardinalities and hierarchy heights are the table's. The frequencies of the salary classes reach exactly the extremes
that the thesis states, at every size: persons are ranked by an income score, made of their other values and chance, and
the ranks are cut into classes. All other frequencies are plausible, no more: the thesis gives none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_tests.generators.dataset import PERSON, Dataset, Distribution, choose, integer, population
from microdata import Attribute, Category, Hierarchy, Schema

MARITAL_STATUS = {
    "Any status": {
        "Married": ["Spouse present", "Spouse absent", "Separated"],
        "Not married": ["Divorced", "Widowed", "Never married"],
    }
}
WORK_CLASS = {
    "Any class": {
        "Employed": {
            "Private sector": ["Company", "Non-profit"],
            "Government": ["Federal", "State", "Local", "Armed forces"],
        },
        "Other": {
            "Self-employed": ["Incorporated", "Not incorporated"],
            "Without income": ["Family business", "Never worked"],
        },
    }
}
BIRTH_PLACES = Path(__file__).with_name("census_birth_places.csv")
RACE = [
    "White",
    "Black",
    "American Indian",
    "Chinese",
    "Japanese",
    "Other Asian or Pacific",
    "Other race",
    "Two major races",
    "Three or more races",
]

CENSUS_QUASI = ("age", "sex", "education", "marital-status", "race", "work-class", "birth-place")
"""The seven quasi-identifiers of Table 3.4, in its order."""
BETA_QUASI = ("age", "sex", "education", "marital-status", "work-class")
"""The five of Table 4.3, in its order."""
MOST_FREQUENT, LEAST_FREQUENT = (12, 0.048402), (49, 0.002018)
"""Salary class and share of rows."""
AGES = np.arange(17, 96)


@cache
def attributes() -> dict[str, Attribute]:
    """Everything that can be a quasi-identifier or sensitive."""
    listed: tuple[Attribute, ...] = (
        integer("age", 17, 95),
        Category("sex", Hierarchy.flat(["Male", "Female"])),
        integer("education", 0, 16),
        Category("marital-status", Hierarchy.from_mapping(MARITAL_STATUS)),
        Category("race", Hierarchy.flat(RACE, root="Any race")),
        Category("work-class", Hierarchy.from_mapping(WORK_CLASS)),
        Category("birth-place", Hierarchy.from_csv(BIRTH_PLACES)),
        integer("salary", 0, 49),
    )
    return {attribute.name: attribute for attribute in listed}


def census_like(quasi: int | Sequence[str] = CENSUS_QUASI, *, rows_per_person: float = 1) -> Dataset:
    """CENSUS-like rows with salary as the sensitive attribute.

    `quasi` is a list of names or how many of Table 3.4 to take. With more than one row per person, persons are drawn at
    random and keep all their values.
    """
    named = CENSUS_QUASI[:quasi] if isinstance(quasi, int) else tuple(quasi)
    schema = Schema(PERSON, choose(attributes(), named), choose(attributes(), ("salary",)))

    return Dataset("census_like", schema, population(_draw_persons, rows_per_person))


@cache
def salary_shares() -> NDArray[np.float64]:
    """Share of each salary class: a straight rise to the most frequent one, then a fall that flattens out."""
    (top, most), (last, least) = MOST_FREQUENT, LEAST_FREQUENT
    rise = np.linspace(0.012, most, top + 1)
    way = 1.0 - np.arange(1, last - top + 1) / (last - top)
    steep, flat = 0.1, 20.0
    for _ in range(100):
        exponent = (steep + flat) / 2
        fall = least + (most - least) * way**exponent
        if rise.sum() + fall.sum() > 1.0:
            steep = exponent
        else:
            flat = exponent
    return np.concatenate([rise, fall])


def _draw_persons(random: np.random.Generator, rows: int) -> dict[str, NDArray[Any]]:
    """Codes of every attribute for this many persons."""
    age = AGES[Distribution(AGE_WEIGHTS).draw(random, None, rows)]
    schooled = np.digitize(age, (22,))
    education = Distribution(EDUCATION_WEIGHTS).draw(random, schooled, rows)
    birth_place = Distribution(_place_weights()).draw(random, None, rows)
    codes: dict[str, NDArray[Any]] = {
        "age": age,
        "sex": random.integers(0, 2, rows),
        "education": education,
        "marital-status": Distribution(MARITAL_WEIGHTS).draw(random, np.digitize(age, (28, 65)), rows),
        "race": Distribution(RACE_WEIGHTS).draw(random, _regions()[birth_place], rows),
        "work-class": Distribution(WORK_WEIGHTS).draw(random, np.digitize(education, (9, 13)), rows),
        "birth-place": birth_place,
    }
    codes["salary"] = _salary(random, codes)
    return codes


AGE_WEIGHTS = np.where(AGES < 55, 1.0, np.exp(-(AGES - 55) / 14.0))
EDUCATION_WEIGHTS = (
    # Education codes 0 … 16, below and from 22 years of age: 8 is the end of high school, 12 the first degree.
    (0.5, 0.1, 0.2, 0.5, 2, 4, 9, 14, 34, 26, 6, 2, 2, 0, 0, 0, 0),
    (1.2, 0.3, 0.8, 1.6, 1.5, 2, 2, 2.5, 30, 16, 8, 5, 18, 6, 3, 1.4, 0.7),
)
MARITAL_WEIGHTS = ((22, 2, 2, 3, 0.2, 71), (64, 2.5, 3, 15, 2, 13.5), (57, 1.5, 1, 9, 27, 4.5))
"""By age: below 28, below 65, above."""
WORK_WEIGHTS = (
    (76, 3, 1, 2, 4, 0.5, 2, 8, 1, 2.5),
    (68, 6, 3, 5, 7, 1, 3.5, 6, 0.3, 0.2),
    (58, 12, 4, 8, 10, 0.5, 4, 3.4, 0.05, 0.05),
)
"""By education: up to the end of high school, without a first degree, with one."""
RACE_WEIGHTS = (
    (84, 11, 0.3, 0.6, 0.2, 0.8, 1.5, 1.4, 0.2),
    (87, 9, 0.8, 0.2, 0.1, 0.6, 0.9, 1.2, 0.2),
    (73, 23, 0.8, 0.1, 0.1, 0.4, 1.2, 1.2, 0.2),
    (79, 5, 2, 1.2, 1.6, 3, 4, 3.5, 0.7),
    (47, 16, 1, 0.2, 0.1, 0.5, 31, 4, 0.2),
    (96, 1, 0.1, 0.1, 0.1, 0.9, 0.6, 1.1, 0.1),
    (4, 7, 0.1, 21, 6, 58, 1.4, 2.2, 0.3),
)
"""By region of birth, in the order of the hierarchy."""
REGION_SHARES = (20, 24, 29, 13, 7.5, 2.5, 4)


@cache
def _regions() -> NDArray[np.int64]:
    """Region of each birth place, counted in the order of the hierarchy."""
    hierarchy = Hierarchy.from_csv(BIRTH_PLACES)
    return np.unique(hierarchy.level_nodes(1), return_inverse=True)[1]


def _place_weights() -> NDArray[np.float64]:
    """Within a region the places differ by a factor of up to nine, as states do."""
    regions = _regions()
    place = np.arange(len(regions))
    raw = 1.0 + (place * 37 % 83) / 10.0
    return raw / np.bincount(regions, raw)[regions] * np.array(REGION_SHARES)[regions]


def _salary(random: np.random.Generator, codes: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Cut the ranks of an income score into classes; about a quarter of the score's variance is explained."""
    rows = len(codes["age"])
    score = (
        0.5 * np.clip(1.0 - ((codes["age"] - 48) / 31.0) ** 2, -1.5, 1.0)
        + 0.13 * (codes["education"] - 8)
        + np.array([0.1, 0.0, 0.15, 0.05, 0.0, -0.1, 0.4, 0.0, -0.5, -0.8])[codes["work-class"]]
        + np.array([0.25, 0.0, 0.0, 0.05, -0.1, -0.15])[codes["marital-status"]]
        + np.array([0.1, 0.0, -0.05, 0.05, -0.3, 0.1, 0.05])[_regions()[codes["birth-place"]]]
        - 0.35 * codes["sex"]
    )
    order = np.argsort(score + random.normal(0.0, 1.0, rows))
    salary = np.empty(rows, np.int64)
    quantiles = (np.arange(rows) + 0.5) / max(rows, 1)
    salary[order] = np.minimum(np.searchsorted(np.cumsum(salary_shares()), quantiles), LEAST_FREQUENT[0])
    return salary

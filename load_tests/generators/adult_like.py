"""Adult-like persons: the quasi-identifiers of the thesis' Table 5.4 with the frequencies of the UCI Adult data.

Values are drawn one after the other, each conditional on the few that matter most for it, from the counts in
`adult_statistics.json` (taken from the UCI Adult data, Becker and Kohavi, CC BY 4.0, rows without missing values).
The hierarchies are our own, with the leaves and levels that the table states (levels count the leaves and the root).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from load_tests.generators.dataset import PERSON, Dataset, Distribution, choose, integer, population
from microdata import Attribute, Category, Hierarchy, Schema

EDUCATION = {
    "Any education": {
        "Before university": {
            "Compulsory school": {
                "Primary school": ["Preschool", "1st-4th", "5th-6th"],
                "Middle school": ["7th-8th", "9th"],
            },
            "High school": {"Not finished": ["10th", "11th", "12th"], "Finished": ["HS-grad"]},
        },
        "University and college": {
            "Without degree": {"Courses": ["Some-college"], "Associate": ["Assoc-voc", "Assoc-acdm"]},
            "With degree": {"First degree": ["Bachelors"], "Higher degree": ["Masters", "Prof-school", "Doctorate"]},
        },
    }
}
MARITAL_STATUS = {
    "Any status": {
        "Married": {
            "Living together": ["Married-civ-spouse", "Married-AF-spouse"],
            "Living apart": ["Married-spouse-absent", "Separated"],
        },
        "Single": {"Once married": ["Divorced", "Widowed"], "Not once": ["Never-married"]},
    }
}
OCCUPATION = {
    "Any occupation": {
        "Office": ["Exec-managerial", "Prof-specialty", "Adm-clerical", "Sales", "Tech-support"],
        "Crafts and transport": ["Craft-repair", "Machine-op-inspct", "Transport-moving", "Handlers-cleaners"],
        "Services and land": [
            "Other-service",
            "Priv-house-serv",
            "Protective-serv",
            "Armed-Forces",
            "Farming-fishing",
        ],
    }
}
NATIVE_COUNTRY = {
    "World": {
        "Americas": {
            "North America": {
                "United States and territories": ["United-States", "Outlying-US(Guam-USVI-etc)", "Puerto-Rico"],
                "Other North America": ["Canada", "Mexico"],
            },
            "Central and South America": {
                "Caribbean": ["Cuba", "Dominican-Republic", "Haiti", "Jamaica", "Trinadad&Tobago"],
                "Central America": ["El-Salvador", "Guatemala", "Honduras", "Nicaragua"],
                "South America": ["Columbia", "Ecuador", "Peru"],
            },
        },
        "Old World": {
            "Europe": {
                "Western Europe": ["England", "Scotland", "Ireland", "France", "Germany"],
                "Southern Europe": ["Greece", "Italy", "Portugal"],
                "Eastern Europe": ["Hungary", "Poland", "Yugoslavia"],
            },
            "Asia and elsewhere": {
                "East Asia": ["China", "Hong", "Japan", "Taiwan"],
                "South-East Asia": ["Cambodia", "Laos", "Philippines", "Thailand", "Vietnam"],
                "West and South Asia": ["India", "Iran"],
                "Elsewhere": ["South"],
            },
        },
    }
}
WORKCLASS = {
    "Any class": {
        "Government": ["Federal-gov", "State-gov", "Local-gov"],
        "Own business": ["Self-emp-inc", "Self-emp-not-inc"],
        "Other work": ["Private", "Without-pay"],
    }
}

ADULT_QUASI = (
    "age",
    "final-weight",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "education",
    "marital-status",
    "occupation",
    "native-country",
)
"""The ten quasi-identifiers of Table 5.4, in its order."""
PEER_QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
"""The eight that peers were measured with."""

EDUCATION_NUM = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]
"""The labels that education numbers 1, 2, … stand for."""

COARSE: dict[str, tuple[str, Callable[[Any], int]]] = {
    "age": ("stage", lambda age: bisect_right((22, 26, 31, 41, 51, 61), age)),
    "education": ("schooling", lambda label: bisect_right((8, 9, 12), EDUCATION_NUM.index(label))),
    "marital-status": ("married", lambda label: int(label in {"Married-civ-spouse", "Married-AF-spouse"})),
    "capital-gain": ("gains", lambda gain: int(gain > 0)),
}
"""Coarse forms of values that others are conditional on."""


@cache
def attributes() -> dict[str, Attribute]:
    """Everything that can be a quasi-identifier or sensitive."""
    race = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
    listed: tuple[Attribute, ...] = (
        integer("age", 17, 90),
        integer("final-weight", 13492, 1490400),
        integer("education-num", 1, 16),
        integer("capital-gain", 0, 99999),
        integer("capital-loss", 0, 4356),
        integer("hours-per-week", 1, 99),
        Category("education", Hierarchy.from_mapping(EDUCATION)),
        Category("marital-status", Hierarchy.from_mapping(MARITAL_STATUS)),
        Category("occupation", Hierarchy.from_mapping(OCCUPATION)),
        Category("native-country", Hierarchy.from_mapping(NATIVE_COUNTRY)),
        Category("sex", Hierarchy.flat(["Female", "Male"])),
        Category("race", Hierarchy.flat(race)),
        Category("workclass", Hierarchy.from_mapping(WORKCLASS)),
        Category("salary", Hierarchy.flat(["<=50K", ">50K"])),
    )
    return {attribute.name: attribute for attribute in listed}


def adult_like(
    quasi: int | Sequence[str] = ADULT_QUASI, sensitive: Sequence[str] = ("salary",), *, rows_per_person: float = 1
) -> Dataset:
    """Adult-like rows.

    `quasi` is a list of names or how many of Table 5.4 to take; what is sensitive is left out of it. With more than one
    row per person, persons are drawn at random and keep all their values.
    """
    named = ADULT_QUASI[:quasi] if isinstance(quasi, int) else tuple(quasi)
    kept = [name for name in named if name not in sensitive]
    schema = Schema(PERSON, choose(attributes(), kept), choose(attributes(), sensitive))

    return Dataset("adult_like", schema, population(draw_adults, rows_per_person))


def draw_adults(random: np.random.Generator, rows: int) -> dict[str, NDArray[Any]]:
    """Codes of every attribute for this many persons."""
    steps, weights = _statistics()
    codes: dict[str, NDArray[Any]] = {}
    cells: dict[str, NDArray[np.int64]] = {}
    for name, step in steps.items():
        cell = np.ravel_multi_index([cells[parent] for parent in step.given], step.shape) if step.given else None
        drawn = step.distribution.draw(random, cell, rows)
        cells[name] = drawn
        codes[name] = step.codes[drawn]
        if name in COARSE:
            cells[COARSE[name][0]] = step.coarse[drawn]
        if name == "education":
            codes["education-num"] = step.years[drawn]
    positions = np.linspace(0.0, 1.0, len(weights))
    codes["final-weight"] = np.rint(np.interp(random.random(rows), positions, weights))
    return codes


@dataclass(frozen=True)
class Step:
    """How one attribute is drawn. Arrays are indexed by its values as they stand in the statistics."""

    given: tuple[str, ...]
    shape: tuple[int, ...]
    """Number of values of each that is given."""
    distribution: Distribution
    codes: NDArray[np.int64]
    coarse: NDArray[np.int64]
    """Coarse form of each value, for those that have one."""
    years: NDArray[np.int64]
    """Education number of each value of education."""


@cache
def _statistics() -> tuple[dict[str, Step], list[int]]:
    """The steps in the order in which they are drawn, and the quantiles of the final weight."""
    read = json.loads(Path(__file__).with_name("adult_statistics.json").read_text(encoding="utf-8"))
    weights = read.pop("final-weight")["quantiles"]
    steps: dict[str, Step] = {}
    sizes: dict[str, int] = {}
    for name, entry in read.items():
        values, attribute = entry["values"], attributes()[name]
        coarse = [COARSE[name][1](value) for value in values] if name in COARSE else []
        steps[name] = Step(
            given=tuple(entry["given"]),
            shape=tuple(sizes[parent] for parent in entry["given"]),
            distribution=Distribution(entry["counts"]),
            codes=np.array(_codes(attribute, values)),
            coarse=np.array(coarse, np.int64),
            years=np.array([EDUCATION_NUM.index(value) + 1 for value in values if name == "education"], np.int64),
        )
        sizes[name] = len(values)
        if coarse:
            sizes[COARSE[name][0]] = max(coarse) + 1
    return steps, weights


def _codes(attribute: Attribute, values: list[Any]) -> list[int]:
    return [attribute.hierarchy.codes[value] for value in values] if isinstance(attribute, Category) else values

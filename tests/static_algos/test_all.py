"""The generic checks, over every algorithm of the catalogue."""

import json
from typing import Any

import pytest

from static_algos import STATIC_ALGORITHMS
from static_algos.checks import STATIC_CHECKS, all_cases, cases
from tests.quick import first_of_each

ENTRIES = [pytest.param(entry, id=entry.name) for entry in STATIC_ALGORITHMS]


@pytest.mark.parametrize("case", first_of_each(all_cases(), lambda case: case.name))
@pytest.mark.parametrize("check", STATIC_CHECKS, ids=lambda check: check.__name__)
def test_every_algorithm(check: Any, case: Any) -> None:
    check(case)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_promised_model_is_checked(entry: Any) -> None:
    promised = set()
    for case in cases(entry):
        for table in case.tables():
            promised |= {type(model) for model in case.build().models(table.schema)}
    assert promised == set(entry.algorithm.guarantees)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_parameter_is_explained(entry: Any) -> None:
    assert entry.summary.endswith(".")
    assert entry.algorithm.Parameters is entry.parameters
    json.dumps(entry.parameters.model_json_schema())
    for name, field in entry.parameters.model_fields.items():
        assert field.description, name

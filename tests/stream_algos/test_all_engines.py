"""The generic checks, over every engine of the catalogue."""

import json

import pytest
from stream_checks import STREAM_CHECKS, all_stream_cases, stream_cases

from stream_algos import STREAM_ALGORITHMS

ENTRIES = [pytest.param(entry, id=entry.name) for entry in STREAM_ALGORITHMS]


@pytest.mark.parametrize("case", all_stream_cases(), ids=str)
@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
def test_every_engine(check, case):
    check(case)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_promised_model_is_checked(entry):
    promised = set()
    for case in stream_cases(entry):
        for schema, _ in case.streams(5):
            promised |= {type(model) for model in case.build(schema).models()}
    assert promised == set(entry.algorithm.guarantees)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_parameter_is_explained(entry):
    assert entry.summary.endswith(".")
    assert entry.algorithm.Parameters is entry.parameters
    json.dumps(entry.parameters.model_json_schema())
    for name, field in entry.parameters.model_fields.items():
        assert field.description or getattr(field.annotation, "__doc__", None), name

"""The generic checks, over every engine of the catalogue."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from microdata import InfeasibleError
from stream_algos import STREAM_ALGORITHMS
from stream_algos.checks import STREAM_CHECKS, all_stream_cases, stream_cases
from tests.quick import first_of_each
from tests.stream_worlds import Observer

ABSURD = (10**400, 10**30, 10**12, -(10**30), -1, 0, 1e308, 1e-308, float("inf"), float("nan"))

ENTRIES = [pytest.param(entry, id=entry.name) for entry in STREAM_ALGORITHMS]


# Engines over windows differ in little but their classes: one of them will do for `make quick`.
@pytest.mark.parametrize(
    "case", first_of_each(all_stream_cases(), lambda case: "windows" if case.engine.windowed else case.name)
)
@pytest.mark.parametrize("check", STREAM_CHECKS, ids=lambda check: check.__name__)
def test_every_engine(check: Any, case: Any) -> None:
    check(case)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_promised_model_is_checked(entry: Any) -> None:
    promised = set()
    for case in stream_cases(entry):
        for schema, _ in case.streams(5):
            promised |= {type(model) for model in case.build(schema).models()}
    assert promised == set(entry.algorithm.guarantees)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_parameter_is_explained(entry: Any) -> None:
    assert entry.summary.endswith(".")
    assert entry.algorithm.Parameters is entry.parameters
    json.dumps(entry.parameters.model_json_schema())
    for name, field in entry.parameters.model_fields.items():
        assert field.description or getattr(field.annotation, "__doc__", None), name


# Engines over windows differ in little but their classes: one of them will do for `make quick`.
@pytest.mark.parametrize(
    "case", first_of_each(all_stream_cases(), lambda case: "windows" if case.engine.windowed else case.name)
)
def test_the_gate_of_the_service_agrees(case: Any) -> None:
    for schema, batch in case.streams(90):
        Observer(schema, case.build(schema)).run(batch).assert_complete()


def k_of(entry: Any) -> Any:
    """Where an engine is asked for k, or z: by itself, or in what it asks of an algorithm for tables."""
    return next(((name,) for name in ("k", "z") if name in entry.parameters.model_fields), ("table", "k"))


@pytest.mark.parametrize("entry", ENTRIES)
def test_nobody_in_a_class_is_refused(entry: Any) -> None:
    case = stream_cases(entry)[0]
    with pytest.raises(InfeasibleError) as error:
        replace(case, given=with_value(case.given, k_of(entry), 0)).build(case.streams(5)[0][0])
    assert error.value.nearest == 1
    assert error.value.parameter == ".".join(k_of(entry))


def numbers_of(schema: Any, part: Any, path: Any = ()) -> Iterator[Any]:
    """Every number that a part of a JSON schema describes: its path, and the part that describes it."""
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rsplit("/", 1)[1]]
    for one in part.get("anyOf", []):
        yield from numbers_of(schema, one, path)
    if part.get("type") in ("integer", "number"):
        yield path, part
    for name, inner in part.get("properties", {}).items():
        yield from numbers_of(schema, inner, (*path, name))


def numbers_taken(case: Any) -> Any:
    """The numbers that an engine takes; of algorithms for tables, those of the one that the case names."""
    schema = case.engine.Parameters.model_json_schema()
    if "table" in case.given:
        forms = schema["properties"]["table"]["anyOf"]
        schema["properties"]["table"] = next(one for one in forms if one["title"] == case.given["table"]["algorithm"])
    return numbers_of(schema, schema)


def with_value(given: Any, path: Any, value: Any) -> Any:
    """The same request with one number changed; None where the request does not say anything around it."""
    if not path:
        return value
    inner = given.get(path[0], {})
    if len(path) > 1 and not inner:
        return None
    if len(path) > 1 and not isinstance(inner, dict):
        return None
    changed = with_value(inner, path[1:], value)
    return None if changed is None else {**given, path[0]: changed}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_whole_number_has_a_maximum_and_says_it(entry: Any) -> None:
    schema = entry.parameters.model_json_schema()
    whole = {path: part for path, part in numbers_of(schema, schema) if part["type"] == "integer"}
    assert k_of(entry) in whole
    for path, part in whole.items():
        assert "maximum" in part, path
    case, refused = stream_cases(entry)[0], set()
    taken = {path for path, _ in numbers_taken(case)}
    for path, part in whole.items():
        given = with_value(case.given, path, part["maximum"] + 1)
        if given is not None and path in taken:
            with pytest.raises(InfeasibleError) as error:
                replace(case, given=given).build(case.streams(5)[0][0])
            assert str(part["maximum"]) in str(error.value)
            refused.add(path)
    assert k_of(entry) in refused


# Engines over windows differ in little but their classes: one of them will do for `make quick`.
@pytest.mark.parametrize(
    "case", first_of_each(all_stream_cases(), lambda case: "windows" if case.engine.windowed else case.name)
)
def test_absurd_numbers_are_refused_or_work(case: Any) -> None:
    """Never a lack of memory, an overflow or a complaint of the compiler."""
    world, batch = case.streams(60)[0]
    tried = 0
    for path, _ in numbers_taken(case):
        for value in ABSURD:
            given = with_value(case.given, path, value)
            if given is None:
                continue
            tried += 1
            try:
                engine = replace(case, given=given).build(world)
            except (InfeasibleError, ValidationError):
                continue
            decided = [engine.push(batch), engine.expire(1e6), engine.flush()]
            assert sum(len(one.members) + len(one.suppressed) for one in decided) == len(batch)
    assert tried > 30

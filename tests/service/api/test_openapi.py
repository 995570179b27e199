"""The OpenAPI document: complete, and true under fire."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, not_a_server_error
from schemathesis.specs.openapi import checks as openapi_checks

from service.api import Scope, ServiceSettings, create_app, new_token
from service.api.answers import Answer
from service.jobs import Job, new_id

EXAMPLES = 15
"""Per operation: enough to try each kind of body, few enough for a minute."""
SECONDS = 120
"""For an answer: the first policy waits for the process that reads it, on whatever machine."""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    app = create_app(ServiceSettings(data=tmp_path, job_workers=0, receive_seconds=2))
    yield app
    app.state.service.store.close()


def operations(document: Any) -> Any:
    return [(path, method, one) for path, item in document["paths"].items() for method, one in item.items()]


def test_every_route_is_documented(app: Any) -> None:
    document = app.openapi()
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        if path.startswith("/v1"):
            assert {"401", "403"} <= operation["responses"].keys(), where
            assert operation["security"], where
        for status, response in operation["responses"].items():
            assert response["description"] not in {"", "Successful Response"}, (where, status)
            if status.startswith("4"):
                content = response["content"]["application/problem+json"]
                assert content["examples"], (where, status)
        if method in {"post", "put"} and not path.endswith("/stop-search"):  # that one says all with its address
            assert operation["requestBody"]["content"], where
    assert "HTTPValidationError" not in json.dumps(document), "the framework's errors echo what was sent"


def test_everything_that_is_read_or_written_has_an_example(app: Any) -> None:
    document = app.openapi()
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for kind, content in ((kind, content) for body in bodies for kind, content in body.get("content", {}).items()):
            binary = content.get("schema", {}).get("format") == "binary"
            assert binary or exemplified(document, content) or exemplified(document, content["schema"]), (where, kind)
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (where, parameter["name"])


def exemplified(document: Any, node: Any) -> Any:
    if "$ref" in node:
        node = document["components"]["schemas"][node["$ref"].rpartition("/")[2]]
    inner = [node["items"]] if "items" in node else node.get("properties", {}).values()
    return bool({"example", "examples"} & node.keys()) or any(exemplified(document, one) for one in inner)


def test_parts_that_are_refused_are_not_described_as_allowed(app: Any) -> None:
    bodies = [one["requestBody"]["content"] for _, _, one in operations(app.openapi()) if "requestBody" in one]
    forms = [body["multipart/form-data"]["schema"] for body in bodies]
    assert len(forms) == 4
    assert all(form["additionalProperties"] is False for form in forms)


def test_events_conform_to_the_document(app: Any) -> None:
    service = app.state.service
    job = Job(
        new_id(),
        "local",
        "anonymize",
        "queued",
        "shop",
        0.0,
        policy="{}",
        owner="token:local",
        inputs={"table": "table.csv"},
    )
    service.store.add(job, most=9)
    service.store.cancel(job.id)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1"})
    case = schema["/v1/jobs/{job_id}/events"]["GET"].Case(path_parameters={"job_id": job.id})
    checks = [openapi_checks.content_type_conformance, openapi_checks.response_schema_conformance]
    answer = case.call_and_validate(base_url="http://127.0.0.1", checks=checks)
    assert answer.status_code == 200


@pytest.mark.parametrize("model", [one for one in Answer.__subclasses__() if one.model_config.get("json_schema_extra")])
def test_examples_are_true(model: Any) -> None:
    (example,) = model.model_config["json_schema_extra"]["examples"]
    assert set(model.model_validate(example).model_dump()) == set(example)


def test_nothing_makes_it_fall_over(app: Any) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1"})
    seen = set()
    for operation in schema.get_all_operations():

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.ok().as_strategy())  # type: ignore[union-attr]
        def ask(case: Any) -> None:
            answer = case.call_and_validate(base_url="http://127.0.0.1", checks=[not_a_server_error], timeout=SECONDS)
            seen.add(answer.status_code)

        ask()
    assert {200, 404, 422} <= seen


@pytest.mark.parametrize("mode", GenerationMode)
def test_every_answer_conforms_to_the_document(tmp_path: Path, mode: Any) -> None:
    text, token = new_token("all", [Scope.ADMIN])
    app = create_app(ServiceSettings(data=tmp_path, job_workers=0, receive_seconds=2, tokens=(token,)))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1"})
    # Which policy, table or cursor is usable, no schema can say; who answers 422 to one must have it in the document.
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "404", "409", "422"]
    headers = {"Authorization": f"Bearer {text}"}
    asked = set()
    for operation in (one.ok() for one in schema.get_all_operations()):  # type: ignore[union-attr]
        if mode is GenerationMode.NEGATIVE and not (operation.path.startswith("/v1") or operation.path == "/metrics"):
            continue  # it takes nothing that could be wrong

        @settings(max_examples=5, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            checks = CHECKS.get_all()
            case.call_and_validate(base_url="http://127.0.0.1", headers=headers, checks=checks, timeout=SECONDS)
            asked.add(case.operation.label)

        ask()
    app.state.service.policies.close()
    app.state.service.store.close()
    assert len(asked) >= 17

"""Marked secrets, sent through every route and into every error, are nowhere to be seen again."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from microdata import DataError, HierarchyError, InfeasibleError, SchemaError
from service.policy import PolicyError, PolicyProblem
from service.problems import Place, problem, problem_of
from tests.service.api.api_world import parts, submit
from tests.service.cli.cli_world import MARK, POLICY, table_text

ROUTES = [
    ("GET", "/v1/jobs"),
    ("POST", "/v1/jobs"),
    ("POST", "/v1/audits"),
    ("GET", "/v1/jobs/{}"),
    ("DELETE", "/v1/jobs/{}"),
    ("GET", "/v1/jobs/{}/result"),
    ("GET", "/v1/jobs/{}/report"),
    ("GET", "/v1/jobs/{}/events"),
    ("POST", "/v1/policies/check"),
    ("GET", "/v1/policies"),
    ("PUT", "/v1/policies/{}"),
    ("GET", "/v1/policies/{}"),
    ("DELETE", "/v1/policies/{}"),
    ("GET", "/v1/algorithms"),
    ("GET", "/v1/kinds"),
    ("GET", "/v1/streams"),
    ("GET", "/v1/streams/{}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("PATCH", "/{}"),
]


def bad_policies() -> Iterator[Any]:
    """Policies that are wrong in every way that can quote something."""

    def changed(*path: Any, to: Any) -> Any:
        policy = yaml.safe_load(POLICY)
        place = policy
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = to
        return yaml.safe_dump(policy)

    city, item = ("schema", "quasi", "city", "hierarchy"), ("schema", "sensitive", "item", "hierarchy")
    yield from (MARK, f"{MARK}: [", f"{{{MARK}", f"a: *{MARK}", f"!{MARK} x", f"{MARK}: 1\n{MARK}: 2\n", f'"\\{MARK}"')
    yield f'{{"schema": 1, "schema": 2, "{MARK}": "{MARK}"}}'
    yield changed("name", to=f"{MARK} {MARK}")
    yield changed("schema", to=MARK)
    yield changed("schema", "person", to=[MARK])
    yield changed("schema", "public", to=["age", MARK, MARK])
    yield changed("schema", "quasi", "age", to={"type": MARK})
    yield changed("schema", "quasi", "age", "min", to=MARK)
    yield changed(*city, to=f"{MARK}.csv")
    yield changed(*city, to={"World": [MARK, MARK]})
    yield changed(*city, to={MARK: [], f"{MARK}2": []})
    yield changed(*city, to={"World": {MARK: []}})
    yield changed(*city, to={"World": {MARK: 7}})
    yield changed(*city, to={"builder": MARK})
    yield changed(*city, to={"builder": "dates", "start": MARK, "end": MARK})
    yield changed(*city, to={"builder": "prefixes", "values": [MARK, ""], "keep": [1, 2]})
    yield changed(*item, to={"World": [MARK, {MARK: 1}]})
    yield changed("schema", "sensitive", "item", "other", to=MARK)
    yield changed(
        "schema",
        "sensitive",
        "item",
        to={**yaml.safe_load(POLICY)["schema"]["sensitive"]["item"], "on_unknown": "other", "other": MARK},
    )
    yield changed("guarantee", "algorithm", to=MARK)
    yield changed("guarantee", "k", to=MARK)
    yield changed("table", to={"on_refused": MARK})


def bad_tables() -> Iterator[Any]:
    """Tables that are wrong from outside."""
    yield b""
    yield b"ARROW1" + MARK.encode()
    yield b"\x1f\x8b" + MARK.encode()
    yield b"PK\x03\x04" + MARK.encode()


class Listener:
    """Keeps every answer."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.heard: list[Any] = []

    def ask(self, method: Any, path: Any, **request: Any) -> None:
        answer = self._client.request(method, path, **request)
        assert answer.status_code < 500 or answer.status_code == 503, (method, path, answer.text)
        self.heard.append(f"{method} {path.replace(MARK, '…')} {dict(answer.headers)} {answer.text}")


@pytest.fixture
def heard(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG)
    # What the client under test itself says of its requests is not the service's log.
    for name in ("httpx", "httpcore", "asyncio", "python_multipart"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return caplog


@pytest.mark.parametrize("with_tokens", [False, True])
def test_nothing_that_was_sent_is_seen_again(request: pytest.FixtureRequest, heard: Any, with_tokens: bool) -> None:
    if with_tokens:
        client, headers = request.getfixturevalue("guarded")
        own = headers["admin"]
    else:
        client, own = request.getfixturevalue("client"), {}
    job = submit(client, headers=own)["id"]
    listener = Listener(client)
    for method, template in ROUTES:
        for name in (MARK, job, f"%2e%2e%2f{MARK}", f"{MARK}\u00e9"):
            path = template.format(name)
            if method == "DELETE" and name == job:
                continue
            if path.endswith(f"{job}/events"):
                continue  # it would go on until the job has ended
            listener.ask(method, path, headers={**own, "Accept": MARK, "Range": f"bytes={MARK}"})
            listener.ask(method, path, headers={"Authorization": f"Bearer {MARK}"})
            listener.ask(method, path, headers={**own, "Cookie": MARK, "Idempotency-Key": f"{MARK} {MARK}"})
            listener.ask(method, path, params=dict.fromkeys(("state", "limit", "after", MARK), MARK), headers=own)
            listener.ask(method, path, content=MARK.encode(), headers=own)
            listener.ask(method, path, json={MARK: MARK}, headers=own)
            listener.ask(method, path, files={MARK: (MARK, MARK)}, headers=own)
            wrong = {"Content-Type": f"multipart/form-data; boundary={MARK}", **own}
            listener.ask(method, path, content=f"--{MARK}\r\n{MARK}\r\n\r\n{MARK}", headers=wrong)
    for policy in bad_policies():
        listener.ask("POST", "/v1/policies/check", content=policy.encode(), headers=own)
        listener.ask("PUT", "/v1/policies/shop", content=policy.encode(), headers=own)
        listener.ask("POST", "/v1/jobs", files=parts(policy=policy), headers=own)
        hierarchy = {"hierarchies": (f"{MARK}.csv", f"{MARK};{MARK}x\n{MARK};{MARK}y\n")}
        listener.ask("POST", "/v1/jobs", files={**parts(policy=policy), **hierarchy}, headers=own)
    for table in bad_tables():
        listener.ask("POST", "/v1/jobs", files={**parts(), "table": (MARK, table)}, headers=own)
        listener.ask("POST", "/v1/audits", files={"published": (MARK, table), "policy": POLICY}, headers=own)
    listener.ask("GET", "/metrics", headers=own)
    seen = [answer for answer in listener.heard if MARK in answer]
    # The path of a wrong key names it: that is the answer's purpose, and a key is no value.
    seen = [answer for answer in seen if not _only_in_paths(answer)]
    assert seen == []
    assert MARK not in heard.text


def _only_in_paths(answer: Any) -> Any:
    start = answer.find('{"')
    try:
        body = json.loads(answer[start:])
    except ValueError:
        return False
    for place in [*body.get("errors", []), *body.get("problems", [])]:
        place.pop("path", None)
    return MARK not in answer[:start] and MARK not in json.dumps(body)


def test_the_check_can_see_an_echo(heard: Any, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(error: Any) -> Any:
        return problem("bad-policy", "", [Place(path="", reason=str(error))])

    monkeypatch.setattr("service.api.policies.problem_of", careless)
    policy = POLICY.replace("[Oslo, Umea]", f"[{MARK}, {MARK}]")
    assert MARK in client.post("/v1/policies/check", content=policy).text


def test_an_unforeseen_fault_is_answered_without_its_message(
    client: Any, monkeypatch: pytest.MonkeyPatch, heard: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr(type(client.app.state.service.store), "page", fail)
    answer = client.get("/v1/jobs")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:portcullis:problem:internal")
    assert MARK not in answer.text
    assert "RuntimeError" in heard.text
    assert MARK not in heard.text


@pytest.mark.parametrize(
    "error",
    [
        HierarchyError("a label appears twice", given=repr(MARK)),
        SchemaError("other must be a leaf of the hierarchy", at="item", given=repr(MARK)),
        DataError("declared columns are missing", given=f"columns {MARK!r}", fields=[("age", "is missing")]),
        InfeasibleError("must be positive", parameter="k", given=MARK, nearest=1),
        PolicyError([PolicyProblem("schema.quasi.age", "must be a number", MARK)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_was_given_is_told_to_who_gave_it_and_not_over_http(error: Any) -> None:
    assert f", given {MARK}" in str(error).replace("'", "").replace("columns ", "")
    assert MARK not in problem_of(error).model_dump_json()
    assert "age" in problem_of(error).model_dump_json() or not isinstance(error, DataError)


def test_a_refused_table_leaves_nothing_behind(client: Any) -> None:
    client.post("/v1/jobs", files={"table": table_text(), "policy": MARK})
    assert list((client.app.state.service.settings.data / "jobs").iterdir()) == []

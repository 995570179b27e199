"""Marked secrets, sent through every route and into every error, are nowhere to be seen again."""

import json
import logging

import pytest
import yaml
from api_world import parts, submit
from cli_world import MARK, POLICY, table_text

from service.problems import without_given

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


def bad_policies():
    """Policies that are wrong in every way that can quote something."""

    def changed(*path, to):
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


def bad_tables():
    """Tables that are wrong from outside."""
    yield b""
    yield b"ARROW1" + MARK.encode()
    yield b"\x1f\x8b" + MARK.encode()
    yield b"PK\x03\x04" + MARK.encode()


class Listener:
    """Keeps every answer."""

    def __init__(self, client):
        self._client = client
        self.heard = []

    def ask(self, method, path, **request):
        answer = self._client.request(method, path, **request)
        assert answer.status_code < 500 or answer.status_code == 503, (method, path, answer.text)
        self.heard.append(f"{method} {path.replace(MARK, '…')} {dict(answer.headers)} {answer.text}")


@pytest.fixture
def heard(request, caplog):
    caplog.set_level(logging.DEBUG)
    # What the client under test itself says of its requests is not the service's log.
    for name in ("httpx", "httpcore", "asyncio", "python_multipart"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return caplog


@pytest.mark.parametrize("with_tokens", [False, True])
def test_nothing_that_was_sent_is_seen_again(request, heard, with_tokens):
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


def _only_in_paths(answer):
    start = answer.find('{"')
    try:
        body = json.loads(answer[start:])
    except ValueError:
        return False
    for place in [*body.get("errors", []), *body.get("problems", [])]:
        place.pop("path", None)
    return MARK not in answer[:start] and MARK not in json.dumps(body)


def test_the_check_can_see_an_echo(heard, client, monkeypatch):
    monkeypatch.setattr("service.problems.without_given", lambda reason, _=(): reason)
    policy = POLICY.replace("[Oslo, Umea]", f"[{MARK}, {MARK}]")
    assert MARK in client.post("/v1/policies/check", content=policy).text


def test_an_unforeseen_fault_is_answered_without_its_message(client, monkeypatch, heard):
    def fail(*_, **__):
        raise RuntimeError(MARK)

    monkeypatch.setattr(type(client.app.state.service.store), "page", fail)
    answer = client.get("/v1/jobs")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:portcullis:problem:internal")
    assert MARK not in answer.text
    assert "RuntimeError" in heard.text
    assert MARK not in heard.text


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("label 'secret' appears twice", "label '…' appears twice"),
        ("unknown key; did you mean 'min'?", "unknown key; did you mean 'min'?"),
        ("must be 'number' or 'category'", "must be 'number' or 'category'"),
        ("a class's box and 'a secret'", "a class's box and '…'"),
        ("""label "it's" is there""", "label '…' is there"),
        (
            "must be positive, got -5; the nearest feasible value is 1",
            "must be positive; the nearest feasible value is 1",
        ),
        ("k-anonymity of 99 cannot be met by 3 rows", "k-anonymity cannot be met by 3 rows"),
        ("missing column 'age'; there are 'secret', 'x'", "missing column 'age'; there are '…', '…'"),
    ],
)
def test_reasons_keep_our_words_and_lose_theirs(reason, shown):
    assert without_given(reason, {"age"}) == shown


def test_a_refused_table_leaves_nothing_behind(client):
    client.post("/v1/jobs", files={"table": table_text(), "policy": MARK})
    assert list((client.app.state.service.settings.data / "jobs").iterdir()) == []

"""Near misses: what almost is a policy, an upload, a header. Schemathesis starts too far from them to get inside."""

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from load_tests.http_fuzz import KEY, MARK, is_echo, run
from service.api import ServiceSettings, create_app
from service.jobs import Job, new_id
from tests.service.api.api_world import parts, policy_text
from tests.service.cli.cli_world import table_text

FEW = settings(max_examples=120, suppress_health_check=list(HealthCheck), database=None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
HEADER = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    settings = ServiceSettings(data=tmp_path_factory.mktemp("fuzz"), job_workers=0, max_jobs_per_token=100_000)
    with TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def done(client: Any) -> Any:
    """A job with a result."""
    service = client.app.state.service
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
    (service.files.new_result(job.id, 1) / "result.csv").write_text("a,b\n1,2\n")
    service.store.finish(service.store.claim("a", 60), "succeeded", report="{}")
    return job.id


def places(node: Any, path: Any = ()) -> Iterator[Any]:
    """Every place of a nested mapping."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def near_policies(draw: Any) -> Any:
    """The shop's policy with one place replaced, removed or renamed."""
    policy = yaml.safe_load(policy_text())
    *way, last = draw(st.sampled_from([path for path in places(policy) if path]))
    node = policy
    for key in way:
        node = node[key]
    kind = draw(st.sampled_from(["replace", "remove", "rename"]))
    if kind == "replace" or isinstance(node, list):
        node[last] = draw(JSON)
    elif kind == "remove":
        del node[last]
    else:
        node[draw(st.text(max_size=9))] = copy.copy(node.pop(last))
    return yaml.safe_dump(policy, allow_unicode=draw(st.booleans()))


@FEW
@given(policy=near_policies())
def test_near_policies_are_checked_and_refused_in_one_voice(client: Any, policy: Any) -> None:
    check = client.post("/v1/policies/check", content=policy.encode("utf-8", "surrogatepass"))
    assert check.status_code in {200, 422}, policy
    submitted = client.post("/v1/jobs", files=parts(policy=policy.encode("utf-8", "surrogatepass")))
    if check.status_code == 422 or not check.json()["usable"]:
        assert submitted.status_code == 422, policy
    else:
        assert submitted.status_code in {202, 422}, policy  # a policy for streams or audits is usable, not for a job


@FEW
@given(cut=st.integers(0, 3_000), noise=st.binary(max_size=40), place=st.integers(0, 3_000))
def test_bodies_that_are_cut_or_damaged(client: Any, cut: int, noise: bytes, place: int) -> None:
    request = client.build_request("POST", "/v1/jobs", files=parts(table_text()))
    whole = request.read()
    body = (whole[:place] + noise + whole[place:])[: len(whole) - cut]
    answer = client.post("/v1/jobs", content=body, headers={"Content-Type": request.headers["content-type"]})
    assert answer.status_code in {202, 400, 404, 413, 422}


@FEW
@given(ranges=HEADER | HEADER.map(lambda text: f"bytes={text}"), accept=HEADER, condition=HEADER)
def test_headers_of_a_result(client: Any, done: Any, ranges: Any, accept: Any, condition: Any) -> None:
    headers = {"Range": ranges, "Accept": accept, "If-Range": condition}
    for path in ("result", "report"):
        assert client.get(f"/v1/jobs/{done}/{path}", headers=headers).status_code in {200, 206, 404, 406, 416}


def test_odd_requests_to_every_route_are_refused_in_one_voice(tmp_path: Path) -> None:
    app = create_app(ServiceSettings(data=tmp_path, job_workers=0, max_jobs_per_token=100_000, receive_seconds=2))
    seen = asyncio.run(run(app, seed=13, requests=500))
    assert (seen.faults, seen.no_problems, seen.echoes) == ([], [], [])
    assert min(seen.operations.values()) == 20
    assert {200, 400, 404, 405, 422} <= seen.statuses.keys()


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ({"path": f"schema.{KEY}", "reason": "unknown key"}, False),
        ({"path": f"schema.{MARK}", "reason": "unknown key"}, True),
        ({"path": "schema", "reason": f"unknown key {KEY}"}, True),
        ({"path": "schema", "reason": f"not {MARK}"}, True),
    ],
)
def test_a_path_may_have_keys_of_a_policy_and_nothing_else_that_was_sent(place: Any, seen: bool) -> None:
    kind = {b"content-type": b"application/problem+json"}
    assert is_echo(kind, json.dumps({"title": "Bad policy", "errors": [place]}).encode()) == seen


@pytest.mark.parametrize("origin", ["http://[", "//[::1", "http://[::ffff:1%]"])
def test_an_origin_that_is_no_address_is_refused(client: Any, origin: str) -> None:
    assert client.get("/healthz", headers={"Origin": origin}).status_code == 403

"""Requests and answers of a service that runs no jobs: uploads, tokens, policies, problems, health."""

import asyncio
import gzip
import io
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from service.api import Scope, ServiceSettings, create_app, new_token
from service.api.uploads import body_chunks
from service.jobs import Job, new_id
from service.problems import ProblemError
from tests.service.api.api_world import parts, policy_text, submit, wait_until
from tests.service.cli.cli_world import MARK, POLICY, table_text


def kind_of(answer: Any) -> Any:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.json()["type"].removeprefix("urn:portcullis:problem:")


# ---- uploads


def test_a_job_is_accepted_with_its_place(client: Any) -> None:
    answer = client.post("/v1/jobs", files=parts())
    assert answer.status_code == 202
    assert answer.headers["location"] == answer.json()["links"]["self"]
    assert answer.json()["state"] == "queued"


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"policy": POLICY}, "table"),
        ({"table": "a\n1\n"}, "policy"),
        ({"table": "a\n1\n", "policy": POLICY, "policy_name": "shop"}, "policy"),
        ({**parts(), "unknown": "x"}, None),
        ({**parts(), "table": b""}, None),
        ({**parts(), "table": b"ARROW1\0\0"}, None),
        ({**parts(), "table": gzip.compress(b"a,b\n1,2\n")[:-9]}, "table"),
        ({**parts(), "table": gzip.compress(b"a,b\n1,2\n")[:12] + b"\xff" * 90}, "table"),
        ({**parts(), "table": b"PAR1 and then the line was cut"}, None),
        ({**parts(), "policy": b"\xff\xfe"}, None),
    ],
)
def test_broken_uploads(client: Any, files: Any, path: Any) -> None:
    answer = client.post("/v1/jobs", files=files)
    assert (answer.status_code, kind_of(answer)) == (422, "bad-upload")
    assert path is None or answer.json()["errors"][0]["path"] == path
    assert list((client.app.state.service.settings.data / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "bad-request"),
        (b"--x\r\n", "bad-upload"),
        (b'--x\r\nContent-Disposition: form-data; name="table"\r\n\r\nid,a', "bad-upload"),
        (b"no boundary at all", "bad-request"),
    ],
)
def test_multipart_that_is_cut_off_or_something_else(client: Any, body: bytes, kind: str) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/v1/jobs", content=body, headers=headers)
    assert kind_of(answer) in {kind, "bad-upload"}
    assert list((client.app.state.service.settings.data / "jobs").iterdir()) == []


def test_limits_of_size_and_ratio(open_client: Any) -> None:
    client = open_client(max_table_bytes=30 << 20, max_policy_bytes=2_000, max_hierarchy_bytes=1_000, max_ratio=50)
    packed = gzip.compress(b"id,age\n" + b"0" * (20 << 20))
    for name, files, wrong in (
        ("ratio", parts(table=packed), "table"),
        ("unpacked", parts(table=gzip.compress(b"a" * (31 << 20), 0)), "table"),
        ("table", parts(table=b"a" * (31 << 20)), "table"),
        ("policy", parts(policy="#" * 2_001), "policy"),
        ("hierarchies", {**parts(), "hierarchies": ("h.csv", "a" * 1_001)}, "hierarchies"),
    ):
        answer = client.post("/v1/jobs", files=files)
        assert (answer.status_code, kind_of(answer)) == (413, "too-large"), name
        assert answer.json()["errors"][0]["path"] == wrong
    assert client.post("/v1/policies/check", content=b"#" * 2_001).status_code == 413
    assert list((client.app.state.service.settings.data / "jobs").iterdir()) == []


def test_hierarchies_come_along_as_files(client: Any) -> None:
    policy = POLICY.replace("{World: {North: [Oslo, Umea], South: [Rome, Bari]}}", "some/where/cities.csv")
    tree = "Oslo;North;World\nUmea;North;World\nRome;South;World\nBari;South;World\n"
    missing = client.post("/v1/jobs", files=parts(policy=policy))
    assert missing.json()["errors"][0]["path"] == "schema.quasi.city.hierarchy"
    files = [*parts(policy=policy).items(), ("hierarchies", ("cities.csv", tree))]
    client.post("/v1/jobs", files=files)
    with_tree = client.app.state.service.store.claim("a", 60).policy
    assert '{"World": {"North": {"Oslo": null, "Umea": null}, "South": {"Rome": null, "Bari": null}}}' in with_tree
    check = client.post("/v1/policies/check", files=files[1:]).json()
    assert check["fingerprint"] == client.post("/v1/policies/check", content=POLICY).json()["fingerprint"]


def test_names_of_files_lead_nowhere(client: Any) -> None:
    policy = POLICY.replace("{Any: [lamp, book, tea]}", "../../../../etc/passwd")
    answer = client.post("/v1/jobs", files={"table": ("../../x.csv", table_text()), "policy": policy})
    assert answer.json()["errors"][0]["path"] == "schema.sensitive.item.hierarchy"
    job = client.post("/v1/jobs", files={"table": ("../../x.csv", table_text()), "policy": POLICY}).json()
    data = client.app.state.service.settings.data
    assert [path.name for path in (data / "jobs" / job["id"] / "upload").iterdir()] == ["table.csv"]


# ---- jobs


def test_jobs_are_listed_in_pages(client: Any) -> None:
    ids = [submit(client)["id"] for _ in range(5)]
    found, after = [], None
    while True:
        page = client.get("/v1/jobs", params={"limit": 2, "state": "queued", **({"after": after} if after else {})})
        found += [job["id"] for job in page.json()["jobs"]]
        after = page.json()["next"]
        if after is None:
            break
    assert found == ids[::-1]
    assert client.get("/v1/jobs", params={"state": "failed"}).json() == {"jobs": [], "next": None}
    for wrong in ({"after": "?"}, {"limit": 0}, {"state": "odd"}):
        answer = client.get("/v1/jobs", params=wrong)
        assert (answer.status_code, kind_of(answer)) == (422, "bad-parameter")
        assert answer.json()["errors"][0]["path"] == next(iter(wrong))


def test_a_waiting_job_is_cancelled_at_once_and_then_deleted(client: Any) -> None:
    job = submit(client)
    answer = client.delete(f"/v1/jobs/{job['id']}")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert not (client.app.state.service.settings.data / "jobs" / job["id"]).exists()
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert kind_of(client.get(f"/v1/jobs/{job['id']}")) == "not-found"


def test_a_token_has_so_many_jobs_and_no_more(open_client: Any) -> None:
    client = open_client(max_jobs_per_token=2)
    submit(client)
    submit(client)
    answer = client.post("/v1/jobs", files=parts())
    assert (answer.status_code, kind_of(answer)) == (429, "too-many-jobs")
    assert answer.headers["retry-after"]


def test_results_and_uploads_do_not_outlive_their_time(open_client: Any) -> None:
    service = open_client(result_seconds=1).app.state.service
    job = Job(
        new_id(),
        "local",
        "anonymize",
        "queued",
        "shop",
        time.time(),
        policy="{}",
        owner="token:local",
        inputs={"table": "table.csv"},
    )
    service.store.add(job, most=9)
    (service.files.upload(job.id) / "table.csv").write_text("left behind by a service that died")
    (service.files.new_result(job.id, 1) / "result.csv").write_text("x")
    service.store.finish(service.store.claim("a", 60), "succeeded", report="{}")
    service.runner._due["tidy"] = 0.0
    wait_until(lambda: not (service.settings.data / "jobs" / job.id / "upload").exists())
    wait_until(lambda: service.store.get(job.id) is None)
    wait_until(lambda: not (service.settings.data / "jobs" / job.id).exists())


# ---- policies


def test_a_policy_is_checked(client: Any) -> None:
    good = client.post("/v1/policies/check", content=POLICY).json()
    assert (good["usable"], good["kind"], good["models"]) == (
        True,
        "table",
        {"k-anonymity": 4, "distinct-l-diversity": 2},
    )
    bad = client.post("/v1/policies/check", content=policy_text(k=0, l=9)).json()
    assert not bad["usable"]
    assert {one["path"] for one in bad["problems"]} == {"guarantee.k"}


def test_an_infeasible_guarantee_is_answered_with_the_nearest_value(client: Any) -> None:
    answer = client.post("/v1/jobs", files=parts(policy=policy_text(l=9)))
    assert (answer.status_code, kind_of(answer)) == (422, "infeasible-guarantee")
    place = answer.json()["errors"][0]
    assert (place["path"], place["nearest"]) == ("guarantee.l", 3)
    assert place["reason"] == "distinct-l-diversity cannot be met by the 3 values of item"


def test_a_parameter_out_of_its_range_is_answered_with_the_nearest_value(client: Any) -> None:
    answer = client.post("/v1/jobs", files=parts(policy=policy_text(t=1.7)))
    assert (answer.status_code, kind_of(answer)) == (422, "infeasible-guarantee")
    (place,) = answer.json()["errors"]
    assert (place["path"], place["nearest"]) == ("guarantee.t.threshold", 1)
    assert place["reason"] == "must be less than or equal to 1"


def test_only_the_guarantee_can_be_infeasible(client: Any) -> None:
    weight = POLICY.replace("type: number,", "type: number, weight: -1,")
    answer = client.post("/v1/jobs", files=parts(policy=weight))
    assert (answer.status_code, kind_of(answer)) == (422, "bad-policy")
    assert answer.json()["errors"][0]["nearest"] == 0


def test_policies_are_stored_and_named_by_jobs(client: Any) -> None:
    assert client.put("/v1/policies/shop", content=POLICY).status_code == 201
    assert client.put("/v1/policies/shop", content=POLICY).status_code == 200
    assert kind_of(client.put("/v1/policies/another", content=POLICY)) == "bad-policy"
    assert [one["name"] for one in client.get("/v1/policies").json()["policies"]] == ["shop"]
    job = client.post("/v1/jobs", files={"table": table_text(), "policy_name": (None, "shop")})
    assert job.status_code == 202, job.text
    assert client.delete("/v1/policies/shop").status_code == 204
    assert kind_of(client.get("/v1/policies/shop")) == "not-found"
    gone = client.post("/v1/jobs", files={"table": table_text(), "policy_name": (None, "shop")})
    assert kind_of(gone) == "not-found"


def test_a_stream_policy_is_refused_for_a_table(client: Any) -> None:
    policy = policy_text().replace("mondrian", "castle") + "\n"
    answer = client.post("/v1/jobs", files=parts(policy=policy))
    assert answer.status_code == 422
    assert answer.json()["errors"]


# ---- tokens


def test_without_a_token_nothing_but_health_is_answered(guarded: Any) -> None:
    client, _ = guarded
    for path in (
        "/v1/jobs",
        "/v1/algorithms",
        "/v1/kinds",
        "/v1/policies",
        "/v1/streams",
        "/metrics",
        f"/v1/jobs/{new_id()}",
    ):
        for headers in ({}, {"Authorization": f"Bearer {MARK}"}, {"Authorization": f"Basic {MARK}"}):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, kind_of(answer)) == (401, "unauthorized"), path
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert MARK not in answer.text
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200


def test_jobs_of_others_are_not_there(guarded: Any) -> None:
    client, headers = guarded
    job = submit(client, headers=headers["alice"])
    path = f"/v1/jobs/{job['id']}"
    unknown = client.get(f"/v1/jobs/{new_id()}", headers=headers["bob"])
    for method, below in (("GET", ""), ("GET", "/result"), ("GET", "/report"), ("GET", "/events"), ("DELETE", "")):
        answer = client.request(method, path + below, headers=headers["bob"])
        assert (answer.status_code, answer.json()) == (404, unknown.json()), (method, below)
    assert client.get("/v1/jobs", headers=headers["bob"]).json()["jobs"] == []
    assert client.get(path, headers=headers["alice"]).status_code == 200
    assert client.get(path, headers=headers["overseer"]).status_code == 200
    assert len(client.get("/v1/jobs", headers=headers["overseer"]).json()["jobs"]) == 1
    assert client.delete(path, headers=headers["admin"]).status_code == 202


def test_scopes(guarded: Any) -> None:
    client, headers = guarded
    job = submit(client, headers=headers["alice"])
    refused = [
        ("reader", "POST", "/v1/jobs"),
        ("overseer", "POST", "/v1/jobs"),
        ("reader", "POST", "/v1/audits"),
        ("writer", "GET", "/v1/jobs"),
        ("overseer", "DELETE", f"/v1/jobs/{job['id']}"),
        ("alice", "PUT", "/v1/policies/shop"),
        ("alice", "DELETE", "/v1/policies/shop"),
        ("alice", "GET", "/metrics"),
    ]
    for name, method, path in refused:
        answer = client.request(method, path, headers=headers[name])
        assert (answer.status_code, kind_of(answer)) == (403, "forbidden"), (name, method, path)
    assert client.get("/metrics", headers=headers["overseer"]).status_code == 200
    assert client.put("/v1/policies/shop", headers=headers["admin"], content=POLICY).status_code == 201
    assert client.get("/v1/policies/shop", headers=headers["alice"]).status_code == 200


def test_idempotency_keys_belong_to_their_token(guarded: Any) -> None:
    client, headers = guarded
    jobs = [submit(client, headers={**headers[name], "Idempotency-Key": "k"})["id"] for name in ("alice", "bob")]
    assert len(set(jobs)) == 2
    assert submit(client, headers={**headers["bob"], "Idempotency-Key": "k"})["id"] == jobs[1]


def test_tokens_are_hashed_and_read_from_a_file(tmp_path: Path, portcullis: Any, open_client: Any) -> None:
    made = portcullis("token", "new", "alice", "--scope", "admin", "--append", tmp_path / "tokens")
    assert made.exit_code == 0, made.output
    text = made.stdout.splitlines()[0].rpartition(" ")[2]
    assert text not in (tmp_path / "tokens").read_text()
    client = open_client(tokens_file=tmp_path / "tokens")
    assert client.get("/v1/jobs", headers={"Authorization": f"Bearer {text}"}).status_code == 200
    assert client.get("/v1/jobs", headers={"Authorization": f"Bearer {text[:-1]}"}).status_code == 401


# ---- the service itself


def test_without_tokens_only_loopback_is_served(tmp_path: Path, portcullis: Any, open_client: Any) -> None:
    with pytest.raises(ValidationError, match="loopback"):
        ServiceSettings(data=tmp_path, host="0.0.0.0")
    refused = portcullis("serve", "--host", "0.0.0.0", "--data", tmp_path)
    assert refused.exit_code == 2
    assert "loopback" in refused.stderr
    token = new_token("alice", [Scope.ADMIN])[1]
    assert ServiceSettings(data=tmp_path, host="0.0.0.0", tokens=(token,)).host == "0.0.0.0"
    client = open_client()
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": "[", "Origin": "null"}):
        answer = client.get("/v1/jobs", headers=headers)
        assert (answer.status_code, kind_of(answer)) == (403, "forbidden")
    assert client.get("/v1/jobs", headers={"Origin": "http://127.0.0.1"}).status_code == 200


@pytest.mark.parametrize(
    "wrong", [{"tls_key": "key.pem"}, {"tokens": (new_token("a", [Scope.ADMIN])[1], new_token("a", [Scope.ADMIN])[1])}]
)
def test_settings_that_contradict_themselves(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(ValidationError):
        ServiceSettings(data=tmp_path, **wrong)


def test_readiness_is_checked_and_not_claimed(open_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = open_client()
    service = client.app.state.service
    assert client.get("/readyz").json()["ready"]
    monkeypatch.setattr(type(service.files), "check", lambda _: (_ for _ in ()).throw(OSError))
    broken = client.get("/readyz")
    assert (broken.status_code, broken.json()["checks"]["files"]) == (503, "cannot be written")
    monkeypatch.undo()
    with service.store._engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE jobs RENAME TO gone")
    broken = client.get("/readyz")
    assert (broken.status_code, broken.json()["checks"]["database"]) == (503, "does not answer")
    assert client.get("/healthz").status_code == 200


def test_a_service_whose_job_processes_are_not_there_is_not_ready(tmp_path: Path) -> None:
    app = create_app(ServiceSettings(data=tmp_path, job_workers=2))
    answer = TestClient(app, base_url="http://127.0.0.1").get("/readyz")  # without its lifespan: nothing is started
    assert (answer.status_code, answer.json()["checks"]["job_workers"]) == (503, "0 of 2")
    app.state.service.store.close()


def test_every_answer_carries_the_security_headers(client: Any) -> None:
    for path in ("/healthz", "/v1/algorithms", "/nowhere", "/v1/jobs/x"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "default-src" in headers["content-security-policy"]


def test_the_catalogue_and_metrics(client: Any) -> None:
    names = {one["name"]: one for one in client.get("/v1/algorithms").json()["algorithms"]}
    assert names["sabre"]["parameters"]["properties"]["t"]
    assert names["castle"]["runs_on"] == "stream"
    submit(client)
    text = client.get("/metrics").text
    assert 'portcullis_jobs{state="queued"} 1.0' in text
    assert 'route="/v1/jobs"' in text


def test_what_is_not_there(client: Any) -> None:
    assert kind_of(client.get("/v1/nothing")) == "not-found"
    refused = client.patch("/v1/jobs")
    assert kind_of(refused) == "method-not-allowed"
    assert refused.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("address", ["/v1/jobs", "/v1/algorithms", "/healthz", "/metrics", "/", "/v1/nothing"])
def test_head_is_answered_like_get_without_the_body(client: Any, address: str) -> None:
    whole, head = client.get(address), client.head(address)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    if address != "/metrics":  # which counts what is asked
        assert head.headers["content-length"] == str(len(whole.content))


def test_head_does_not_follow_a_job(client: Any) -> None:
    job = submit(client)
    head = client.head(job["links"]["events"])
    assert (head.status_code, head.content) == (200, b"")
    assert 'method="HEAD",route="/v1/jobs/{job_id}/events",status="200"' in client.get("/metrics").text


def test_who_sends_nothing_is_not_waited_for() -> None:
    class Silent:
        async def stream(self) -> AsyncIterator[Any]:
            await asyncio.sleep(60)
            yield b""

    async def ask() -> None:
        async for _ in body_chunks(Silent(), 0.05):  # type: ignore[arg-type]
            pass

    with pytest.raises(ProblemError) as raised:
        asyncio.run(ask())
    assert raised.value.problem.status == 408


def test_large_uploads_do_not_stay_in_memory(client: Any) -> None:
    table = io.BytesIO(table_text(20_000).encode())
    answer = client.post("/v1/jobs", files={"table": table, "policy": POLICY})
    data = client.app.state.service.settings.data
    written = data / "jobs" / answer.json()["id"] / "upload" / "table.csv"
    assert written.read_bytes() == table.getvalue()

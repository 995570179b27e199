"""Jobs as they run: results, reports, audits, cancellation, and what happens when something dies."""

import gzip
import io
import json
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from service.kinds import data_kinds
from tests.service.api.api_world import ServiceProcess, is_alive, parts, policy_text, submit, wait_for, wait_until
from tests.service.cli.cli_world import CITIES, ITEMS, MARK, POLICY, table_text
from tests.service.pages import text_without_isolation
from tests.service.unasked import unasked

pytestmark = pytest.mark.xdist_group("live")  # one service for all of them


@pytest.fixture(scope="module")
def done(live: Any) -> Any:
    """A job that succeeded."""
    return wait_for(live.client, submit(live.client))


def test_a_job_succeeds_and_says_what_it_achieved(done: Any) -> None:
    assert done["state"] == "succeeded"
    assert done["report"]["holds"]
    assert done["report"]["rows"]["given"] == 80
    assert done["created_at"].endswith("Z")
    assert done["progress"] is None
    assert done["problem"] is None


def test_a_job_counts_rejected_rows(live: Any) -> None:
    table = table_text().replace("Umea", "Atlantis")
    job = wait_for(live.client, submit(live.client, POLICY + "table: {on_refused: drop}\n", table))
    rows = job["report"]["rows"]
    assert (rows["given"], rows["published"] + rows["suppressed"], rows["rejected"]["rows"]) == (80, 60, 20)
    assert rows["rejected"]["reasons"] == [{"field": "city", "reason": "unknown_category", "rows": 20}]
    page = live.client.get(job["links"]["report"], headers={"Accept": "text/html"}).text
    assert "20 of 80 rows (25 %) were rejected and are not published; by field: city 20." in text_without_isolation(
        page
    )
    filed = live.client.get(job["links"]["evidence"]).json()["parts"]
    assert (filed["audited"]["rejected"], filed["reported"]["rows"]) == (20, rows)


@pytest.mark.parametrize("more", ["", ", universe: 100000"])
def test_budgets_by_http(live: Any, more: str) -> None:
    policy = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", f"{{algorithm: budget, k: 4{more}}}")
    job = wait_for(live.client, submit(live.client, policy))
    assert job["state"] == "succeeded", job["problem"]
    report = live.client.get(job["links"]["report"], headers={"Accept": "application/json"}).json()
    assert ("not k-anonymity" in json.dumps(report)) == bool(more)
    rows = live.client.get(job["links"]["result"], headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert len(rows) == 80
    if not more:
        sizes = Counter(json.loads(row)["class"] for row in rows)
        assert min(sizes.values()) >= 4


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "text/csv"),
        ("*/*", "text/csv"),
        ("application/x-ndjson", "application/x-ndjson"),
        ("application/vnd.apache.parquet", "application/vnd.apache.parquet"),
        ("text/csv;q=0.1, application/x-ndjson", "application/x-ndjson"),
    ],
)
def test_the_result_comes_as_it_is_wanted(live: Any, done: Any, accept: Any, kind: str) -> None:
    answer = live.client.get(done["links"]["result"], headers={"Accept": accept} if accept else {})
    assert answer.headers["content-type"].startswith(kind)
    rows = {  # type: ignore[no-untyped-call]
        "text/csv": lambda: len(answer.text.splitlines()) - 1,
        "application/x-ndjson": lambda: len([json.loads(line) for line in answer.text.splitlines()]),
        "application/vnd.apache.parquet": lambda: pq.read_table(io.BytesIO(answer.content)).num_rows,
    }[kind]()
    assert rows == 80
    assert MARK.encode() not in answer.content


def test_a_result_is_served_in_ranges(live: Any, done: Any) -> None:
    path = done["links"]["result"]
    whole = live.client.get(path).content
    part = live.client.get(path, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole)}"
    for wrong in ("bytes=9999999-", f"bytes={MARK}"):
        refused = live.client.get(path, headers={"Range": wrong})
        assert refused.status_code == 416
        assert refused.headers["content-type"] == "application/problem+json"
        assert MARK not in refused.text


def test_a_media_type_that_is_not_there_is_refused(live: Any, done: Any) -> None:
    answer = live.client.get(done["links"]["result"], headers={"Accept": "image/png"})
    assert (answer.status_code, answer.json()["type"]) == (406, "urn:portcullis:problem:not-acceptable")


def test_the_report_is_data_or_a_page(live: Any, done: Any) -> None:
    assert live.client.get(done["links"]["report"]).json() == done["report"]
    page = live.client.get(done["links"]["report"], headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.text.startswith("<!doctype html>")
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_the_upload_is_gone_when_the_job_has_ended_and_all_is_gone_when_it_is_deleted(live: Any) -> None:
    job = wait_for(live.client, submit(live.client))
    directory = live.data / "jobs" / job["id"]
    wait_until(lambda: [path.name for path in directory.iterdir()] == ["result-1"])
    assert live.client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert not directory.exists()
    assert live.client.get(f"/v1/jobs/{job['id']}").status_code == 404


@pytest.mark.parametrize("form", ["gzip", "json", "parquet"])
def test_tables_are_known_by_their_content(live: Any, form: str) -> None:
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - only here

    plain = table_text().encode()
    columns = pa_csv.read_csv(io.BytesIO(plain))
    buffer = io.BytesIO()
    pq.write_table(columns, buffer)
    lines = "".join(json.dumps(row) + "\n" for row in columns.to_pylist()).encode()
    table = {"gzip": gzip.compress(plain), "json": lines, "parquet": buffer.getvalue()}[form]
    assert wait_for(live.client, submit(live.client, table=table))["state"] == "succeeded"


def test_events_follow_a_job_to_its_end(live: Any) -> None:
    job = submit(live.client)
    with live.client.stream("GET", job["links"]["events"]) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        states = [json.loads(line[6:])["state"] for line in answer.iter_lines() if line.startswith("data: ")]
    assert states[-1] == "succeeded"


@pytest.mark.parametrize(
    ("table", "policy", "kind", "paths"),
    [
        (table_text(city=f"{MARK}ville"), policy_text(), "wrong-table", ["city"]),
        ("other,columns\n1,2\n", policy_text(), "wrong-table", []),
        (f"id,age,city,{MARK}\n1,2,Oslo,lamp\n", policy_text(), "wrong-table", ["item", "shop"]),
        (table_text(), policy_text(k=500), "infeasible-guarantee", ["guarantee.k"]),
        ("id,age,city,item,shop\n" + "\0" * 10, policy_text(), "wrong-table", ["(record)"]),
        (f"PAR1{MARK}PAR1", policy_text(), "bad-upload", ["table"]),
    ],
    ids=[
        "a value outside its domain",
        "another table",
        "a missing column",
        "k above the persons",
        "nothing but NUL",
        "Parquet without a sense",
    ],
)
def test_a_job_that_cannot_be_done_says_why_and_shows_no_value(
    live: Any, table: Any, policy: Any, kind: str, paths: Any
) -> None:
    failed = wait_for(live.client, submit(live.client, policy, table))
    assert failed["state"] == "failed"
    assert failed["problem"]["type"] == f"urn:portcullis:problem:{kind}"
    assert MARK not in json.dumps(failed)
    places = failed["problem"]["errors"]
    assert [place["path"] for place in places] == paths
    nearest = 80 if kind == "infeasible-guarantee" else None
    assert all(place.get("nearest") == nearest for place in places)
    assert live.client.get(f"/v1/jobs/{failed['id']}/result").status_code == 409
    wait_until(lambda: not list((live.data / "jobs" / failed["id"]).iterdir()))


def test_an_audit_tells_a_good_publication_from_a_bad_one(live: Any, done: Any) -> None:
    published = live.client.get(done["links"]["result"]).content
    for table, holds in ((published, True), (_exposed(published), False)):
        files = {"original": table_text(), "published": table, "policy": policy_text()}
        job = live.client.post("/v1/audits", files=files).json()
        found = wait_for(live.client, job)
        assert found["state"] == "succeeded", found
        assert found["report"]["holds"] is holds
        assert MARK not in json.dumps(found)
        assert "result" not in found["links"]
        assert live.client.get(f"/v1/jobs/{job['id']}/result").status_code == 404


def test_an_audit_says_what_is_not_shown(live: Any) -> None:
    """Everybody has ten rows: the published table only bounds how many persons a class is about."""
    rows = [f"{MARK}{row % 40},{20 + row % 50},{CITIES[row % 4]},{ITEMS[row % 3]},east" for row in range(400)]
    table = "\n".join(["id,age,city,item,shop", *rows]) + "\n"
    policy = POLICY.replace("mondrian, k: 4, l: 2", "sabre, k: 4, t: 0.4")
    job = wait_for(live.client, submit(live.client, policy, table))
    published = live.client.get(job["links"]["result"]).content
    files = {"original": table, "published": published, "policy": policy}
    found = wait_for(live.client, live.client.post("/v1/audits", files=files).json())["report"]
    assert (found["outcome"], found["holds"]) == ("not shown", False)
    assert [one["outcome"] for one in found["findings"]] == ["not shown", "holds"]
    assert found["findings"][0]["bound"] == "at least"
    assert live.client.get(job["links"]["evidence"]).json()["parts"]["audited"]["outcome"] == "not shown"


def _exposed(published: Any) -> Any:
    """The same rows, with a column that must not be there."""
    lines = published.decode().splitlines()
    return "\n".join([f"{lines[0]},{MARK}", *(f"{line},{MARK}" for line in lines[1:])]).encode()


def test_an_audit_by_distribution(live: Any, done: Any) -> None:
    counts = {"item": {"lamp": 27, "book": 27, "tea": 26}}
    published = live.client.get(done["links"]["result"]).content
    files = {"published": published, "policy": policy_text(), "distribution": json.dumps(counts)}
    found = wait_for(live.client, live.client.post("/v1/audits", files=files).json())
    assert found["report"]["holds"]
    counts["item"][MARK] = 1
    files["distribution"] = json.dumps(counts)
    failed = wait_for(live.client, live.client.post("/v1/audits", files=files).json())
    assert failed["problem"]["errors"][0]["path"] == "distribution.item"
    assert MARK not in json.dumps(failed)


@pytest.mark.parametrize("name", ["slow", "deaf"])
def test_a_running_job_is_cancelled_long_before_it_would_end(live: Any, name: str) -> None:
    job = submit(live.client, policy_text(name))
    assert not unasked(live.worker_pid(job))
    assert live.client.get(f"/v1/jobs/{job['id']}").json()["progress"]["phase"] in {"start", "wait"}
    started = time.monotonic()
    assert live.client.delete(f"/v1/jobs/{job['id']}").status_code == 202
    assert wait_for(live.client, job)["state"] == "cancelled"
    assert time.monotonic() - started < 60, "it would have slept for minutes"
    wait_until(lambda: not list((live.data / "jobs" / job["id"]).iterdir()))


def test_a_search_that_is_cancelled_may_keep_its_best(live: Any) -> None:
    names = [f"n{number}" for number in range(8)]
    rows = [f"{MARK}{who},{','.join(map(str, who**3 // 7 ** np.arange(8) % 9))}" for who in range(3_000)]
    quasi = {name: {"type": "number", "min": 0, "max": 9, "integer": True} for name in names}
    guarantee = {"algorithm": "ogf", "k": 5, "runs": 10_000}
    policy = yaml.safe_dump({"name": "searched", "schema": {"person": "id", "quasi": quasi}, "guarantee": guarantee})
    job = submit(live.client, policy, "\n".join([",".join(["id", *names]), *rows]))

    def has_best() -> bool:
        found = live.client.get(job["links"]["self"]).json()
        assert found["state"] in {"queued", "running"}, found
        return "best so far" in str(found["progress"])

    wait_until(has_best)
    assert live.client.post(f"/v1/jobs/{job['id']}/stop-search").status_code == 202
    done = wait_for(live.client, job)
    assert done["state"] == "succeeded", done
    for address in (f"/v1/jobs/{job['id']}/stop-search", f"/v1/jobs/{job['id']}/stop-search"):
        assert live.client.post(address).status_code == 200, "it has ended, and stays as it is"
    assert live.client.delete(f"/v1/jobs/{job['id']}?keep_best=true").status_code == 422, "a word of earlier days"
    assert done["report"]["holds"]
    assert 0 < done["report"]["details"]["orders"] < 40_320
    assert len(live.client.get(done["links"]["result"]).text.splitlines()) == 3_001


def test_job_that_does_not_search_goes_on_when_its_search_is_stopped(live: Any) -> None:
    job = submit(live.client, policy_text("slow"))
    live.worker_pid(job)
    assert live.client.post(f"/v1/jobs/{job['id']}/stop-search").status_code == 202
    time.sleep(1.0)
    assert live.client.get(f"/v1/jobs/{job['id']}").json()["state"] == "running"
    assert live.client.delete(f"/v1/jobs/{job['id']}").status_code == 202
    assert wait_for(live.client, job)["state"] == "cancelled"


def test_every_algorithm_for_tables_runs_as_a_job(live: Any) -> None:
    examples = {one.policy["guarantee"]["algorithm"]: one for kind in data_kinds() for one in kind.examples()}
    assert {"mdav", "ama", "purpose", "datafly", "ogf", "top_down", "ke_anon"} <= examples.keys()
    jobs = {name: submit(live.client, json.dumps(one.policy), one.table) for name, one in examples.items()}
    for name, job in jobs.items():
        done = wait_for(live.client, job)
        assert done["state"] == "succeeded", (name, done)
        assert done["report"]["holds"], name
        published = live.client.get(done["links"]["result"]).text.splitlines()
        assert 1 < len(published) <= len(examples[name].table.splitlines()), name


def test_a_job_that_is_killed_fails_and_takes_nothing_down(live: Any) -> None:
    job = submit(live.client, policy_text("slow"))
    os.kill(live.worker_pid(job), signal.SIGKILL)
    failed = wait_for(live.client, job)
    assert (failed["state"], failed["problem"]["type"]) == ("failed", "urn:portcullis:problem:job-killed")
    assert wait_for(live.client, submit(live.client))["state"] == "succeeded"


def test_a_job_that_eats_too_much_fails_and_takes_nothing_down(live: Any) -> None:
    failed = wait_for(live.client, submit(live.client, policy_text("hungry")))
    assert (failed["state"], failed["problem"]["type"]) == ("failed", "urn:portcullis:problem:out-of-memory")
    assert wait_for(live.client, submit(live.client))["state"] == "succeeded"


def test_a_fault_of_ours_shows_no_value(live: Any) -> None:
    failed = wait_for(live.client, submit(live.client, policy_text("clumsy")))
    assert failed["problem"]["type"] == "urn:portcullis:problem:internal"
    assert MARK not in json.dumps(failed)
    assert MARK not in live.log.read_text()


def test_the_same_request_twice_is_one_job(live: Any) -> None:
    headers = {"Idempotency-Key": "once"}
    files = parts()

    def post(_: Any) -> Any:
        return live.client.post("/v1/jobs", files=files, headers=headers)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(post, range(4)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.headers["location"] for answer in answers}) == 1
    other = live.client.post("/v1/jobs", files=parts(table=table_text(90)), headers=headers)
    assert (other.status_code, other.json()["type"]) == (422, "urn:portcullis:problem:idempotency-key-reused")


def test_fifty_jobs_at_once_are_all_done_once(live: Any) -> None:
    with ThreadPoolExecutor(10) as pool:
        jobs = list(pool.map(lambda _: submit(live.client), range(50)))
    assert len({job["id"] for job in jobs}) == 50
    ended = [wait_for(live.client, job, seconds=240) for job in jobs]
    assert {(job["state"], job["attempts"]) for job in ended} == {("succeeded", 1)}


def test_a_service_that_stops_or_dies_goes_on_where_it_was(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path / "data", job_workers=1, lease_seconds=10).start()
    running = submit(service.client, policy_text("slow"))
    waiting = submit(service.client)
    service.worker_pid(running)
    service.process.send_signal(signal.SIGTERM)
    service.process.wait(120)

    service.start()
    first = service.worker_pid(running)
    assert service.client.get(f"/v1/jobs/{running['id']}").json()["attempts"] == 1, "a stop is no attempt"
    service.kill()
    wait_until(lambda: not is_alive(first))

    service.start()
    service.worker_pid(running, attempt=2)
    assert service.client.get(f"/v1/jobs/{running['id']}").json()["attempts"] == 2
    service.kill()

    service.start()
    failed = wait_for(service.client, running)
    assert (failed["state"], failed["problem"]["type"]) == ("failed", "urn:portcullis:problem:job-interrupted")
    assert wait_for(service.client, waiting)["state"] == "succeeded"
    service.stop()


@pytest.mark.needs_tool("postgres")
def test_two_services_share_a_postgresql_queue(tmp_path: Path, postgres_url: Any) -> None:
    both = [
        ServiceProcess(tmp_path / "data", job_workers=1, database_url=postgres_url, lease_seconds=30).start()
        for _ in range(2)
    ]
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda number: submit(both[number % 2].client), range(12)))
    ended = [wait_for(both[1 - number % 2].client, job) for number, job in enumerate(jobs)]
    assert {(job["state"], job["attempts"]) for job in ended} == {("succeeded", 1)}
    last = submit(both[0].client, policy_text("slow"))
    both[1].worker_pid(last)
    assert both[1].client.delete(f"/v1/jobs/{last['id']}").status_code == 202
    assert wait_for(both[0].client, last)["state"] == "cancelled"
    for service in both:
        service.stop()


def test_a_follower_does_not_keep_others_from_being_served(live: Any) -> None:
    job = submit(live.client, policy_text("slow"))
    with live.client.stream("GET", job["links"]["events"]) as answer:
        next(answer.iter_lines())
        with httpx.Client(base_url=live.client.base_url) as another:
            assert another.get("/healthz").json() == {"status": "ok"}
    live.client.delete(f"/v1/jobs/{job['id']}")


def test_a_policy_with_categories_runs_as_a_job(live: Any) -> None:
    health = Path(__file__).parents[3] / "examples" / "health"
    job = submit(live.client, (health / "policy.yaml").read_text(), (health / "patients.csv").read_text())
    done = wait_for(live.client, job)
    assert done["state"] == "succeeded", done
    assert done["report"]["holds"]
    assert "p-plus-sensitivity" in json.dumps(done["report"])

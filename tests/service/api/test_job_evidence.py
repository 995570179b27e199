"""Evidence of jobs: made with the result, whoever submitted is named, and the secret is for its owner."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from service.evidence import gather, write
from service.jobs import EVIDENCE, SECRET, Job, new_id
from service.policy import parse_policy
from tests.service.api.api_world import submit, wait_for
from tests.service.cli.cli_world import CITIES, ITEMS, MARK, POLICY, table_text
from tests.service.cli.evidence_world import UNVERIFIED


@pytest.mark.xdist_group("live")
@pytest.mark.slow
def test_it_can_be_checked_with_the_table_and_the_result(live: Any, portcullis: Any, tmp_path: Path) -> None:
    job = wait_for(live.client, submit(live.client))
    here = job["links"]["evidence"]
    evidence = live.client.get(here)
    made = evidence.json()["parts"]["made"]
    assert (made["by"], made["kind"]) == ("local", "table")
    assert not any(value in evidence.text for value in (MARK, *CITIES, *ITEMS, "North", "South", "east"))
    page = live.client.get(here, headers={"Accept": "text/html"})
    assert page.text.startswith("<!doctype html>")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    (tmp_path / "e.json").write_bytes(evidence.content)
    (tmp_path / "e.json.secret").write_text(live.client.get(f"{here}/secret").text)
    (tmp_path / "table.csv").write_text(table_text())
    (tmp_path / "policy.yaml").write_text(POLICY)
    for ending, kind in (("csv", "text/csv"), ("parquet", "application/vnd.apache.parquet")):
        published = tmp_path / f"safe.{ending}"
        published.write_bytes(live.client.get(job["links"]["result"], headers={"Accept": kind}).content)
        arguments = ("--original", tmp_path / "table.csv", "--published", published)
        result = portcullis(
            "evidence", "verify", tmp_path / "e.json", "--policy", tmp_path / "policy.yaml", *arguments, "--json"
        )
        assert result.exit_code == 0, result.output
        left = {one["about"] for one in json.loads(result.stdout)["checks"] if one["outcome"] != "holds"}
        assert left == UNVERIFIED | {"2 other files that were published"}


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """Evidence of a small table, in the name of alice."""
    policy, table, published = parse_policy(POLICY), tmp_path / "small.csv", tmp_path / "safe.csv"
    table.write_text(table_text())
    made = policy.data.anonymize(policy, table)
    policy.data.write(policy, made, published)
    report = policy.data.report(policy, made, seconds=1.0)
    secret = bytes.fromhex("00ff")
    filed = gather(policy, report, original=table, published=[published], secret=secret, by="alice")
    write(filed, tmp_path / "alice.json")
    return tmp_path / "alice.json"


@pytest.fixture
def kept(guarded: Any, evidence: Path) -> Any:
    """A service with a job that alice had done, one that waits, and her audit."""
    client, tokens = guarded
    service = client.app.state.service
    made = {}
    for kind, state in (("anonymize", "succeeded"), ("anonymize", "queued"), ("audit", "succeeded")):
        job = Job(
            id=new_id(),
            token="alice",
            owner="token:alice",
            kind=kind,  # type: ignore[arg-type]
            state=state,  # type: ignore[arg-type]
            policy_name="shop",
            policy=POLICY,
            inputs={},
            created_at=time.time(),
            attempts=1,
        )
        service.store.add(job, most=10)
        made[kind, state] = f"/v1/jobs/{job.id}/evidence"
        out = service.files.new_result(job.id, 1)
        if (kind, state) == ("anonymize", "succeeded"):
            (out / EVIDENCE).write_bytes(evidence.read_bytes())
            (out / SECRET).write_text("00ff\n")
    return client, tokens, made


def test_who_may_have_it(kept: Any) -> None:
    client, tokens, made = kept
    done = made["anonymize", "succeeded"]
    status = {name: client.get(done, headers=token).status_code for name, token in tokens.items()}
    assert status == {"alice": 200, "bob": 404, "writer": 403, "reader": 404, "overseer": 200, "admin": 200}
    secret = {name: client.get(f"{done}/secret", headers=token).status_code for name, token in tokens.items()}
    assert secret == status | {"overseer": 403}
    assert client.get(f"{done}/secret", headers=tokens["alice"]).text == "00ff\n"
    assert client.get(done, headers=tokens["alice"]).json()["parts"]["made"]["by"] == "alice"


def test_jobs_without_it_say_so(kept: Any) -> None:
    client, tokens, made = kept
    for path, status in ((made["anonymize", "queued"], 409), (made["audit", "succeeded"], 404)):
        for here in (path, f"{path}/secret"):
            assert client.get(here, headers=tokens["alice"]).status_code == status
    done = made["anonymize", "succeeded"]
    refused = client.get(done, headers=tokens["alice"] | {"Accept": "image/png"})
    assert refused.status_code == 406

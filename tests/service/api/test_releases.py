"""Purposes and the ledger over HTTP: who may ask for what, and that a second, incomparable release is refused."""

import json
from typing import Any

import pytest
import yaml

from tests.service.api.api_world import parts, wait_for
from tests.service.cli.cli_world import MARK
from tests.service.cli.cli_world import POLICY as SHOP
from tests.service.policy.test_purposes import given

POLICY = yaml.safe_dump(given())


def asked(client: Any, headers: Any = None, policy: str = POLICY, **form: Any) -> Any:
    return client.post("/v1/jobs", files=parts(policy=policy, **form), headers=headers)


def test_a_token_gets_the_purpose_that_is_its_own(guarded: Any) -> None:
    client, tokens = guarded
    assert asked(client, tokens["alice"]).status_code == 202
    assert asked(client, tokens["alice"], purpose="research").status_code == 202
    assert asked(client, tokens["bob"], purpose="maps").status_code == 202
    assert asked(client, tokens["admin"], purpose="maps").status_code == 202
    store = client.app.state.service.store
    chosen = [json.loads(store.claim("runner", 60).policy)["purpose"] for _ in range(4)]
    assert chosen == ["research", "research", "maps", "maps"]


@pytest.mark.parametrize(
    ("who", "purposes"),
    [("alice", ["research"]), ("bob", ["maps", "research"]), ("reader", []), ("admin", ["maps", "research"])],
)
def test_a_check_says_what_a_token_may_ask_for(guarded: Any, who: str, purposes: Any) -> None:
    client, tokens = guarded
    headers = {**tokens[who], "Content-Type": "application/yaml"}
    checked = client.post("/v1/policies/check", content=POLICY, headers=headers).json()
    assert checked["usable"], checked
    assert checked["purposes"] == purposes
    assert client.post("/v1/policies/check", content=SHOP, headers=headers).json()["purposes"] == []


@pytest.mark.parametrize(
    ("who", "form"), [("alice", {"purpose": "maps"}), ("bob", {}), ("writer", {}), ("alice", {"purpose": MARK})]
)
def test_other_purposes_are_refused(guarded: Any, who: str, form: Any) -> None:
    client, tokens = guarded
    answer = asked(client, tokens[who], **form)
    assert answer.status_code == 422
    assert [place["path"] for place in answer.json()["errors"]] == ["purpose"]
    assert MARK not in answer.text


def test_a_stored_policy_is_chosen_from_too(guarded: Any) -> None:
    client, tokens = guarded
    put = client.put(
        "/v1/policies/shop", content=POLICY, headers={**tokens["admin"], "Content-Type": "application/yaml"}
    )
    assert put.status_code in {200, 201}, put.text
    table = parts()["table"]
    for who, status in (("alice", 202), ("writer", 422)):
        files = {"table": table, "policy_name": (None, "shop")}
        assert client.post("/v1/jobs", files=files, headers=tokens[who]).status_code == status


def test_nobody_sees_releases_of_others(guarded: Any) -> None:
    client, tokens = guarded
    assert client.get("/v1/releases", headers=tokens["alice"]).json() == {"releases": []}
    assert client.get("/v1/releases?data_set=%20", headers=tokens["alice"]).status_code == 422
    assert client.get("/v1/releases", headers=tokens["writer"]).status_code == 403


@pytest.mark.xdist_group("live")
@pytest.mark.slow
def test_the_second_release_fails_and_the_first_is_shown(live: Any) -> None:
    policy = yaml.safe_dump(given(releases={"data_set": "live-shops"}))
    first = wait_for(live.client, asked(live.client, policy=policy, purpose="research").json())
    assert first["state"] == "succeeded", first
    second = wait_for(live.client, asked(live.client, policy=policy, purpose="maps").json())
    assert second["state"] == "failed"
    assert second["problem"]["type"].endswith("incomparable-release")
    assert live.client.get(f"/v1/jobs/{second['id']}/result").status_code == 409
    shown = live.client.get("/v1/releases", params={"data_set": "live-shops"}).json()["releases"]
    assert [(one["job"], one["purpose"], one["who"]) for one in shown] == [(first["id"], "research", "local")]
    assert shown[0]["levels"] == first["report"]["details"]["levels"]
    again = wait_for(live.client, asked(live.client, policy=policy, purpose="research").json())
    assert again["state"] == "succeeded"
    allowed = policy.replace("data_set: live-shops", "data_set: live-shops\n  incomparable: allow")
    assert wait_for(live.client, asked(live.client, policy=allowed, purpose="maps").json())["state"] == "succeeded"

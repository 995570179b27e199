"""Purposes of a policy: which one is chosen, by whom, and what it puts into the guarantee."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from service.policy import PolicyError, choose, load_policy, parse_policy
from tests.service.cli.cli_world import POLICY

PURPOSES = {
    "research": {"order": ["age"], "trust": 0.9, "models": {"k": 6}, "who": ["alice", "bob"]},
    "maps": {"order": ["city"], "trust": 0.5, "who": ["bob"]},
}


def given(**changed: Any) -> dict[str, Any]:
    policy = yaml.safe_load(POLICY) | {
        "guarantee": {"algorithm": "purpose", "k": 4},
        "purposes": PURPOSES,
        "releases": {"data_set": "shops"},
    }
    return {key: value for key, value in (policy | changed).items() if value is not None}


def refused(**changed: Any) -> Any:
    with pytest.raises(PolicyError) as refusal:
        parse_policy(given(**changed))
    return [problem.path for problem in refusal.value.problems]


def test_a_purpose_brings_its_order_trust_and_models() -> None:
    policy = parse_policy(given(purpose="research"))
    assert policy.guarantee == {"algorithm": "purpose", "k": 6, "order": ["age"], "trust": 0.9}
    assert policy.algorithm().parameters.trust == 0.9
    assert parse_policy(given(purpose="maps")).models()[0].asked == 4
    assert policy.fingerprint() != parse_policy(given(purpose="maps")).fingerprint()


def test_without_a_purpose_nothing_runs_and_nobody_is_trusted() -> None:
    policy = parse_policy(given())
    assert policy.guarantee == {"algorithm": "purpose", "k": 4}
    with pytest.raises(PolicyError, match="research, maps"):
        policy.algorithm()


def test_the_command_line_may_choose_any(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(given(), sort_keys=False))
    assert load_policy(path, purpose="maps").purpose == "maps"
    with pytest.raises(PolicyError, match="must be one of research, maps"):
        load_policy(path, purpose="sales")
    path.write_text(POLICY)
    with pytest.raises(PolicyError, match="no purposes"):
        load_policy(path, purpose="maps")


def test_a_token_may_choose_what_it_is_named_for() -> None:
    assert choose(given(), "research", "alice")["purpose"] == "research"
    assert choose(given(), None, "alice")["purpose"] == "research"
    for purpose, who in ((None, "bob"), ("maps", "alice"), ("research", "carol"), (None, "carol")):
        with pytest.raises(PolicyError):
            choose(given(), purpose, who)
    everybody = given(purposes={"open": {"trust": 0.1}})
    assert choose(everybody, None, "carol")["purpose"] == "open"
    # What the policy itself says is no way around it.
    with pytest.raises(PolicyError):
        choose(given(purpose="maps"), None, "alice")


def test_what_makes_no_sense_is_refused() -> None:
    assert refused(releases=None) == ["releases"]
    assert refused(purpose="sales") == ["purpose"]
    assert refused(purposes={"research": {"trust": 1.2}}) == ["purposes.research.trust"]
    assert refused(purposes={"research": {"trust": 0.2, "models": {"k": 0}}}) == ["purposes.research (guarantee.k)"]
    # An algorithm that knows neither order nor trust.
    assert refused(guarantee={"algorithm": "mondrian", "k": 4})[0].startswith("purposes.research")
    castle = {"algorithm": "castle", "k": 4, "delay": {"tuples": 40}}
    assert refused(guarantee=castle, purposes=None) == ["releases"]

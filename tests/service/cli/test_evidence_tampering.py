"""Change every single statement of evidence, make all hashes fit again, and see verification refuse the file."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from microdata import DataError
from service.evidence import Check, Given, read, signature, verify
from service.evidence.filing import canonical, sealed
from service.evidence.gathering import words_of
from service.policy import load_policy
from tests.service.cli.cli_world import POLICY, table_text

GUARANTEES = {
    "mondrian": "{algorithm: mondrian, k: 4, l: 2}",
    "sabre": "{algorithm: sabre, k: 4, t: 0.4}",
    "castle": "{algorithm: castle, k: 4, delta: 40}",
    "cohorts": "{algorithm: cohorts, k: 4, delay: {tuples: 60}, company: standing}",
}
UNSIGNED = ("made.at", "made.by", "made.portcullis")
"""Statements that only a signature shows to be true."""
OF_THE_RUN = {
    "table": ("reported.tried", "reported.queries", "links"),
    "replay": (
        *("reported.delays", "reported.workload_error", "reported.reused", "reported.at_once", "reported.timing"),
        *("reported.largest_share", "reported.rejected.reasons"),
        *("reported.guarantees.0.achieved", "reported.guarantees.0.holds", "reported.guarantees.0.failing"),
        *("reported.guarantees.0.ground", "reported.guarantees.0.counted_over"),
    ),
}
"""Statements that are known from the run alone. The docs list them."""


class World(NamedTuple):
    """Evidence, and everything that it takes to verify it."""

    path: Path
    evidence: dict[str, Any]
    given: Given


@pytest.fixture(params=list(GUARANTEES))
def world(request: pytest.FixtureRequest, portcullis: Any, shop: Path) -> World:
    guarantee = GUARANTEES[request.param]
    policy = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee)
    stream = request.param in {"castle", "cohorts"}
    if not stream:
        policy += "attacks: {prosecutor: 0.9}\n"
    (shop / "policy.yaml").write_text(policy)
    if stream:
        header, *lines = table_text(40).splitlines()
        order = np.random.default_rng(4).permutation(np.repeat(np.arange(40), 10))
        (shop / "table.csv").write_text("\n".join([header, *(lines[row] for row in order)]) + "\n")
    arguments = ["--policy", shop / "policy.yaml", "--out", shop / "safe.jsonl", "--evidence", shop / "e.json"]
    links = shop / "e.json.links"
    command = "replay" if stream else "anonymize"
    result = portcullis(command, shop / "table.csv", *arguments, "--links", links)
    assert result.exit_code == 0, result.output
    secret = bytes.fromhex((shop / "e.json.secret").read_text())
    given = Given(load_policy(shop / "policy.yaml"), shop / "table.csv", shop / "safe.jsonl", links, secret)
    return World(shop / "e.json", read(shop / "e.json"), given)


def tamperings(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every way to change one statement: another value, none at all, one more beside it."""
    if isinstance(value, dict):
        yield f"{place}.approved", value | {"approved": True}
        yield f"{place}.approved", value | {"approved": None}
        for name, inner in value.items():
            below = f"{place}.{name}" if place else name
            yield below, {other: value[other] for other in value if other != name}
            for at, changed in tamperings(inner, below):
                yield at, value | {name: changed}
    elif isinstance(value, list):
        yield place, [*value, *(value[-1:] or ["approved"])]
        for number, inner in enumerate(value):
            yield f"{place}.{number}", value[:number] + value[number + 1 :]
            for at, changed in tamperings(inner, f"{place}.{number}"):
                yield at, [*value[:number], changed, *value[number + 1 :]]
    else:
        yield place, _other(value)


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case None:
            return 1
        case int() | float():
            return value + 1
        case _:
            return f"{value}0" if len(value) != 64 else value[::-1] if value != value[::-1] else "0" * 64


def accepted(world: World, parts: Any) -> list[Check] | None:
    """Return what verification finds in evidence with these parts; None if it refuses them."""
    world.path.write_bytes(canonical({**world.evidence, **sealed(parts)}))
    try:
        found = list(verify(read(world.path), world.given))
    except DataError:
        return None
    return None if any(one.outcome == "differs" for one in found) else found


def test_each_changed_statement_is_refused_or_a_documented_limit(world: World) -> None:
    parts = world.evidence["parts"]
    assert accepted(world, parts) is not None
    limits = (*UNSIGNED, *OF_THE_RUN[parts["made"]["kind"]])
    tried, survived = 0, set()
    for place, changed in tamperings(parts):
        tried += 1
        if accepted(world, changed) is not None:
            survived.add(place)
    assert tried >= 80
    assert {place for place in survived if not place.startswith(limits)} == set()


def test_signature_refuses_each_of_them(world: World) -> None:
    key = Ed25519PrivateKey.generate()
    world.evidence["signature"] = signature(world.evidence, key)
    signed = world._replace(given=replace(world.given, signer=key.public_key()))
    assert accepted(signed, world.evidence["parts"]) is not None
    limits = (*UNSIGNED, *OF_THE_RUN[world.evidence["parts"]["made"]["kind"]])
    for place, changed in tamperings(copy.deepcopy(world.evidence["parts"])):
        if place.startswith(limits):
            assert accepted(signed, changed) is None, place


@pytest.mark.parametrize("name", ["parts", "hashes", "hash"])
def test_missing_parts_and_added_parts_are_refused(world: World, name: str) -> None:
    for changed in (
        {one: value for one, value in world.evidence.items() if one != name},
        world.evidence | {"approved": {"by": "the authority"}},
    ):
        world.path.write_bytes(canonical(changed))
        with pytest.raises(DataError, match="is no evidence of Portcullis"):
            read(world.path)


def test_document_that_can_be_read_in_two_ways_is_refused(world: World) -> None:
    text = canonical(world.evidence).decode()
    twice = text.replace('"policy":{', '"policy":{"asked":{"algorithm":"mondrian","parameters":{"k":50}},', 1)
    assert json.loads(twice) == json.loads(text), "the last of two names counts"
    for changed in (twice, json.dumps(world.evidence, indent=1)):
        world.path.write_text(changed)
        with pytest.raises(DataError, match="canonical form"):
            read(world.path)


def test_claims_of_the_issue_are_refused_one_by_one(world: World) -> None:
    parts = copy.deepcopy(world.evidence["parts"])
    parts["policy"]["asked"]["parameters"] |= {"k": 50, "t": 0.01}
    assert accepted(world, parts) is None


@pytest.mark.parametrize("show", ["interval", "mean"])
def test_evidence_of_a_stream_is_none_of_a_table(portcullis: Any, shop: Path, show: str) -> None:
    """Whose figures would not be compared with anything, and whose words say less about what is assumed."""
    for name, guarantee in (("table", GUARANTEES["mondrian"]), ("stream", GUARANTEES["castle"])):
        text = POLICY.replace("{algorithm: mondrian, k: 4, l: 2}", guarantee) + f"show: {show}\n"
        (shop / f"{name}.yaml").write_text(text)
        command = "anonymize" if name == "table" else "replay"
        arguments = [
            "--policy",
            shop / f"{name}.yaml",
            "--out",
            shop / f"{name}.jsonl",
            "--links",
            shop / f"{name}.links",
        ]
        result = portcullis(command, shop / "table.csv", *arguments, "--evidence", shop / f"{name}.json")
        assert result.exit_code == 0, result.output
    table, stream = (read(shop / f"{name}.json")["parts"] for name in ("table", "stream"))
    policy, basis = load_policy(shop / "stream.yaml"), {"original": shop / "table.csv", "links": shop / "stream.links"}
    parts = {name: stream[name] for name in ("policy", "original", "links", "published", "audited")}
    forged = table | parts | {"words": words_of("table", policy)}
    secret = bytes.fromhex((shop / "stream.json.secret").read_text())
    given = Given(policy, basis["original"], shop / "stream.jsonl", basis["links"], secret)
    for one in (forged, {name: forged[name] for name in forged if name != "links"}):
        (shop / "forged.json").write_bytes(canonical(sealed(one)))
        found = {check.about: check.outcome for check in verify(read(shop / "forged.json"), given)}
        assert found["the kind of evidence"] == "differs"
        assert "reported: attacks" not in found

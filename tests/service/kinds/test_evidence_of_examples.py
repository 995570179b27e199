"""Evidence of each algorithm's example: everything that is measured again is what was filed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from service.evidence import Given, gather, new_secret, read, verify, write
from service.policy import load_policy
from service.policy.data import DataKind, Example, data_kinds


def cases() -> Iterator[object]:
    for kind in data_kinds():
        for example in kind.examples():
            algorithm = example.policy["guarantee"]["algorithm"]
            yield pytest.param(kind, example, False, id=f"{algorithm}")
            if kind.keeps_links:
                yield pytest.param(kind, example, True, id=f"{algorithm}-links")


@pytest.mark.parametrize(("kind", "example", "linked"), list(cases()))
def test_verification_of_genuine_evidence_finds_no_difference(
    kind: DataKind, example: Example, linked: bool, tmp_path: Path
) -> None:
    policy_path, original, published = tmp_path / "policy.yaml", tmp_path / "table.csv", tmp_path / "safe.csv"
    policy_path.write_text(yaml.safe_dump(dict(example.policy)))
    original.write_text(example.table)
    links = tmp_path / "links" if linked else None
    policy = load_policy(policy_path)
    if policy.purposes:
        policy = load_policy(policy_path, purpose=next(iter(policy.purposes)))
    result, secret = kind.anonymize(policy, original), new_secret()
    kind.write(policy, result, published, links=links)
    report = kind.report(policy, result, seconds=1.0)
    made = gather(policy, report, original=original, published=[published], secret=secret, by="test", links=links)
    write(made, tmp_path / "e.json")
    found = list(verify(read(tmp_path / "e.json"), Given(policy, original, published, links, secret)))
    assert [one for one in found if one.outcome == "differs"] == []
    verified = {one.about for one in found if one.outcome == "holds"}
    assert {"the policy: asked", "what was published", "reported: results"} <= verified

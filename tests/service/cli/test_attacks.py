"""Attacks as conditions: what can be attacked is not written; what cannot be tried is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.policy import PolicyError, parse_policy
from tests.service.cli.cli_world import MARK, POLICY, table_text


@pytest.fixture
def anonymized(portcullis: Any, shop: Any) -> Any:
    """Anonymize the shop under a policy with these attacks."""

    def run(attacks: str) -> Any:
        (shop / "policy.yaml").write_text(POLICY + f"attacks: {attacks}\n")
        arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv", "--report", shop / "report.json")
        return portcullis("anonymize", shop / "table.csv", *arguments, "--html", shop / "report.html")

    return run


def test_a_table_that_can_be_attacked_is_not_written(anonymized: Any, shop: Path) -> None:
    result = anonymized("{inference: 0.01, linking: {most: 0.05}}")
    assert result.exit_code == 3
    assert "the publication can be attacked and is not written: inference attack of item gets 0." in result.stderr
    assert "linking attack" not in result.stderr
    assert not (shop / "safe.csv").exists()
    assert MARK not in result.output


def test_a_table_that_cannot_is_written_and_says_so(anonymized: Any, shop: Path, portcullis: Any) -> None:
    result = anonymized("{homogeneity: 0, linking: {most: 0}, prosecutor: 0.25}")
    assert result.exit_code == 0, result.output
    assert "homogeneity attack of item" in result.stdout
    made = json.loads((shop / "report.json").read_text())
    after = {one["attack"]: one["after"] for one in made["attacks"]}
    assert after["homogeneity"] == after["linking"] == 0
    assert after["prosecutor"] <= 0.25
    page = (shop / "report.html").read_text()
    assert "What an attacker would get" in page
    assert "Which column causes it" in page
    audited = portcullis("audit", shop / "table.csv", shop / "safe.csv", "--policy", shop / "policy.yaml")
    assert "the attacks of the policy were not tried" in audited.stdout


def test_attacks_with_a_control_are_held_against_their_upper_end(anonymized: Any, shop: Path, portcullis: Any) -> None:
    (shop / "table.csv").write_text(table_text(400))
    result = anonymized("{singling_out: 0.05, controlled_inference: 1}")
    assert result.exit_code == 3
    assert "can be attacked and is not written: singling out with a control gets 0." in result.stderr
    assert "inference" not in result.stderr
    assert not (shop / "safe.csv").exists()
    result = anonymized("{singling_out: 1, linkability: 0.9}")
    assert result.exit_code == 0, result.output
    assert "singling out with a control" in result.stdout
    files = ("--original", shop / "table.csv", "--published", shop / "safe.csv")
    found = json.loads(portcullis("attack", shop / "policy.yaml", *files, "--json").stdout)
    worst = next(one for one in found["tried"] if one["attack"] == "singling out")
    assert worst["risk"] < worst["risk_high"]
    for allowed, status in ((worst["risk_high"] + 1e-9, 0), (worst["risk"], 1)):
        (shop / "strict.yaml").write_text(POLICY + f"attacks: {{singling_out: {allowed}}}\n")
        result = portcullis("attack", shop / "strict.yaml", *files)
        assert (result.exit_code, "with a control" in result.stdout) == (status, True), result.output


def test_attacks_with_a_control_need_enough_persons(anonymized: Any, shop: Path) -> None:
    result = anonymized("{singling_out: 0.5}")
    assert result.exit_code == 2
    assert "the nearest feasible value is 200" in result.stderr
    assert not (shop / "safe.csv").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (POLICY + "attacks: {guessing: 0}\n", "attacks: must be some of prosecutor, "),
        (POLICY + "attacks: {linking: 2}\n", "attacks.linking"),
        (POLICY + "attacks: {linking: {least: 0}}\n", "attacks.linking"),
        (POLICY + "attacks: {singling_out: 0.001}\n", "attacks.singling_out: trials cannot show less than 0.006"),
        (
            POLICY.replace("    city: ", "    # city: ") + "attacks: {linkability: 0.1}\n",
            "attacks.linkability: needs two quasi-identifiers",
        ),
        (POLICY.replace("algorithm: mondrian, ", "") + "attacks: {linking: 0}\n", "attacks: only tables are attacked"),
        (
            POLICY.replace(
                "  sensitive:\n    item: {type: category, hierarchy: {Any: [lamp, book, tea]}}\n", ""
            ).replace(", l: 2", "")
            + "attacks: {similarity: 0}\n",
            "attacks.similarity: needs a sensitive attribute",
        ),
        (
            POLICY.replace(
                "  sensitive:\n    item: {type: category, hierarchy: {Any: [lamp, book, tea]}}\n", ""
            ).replace(", l: 2", "")
            + "attacks: {controlled_inference: 0.5}\n",
            "attacks.controlled_inference: needs a sensitive attribute",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(text: str, expected: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy(text)
    assert expected in str(refused.value)


def test_other_kinds_of_data_have_none() -> None:
    survey = Path(__file__).parents[3] / "examples/survey"
    with pytest.raises(PolicyError, match="attacks: there are none for ratings"):
        parse_policy((survey / "policy.yaml").read_text() + "\nattacks: {linking: 0}\n", survey)

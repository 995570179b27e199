"""Names and values of a policy have no character that could reverse a number on a page."""

import copy
from typing import Any

import pytest
import yaml

from service.policy import PolicyError, parse_policy
from tests.service.cli.cli_world import POLICY

OVERRIDE = "\u202e"


def renamed(place: str) -> Any:
    """The policy with an override in one of its names."""
    policy: Any = copy.deepcopy(yaml.safe_load(POLICY))
    match place:
        case "column":
            policy["schema"]["quasi"][f"ci{OVERRIDE}ty"] = policy["schema"]["quasi"].pop("city")
        case "category":
            policy["schema"]["sensitive"]["item"]["hierarchy"] = {"Any": ["lamp", f"bo{OVERRIDE}ok", "tea"]}
        case "public":
            policy["schema"]["public"] = [f"sh{OVERRIDE}op"]
        case "policy":
            policy["name"] = f"sh{OVERRIDE}op"
        case "purpose":
            policy["purposes"] = {f"re{OVERRIDE}search": {}}
    return policy


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("column", r"schema.quasi.ci\u202ety"),
        ("category", "schema.sensitive.item.hierarchy.Any[1]"),
        ("public", "schema.public[0]"),
        ("policy", "name"),
        ("purpose", r"purposes.re\u202esearch"),
    ],
)
def test_override_in_a_name_is_refused_with_its_place(place: str, path: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse_policy(renamed(place))
    (problem,) = error.value.problems
    assert problem.path == path
    assert "U+202E RIGHT-TO-LEFT OVERRIDE, at position 3; remove it" in problem.reason
    assert OVERRIDE not in str(error.value)


def test_override_in_a_hierarchy_file_is_refused(tmp_path: Any) -> None:
    policy: Any = yaml.safe_load(POLICY)
    policy["schema"]["sensitive"]["item"]["hierarchy"] = "items.csv"
    (tmp_path / "items.csv").write_text(f"lamp;Any\nbo{OVERRIDE}ok;Any\ntea;Any\n")
    with pytest.raises(PolicyError, match="U\\+202E RIGHT-TO-LEFT OVERRIDE") as error:
        parse_policy(policy, tmp_path)
    assert OVERRIDE not in str(error.value)


def test_commands_escape_such_characters_of_files(portcullis: Any, shop: Any) -> None:
    """A published file may have any columns; the audit names those that the schema does not let out."""
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / "safe.csv")
    assert portcullis("anonymize", shop / "table.csv", *arguments).exit_code == 0
    header, *rows = (shop / "safe.csv").read_text().splitlines()
    (shop / "safe.csv").write_text("\n".join([f"{header},{OVERRIDE}%17", *(f"{row},1" for row in rows)]) + "\n")
    result = portcullis("audit", shop / "table.csv", shop / "safe.csv", "--policy", shop / "policy.yaml")
    assert result.exit_code == 1
    assert OVERRIDE not in result.output
    assert r"\u202e%17" in result.output

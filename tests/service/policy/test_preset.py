"""The section `preset` of a policy: what it may say, and where the rules of HIPAA Safe Harbor are checked."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from microdata import DataError, silent
from service.cli import app
from service.jobs.work import Task, work
from service.policy import PolicyError, data_kind, parse_policy
from service.problems import ProblemError

SEX = {"type": "category", "hierarchy": {"*": ["F", "M"]}}
AGE = {"type": "number", "min": 0, "max": 90, "integer": True, "capped": True}
ZIP = {"type": "category", "hierarchy": {"*": ["53711", "53202"]}}
STREAM = {"input": "visits", "output": "visits.safe", "start": "earliest"}
CASTLE = {"algorithm": "castle", "k": 2, "delay": {"tuples": 10}}


def policy(preset: Any = None, stream: bool = False, public: Any = (), **quasi: Any) -> dict[str, Any]:
    """A policy with this preset and these quasi-identifiers."""
    schema = {"person": "patient", "quasi": quasi or {"sex": SEX, "age": AGE}, "public": list(public)}
    return {
        "name": "visits",
        "schema": schema,
        "guarantee": CASTLE if stream else {"algorithm": "mondrian", "k": 2},
        "preset": {"name": "hipaa"} if preset is None else preset,
        **({"stream": STREAM} if stream else {}),
    }


def problems(given: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(PolicyError) as raised:
        parse_policy(given)
    return {problem.path: problem.reason for problem in raised.value.problems}


def test_a_preset_has_a_known_name_and_reviewed_fields_that_are_declared() -> None:
    assert parse_policy(policy({"name": "hipaa", "reviewed": ["sex"]})).preset is not None
    assert "must be 'hipaa'" in problems(policy({"name": "gdpr"}))["preset.name"]
    assert (
        "must be a field of the schema"
        in problems(policy({"name": "hipaa", "reviewed": ["ward"]}))["preset.reviewed[0]"]
    )


def test_the_rules_are_about_records_only() -> None:
    example = next(iter(data_kind("ratings").examples()))
    assert "about records" in problems({**example.policy, "preset": {"name": "hipaa"}})["preset"]


def test_a_stream_is_refused_that_could_publish_an_identifier() -> None:
    assert parse_policy(policy(stream=True)).kind == "stream"
    found = problems(policy(stream=True, public=["shop"], sex=SEX, zip=ZIP, age={**AGE, "capped": False, "max": 104}))
    assert set(found) == {"schema.quasi.zip", "schema.quasi.age", "schema.public.shop"}
    assert "more than three digits of postcodes" in found["schema.quasi.zip"]
    assert "ages above 89" in found["schema.quasi.age"]
    assert "public values of a stream" in found["schema.public.shop"]
    assert "53711" not in str(found)


def test_replay_does_not_begin_with_such_a_stream(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(json.dumps(policy(stream=True, sex=SEX, zip=ZIP)))
    (tmp_path / "events.csv").write_text("patient,sex,zip\na,F,53711\nb,M,53202\n")
    arguments = ["replay", "events.csv", "--policy", "policy.json", "--out", "out.jsonl"]
    answer = CliRunner().invoke(app, [str(tmp_path / one) if "." in one else one for one in arguments])
    assert answer.exit_code == 2
    assert "schema.quasi.zip: the preset hipaa does not allow it" in " ".join(answer.output.split())
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("role", ["quasi", "public"])
def test_a_job_that_would_publish_an_identifier_ends_with_a_problem_that_names_its_column(
    tmp_path: Path, role: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("patient,sex,zip\n" + "".join(f"p{row},F,53711\n" for row in range(4)))
    given = policy(sex=SEX, zip=ZIP) if role == "quasi" else policy(public=["zip"], sex=SEX)
    (tmp_path / "out").mkdir()
    task = Task("anonymize", json.dumps(given), {"table": str(table)}, str(tmp_path / "out"), "anna", 100, 10**6)
    with pytest.raises(ProblemError) as raised:
        work(task, silent)
    problem = raised.value.problem
    assert problem.type.endswith("wrong-table")
    assert "preset hipaa" in problem.detail
    assert [place.path for place in problem.errors][:1] == ["zip"]
    assert "in 4 rows" in problem.errors[0].reason
    assert "53711" not in problem.model_dump_json()
    assert list((tmp_path / "out").iterdir()) == []


def test_a_policy_without_a_preset_is_not_checked(tmp_path: Path) -> None:
    given = policy(sex=SEX, zip=ZIP)
    del given["preset"]
    (tmp_path / "table.csv").write_text("patient,sex,zip\n" + "".join(f"p{row},F,53711\n" for row in range(4)))
    loaded = parse_policy(given)
    assert loaded.data.anonymize(loaded, tmp_path / "table.csv").rows == 4
    checked = parse_policy(policy(sex=SEX, zip=ZIP))
    with pytest.raises(DataError, match="preset hipaa"):
        checked.data.anonymize(checked, tmp_path / "table.csv")

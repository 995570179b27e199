"""Everything in examples/ runs as it is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.policy import load_policy

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
POLICIES = sorted(EXAMPLES.glob("*/policy.yaml"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_the_program_runs(program: Any, tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(EXAMPLES.parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.parent.name)
def test_the_policy_loads(path: Any) -> None:
    assert load_policy(path).kind in {"table", "stream"}


def test_the_table_fits_its_policy(portcullis: Any, tmp_path: Path) -> None:
    adult = EXAMPLES / "adult"
    given = ("--policy", adult / "policy.yaml")
    checked = portcullis("policy", "check", adult / "policy.yaml", "--table", adult / "people.csv")
    assert checked.exit_code == 0, checked.output
    made = portcullis("anonymize", adult / "people.csv", *given, "--out", tmp_path / "safe.csv")
    assert made.exit_code == 0, made.output
    audited = portcullis("audit", adult / "people.csv", tmp_path / "safe.csv", *given)
    assert audited.exit_code == 0, audited.output


def test_patients_are_published_without_their_category(portcullis: Any, tmp_path: Path) -> None:
    """A policy with categories through every command; a laxer one is caught by the audit."""
    health, safe, page = EXAMPLES / "health", tmp_path / "safe.csv", tmp_path / "report.html"
    given = ("--policy", health / "policy.yaml")
    checked = portcullis("policy", "check", health / "policy.yaml", "--table", health / "patients.csv")
    assert checked.exit_code == 0, checked.output
    made = portcullis("anonymize", health / "patients.csv", *given, "--out", safe, "--html", page)
    assert made.exit_code == 0, made.output
    assert "p-plus-sensitivity" in made.output
    assert "max-first-category-share" in page.read_text()
    assert portcullis("audit", health / "patients.csv", safe, *given).exit_code == 0
    policy = yaml.safe_load((health / "policy.yaml").read_text())
    lax, loose = tmp_path / "lax.yaml", tmp_path / "loose.csv"
    lax.write_text(yaml.safe_dump({**policy, "guarantee": {"algorithm": "mondrian", "k": 2, "p": 2}}))
    assert portcullis("anonymize", health / "patients.csv", "--policy", lax, "--out", loose).exit_code == 0
    audited = portcullis("audit", health / "patients.csv", loose, *given)
    assert audited.exit_code != 0
    assert "NO, fails in" in audited.output


def test_patients_come_by_as_a_stream(portcullis: Any, tmp_path: Path) -> None:
    policy = yaml.safe_load((EXAMPLES / "health" / "policy.yaml").read_text())
    guarantee = {"algorithm": "castle", "k": 3, "p_categories": 2, "alpha_weight": 1, "delay": {"tuples": 100}}
    stream = {"input": "in", "output": "out", "start": "earliest"}
    (tmp_path / "policy.yaml").write_text(
        yaml.safe_dump({"name": "visits", "schema": policy["schema"], "guarantee": guarantee, "stream": stream})
    )
    report = tmp_path / "report.json"
    run = portcullis(
        "replay", EXAMPLES / "health" / "patients.csv", "--policy", tmp_path / "policy.yaml",
        "--out", tmp_path / "clusters.jsonl", "--report", report,
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    text = report.read_text()
    assert "p-plus-sensitivity" in text
    assert "category-weight" in text

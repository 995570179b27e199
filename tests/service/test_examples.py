"""Everything in examples/ runs as it is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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

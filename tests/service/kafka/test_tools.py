"""A tool that is missing: skipped for a stranger, a failure where it is required, and said in either case."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("required", "code", "said"), [("", 0, "1 skipped"), ("postgres, kcat", 1, "1 error")])
def test_a_missing_tool_skips_or_fails(required: str, code: int, said: str) -> None:
    one = "tests/service/kafka/test_kcat.py::test_it_sees_the_broker_and_its_topics[kafka-python-embedded]"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", one, "-v"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PATH": "/nowhere", "PORTCULLIS_REQUIRE": required},
    )  # fmt: skip
    assert run.returncode == code, run.stdout
    assert said in run.stdout
    assert "none of these programs is installed: kcat, kafkacat" in run.stdout
    assert "tools and brokers" in run.stdout

"""The list of mutations fits the source code, and the runner tells what became of a mutation."""

import ast
import os
from pathlib import Path

import pytest

from tests.mutation.mutation import DoesNotApplyError, Mutation, Target
from tests.mutation.mutations import QUICK, TARGETS
from tests.mutation.run import ROOT, chosen_targets, result_of
from tests.mutation.worker import answer

SOURCE = "def one() -> int:\n    return 1\n\n\nclass Two:\n    def one(self) -> int:\n        return 1\n"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path)
def test_every_mutation_applies_to_exactly_one_place_and_can_be_compiled(target: Target) -> None:
    source = target.source(ROOT)
    mutated = [each.apply(source, target.path) for each in target.mutations]
    assert len({*mutated, source}) == len(mutated) + 1, "two mutations are the same, or one changes nothing"
    for one in mutated:
        ast.parse(one)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path)
def test_the_tests_of_a_target_exist(target: Target) -> None:
    files = [one.partition("::")[0] for one in target.tests if not one.startswith("--")]
    assert files
    assert all((ROOT / one).is_file() for one in files)


def test_there_are_enough_mutations_and_continuous_integration_runs_those_of_gate_and_audit() -> None:
    assert sum(len(target.mutations) for target in TARGETS) >= 150
    assert len({target.path for target in TARGETS}) == len(TARGETS)
    assert {"service/publishing/gate.py", "privacy/audit.py"} <= {
        target.path for target in chosen_targets(quick=True, texts=[])
    }
    assert set(QUICK) <= set(TARGETS)
    assert [target.path for target in chosen_targets(quick=False, texts=["gate.py"])] == ["service/publishing/gate.py"]


def test_a_mutation_changes_the_one_place_in_its_scope() -> None:
    assert Mutation("one", "1", "2").apply(SOURCE, "one.py") == SOURCE.replace("1", "2", 1)
    assert Mutation("Two.one", "1", "2").apply(SOURCE, "one.py") == SOURCE[::-1].replace("1", "2", 1)[::-1]
    assert Mutation("Two.one", "1", "2").line(SOURCE) == 7


@pytest.mark.parametrize("mutation", [Mutation("", "1", "2"), Mutation("one", "3", "2"), Mutation("three", "1", "2")])
def test_a_mutation_that_does_not_apply_is_an_error_with_its_place(mutation: Mutation) -> None:
    with pytest.raises(DoesNotApplyError, match=r"one\.py: "):
        mutation.apply(SOURCE, "one.py")


def test_a_survivor_and_a_wrong_reason_are_reported() -> None:
    without, reason = Mutation("", "1", "2"), Mutation("", "1", "2", equivalent="It changes nothing.")
    assert [result_of(without, status) for status in (0, 1, 2, None)] == ["survived", "killed", "killed", "timeout"]
    assert [result_of(reason, status) for status in (0, 1, None)] == ["equivalent", "not equivalent", "not equivalent"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "seconds", "status"), [("pass", 60, 0), ("assert 0", 60, 1), ("import time; time.sleep(60)", 5, None)]
)
def test_a_worker_tells_how_tests_ended(tmp_path: Path, body: str, seconds: float, status: int | None) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(f"def test_one():\n    {body}\n")
    request = {"arguments": [os.fspath(file), "-c", os.devnull], "compiled": True, "seconds": seconds}
    assert answer(request, tmp_path / "output")["status"] == status

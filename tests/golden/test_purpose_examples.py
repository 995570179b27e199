"""The worked examples of purpose and trust: X. Sun (2010), chapter 4; sections TC-4C to TC-4G of the specification."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from microdata import Category, Hierarchy, Number, PersonSource, Schema, Table, prefix_hierarchy
from service.cli import app
from static_algos import Purpose
from static_algos.dependency import distances
from static_algos.purpose import attribute_degrees, priorities, rises, steps_after, weighted_degree

GENDER = Category("gender", Hierarchy.flat(["male", "female"]))
AGE = Category("age", Hierarchy.flat(["young", "middle", "old"]))
POSTCODE = Category("postcode", prefix_hierarchy(["4350", "4351", "4352", "4353"], keep=[3, 2, 1]))
ROWS = np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 2], [1, 2, 3], [1, 2, 3]])
"""Table 4.1(a)."""
TABLE = Table(
    Schema(PersonSource.ROW, (GENDER, AGE, POSTCODE)), np.arange(6), ROWS.astype(float), np.empty((6, 0), np.int32)
)
LEVELS = (2, 2, 5)
"""Gender and age: the values or *; postcode: dddd, ddd*, dd**, d***, *."""
DEGREES = [attribute_degrees(levels, 0) for levels in LEVELS]


def steps(priority: object, degree: float, degrees: object = DEGREES) -> tuple[int, ...]:
    climb = rises(degrees, np.array(priority), "literal")  # type: ignore[arg-type]
    return steps_after(climb, sum(rise.degree < degree - 1e-9 for rise in climb), len(degrees))  # type: ignore[arg-type]


def test_the_normalized_matrix_divides_by_what_is_above_the_diagonal() -> None:
    between = distances(list(ROWS.T))
    above = between[np.triu_indices(3, 1)]
    assert above / above.sum() == pytest.approx([0.5, 0.367, 0.133], abs=5e-4)


def test_priorities_follow_the_order() -> None:
    between = distances(list(ROWS.T))
    assert priorities(between, [0, 1, 2])[1] == pytest.approx(0.21, abs=5e-3)
    gender, postcode, age = priorities(between, [0, 2, 1])
    assert (gender, round(postcode, 3), age) == (1, 0.266, 0)
    # They satisfy the equation that the source defines them by.
    one, two = between[0, 2], between[2, 1]
    assert postcode == pytest.approx((two * gender + one * age) / (one + two))


def test_degrees_of_a_birth_date() -> None:
    assert attribute_degrees(6, 0)[2] == pytest.approx(0.4)
    assert attribute_degrees(6, 1)[1] == pytest.approx(0.2 / 2.2833, abs=1e-5)
    assert attribute_degrees(2, 0).tolist() == [0, 1]
    assert attribute_degrees(1, 1).tolist() == [0]


def test_degrees_of_tables_go_by_the_definition_and_not_by_what_is_printed() -> None:
    priority = np.array([0, 1, 0.5])  # gender, age, postcode
    row = weighted_degree(np.array([1, 0, 0.25]), priority)
    assert row == pytest.approx(0.0833, abs=5e-5)  # printed as 0.6 and 0.125
    assert 2 * row / 6 == pytest.approx(0.0278, abs=5e-5)  # (b), where two of six rows are generalized: printed as 0.05
    assert row / (2 * row / 6) == pytest.approx(3)  # (c) against (b), which is right in print


@pytest.mark.parametrize("degree", [1 / 8, 0.1])
def test_the_decomposition_gives_the_table_of_the_source(degree: float) -> None:
    priority = [1, 0, 0.266]  # gender, age, postcode
    assert steps(priority, degree) == (1, 0, 1)
    achieved = np.array([own[step] for own, step in zip(DEGREES, (1, 0, 1), strict=True)])
    assert weighted_degree(achieved, np.array(priority)) == pytest.approx(0.842, abs=5e-4)  # and not 0.125


def test_the_algorithm_publishes_it() -> None:
    asked = {"order": ["gender", "postcode"], "mode": "literal", "points": [[0, 1], [0.5, 0.125], [1, 0]]}
    publication = Purpose(k=2, trust=0.5, **asked).anonymize(TABLE)
    assert publication.details["levels"] == {"gender": 1, "age": 0, "postcode": 1}
    assert publication.details["requested_degree"] == 0.125
    assert publication.details["weighted_degree"] == pytest.approx(0.842, abs=5e-4)
    assert sorted(publication.sizes) == [2, 2, 2]


POLICY = """\
name: purpose
schema:
  person: {row: true}
  quasi:
    gender: {type: category, hierarchy: {"*": [male, female]}}
    age: {type: category, hierarchy: {"*": [young, middle, old]}}
    postcode:
      type: category
      hierarchy: {builder: prefixes, values: ["4350", "4351", "4352", "4353"], keep: [3, 2, 1]}
guarantee:
  algorithm: purpose
  k: 2
  order: [gender, postcode]
  mode: literal
  trust: 0.5
  points: [[0, 1], [0.5, 0.125], [1, 0]]
"""


def test_the_command_reports_the_same_degree(tmp_path: Path) -> None:
    lines = ["gender,age,postcode"]
    for gender, age, postcode in ROWS.tolist():
        lines.append(",".join([GENDER.hierarchy.leaves[gender], AGE.hierarchy.leaves[age], f"435{postcode}"]))
    table, policy, report = (tmp_path / name for name in ("table.csv", "policy.yaml", "report.json"))
    table.write_text("\n".join(lines) + "\n")
    policy.write_text(POLICY)
    asked = ["anonymize", table, "--policy", policy, "--out", tmp_path / "safe.csv", "--report", report]
    done = CliRunner().invoke(app, [str(word) for word in asked])
    assert done.exit_code == 0, done.output
    details = json.loads(report.read_text())["details"]
    assert details["levels"] == {"gender": 1, "age": 0, "postcode": 1}
    assert details["weighted_degree"] == pytest.approx(0.842, abs=5e-4)


def test_running_it_again_with_what_it_achieved_changes_the_table() -> None:
    # Theorem 4.3 says that it does not.
    two, eleven = attribute_degrees(2, 0), attribute_degrees(11, 0)
    assert steps([1, 1], 0.1, [two, eleven]) == (1, 1)
    achieved = weighted_degree(np.array([two[1], eleven[1]]), np.ones(2))
    assert achieved == pytest.approx(0.55)
    assert steps([1, 1], achieved, [two, eleven]) == (1, 3)


def test_shares_of_the_source_give_trust_no_effect_where_all_are_alike() -> None:
    seven = [attribute_degrees(levels, 0) for levels in (2, 3, 4, 5, 3, 4, 5)]
    # With seven attributes each share is at most 1/7, less than the first step of any.
    assert {steps([1] * 7, degree, seven) for degree in (0.05, 0.5, 1.0)} == {(1,) * 7}
    climb = rises(seven, np.ones(7), "purpose")
    found = {steps_after(climb, sum(rise.degree < degree - 1e-9 for rise in climb), 7) for degree in (0.05, 0.5, 1.0)}
    assert len(found) == 3
    assert max(found) == (1, 2, 3, 4, 2, 3, 4)


def test_number_levels_are_those_of_full_domain_generalization() -> None:
    schema = Schema(PersonSource.ROW, (Number("age", 0, 63, integer=True),))
    table = Table(schema, np.arange(4), np.array([[1.0], [9], [33], [40]]), np.empty((4, 0), np.int32))
    publication = Purpose(k=2, trust=1, widths={"age": [8, 32]}).anonymize(table)
    assert publication.details["levels"] == {"age": 2}
    assert publication.details["raised_for_the_guarantee"] is True
    assert publication.boxes.lo.ravel().tolist() == [0, 32]

"""The preset of HIPAA Safe Harbor: whatever the guarantee, nothing that the rules forbid can be published."""

import csv
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from microdata import DataError, read_sample
from service.cli import app
from service.policy import load_policy
from service.proposal import propose
from service.proposal.safe_harbor import FEW, MAX_AREAS_BYTES, SafeHarbor, read_areas

POSTCODES = ("53711", "53703-1234", "03601", "02138", "82190", "2138")
AREAS = f"area,population\n537,412000\n036,{FEW}\n021,{FEW + 1}\n821,400\n"
"""Two that may be told; one that is just too small, and one that is far too small."""
YEAR = datetime.now(UTC).year
HEAD = "patient_id,name,phone,zip,county,state,dob,admitted,birth_month,age,sex,mrn,weight,diagnosis"


def visits(folder: Path, rows: int = 120) -> Path:
    """Visits of people between 5 and 104 years of age."""
    lines = [HEAD]
    for row in range(rows):
        age = 5 + row % 100
        born = f"{YEAR - age}-{1 + row % 12:02}-{1 + row % 28:02}"
        cells = (
            f"p{row}",
            f"Ann {row}",
            f"608-555-{row:04}",
            POSTCODES[row % len(POSTCODES)],
            "Dane",
            ("WI", "NH")[row % 2],
        )
        more = (born, f"2025-{1 + row % 12:02}-11", 1 + row % 12, age, "FM"[row % 2], 7_000_000 + row, 50 + row % 60)
        lines.append(",".join(map(str, (*cells, *more, ("flu", "asthma", "ulcer")[row % 3]))))
    path = folder / "visits.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*given: Any) -> Any:
    return CliRunner().invoke(app, [str(one) for one in given])


def proposed(folder: Path, *more: Any) -> Any:
    """The policy that is proposed, and what was said."""
    answer = run("policy", "init", visits(folder), "--preset", "hipaa", "--out", folder / "out", *more)
    assert answer.exit_code == 0, answer.output
    return folder / "out" / "policy.yaml", answer.output


def areas(folder: Path, text: str = AREAS) -> Path:
    path = folder / "areas.csv"
    path.write_text(text)
    return path


def published(folder: Path, policy: Path) -> Any:
    answer = run("anonymize", folder / "visits.csv", "--policy", policy, "--out", folder / "out.csv")
    assert answer.exit_code == 0, answer.output
    with (folder / "out.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_even_with_k_1_nothing_leaves_that_the_rules_forbid(tmp_path: Path) -> None:
    policy, said = proposed(tmp_path, "--areas", areas(tmp_path))
    text = re.sub(r"guarantee: .*", "guarantee: {algorithm: mondrian, k: 1}", policy.read_text())
    policy.write_text(text)
    rows = published(tmp_path, policy)
    assert len(rows) == 120
    assert set(rows[0]) == {"class", "zip", "state", "dob", "admitted", "age", "sex", "weight", "diagnosis"}
    # A postcode without its zero is among those of 000: its first digits would be four of the five.
    assert Counter(row["zip"] for row in rows) == {"537": 40, "021": 20, "000": 60}
    assert {row["admitted"] for row in rows} == {"2025"}
    ages = Counter(int(row["age"]) for row in rows)
    assert ages == Counter(min(5 + row % 100, 90) for row in range(120))
    born = Counter(row["dob"] for row in rows)
    assert born[f"before {YEAR - 89}"] == ages[90], "these years tell an age above 89"
    assert set(born) == {f"before {YEAR - 89}", *(str(YEAR - age) for age in range(5, 90))}
    assert "no program knows" in said.lower()
    assert "current census" in said


def test_without_populations_postcodes_are_left_out(tmp_path: Path) -> None:
    policy, said = proposed(tmp_path)
    names = {one.name for one in load_policy(policy).schema.quasi}
    assert names == {"state", "dob", "admitted", "age", "sex", "weight"}
    assert "zip: left out (Safe Harbor: postcodes need the populations" in said
    assert "county: left out (Safe Harbor: a place smaller than a state)" in said
    assert "birth_month: left out (Safe Harbor: an element of a date below the year)" in said


def test_dates_that_do_not_begin_with_the_year_are_left_out(tmp_path: Path) -> None:
    path = visits(tmp_path)
    path.write_text(re.sub(r",2025-(\d\d)-11,", r",11.\1.2025,", path.read_text()))
    answer = run("policy", "init", path, "--preset", "hipaa", "--out", tmp_path / "out")
    assert "admitted: left out (Safe Harbor: dates are read by their first four characters" in answer.output


def test_areas_belong_to_the_preset(tmp_path: Path) -> None:
    answer = run("policy", "init", visits(tmp_path), "--areas", areas(tmp_path), "--out", tmp_path / "out")
    assert answer.exit_code == 2
    assert "--preset hipaa" in answer.output


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("537,412000\n53,1\n", "line 2: a line has an area of three digits"),
        ("537;412000\n538;many\n", "line 2: a line has an area of three digits"),
        ("537,412000\n537,412000\n", "line 2: the area stands there twice"),
        ("537,20000\n", "no area has more than 20000 persons"),
        ("537,412000\n" + " " * MAX_AREAS_BYTES, "at most 1048576 bytes"),
    ],
)
def test_a_file_of_areas_is_read_strictly(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        read_areas(areas(tmp_path, text))


def test_years_of_birth_are_pooled_as_of_the_year_of_the_policy(tmp_path: Path) -> None:
    proposal = propose(read_sample(visits(tmp_path)), "visits", rules=SafeHarbor(year=2036))
    assert "before 1947" in proposal.hierarchies["dob.csv"].leaves
    assert "1946" not in proposal.hierarchies["dob.csv"].leaves

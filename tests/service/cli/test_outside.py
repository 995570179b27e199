"""What others may have beside a table: the population it was drawn from, and counts."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from service.policy import PolicyError, load_policy, parse_policy
from tests.service.cli.cli_world import MARK, POLICY


@pytest.fixture
def anonymized(portcullis: Any, shop: Any) -> Any:
    def run(*more: Any, report: bool = True) -> Any:
        arguments = ["--policy", shop / "policy.yaml", "--out", shop / "safe.csv"]
        written = ["--report", shop / "report.json", "--html", shop / "report.html"] if report else []
        return portcullis("anonymize", shop / "table.csv", *arguments, *written, *more)

    return run


def test_a_population_is_counted_or_estimated(anonymized: Any, shop: Path) -> None:
    lines = (shop / "table.csv").read_text().splitlines()
    # Everybody twice, and somebody whom no class can fit.
    (shop / "people.csv").write_text("\n".join([lines[0], *lines[1:], *lines[1:]]) + "\n")
    assert anonymized("--population", shop / "people.csv").exit_code == 0
    report = json.loads((shop / "report.json").read_text())
    counted = report["population"]
    assert counted["how"] == "counted"
    assert counted["after"]["k_map"] >= report["sizes"]["fewest_persons"]
    assert "(k-map)" in (shop / "report.html").read_text()
    result = anonymized("--population", "1_000_000", "--overwrite")
    assert result.exit_code == 0, result.output
    estimated = json.loads((shop / "report.json").read_text())["population"]
    assert (estimated["people"], estimated["how"], estimated["after"]["unique"]) == (1_000_000, "pitman", 0)


def test_counts_beside_a_table_are_attacked(anonymized: Any, shop: Path) -> None:
    result = anonymized("--counts", "age, city", "--counts", "age")
    assert result.exit_code == 0, result.output
    (found,) = json.loads((shop / "report.json").read_text())["beside"]
    assert found["counts"] == [["age", "city"], ["age"]]
    assert found["certain"] > found["certain_alone"]
    page = (shop / "report.html").read_text()
    assert "Counts beside the table" in page
    assert "Publish those counts by fewer or coarser fields" in page
    assert MARK not in page + result.output


def counted(shop: Path, off: int) -> str:
    """How often each item was bought at each age, and in each region in all, as a file; off by so much."""
    with (shop / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    ages = Counter((row["age"], "World", row["item"]) for row in rows)
    regions = Counter(("[0, 120]", row["city"], row["item"]) for row in rows)
    counts = [(*key, count + off * (-1) ** place) for place, (key, count) in enumerate({**ages, **regions}.items())]
    lines = [f'"{age}",{city},{item},{count}' for age, city, item, count in counts]
    return "\n".join(["age,city,item,count", *lines, '"[0, 120]",World,lamp,'])


def test_counts_as_they_are_to_be_published_are_attacked(anonymized: Any, shop: Path) -> None:
    (shop / "counts.csv").write_text(counted(shop, 0))
    result = anonymized("--counts-file", shop / "counts.csv", "--evidence", shop / "e.json")
    assert result.exit_code == 0, result.output
    (exact,) = json.loads((shop / "report.json").read_text())["beside"]
    assert (exact["counts"], exact["off"], exact["wrong"]) == ([["age", "city"]], 0, 0)
    assert exact["certain"] > exact["certain_alone"]
    assert json.loads((shop / "e.json").read_text())["parts"]["reported"]["beside"] == [exact]
    assert "Publish those counts by fewer or coarser fields" in (shop / "report.html").read_text()
    (shop / "counts.csv").write_text(counted(shop, 4))
    assert anonymized("--counts-file", shop / "counts.csv", "--overwrite").exit_code == 0
    (noisy,) = json.loads((shop / "report.json").read_text())["beside"]
    assert (noisy["off"], noisy["guessed"] < exact["guessed"]) == (4, True)
    page = (shop / "report.html").read_text()
    assert "off by 4 on the average" in page
    assert "guessed right" in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age,count\n20,3\n", "one of item, and count"),
        ("age,item\n20,lamp\n", "one of item, and count"),
        ("age,item,note,count\n20,lamp,x,3\n", "must be some of age, city"),
        (f"age,item,count\n20,lamp,3\n{MARK},lamp,3\n", "count 2, age:"),
        (f"age,item,count\n20,{MARK},3\n", "count 1, item:"),
        (f"age,item,count\n20,lamp,{MARK}\n", "count 1, count:"),
        ("age,item,count\n20,lamp,inf\n", "count 1, count:"),
        ("age,item,count\n,lamp,1\n", "count 1, age:"),
        ("age,item,count\n20,lamp\n20,lamp,1\n", "another number of cells"),
        ("age,item,count\n" + "20,lamp,1\n" * 10_001, "more than 10,000 counts"),
    ],
)
def test_counts_that_are_not_understood_are_told_without_a_value(
    anonymized: Any, shop: Path, text: str, expected: str
) -> None:
    (shop / "counts.csv").write_text(text)
    result = anonymized("--counts-file", shop / "counts.csv")
    assert result.exit_code in {1, 2}
    assert expected in " ".join(result.stderr.split())
    assert MARK not in result.output
    assert not (shop / "safe.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--counts", "item"], "must name quasi-identifiers of the policy: age, city"),
        (["--counts", ""], "must name quasi-identifiers"),
        (["--counts", "age"] * 17, "more than 16 tables of counts"),
        (["--population", "0"], "from 1 to"),
        (["--population", "3"], "nearest feasible value"),
        (["--population", "nobody.csv"], "nobody.csv"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    anonymized: Any, shop: Path, arguments: list[str], expected: str
) -> None:
    result = anonymized(*arguments)
    assert result.exit_code in {1, 2}
    assert expected in " ".join(result.stderr.split())
    assert not (shop / "safe.csv").exists()


def test_the_result_does_not_replace_the_population(anonymized: Any, shop: Path) -> None:
    (shop / "safe.csv").write_text((shop / "table.csv").read_text())
    result = anonymized("--population", shop / "safe.csv", "--overwrite")
    assert result.exit_code == 2
    assert "is already the population" in " ".join(result.stderr.split())


def test_they_are_for_a_report(anonymized: Any, shop: Path) -> None:
    result = anonymized("--population", "1000", report=False)
    assert result.exit_code == 2
    assert not (shop / "safe.csv").exists()


def test_without_a_sensitive_attribute_there_is_nothing_to_count(anonymized: Any, shop: Path) -> None:
    without = POLICY.replace(
        "  sensitive:\n    item: {type: category, hierarchy: {Any: [lamp, book, tea]}}\n", ""
    ).replace(", l: 2", "")
    (shop / "policy.yaml").write_text(without)
    result = anonymized("--counts", "age")
    assert result.exit_code == 2
    assert "no sensitive attribute to count" in result.stderr


def test_a_policy_declares_both_and_publishes_alike(anonymized: Any, shop: Path) -> None:
    (shop / "policy.yaml").write_text(POLICY + "table: {population: 5000, counts: [[age, city]]}\n")
    assert load_policy(shop / "policy.yaml").fingerprint() == parse_policy(POLICY).fingerprint()
    assert anonymized().exit_code == 0
    report = json.loads((shop / "report.json").read_text())
    assert report["population"]["people"] == 5_000
    assert report["beside"][0]["counts"] == [["age", "city"]]
    # What a command says goes before it.
    assert anonymized("--population", "6000", "--overwrite").exit_code == 0
    report = json.loads((shop / "report.json").read_text())
    assert (report["population"]["people"], report["beside"][0]["counts"]) == (6_000, [["age", "city"]])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("{counts: [[item]]}", "table.counts: must name quasi-identifiers"),
        ("{counts: [[]]}", "table.counts: must name quasi-identifiers"),
        ("{population: 0}", "table.population"),
        (f"{{counts: [{', '.join(['[age]'] * 17)}]}}", "table.counts"),
    ],
)
def test_a_policy_that_declares_what_cannot_be_is_refused(table: str, expected: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse_policy(POLICY + f"table: {table}\n")
    assert expected in str(error.value)


def test_other_kinds_have_neither() -> None:
    survey = Path(__file__).parents[3] / "examples/survey/policy.yaml"
    with pytest.raises(PolicyError, match="not for ratings"):
        parse_policy(survey.read_text() + "table: {population: 100}\n", survey.parent)

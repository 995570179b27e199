"""The preset of HIPAA Safe Harbor: whatever the guarantee, nothing that the rules forbid can be published."""

import csv
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from microdata import DataError, Sample, published_columns, read_sample
from privacy.safe_harbor import MOST_IN_SMALL_AREA
from service.cli import app
from service.kinds.records.tables import anonymize_table
from service.policy import load_policy
from service.policy.data import TopicFacts
from service.proposal import STREAM_YEARS, Proposal, propose
from service.proposal.safe_harbor import MAX_AREAS_BYTES, SafeHarbor, read_areas

POSTCODES = ("53711", "53703-1234", "03601", "02138", "82190", "2138")
AREAS = f"area,population\n537,412000\n036,{MOST_IN_SMALL_AREA}\n021,{MOST_IN_SMALL_AREA + 1}\n821,400\n"
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
    assert "you know of no way to identify a person" in said
    assert "current census" in said


def test_without_populations_postcodes_are_left_out(tmp_path: Path) -> None:
    policy, said = proposed(tmp_path)
    names = {one.name for one in load_policy(policy).schema.quasi}
    assert names == {"state", "dob", "admitted", "age", "sex", "weight"}
    assert "zip: left out (Safe Harbor: postcodes need the populations" in said
    assert "county: left out (Safe Harbor: its name suggests geographic subdivisions smaller than a state (B))" in said
    assert "birth_month: left out (Safe Harbor: dates are read by their first four characters" in said


def test_dates_that_do_not_begin_with_the_year_are_left_out(tmp_path: Path) -> None:
    path = visits(tmp_path)
    path.write_text(re.sub(r",2025-(\d\d)-11,", r",11.\1.2025,", path.read_text()))
    answer = run("policy", "init", path, "--preset", "hipaa", "--out", tmp_path / "out")
    assert "admitted: left out (Safe Harbor: dates are read by their first four characters" in answer.output


def test_the_preset_allows_the_stream_that_it_proposes(tmp_path: Path) -> None:
    rules = SafeHarbor(read_areas(areas(tmp_path)), YEAR + STREAM_YEARS)
    proposal = propose(read_sample(visits(tmp_path)), "visits", TopicFacts("visits"), rules)
    policy = load_policy(proposal.write(tmp_path / "stream"))
    assert (policy.kind, policy.preset is not None) == ("stream", True)
    assert f"before {YEAR + STREAM_YEARS - 89}" in proposal.hierarchies["dob.csv"].leaves


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


@pytest.mark.parametrize(
    "postcodes",
    [
        pa.array([3601.0, 2139.0, 53711.0] * 20),
        pa.array([3601, 2139, 53711] * 20),
        pa.array(["3601.0", "2139.0", "53711-1234"] * 20),
        pa.array(["36011234", "03601", "53711"] * 20),
    ],
    ids=["float", "int", "text of floats", "ZIP+4 without its zero"],
)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_postcode_that_lost_its_zero_is_never_read_by_its_first_three_digits(
    tmp_path: Path, postcodes: pa.Array, ending: str
) -> None:
    path = tmp_path / f"visits.{ending}"
    table = pa.table({"zip": postcodes, "sex": ["F", "M"] * 30, "diagnosis": ["flu", "ulcer", "gout"] * 20})
    pq.write_table(table, path) if ending == "parquet" else pa_csv.write_csv(table, path)
    areas = {"360": 500_000, "213": 500_000, "537": 500_000, "036": 900_000}
    proposal = propose(read_sample(path), "visits", rules=SafeHarbor(areas))
    published = published_at_k_1(proposal, path, tmp_path)
    assert set(published.get("zip", ["000"])) <= {"000", "537"}


def published_at_k_1(proposal: Proposal, path: Path, folder: Path) -> dict[str, list[str]]:
    """What is published of each column if the guarantee demands nothing."""
    policy = proposal.write(folder / "proposed")
    policy.write_text(re.sub("guarantee: .*", "guarantee: {algorithm: mondrian, k: 1}", policy.read_text()))
    loaded = load_policy(policy)
    result = anonymize_table(replace(loaded, table=loaded.table.model_copy(update={"on_refused": "drop"})), path)
    return {
        name: [str(value) for value in column.to_pylist()]
        for name, column in zip_columns(published_columns(result.publication))
    }


def zip_columns(columns: pa.Table) -> list[tuple[str, pa.Array]]:
    return list(zip(columns.column_names, columns.columns, strict=True))


def proposal_of(**columns: Any) -> Proposal:
    """The proposal for these columns, beside two that any rule allows."""
    rows = len(next(iter(columns.values())))
    beside = {"sex": ["F", "M"] * (rows // 2), "diagnosis": (["flu", "ulcer", "gout"] * rows)[:rows]}
    sample = Sample(pa.table({**columns, **beside}), whole=True)
    return propose(sample, "visits", rules=SafeHarbor({"537": 500_000}, year=2026))


def role_of(proposal: Proposal, name: str) -> tuple[str, str]:
    return next((guess.role, guess.reason) for guess in proposal.guesses if guess.name == name)


def test_ages_as_text_above_89_are_left_out() -> None:
    role, reason = role_of(proposal_of(age=["20-24", "85-89", "90-94", "30-34"] * 10), "age")
    assert (role, "90+" in reason) == ("left out", True)
    assert role_of(proposal_of(age=["20-24", "85-89", "90+", "30-34"] * 10), "age")[0] == "quasi"
    assert role_of(proposal_of(age=["twenty", "ninety", "forty", "fifty"] * 10), "age")[0] == "left out"


def test_ages_of_another_name_are_capped() -> None:
    proposal = proposal_of(years_old=[5, 60, 89, 104] * 10)
    declared = next(guess.declaration for guess in proposal.guesses if guess.name == "years_old")
    assert (declared["max"], declared["capped"]) == (90, True)


@pytest.mark.parametrize("name", ["dateofbirth", "bday", "DOB", "q3", "admitted"])
@pytest.mark.parametrize(
    "born", [["1931-02-03", "1936-12-31", "1990-05-06"], [1931, 1936, 1990]], ids=["days", "years"]
)
def test_years_before_1937_are_one_group_whatever_the_column_is_called(name: str, born: list[Any]) -> None:
    proposal = proposal_of(**{name: born * 20})
    assert role_of(proposal, name)[0] == "quasi"
    leaves = proposal.hierarchies[f"{name}.csv"].leaves
    assert "before 1937" in leaves
    assert not {"1931", "1936"} & set(leaves)


@pytest.mark.parametrize("name", ["birthplace", "suburb", "ward", "cnty", "county_cd", "next_of_kin", "employer", "q7"])
def test_places_and_names_of_relatives_are_left_out(name: str) -> None:
    role, _ = role_of(proposal_of(**{name: ["Dane", "Rock", "Green", "Polk"] * 10}), name)
    assert role == "left out"


def test_an_identifier_among_ordinary_texts_is_enough() -> None:
    values = ["flu", "ulcer", "gout"] * 20
    values[17] = "call 608-555-0123"
    assert role_of(proposal_of(occupation=values), "occupation") == (
        "left out",
        "Safe Harbor: values look like telephone or fax numbers (D)",
    )


def test_identifiers_inside_of_structs_are_left_out() -> None:
    nested = [{"address": {"city": "Madison"}, "income": 10 * row, "mail": f"a{row}@b.org"} for row in range(40)]
    proposal = proposal_of(home=nested)
    assert role_of(proposal, "home.address.city")[0] == "left out"
    assert role_of(proposal, "home.mail")[0] == "left out"
    assert role_of(proposal, "home.income")[0] != "left out"


def test_what_is_not_recognised_is_named_in_a_warning() -> None:
    proposal = proposal_of(q7=["Dane", "Rock", "Green", "Polk"] * 10, q8=[1, 2, 3, 4] * 10)
    assert any("Not recognised and left out: q7, q8." in warning for warning in proposal.warnings)
    assert "preset: {name: hipaa, reviewed: []}" in proposal.text


def test_a_table_of_which_nothing_is_recognised_is_answered_with_its_columns() -> None:
    sample = Sample(pa.table({"q7": ["Dane", "Rock"] * 20, "q8": ["Polk", "Green"] * 20}), whole=True)
    with pytest.raises(DataError, match="Not recognised and left out: q7, q8"):
        propose(sample, "visits", rules=SafeHarbor())


def test_an_area_that_was_small_in_2000_is_not_published_whatever_the_file_says() -> None:
    sample = Sample(pa.table({"zip": ["03601", "53711"] * 20, "sex": ["F", "M"] * 20}), whole=True)
    proposal = propose(sample, "visits", rules=SafeHarbor({"036": 25_000, "537": 500_000}))
    assert set(proposal.hierarchies["zip.csv"].leaves) == {"537", "000"}
    assert any("036" in warning for warning in proposal.warnings)


def test_the_columns_of_adult_are_recognised_without_help() -> None:
    rows = 60
    adult: dict[str, Any] = {
        "age": list(range(17, 17 + rows)),
        "workclass": ["Private", "State-gov"] * (rows // 2),
        "fnlwgt": [77_516 + 37 * row for row in range(rows)],
        "education": ["Bachelors", "HS-grad", "11th"] * (rows // 3),
        "education-num": [13, 9, 7] * (rows // 3),
        "marital-status": ["Never-married", "Divorced"] * (rows // 2),
        "occupation": ["Adm-clerical", "Sales"] * (rows // 2),
        "relationship": ["Husband", "Wife"] * (rows // 2),
        "race": ["White", "Black"] * (rows // 2),
        "capital-gain": [0, 2174, 99_999] * (rows // 3),
        "hours-per-week": [40, 13, 50] * (rows // 3),
        "native-country": ["United-States", "Cuba"] * (rows // 2),
        "income": ["<=50K", ">50K"] * (rows // 2),
    }
    left_out = [guess.name for guess in proposal_of(**adult).guesses if guess.role == "left out"]
    assert left_out == ["fnlwgt"]


def test_a_hand_edited_policy_that_publishes_an_identifier_is_not_run(tmp_path: Path) -> None:
    policy, _ = proposed(tmp_path)
    policy.write_text(policy.read_text().replace("public: []", "public: [mrn, phone]"))
    answer = run("anonymize", tmp_path / "visits.csv", "--policy", policy, "--out", tmp_path / "out.csv")
    assert answer.exit_code == 2
    assert "mrn: its name suggests medical record numbers (H), in 120 rows" in answer.output
    assert "phone: its name suggests telephone numbers (D), in 120 rows" in answer.output
    assert "608" not in answer.output
    assert not (tmp_path / "out.csv").exists()


def test_a_finding_of_a_person_is_named_after_the_run(tmp_path: Path) -> None:
    policy, _ = proposed(tmp_path)
    text = policy.read_text().replace("reviewed: []", "reviewed: [weight]").replace("public: []", "public: []")
    policy.write_text(text)
    answer = run("anonymize", tmp_path / "visits.csv", "--policy", policy, "--out", tmp_path / "out.csv")
    assert answer.exit_code == 0, answer.output
    assert "reviewed by the author of the policy: weight" in answer.output


def test_years_of_birth_are_pooled_as_of_the_year_of_the_policy(tmp_path: Path) -> None:
    proposal = propose(read_sample(visits(tmp_path)), "visits", rules=SafeHarbor(year=2036))
    assert "before 1947" in proposal.hierarchies["dob.csv"].leaves
    assert "1946" not in proposal.hierarchies["dob.csv"].leaves

"""Identifiers that are planted in columns of arbitrary names: none is proposed as it is, and none is written."""

import re
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from microdata import DataError, Sample, published_columns, system_words
from privacy.safe_harbor import Identifier, Meaning, meaning_of
from service.kinds.records.tables import anonymize_table
from service.policy import Policy, load_policy, parse_policy
from service.proposal import SafeHarbor, propose

ROWS = 40
AREAS = {"537": 500_000, "606": 900_000}
ORDINARY = ["asthma", "diabetes", "influenza", "gout"]
Maker = Callable[[int], Any]
SURNAMES = ["Miller", "Garcia", "Nguyen", "Weber", "Rossi", "Silva", "Okafor", "Larsen"]
FORENAMES = ["Ann", "Bo", "Cem", "Dora", "Eve"]


def _digits(row: int, count: int) -> str:
    return f"{(row + 3) * 7_919_317_739 % 10**count:0{count}}"


# One value for each row, by the letter of the rule. They are recognised by how they are written, in any column.
WRITTEN: dict[str, Maker] = {
    "A title": lambda row: f"Dr. {SURNAMES[row % 8]}",
    "A last, first": lambda row: f"{SURNAMES[row % 8]}, {FORENAMES[row % 5]}",
    "B postcode": lambda row: f"{10_001 + row * 733}",
    "B ZIP+4": lambda row: f"{10_001 + row * 733}-{1000 + row}",
    "B street": lambda row: f"{row + 1} {SURNAMES[row % 8]} Street",
    "B coordinates": lambda row: f"{43 + row / 1000:.4f}, -{89 + row / 1000:.4f}",
    "C ISO date": lambda row: f"{1930 + row}-{1 + row % 12:02}-{1 + row % 28:02}",
    "C US date": lambda row: f"{1 + row % 12}/{1 + row % 28}/{1990 + row % 30}",
    "C European date": lambda row: f"{1 + row % 28:02}.{1 + row % 12:02}.{1930 + row}",
    "C compact date": lambda row: f"{1930 + row}{1 + row % 12:02}{1 + row % 28:02}",
    "C day first, compact": lambda row: f"{13 + row % 15:02}{1 + row % 12:02}{1930 + row}",
    "C month in words": lambda row: f"{1 + row % 28} March {1930 + row}",
    "C moment": lambda row: f"{2001 + row % 20}-{1 + row % 12:02}-{1 + row % 28:02}T{row % 24:02}:10:00",
    "C epoch": lambda row: 1_600_000_000 + row * 90_061,
    "C epoch in milliseconds": lambda row: (1_600_000_000 + row * 90_061) * 1000 + 7,
    "C compact number": lambda row: int(f"{1930 + row}{1 + row % 12:02}{1 + row % 28:02}"),
    "D phone": lambda row: f"608-555-{row:04}",
    "D phone as number": lambda row: 6_085_550_000 + row * 37 + 1,
    "D international phone": lambda row: f"+49 170 {1_234_567 + row}",
    "E fax": lambda row: f"(608) 555-{row:04}",
    "F e-mail": lambda row: f"ann{row}@example.org",
    "G social security": lambda row: f"{100 + row}-{10 + row}-{1000 + row}",
    "G social security as number": lambda row: 123_450_001 + row * 7_919,
    "H record number": lambda row: f"MRN{_digits(row, 7)}",
    "I plan number": lambda row: f"W{_digits(row, 9)}",
    "J IBAN": lambda row: f"DE{10 + row}37040044{_digits(row, 10)}",
    "J card": lambda row: f"4111 1111 1111 {1000 + row}",
    "K license": lambda row: f"D{_digits(row, 8)}",
    "L VIN": lambda row: f"1HGCM82633A{_digits(row, 6)}",
    "M MAC address": lambda row: f"00:1B:44:11:3A:{row:02X}",
    "M IMEI": lambda row: f"35{_digits(row, 13)}",
    "N URL": lambda row: f"https://example.org/~ann{row}",
    "O IP address": lambda row: f"10.0.{row}.17",
    "O IPv6 address": lambda row: f"2001:db8::{row + 1:x}",
    "P template": lambda row: f"Rk1SACAyMAAAAADuAAABPAFiAMUAxQEAAAAoI4CNAHBTAIBaAFE{_digits(row, 20)}==",
    "Q photo": lambda row: f"faces/ann{row}.jpg",
    "R UUID": lambda row: f"550e8400-e29b-41d4-a716-44665544{row:04}",
}
# These are written like anything else. They are left out because nothing says that their column is harmless.
UNWRITTEN: dict[str, Maker] = {
    "A full name": lambda row: f"{FORENAMES[row % 5]} {SURNAMES[row % 8]}",
    "A surname": lambda row: SURNAMES[row % 8],
    "A employer": lambda row: ["Acme", "Globex", "Initech", "Umbrella"][row % 4],
    "B city": lambda row: ["Madison", "Springfield", "Shelbyville", "Ogdenville"][row % 4],
    "B county": lambda row: ["Dane", "Rock", "Green", "Polk"][row % 4],
    "B postcode as number": lambda row: 501 + row * 733,
    "B postcode as float": lambda row: 501.0 + row * 733,
    "B latitude": lambda row: 43.07312 + row / 1000,
    "C age": lambda row: 60 + row,
    "C day of the month": lambda row: 1 + row % 31,
    "C month": lambda row: ["Jan", "Feb", "Mar", "Apr"][row % 4],
    "H record number as number": lambda row: 1_000_003 + row * 7_919,
    "L plate": lambda row: f"{'ABC'[row % 3]}K{'XYZ'[row % 3]} {100 + row}",
    "R code": lambda row: f"x{row * 7919 % 997}k",
}
# These are reduced to what the rule allows: the year, from 1937 on.
COARSENED: dict[str, Maker] = {"C birth year": lambda row: 1915 + 2 * row}

NAMES = st.one_of(
    st.text(string.ascii_letters + "_", min_size=1, max_size=12).filter(lambda name: name.strip("_")),
    st.sampled_from(["q17", "c7", "feld", "colonne_3", "valor", "Unnamed", "x", "var12", "HIPAA"]),
    st.sampled_from(
        ["diagnosis", "occupation", "education", "drug_name", "country", "income", "race", "weight", "state", "age"]
    ),
    st.sampled_from(["zip", "dob", "year", "shop", "patient.note", "relationship"]),
)
BESIDE = {"person", "sex", "diagnosis_group", "class", "public", "quasi"}


def sample_of(name: str, values: list[Any]) -> pa.Table:
    return pa.table(
        {"person": [f"{row}" for row in range(ROWS)], name: values, "sex": ["F", "M"] * (ROWS // 2)},
    )


def published(policy: Policy, table: pa.Table, folder: Path) -> dict[str, set[str]]:
    path = folder / "table.parquet"
    pq.write_table(table, path)
    result = anonymize_table(policy, path)
    columns = published_columns(result.publication, words=system_words)
    return {name: set(map(str, columns.column(name).to_pylist())) for name in columns.column_names}


def check_proposal(name: str, values: list[Any]) -> dict[str, set[str]]:
    """Propose a policy with k: 1, run it, and return what it publishes."""
    table = sample_of(name, values)
    proposal = propose(Sample(table), "planted", rules=SafeHarbor(AREAS, 2026))
    with TemporaryDirectory() as folder:
        path = proposal.write(Path(folder))
        text = re.sub("guarantee: .*", "guarantee: {algorithm: mondrian, k: 1}", path.read_text())
        path.write_text(re.sub("person: .*", "person: person", text))
        policy = load_policy(path)
        policy = replace(policy, table=policy.table.model_copy(update={"on_refused": "drop"}))
        return published(policy, table, Path(folder))


def check_hand_edited(name: str, values: list[Any], role: str) -> str:
    """Publish the planted column as it is, in this role, and return why that is not allowed."""
    declared: Any = {"type": "category", "hierarchy": {"*": sorted({as_read(value) for value in values})}}
    # Of a sensitive number every value of its domain is counted, so that its domain must be small.
    if role != "sensitive" and not isinstance(values[0], str):
        step = {} if all(float(value).is_integer() for value in values) else {"step": 0.00001}
        declared = {"type": "number", "min": min(values), "max": max(values), "step": 1, **step}
    roles: dict[str, Any] = {"quasi": {"sex": {"type": "category", "hierarchy": {"*": ["F", "M"]}}}}
    match role:
        case "public":
            roles["public"] = [name]
        case "sensitive":
            roles["sensitive"] = {name: declared}
        case _:
            roles["quasi"][name] = declared
    policy = parse_policy(
        {
            "name": "planted",
            "schema": {"person": "person", **roles},
            "guarantee": {"algorithm": "mondrian", "k": 1},
            "preset": {"name": "hipaa"},
        }
    )
    with TemporaryDirectory() as folder, pytest.raises(DataError) as raised:
        published(policy, sample_of(name, values), Path(folder))
    assert "the preset hipaa does not allow" in raised.value.reason
    assert name in dict(raised.value.fields)
    return str(raised.value)


def as_read(value: Any) -> str:
    """A value as the text that a category reads of it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_free(name: str) -> bool:
    return name.lower() not in BESIDE and not name.startswith(".") and "." not in name.strip(".")


@given(kind=st.sampled_from(sorted(WRITTEN)), name=NAMES, few=st.booleans())
def test_what_is_written_like_an_identifier_is_never_published_by_a_proposal(kind: str, name: str, few: bool) -> None:
    assume(is_free(name))
    values = [WRITTEN[kind](row) for row in range(ROWS)]
    if few and isinstance(values[0], str):
        values = [values[row] if row % 13 == 0 else ORDINARY[row % 4] for row in range(ROWS)]
    # `income: 10001` is an income, so only texts are postcodes there.
    shown = check_proposal(name, values).get(name, set())
    assert not shown & {str(value) for value in values if str(value) not in ORDINARY}
    years = {int(year) for label in shown for year in re.findall(r"\d{4}", label) if not label.startswith("before")}
    assert all(year >= 1930 for year in years)
    assert "before" in "".join(shown) or all(year >= 1937 for year in years)


@given(kind=st.sampled_from(sorted(UNWRITTEN)), name=NAMES)
def test_what_cannot_be_recognised_is_never_published_by_a_proposal(kind: str, name: str) -> None:
    assume(is_free(name))
    assume(isinstance(meaning_of(name), Identifier) or meaning_of(name) is Meaning.UNKNOWN)
    values = [UNWRITTEN[kind](row) for row in range(ROWS)]
    assert name not in check_proposal(name, values)


@given(name=NAMES)
def test_years_that_tell_an_age_above_89_are_one_group(name: str) -> None:
    assume(is_free(name))
    assume(meaning_of(name) in {Meaning.UNKNOWN, Meaning.DATE})
    shown = check_proposal(name, [COARSENED["C birth year"](row) for row in range(ROWS)])[name]
    assert "before 1937" in shown
    assert min(int(year) for year in shown if year.isdigit()) == 1937


@given(
    kind=st.sampled_from(sorted(WRITTEN)),
    name=NAMES,
    role=st.sampled_from(["quasi", "sensitive", "public"]),
    few=st.booleans(),
)
def test_a_hand_edited_policy_that_publishes_an_identifier_is_stopped(
    kind: str, name: str, role: str, few: bool
) -> None:
    assume(is_free(name))
    values = [WRITTEN[kind](row) for row in range(ROWS)]
    if few and isinstance(values[0], str):
        values = [values[row] if row % 13 == 0 else ORDINARY[row % 4] for row in range(ROWS)]
    said = check_hand_edited(name, values, role)
    assert not any(str(value) in said for value in values)


@given(
    kind=st.sampled_from(sorted(UNWRITTEN | COARSENED)),
    name=NAMES,
    role=st.sampled_from(["quasi", "sensitive", "public"]),
)
def test_a_hand_edited_policy_that_publishes_an_unknown_column_is_stopped(kind: str, name: str, role: str) -> None:
    assume(is_free(name))
    assume(isinstance(meaning_of(name), Identifier) or meaning_of(name) is Meaning.UNKNOWN)
    values = [(UNWRITTEN | COARSENED)[kind](row) for row in range(ROWS)]
    check_hand_edited(name, values, role)


def test_every_identifier_of_the_rule_is_planted() -> None:
    letters = {kind[0] for kind in (*WRITTEN, *UNWRITTEN, *COARSENED)}
    assert letters == {identifier.letter for identifier in Identifier}

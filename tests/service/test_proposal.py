"""Proposals: safe guesses, each with its reason, that load as they are."""

import datetime as dt

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cli_world import MARK

from microdata import DataError, read_sample
from service.policy import load_policy
from service.policy.table_check import check_table
from service.proposal import propose
from service.proposal.guesses import rounded_outward

ROWS = 60


def sample():
    start = dt.date(2024, 1, 1)
    return pa.table(
        {
            "visit": list(range(1, ROWS + 1)),
            "patient_id": [f"{MARK}{row // 2}" for row in range(ROWS)],
            "email": [f"{MARK}{row}@example.org" for row in range(ROWS)],
            "age": [20 + row % 41 for row in range(ROWS)],
            "weight": [55.5 + row / 4 for row in range(ROWS)],
            "postcode": [f"{1000 + 7 * row}" for row in range(ROWS)],
            "zip": [f"0{100 + row}" for row in range(ROWS)],
            "sex": [("f", "m", "no")[row % 3] for row in range(ROWS)],
            "born": [start + dt.timedelta(days=9 * row) for row in range(ROWS)],
            "seen": [dt.datetime(2024, 1, 1, 8, row) for row in range(ROWS)],  # noqa: DTZ001 - as data has it
            "comment": [f"{MARK} text {row}" for row in range(ROWS)],
            "diagnosis": [("flu", "ulcer", None)[row % 3] for row in range(ROWS)],
            "tags": [[row] for row in range(ROWS)],
            "place": [{"country": ("NO", "SE")[row % 2]} for row in range(ROWS)],
        }
    )


def write(columns, path):
    if path.suffix == ".csv":
        pa.csv.write_csv(columns, path)
    elif path.suffix == ".parquet":
        pq.write_table(columns, path)
    else:
        path.write_bytes(b"\n".join(orjson.dumps(row) for row in columns.to_pylist()))


def roles(proposal):
    return {guess.name: guess.role for guess in proposal.guesses}


def test_roles_by_name_type_and_uniqueness():
    assert roles(propose(sample(), "visits")) == {
        "visit": "left out",
        "patient_id": "person",
        "email": "left out",
        "age": "quasi",
        "weight": "quasi",
        "postcode": "quasi",
        "zip": "quasi",
        "sex": "quasi",
        "born": "quasi",
        "seen": "left out",
        "comment": "left out",
        "diagnosis": "sensitive",
        "tags": "left out",
        "place.country": "quasi",
    }


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_the_proposal_loads_and_fits_the_table(tmp_path, kind):
    table = tmp_path / f"visits.{kind}"
    columns = sample() if kind != "csv" else sample().drop_columns(["tags", "place"])
    write(columns, table)
    policy = load_policy(propose(read_sample(table), "visits").write(tmp_path / "proposed"))
    found = check_table(policy, table)
    refused = {field for field, _ in found.refusals.counts()}
    assert refused == {"diagnosis"}
    assert found.rows == ROWS * 2 // 3


def test_nothing_personal_is_in_the_policy():
    text = propose(sample(), "visits").text
    assert MARK not in text
    assert "20 of 60 rows have no value" in text
    assert "public: []" in text


def test_every_guess_has_a_comment():
    proposal = propose(sample(), "visits")
    for guess in proposal.guesses:
        assert guess.reason in proposal.text


def test_without_persons_and_secrets():
    table = pa.table({"age": list(range(20, 60)), "true": ["a", "b"] * 20})
    proposal = propose(table, "a table!")
    assert "person: {row: true}" in proposal.text
    assert "name: a-table" in proposal.text
    assert '"true": {' in proposal.text
    assert "algorithm: mondrian" in proposal.text


def test_nothing_to_generalize():
    with pytest.raises(DataError, match="no column looks like a quasi-identifier"):
        propose(pa.table({"email": ["a", "b"]}), "mail")


def test_nothing_is_replaced(tmp_path):
    proposal = propose(sample(), "visits")
    proposal.write(tmp_path)
    with pytest.raises(DataError, match=r"policy\.yaml exists already"):
        proposal.write(tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(17, 90, (10, 90)), (0.12, 0.87, (0.1, 0.9)), (5, 5, (5, 5)), (-3, 1234, (-1000, 2000)), (31, 36, (31, 36))],
)
def test_domains_are_rounded_outward(low, high, expected):
    assert rounded_outward(low, high) == pytest.approx(expected)

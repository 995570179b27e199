"""What is proposed for tables of the world can be used at once."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.service.cli.cli_world import MARK
from tests.service.proposal.proposal_world import between, day, made, one_of, roles, semicolons, used

TABLES = {
    "ratings": (
        made(
            userId=between(1, 60),
            movieId=between(1, 350),
            rating=lambda _, chance: chance.randint(1, 10) / 2,
            timestamp=between(1_100_000_000, 1_300_000_000),
            age=between(18, 80),
        ),
        {"userId": "person", "movieId": "left out", "rating": "sensitive", "timestamp": "left out", "age": "quasi"},
    ),
    "bank": (
        semicolons(
            made(
                age=between(18, 90),
                job=one_of("admin", "services", "retired"),
                marital=one_of("single", "married"),
                default=one_of("yes", "no"),
                balance=between(-800, 9000),
                housing=one_of("yes", "no"),
                contact=one_of("cellular", "telephone"),
                y=one_of("yes", "no"),
            )
        ),
        {
            "age": "quasi",
            "job": "quasi",
            "marital": "quasi",
            "default": "sensitive",
            "balance": "sensitive",
            "housing": "quasi",
            "contact": "quasi",
            "y": "sensitive",
        },
    ),
    "compas": (
        made(
            id=lambda row, _: row + 1,
            name=lambda row, _: f"person number {row}",
            sex=one_of("Male", "Female"),
            dob=day,
            age_cat=one_of("Less than 25", "25 - 45", "Greater than 45"),
            race=one_of("A", "B", "C"),
            c_jail_in=lambda row, _: f"2013-08-13 06:{row % 60:02}:42",
            decile_score=between(1, 10),
            c_charge_degree=one_of("F", "M"),
            is_recid=one_of(0, 1),
            two_year_recid=one_of(0, 1),
        ),
        {
            "id": "person",
            "name": "left out",
            "sex": "quasi",
            "dob": "quasi",
            "age_cat": "quasi",
            "race": "quasi",
            "c_jail_in": "left out",
            "decile_score": "sensitive",
            "c_charge_degree": "sensitive",
            "is_recid": "sensitive",
            "two_year_recid": "sensitive",
        },
    ),
    "hospital": (
        made(
            encounter_id=lambda row, _: 2_278_000 + 7 * row,
            patient_nbr=lambda _, chance: 8_000_000 + 13 * chance.randint(0, 150),
            age=one_of("[0-10)", "[10-20)", "[20-30)", "[30-40)", "[40-50)"),
            zip=lambda _, chance: f"0{chance.randint(2100, 2199)}",
            diag_1=lambda _, chance: f"E{chance.randint(10, 40)}.{chance.randint(0, 9)}",
            readmitted=one_of("NO", ">30", "<30"),
        ),
        {
            "encounter_id": "left out",
            "patient_nbr": "person",
            "age": "quasi",
            "zip": "quasi",
            "diag_1": "sensitive",
            "readmitted": "sensitive",
        },
    ),
    "credit": (
        made(
            checking=one_of("A11", "A12", "A13"),
            duration=between(4, 72),
            credit_amount=between(250, 18_000),
            foreign_worker=one_of("yes", "no"),
            own_telephone=one_of("yes", "none"),
            num_dependents=one_of(1, 2),
            risk=one_of("good", "bad"),
        ),
        {
            "checking": "quasi",
            "duration": "quasi",
            "credit_amount": "sensitive",
            "foreign_worker": "quasi",
            "own_telephone": "quasi",
            "num_dependents": "quasi",
            "risk": "sensitive",
        },
    ),
    "taxi": (
        made(
            VendorID=one_of(1, 2),
            tpep_pickup_datetime=lambda row, _: f"2024-01-01 00:{row % 60:02}:13",
            passenger_count=between(1, 6),
            trip_distance=lambda _, chance: f"{chance.uniform(0, 30):.2f}",
            PULocationID=between(1, 263),
            pickup_longitude=lambda _, chance: f"{chance.uniform(-74.2, -73.7):.6f}",
            tip_amount=lambda _, chance: f"{chance.randint(0, 40) / 4}",
        ),
        {
            "VendorID": "quasi",
            "tpep_pickup_datetime": "left out",
            "passenger_count": "quasi",
            "trip_distance": "quasi",
            "PULocationID": "left out",
            "pickup_longitude": "quasi",
            "tip_amount": "sensitive",
        },
    ),
    "events": (
        made(
            ts=lambda row, _: 1_700_000_000_123 + 977 * row,
            device=lambda _, chance: f"d{chance.randint(100, 160)}",
            os=one_of("linux", "ios"),
            created_at=lambda row, _: f"2024-03-01T10:00:{row % 60:02}Z",
            ip=lambda row, _: f"10.0.{row % 7}.{row % 200}",
        ),
        {"ts": "left out", "device": "person", "os": "quasi", "created_at": "left out", "ip": "left out"},
    ),
    "pandas": (
        made(**{"": lambda row, _: row, "age": between(18, 90), "sex": one_of("f", "m"), "income": between(10, 90)}),
        {"age": "quasi", "sex": "quasi", "income": "sensitive"},
    ),
    "pandas_again": (
        made(**{"Unnamed: 0": lambda row, _: row, "age": between(18, 90), "sex": one_of("f", "m")}),
        {"Unnamed: 0": "left out", "age": "quasi", "sex": "quasi"},
    ),
    "decimal_commas": (
        semicolons(made(age=between(18, 90), height=lambda _, chance: f"1.{chance.randint(50, 99)}")).replace(".", ","),
        {"age": "quasi", "height": "left out"},
    ),
    "mails": (
        made(
            contact=lambda _, chance: f"{MARK}{chance.randint(0, 90)}@example.org",
            born=lambda row, chance: day(row, chance).strftime("%d.%m.%Y"),
            plz=lambda _, chance: f"{chance.randint(1, 99_999):05}",
        ),
        {"contact": "person", "born": "quasi", "plz": "quasi"},
    ),
    "uuids": (
        made(
            who=lambda _, chance: uuid.UUID(int=chance.randint(0, 80)),
            city=one_of("Europe/Rome", "Europe/Oslo", "Asia/Tokyo", "Asia/Delhi"),
            bought=one_of("lamp", "tea"),
        ),
        {"who": "person", "city": "quasi", "bought": "quasi"},
    ),
    "decimals": (
        made(x=lambda _, chance: chance.random(), big=lambda _, chance: chance.uniform(-1e9, 1e12)),
        {"x": "quasi", "big": "quasi"},
    ),
    "german": (
        semicolons(made(Kundennummer=between(10_000, 10_080), Alter=between(18, 90), Geschlecht=one_of("m", "w"))),
        {"Kundennummer": "person", "Alter": "quasi", "Geschlecht": "quasi"},
    ),
    "gaps": (
        made(age=one_of("NA", *range(18, 60)), wage=one_of("", 10, 20, 30), mostly=one_of("?", "?", "?", 1, 2)),
        {"age": "quasi", "wage": "sensitive", "mostly": "left out"},
    ),
    "days_of_age": (
        made(age_in_days=between(7000, 30_000), zip=between(10_000, 10_200), kids=between(0, 5)),
        {"age_in_days": "quasi", "zip": "quasi", "kids": "quasi"},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_is_proposed_for_tables_of_the_world_can_be_used_at_once(tmp_path: Path, name: Any) -> None:
    text, expected = TABLES[name]
    table = tmp_path / f"{name}.csv"
    table.write_text(text)
    result = used(table, tmp_path)
    assert roles(result.proposal) == expected
    assert MARK not in result.proposal.text

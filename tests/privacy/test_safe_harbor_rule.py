"""The Safe Harbor rule: names of columns, what values look like, and the check of what is about to be published."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, table_from_frame
from privacy.safe_harbor import Identifier, Meaning, check_publication, check_schema, meaning_of
from privacy.safe_harbor.columns import ages_above, first_year, review_numbers, review_texts
from privacy.safe_harbor.content import number_hits, text_hits
from privacy.safe_harbor.identifiers import SMALL_AREAS_2000

NAMED = {
    Identifier.NAMES: "name Vorname apellido next_of_kin nextofkin employer employerName motherMaidenName arbeitgeber",
    Identifier.PLACES: "birthplace suburb ward cnty county countycd home_city straße home.address.street latitude",
    Identifier.DATES: "admission_month day_of_week quarter timestamp monat age_months",
    Identifier.PHONES: "phone cellno telefonnummer homephone mobile",
    Identifier.FAXES: "fax faxNumber",
    Identifier.EMAILS: "email e-mail mail",
    Identifier.SOCIAL_SECURITY: "ssn socialSecurityNumber NIF",
    Identifier.RECORDS: "mrn medicalRecordNo chart_number",
    Identifier.PLANS: "health_plan beneficiary_id memberId insurance",
    Identifier.ACCOUNTS: "account_no IBAN kontonummer",
    Identifier.LICENSES: "licenseNo certificate passport DEA",
    Identifier.VEHICLES: "vin plate kennzeichen",
    Identifier.DEVICES: "device_serial imei macAddress",
    Identifier.URLS: "url homepage website",
    Identifier.IPS: "ip ipAddress",
    Identifier.BIOMETRICS: "fingerprint retina_scan voiceprint",
    Identifier.PHOTOS: "photo face_image",
    Identifier.OTHERS: "uuid row_id code comments",
    Meaning.POSTCODE: "zip ZIPCODE postcode plz postal_code",
    Meaning.DATE: "birth_month dateofbirth bday DOB birthYear yob geburtsdatum fecha_nacimiento date_of_death",
    Meaning.AGE: "age patient.age years_old AgeGroup alter edad",
    Meaning.STATE: "state",
    Meaning.AMOUNT: "income capital-gain charges",
    Meaning.ATTRIBUTE: "sex race education education-num hours-per-week drug_name num_procedures diagnosis country",
    Meaning.UNKNOWN: "q17 fnlwgt usage message c7",
}


@pytest.mark.parametrize(("meaning", "name"), [(one, name) for one, names in NAMED.items() for name in names.split()])
def test_names_of_columns_are_understood(meaning: Any, name: str) -> None:
    assert meaning_of(name) is meaning


WRITTEN = {
    Identifier.EMAILS: "ann@example.org|mail to a.b@x.co",
    Identifier.URLS: "https://example.org/1|www.example.org",
    Identifier.IPS: "10.0.0.1|2001:db8::1|fe80:0:0:0:1ff:fe23:4567:890a",
    Identifier.DEVICES: "00:1B:44:11:3A:B7",
    Identifier.SOCIAL_SECURITY: "123-45-6789",
    Identifier.PHONES: "608-555-0123|(608) 555-0123|+49 170 1234567|06 12 34 56 78|call 608 555 0123|555-0791",
    Identifier.DATES: "2024-01-31|1/31/2024|31.01.2024|20240131|31012024|Jan 31 2024|31 January 2024|5. März 1950"
    "|03/1945|2024-01|2024-01-31T10:00:00Z|2024-Q3|95 years",
    Identifier.PLACES: "53711-1234|Madison WI 53711|SW1A 1AA|K1A 0B1|43.0731, -89.4012|53711|3601.0"
    "|12 Main Street|Hauptstr. 5",
    Identifier.NAMES: "Dr. Smith|Smith, John|Gus A.",
    Identifier.PHOTOS: "face.jpg",
    Identifier.OTHERS: "550e8400-e29b-41d4-a716-446655440000|d41d8cd98f00b204e9800998ecf8427e|MRN 1234567|p00012"
    "|1234567|@anna_k",
    Identifier.ACCOUNTS: "DE89370400440532013000|4111 1111 1111 1111",
    Identifier.VEHICLES: "1HGCM82633A004352|ABC-1234",
}


@pytest.mark.parametrize(
    ("identifier", "text"), [(one, text) for one, all_ in WRITTEN.items() for text in all_.split("|")]
)
def test_one_text_that_looks_like_an_identifier_is_enough(identifier: Identifier, text: str) -> None:
    labels = pa.array(["asthma", "diabetes", text, "flu"])
    hits = list(text_hits(labels))
    assert identifier in {hit.identifier for hit in hits}
    assert all(np.flatnonzero(hit.values).tolist() == [2] for hit in hits)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Married-civ-spouse",
            ">50K",
            "50000-75000",
            "$1,000,000 - $2,000,000",
            "[25,30]",
            "E11.9",
            "I10",
            "before 1937",
        ),
        *(
            "2024",
            "2020s",
            "any year",
            "537",
            "53*",
            "000",
            "***",
            "90+",
            "85-89",
            "Outlying-US(Guam-USVI-etc)",
            "COVID-19",
        ),
        *("1000000", "0.12345678", "J1234", "12345-6789-01", "Type 2 diabetes", "Mar", "May Day", "stage 3.1", "G2P1"),
    ],
)
def test_ordinary_texts_look_like_no_identifier(text: str) -> None:
    assert list(text_hits(pa.array([text]))) == []


@pytest.mark.parametrize(
    ("identifier", "values"),
    [
        (Identifier.DATES, [20240131, 19991224, 20250601]),
        (Identifier.DATES, [31121999, 1011980]),
        (Identifier.DATES, [1706659200, 1600000000]),
        (Identifier.DATES, [1706659200123, 1600000000456]),
        (Identifier.OTHERS, [6085550123, 6085550124]),
        (Identifier.OTHERS, [123456789, 987654321]),
        (Identifier.PLACES, [43.07312, -89.40123]),
    ],
)
def test_numbers_that_mostly_look_like_an_identifier_are_recognised(
    identifier: Identifier, values: list[float]
) -> None:
    assert identifier in {hit.identifier for hit in number_hits(np.array(values, np.float64))}


@pytest.mark.parametrize("values", [[17, 90], [0, 99_999, 15_024], [1725.55, 20310.1], [50_000, 250_000, 1_000_000]])
def test_ordinary_numbers_look_like_no_identifier(values: list[float]) -> None:
    assert list(number_hits(np.array(values, np.float64))) == []


def test_the_list_of_small_areas_is_that_of_the_guidance() -> None:
    listed = "036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893"
    assert sorted(SMALL_AREAS_2000) == listed.split()


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        *[(one, True) for one in ("0-9", "85-89", "90+", "90 or more", ">=90", "over 89", "17", "*", "any", "<18")],
        *[(one, False) for one in ("90-94", "85-94", "104", "ninety", "90", "ninety-four", "95+", "Ann")],
    ],
)
def test_ages_as_texts(text: str, allowed: bool) -> None:
    assert (list(ages_above(pa.array([text]))) == []) is allowed


def test_the_first_year_of_a_label() -> None:
    assert [first_year(one) for one in ("1931", "1930s", "[1925,1940]", "before 1937", "any year")] == [
        *(1931, 1930, 1925),
        *(None, None),
    ]


def test_columns_without_a_known_name_are_known_by_short_lists_only() -> None:
    assert review_texts("q1", pa.array(["Male", "female"])).known
    assert review_texts("q1", pa.array(["WI", "New York"])).known
    assert not review_texts("q1", pa.array(["Springfield", "Shelbyville"])).known
    assert not review_texts("state", pa.array(["Wisconsin", "Madison"])).known
    assert not review_numbers("q1", np.array([1.0, 31.0])).known
    assert review_numbers("weight", np.array([50.0, 120.0])).known
    assert not review_numbers("weight", np.array([53711.0])).known


def published(attribute: Any, values: list[Any], role: str = "quasi", **more: Any) -> Publication:
    """A publication with every row in a class of its own, as k: 1 allows it."""
    other = Category("sex", Hierarchy.flat(["F", "M"]))
    roles: dict[str, Any] = {"quasi": (other,), "sensitive": (), "public": ()}
    roles[role] = (*roles[role], attribute)
    frame = pa.table({"sex": ["F"] * len(values), getattr(attribute, "name", attribute): values, **more})
    table = table_from_frame(frame, Schema(PersonSource.ROW, **roles)).table
    return Publication.of(table, np.arange(len(values)))


def category(name: str, *leaves: str) -> Category:
    return Category(name, Hierarchy.flat(list(leaves), root="*"))


def reasons(publication: Publication, reviewed: tuple[str, ...] = ()) -> dict[str, str]:
    found = check_publication(publication, reviewed, 2026)
    return {name: "; ".join(str(one) for one in found if one.name == name) for name in {one.name for one in found}}


@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_a_label_that_looks_like_a_date_is_forbidden_with_the_number_of_its_rows(role: str) -> None:
    found = reasons(published(category("diagnosis", "flu", "2024-01-31"), ["flu", "2024-01-31", "2024-01-31"], role))
    assert "values look like dates" in found["diagnosis"]
    assert found["diagnosis"].endswith("in 2 rows")
    assert "2024" not in found["diagnosis"]


def test_what_is_generalized_away_is_not_published() -> None:
    tree = Hierarchy.from_rows([["2024-01-31", "2024", "any"], ["2024-02-01", "2024", "any"]])
    table = published(Category("admitted", tree), ["2024-01-31", "2024-02-01"]).table
    assert reasons(Publication.of(table, np.zeros(2, int))) == {}
    assert "not whole years" in reasons(Publication.of(table, np.arange(2)))["admitted"]


@pytest.mark.parametrize(
    ("attribute", "values", "reason"),
    [
        (category("ward", "5B"), ["5B"], "its name suggests geographic subdivisions"),
        (category("next_of_kin", "x"), ["x"], "its name suggests names of the person, relatives"),
        (category("zip", "5371"), ["5371"], "more than three digits"),
        (category("zip", "036"), ["036"], "more than three digits of postcodes, or an area of at most"),
        (category("zip", "Madison"), ["Madison"], "more than three digits"),
        (category("bday", "1931"), ["1931"], "years before 1937"),
        (category("age", "90-94"), ["90-94"], "values tell ages above 89"),
        (category("q3", "Springfield"), ["Springfield"], "neither its name nor its values"),
        (Number("years_old", 0, 104, integer=True), [104], "ages above 89"),
        (Number("age", 0, 120, integer=True), [95], "ages above 89"),
        (Number("yob", 1900, 2026, integer=True), [1936], "years before 1937"),
        (Number("zip", 0, 99999, integer=True), [53711], "postcodes as numbers"),
        (Number("weight", 0, 99999, integer=True), [53711], "postcodes"),
        (Number("income", 0, 1e11, integer=True), [6085550123], "nine or more digits"),
        (Number("q3", 0, 31, integer=True), [31], "neither its name nor its values"),
    ],
)
def test_a_column_of_a_hand_written_policy_is_forbidden(attribute: Any, values: list[Any], reason: str) -> None:
    assert reason in reasons(published(attribute, values))[attribute.name]


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        (category("zip", "537", "000"), ["537", "000"]),
        (category("bday", "1937", "before 1937"), ["1937", "before 1937"]),
        (category("q3", "1937", "before 1937"), ["1937", "before 1937"]),
        (category("age", "85-89", "90+"), ["85-89", "90+"]),
        (Number("age", 0, 90, integer=True, capped=True), [104]),
        (Number("age", 0, 120, integer=True), [89]),
        (Number("income", 0, 100_000, integer=True), [53_711]),
    ],
)
def test_what_the_rule_allows_is_published(attribute: Any, values: list[Any]) -> None:
    assert reasons(published(attribute, values)) == {}


def test_a_reviewed_column_is_published_unless_its_values_are_certainly_identifiers() -> None:
    values = ["53711", "Springfield"]
    codes = published(category("q3", *values), values)
    assert reasons(codes, ("q3",)) == {}
    assert "postcodes" in reasons(codes)["q3"]
    moments = published(Number("q3", 0, 2e9, integer=True), [1_700_000_017, 1_700_086_411])
    assert "points in time" in reasons(moments, ("q3",))["q3"]
    mails = published(category("q3", "ann@example.org"), ["ann@example.org"])
    assert "e-mail" in reasons(mails, ("q3",))["q3"]
    aged = published(Number("age", 0, 120, integer=True), [95])
    assert "above 89" in reasons(aged, ("age",))["age"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([f"s{row}" for row in range(40)], "nearly every row has another value"),
        (["Dane", "Rock"] * 20, "neither its name"),
        ([{"a": 1}] * 2, "documents and lists"),
        ([53711.5, 6.5], "neither its name"),
        ([None, "a@b.org"], "values look like e-mail addresses"),
    ],
)
def test_public_columns_are_checked_too(values: list[Any], reason: str) -> None:
    assert reason in reasons(published("q3", values, "public"))["q3"]


@pytest.mark.parametrize("role", ["quasi", "sensitive", "public"])
def test_a_code_in_nearly_every_row_is_forbidden_whatever_its_name(role: str) -> None:
    codes = [f"{chr(97 + row // 26)}{chr(97 + row % 26)}" for row in range(40)]
    found = reasons(published("drug" if role == "public" else category("drug", *codes), codes, role))
    assert "nearly every row has another value" in found["drug"]


@pytest.mark.parametrize("name", ["dob", "q3"])
def test_years_may_be_others_in_every_row(name: str) -> None:
    years = [str(1960 + row) for row in range(40)]
    assert reasons(published(category(name, *years), years)) == {}


def test_a_stream_is_checked_on_all_that_its_schema_could_publish() -> None:
    quasi = (category("diagnosis", "flu", "2024-01-31"), Number("age", 0, 120, integer=True), category("sex", "F", "M"))
    found = check_schema(Schema(PersonSource.ROW, quasi, public=("shop",)), (), 2026)
    assert [column.name for column in found] == ["diagnosis", "age", "shop"]
    capped = (Number("age", 0, 90, integer=True, capped=True), category("sex", "F", "M"))
    assert check_schema(Schema(PersonSource.ROW, capped), (), 2026) == ()

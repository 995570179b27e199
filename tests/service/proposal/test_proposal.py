"""Proposals: safe guesses, each with its reason, that load as they are."""

import datetime as dt
import gzip
import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from microdata import DataError, Sample, read_sample
from service.kinds.records.table_check import check_table
from service.policy import load_policy
from service.proposal import propose
from service.proposal.guesses import rounded_outward
from service.proposal.safe_harbor import SafeHarbor
from tests.service.cli.cli_world import MARK
from tests.service.proposal.proposal_world import between, made, one_of, roles, used

ROWS = 60


def sample() -> Any:
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


def write(columns: Any, path: Any) -> None:
    if path.suffix == ".csv":
        pa.csv.write_csv(columns, path)
    elif path.suffix == ".parquet":
        pq.write_table(columns, path)
    else:
        path.write_bytes(b"\n".join(orjson.dumps(row) for row in columns.to_pylist()))


def test_roles_by_name_type_and_uniqueness() -> None:
    assert roles(propose(Sample(sample()), "visits")) == {
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
def test_the_proposal_loads_and_fits_the_table(tmp_path: Path, kind: str) -> None:
    table = tmp_path / f"visits.{kind}"
    columns = sample() if kind != "csv" else sample().drop_columns(["tags", "place"])
    write(columns, table)
    found = used(table, tmp_path).found
    refused = {field for field, _ in found.refusals.counts()}
    assert refused == {"diagnosis"}
    assert found.rows == ROWS * 2 // 3


def test_nothing_personal_is_in_the_policy() -> None:
    text = propose(Sample(sample()), "visits").text
    assert MARK not in text
    assert "missing in 20 rows" in text
    assert "on_refused: drop" in text
    assert "public: []" in text


def test_every_kind_of_guess_has_one_comment() -> None:
    proposal = propose(Sample(sample()), "visits")
    lines = [line.strip(" #:") for line in proposal.text.splitlines()]
    for guess in proposal.guesses:
        assert lines.count(guess.reason) == 1


def test_without_persons_and_secrets() -> None:
    table = pa.table({"age": list(range(20, 60)), "true": ["a", "b"] * 20})
    proposal = propose(Sample(table), "a table!")
    assert "person: {row: true}" in proposal.text
    assert "name: a-table" in proposal.text
    assert '"true": {' in proposal.text
    assert "algorithm: mondrian" in proposal.text


def test_nothing_to_generalize() -> None:
    with pytest.raises(DataError, match="no column looks like a quasi-identifier"):
        propose(Sample(pa.table({"email": ["a", "b"]})), "mail")


def test_persons_that_a_policy_cannot_name_are_not_taken_for_rows() -> None:
    columns = {"Kundennr.": [f"K{row // 2:04}" for row in range(200)], "age": [20 + row % 50 for row in range(200)]}
    with pytest.raises(DataError, match=r"'Kundennr\.' names persons, but its name .* rename that column first"):
        propose(Sample(pa.table(columns)), "customers")


INVISIBLE = ["\u200b", "\ufeff", "\u202e", "\u00ad", "\u2028", "\u0085", "\x7f", "\u2800"]
"""Characters that policies and hierarchies refuse."""


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("character", INVISIBLE, ids=ascii)
def test_columns_with_invisible_characters_are_left_out_with_a_reason(
    tmp_path: Path, character: str, ending: str
) -> None:
    """The policy loads and fits; `policy check` would refuse such a name, and a hierarchy such a value."""
    cities = ["Rome", f"Os{character}lo", "Bonn"]
    table = pa.table(
        {
            f"ci{character}ty": ["Rome", "Oslo", "Bonn"] * 20,
            f"ill{character}ness": ["flu", "ulcer", "flu"] * 20,
            f"e{character}mail": [f"{row}@example.org" for row in range(ROWS)],
            "born_in": cities * 20,
            "age": [20 + row % 41 for row in range(ROWS)],
        }
    )
    path = tmp_path / f"people.{ending}"
    write(table, path)
    found = used(path, tmp_path).proposal
    reasons = {guess.name: guess.reason for guess in found.guesses if guess.role == "left out"}
    code = f"U+{ord(character):04X}"
    assert f"its name has an invisible character ({code}" in reasons[f"ci{character}ty"]
    assert f"its name has an invisible character ({code}" in reasons[f"ill{character}ness"]
    assert f"a value has an invisible character ({code}" in reasons["born_in"]
    assert character not in found.text


def test_a_name_in_a_comment_cannot_add_to_the_policy(tmp_path: Path) -> None:
    """YAML ends a line at U+2028, and with it a comment."""
    table = pa.table({"age": [20 + row % 41 for row in range(ROWS)], "e-mail\u2028name: other #": ["a@b.c"] * ROWS})
    for rules in (None, SafeHarbor()):
        policy = propose(Sample(table), "people", rules=rules).write(tmp_path / f"{rules is None}")
        assert load_policy(policy).name == "people"


@pytest.mark.parametrize("character", ["\ufffe", "\uffff"], ids=ascii)
def test_a_name_with_a_character_that_yaml_does_not_allow_is_escaped(tmp_path: Path, character: str) -> None:
    table = pa.table({f"ci{character}ty": ["Rome", "Oslo", "Bonn"] * 20, f"e{character}mail": ["a@b.c"] * ROWS})
    policy = load_policy(propose(Sample(table), "people").write(tmp_path))
    assert [one.name for one in policy.schema.quasi] == [f"ci{character}ty"]


def test_persons_whose_name_has_an_invisible_character_are_not_taken_for_rows() -> None:
    columns = {"patient\u200b_id": [f"K{row // 2:04}" for row in range(200)], "age": [*range(20, 70)] * 4}
    with pytest.raises(DataError, match=r"'patient\\u200b_id' names persons, but its name .*U\+200B.* rename that"):
        propose(Sample(pa.table(columns)), "customers")


def test_safe_harbor_does_not_bring_back_a_column_that_a_policy_cannot_name(tmp_path: Path) -> None:
    columns = {"zip\u200b": ["53711", "53703"] * 20, "date_of_birth\u200b": ["1990-01-01", "1991-02-03"] * 20}
    table = pa.table({**columns, "age": [*range(20, 60)]})
    proposal = propose(Sample(table), "people", rules=SafeHarbor({"537": 412_000}))
    load_policy(proposal.write(tmp_path))
    assert {name for name, role in roles(proposal).items() if role != "left out"} == {"age"}


def test_nothing_is_replaced(tmp_path: Path) -> None:
    proposal = propose(Sample(sample()), "visits")
    proposal.write(tmp_path)
    with pytest.raises(DataError, match=r"policy\.yaml exists already"):
        proposal.write(tmp_path)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (17, 90, (15, 90)),
        (0.12, 0.87, (0.1, 0.9)),
        (5, 5, (5, 5)),
        (-3, 1234, (-100, 1300)),
        (31, 36, (31, 36)),
        (-8019, 102127, (-10_000, 110_000)),
    ],
)
def test_domains_are_rounded_outward(low: Any, high: Any, expected: Any) -> None:
    assert rounded_outward(low, high) == expected


class TestPersons:
    def test_a_user_who_comes_back_is_the_person_and_k_counts_users(self, tmp_path: Path) -> None:
        """Rows of one user must never fill a class: that was k = 5 "persons" for a single user."""
        rows = [(user, 20 + user % 7, user % 3) for user in range(60) for _ in range(8)]
        table = tmp_path / "visits.csv"
        table.write_text("user,age,shop\n" + "".join(f"{user},{age},{shop}\n" for user, age, shop in rows))
        publication = used(table, tmp_path).made.publication
        users = [user for user, _, _ in rows]
        in_class: dict[Any, Any] = {}
        for user, of_class in zip(users, publication.classes.tolist(), strict=True):
            in_class.setdefault(of_class, set()).add(user)
        assert min(len(members) for members in in_class.values()) >= 5

    def test_where_nobody_is_named_it_says_so(self) -> None:
        proposal = propose(Sample(pa.table({"age": [20, 30, 40] * 9, "sex": ["f", "m", "x"] * 9})), "people")
        assert "NO COLUMN NAMES PERSONS" in proposal.text
        assert "NO COLUMN NAMES PERSONS" in proposal.warnings[0]

    @pytest.mark.parametrize(
        "name",
        ["user", "UserID", "customer_no", "patientId", "subject", "kunden_nr", "cliente", "utilisateur", "id", "nr"],
    )
    def test_names_of_persons(self, name: str) -> None:
        table = pa.table({name: [row % 40 for row in range(200)], "age": [row % 37 for row in range(200)]})
        assert roles(propose(Sample(table), "people"))[name] == "person"

    @pytest.mark.parametrize(
        "name",
        ["zip", "age_in_days", "user_rating", "passenger_count", "customer_age", "item_id", "year", "station_id"],
    )
    def test_names_of_something_else(self, name: str) -> None:
        table = pa.table({name: [1000 + row % 40 for row in range(200)], "age": [row % 37 for row in range(200)]})
        assert roles(propose(Sample(table), "people"))[name] != "person"

    @pytest.mark.parametrize("labels", [("yes", "no"), ("mobile", "desktop", "tablet")])
    def test_labels_are_no_persons(self, labels: Any) -> None:
        table = pa.table({"device": [labels[row % len(labels)] for row in range(90)], "age": list(range(90))})
        assert "device" not in {guess.name for guess in propose(Sample(table), "t").guesses if guess.role == "person"}

    def test_the_coarser_of_two_is_the_person(self) -> None:
        table = pa.table(
            {
                "account_id": [row % 80 for row in range(400)],
                "customer_id": [row % 40 for row in range(400)],
                "age": [row % 50 for row in range(400)],
            }
        )
        proposal = propose(Sample(table), "accounts")
        assert roles(proposal) == {"account_id": "left out", "customer_id": "person", "age": "quasi"}
        assert any("account_id" in warning for warning in proposal.warnings)

    def test_numbers_that_count_somebody_up_are_asked_about(self) -> None:
        table = pa.table({"s": [1 + row % 600 for row in range(3000)], "age": [row % 50 for row in range(3000)]})
        proposal = propose(Sample(table), "evaluations")
        assert roles(proposal)["s"] == "left out"
        assert any("key: s." in warning for warning in proposal.warnings)


ROW_POLICY = """\
name: visits
schema:
  person: {row: true}
  quasi:
    age: {type: number, min: 0, max: 120, integer: true}
guarantee: {algorithm: mondrian, k: 5}
"""


class TestCheck:
    def check(self, tmp_path: Any, text: Any, policy: Any = ROW_POLICY) -> Any:
        (tmp_path / "policy.yaml").write_text(policy)
        (tmp_path / "visits.csv").write_text(text)
        return check_table(load_policy(tmp_path / "policy.yaml"), tmp_path / "visits.csv").warnings

    def test_rows_taken_for_persons_beside_a_column_that_comes_back(self, tmp_path: Path) -> None:
        (warning,) = self.check(tmp_path, made(user=lambda row, _: f"{MARK}{row % 50}", age=between(18, 90)))
        assert "'user' reads like a person with 8.0 rows each (50 different values in 400 rows)" in warning
        assert MARK not in warning

    @pytest.mark.parametrize(
        "columns",
        [
            {"user": lambda row, _: f"u{row}"},
            {"zip": between(10_000, 10_050)},
            {"sex": one_of("f", "m")},
            {"item_id": between(1, 50)},
        ],
    )
    def test_no_warning_where_nobody_comes_back(self, tmp_path: Path, columns: Any) -> None:
        assert not self.check(tmp_path, made(age=between(18, 90), **columns))

    def test_no_warning_where_the_person_is_declared(self, tmp_path: Path) -> None:
        policy = ROW_POLICY.replace("{row: true}", "user")
        assert not self.check(tmp_path, made(user=lambda row, _: row % 50, age=between(18, 90)), policy)

    def test_columns_that_are_not_declared_may_be_called_what_they_are(self, tmp_path: Path) -> None:
        text = made(age=between(18, 90), x=between(0, 9)).replace("age,x", "age,")
        assert not self.check(tmp_path, text)


class TestHierarchies:
    def tree(self, name: Any, labels: Any) -> Any:
        table = pa.table({name: labels * 8, "age": list(range(len(labels) * 8))})
        (tree,) = propose(Sample(table), "t").hierarchies.values()
        return {row[0]: row[1:] for row in tree.rows()}

    def test_ranges_are_joined_with_their_neighbours(self) -> None:
        tree = self.tree("age_group", ["<18", "18-24", "25-34", "35-44", "45-54", "55-64", "65+", "unknown"])
        assert tree["25-34"][0] == tree["35-44"][0] == "25 … 44"
        assert tree["unknown"] == ["*"]

    def test_common_beginnings(self) -> None:
        tree = self.tree("zone", ["Europe/Rome", "Europe/Oslo", "Asia/Tokyo", "Asia/Delhi"])
        assert tree["Europe/Rome"] == ["Europe/…", "*"]

    def test_codes_of_illnesses(self) -> None:
        tree = self.tree(
            "diagnosis", [f"{letter}{number}.{part}" for letter in "EJ" for number in (10, 11) for part in range(8)]
        )
        assert tree["E10.3"] == ["E10*", "E1*", "E*", "*"]

    def test_days_that_are_not_written_as_in_iso(self) -> None:
        tree = self.tree("born", ["31.01.1970", "01.02.1970", "15.06.1981"])
        assert tree["31.01.1970"] == ["1970-01", "1970-Q1", "1970", "*"]

    def test_days_need_no_file(self) -> None:
        days = ["1970-03-01", "1981-06-15", "1999-12-02"] * 9
        proposal = propose(Sample(pa.table({"born": days, "age": list(range(27))})), "t")
        assert not proposal.hierarchies
        assert '{builder: dates, start: "1970-01-01", end: "1999-12-31"}' in proposal.text

    def test_a_label_that_reads_like_a_node_above_it(self) -> None:
        assert self.tree("zone", ["a/x", "a/y", "b/x", "b/y", "a/…"])["a/x"] == ["*"]


class TestGaps:
    def warned(self, tmp_path: Any, share: Any) -> Any:
        table = tmp_path / "gaps.csv"
        columns = {"pulse": lambda row, _: "" if row % 100 < share else 60 + row % 40, "age": between(18, 90)}
        table.write_text(made(500, **columns, city=one_of("a", "b", "c")))
        proposal = propose(read_sample(table), "gaps")
        assert roles(proposal)["pulse"] == "sensitive"
        return [warning for warning in proposal.warnings if "gaps" in warning]

    def test_many_rows_that_would_be_left_out_are_a_warning_that_names_the_column(self, tmp_path: Path) -> None:
        assert self.warned(tmp_path, 20) == [
            "100 of 500 rows have gaps and are left out: pulse (100). Delete a column's line to keep them."
        ]

    def test_few_are_not(self, tmp_path: Path) -> None:
        assert self.warned(tmp_path, 2) == []


class TestBounds:
    def test_many_columns(self, tmp_path: Path) -> None:
        table = tmp_path / "wide.csv"
        table.write_text(made(60, **{f"c{number}": between(0, 9) for number in range(300)}))
        result = propose(read_sample(table), "wide")
        load_policy(result.write(tmp_path / "proposed"))
        assert "300 quasi-identifiers" in result.text

    def test_what_lies_beyond_the_sample_is_left_out_and_said(self, tmp_path: Path) -> None:
        table = tmp_path / "long.csv"
        table.write_text(made(500, age=lambda row, _: 20 + row // 10, city=lambda row, _: "abc"[row // 200]))
        sample = read_sample(table, rows=300)
        proposal = propose(sample, "long")
        assert not sample.whole
        assert "Proposed from the first 300 rows" in proposal.text
        found = check_table(load_policy(proposal.write(tmp_path / "proposed")), table)
        assert (found.problems, found.rows) == ((), 310)

    @pytest.mark.parametrize("kind", ["csv", "jsonl.gz"])
    def test_samples_are_bounded_in_bytes(self, tmp_path: Path, kind: str) -> None:
        table = tmp_path / f"t.{kind}"
        if kind == "csv":
            table.write_text("a,b\n" + ("x" * 1000 + ",1\n") * 20_000)
        else:
            table.write_bytes(gzip.compress(b"\n".join([orjson.dumps({"a": "x" * 1000})] * 20_000)))
        sample = read_sample(table, most_bytes=1 << 20)
        assert not sample.whole
        assert sample.columns.nbytes < 8 << 20

    def test_long_texts_are_left_out(self) -> None:
        table = pa.table({"note": [("x" * 5000), ("y" * 5000)] * 30, "age": list(range(60))})
        assert roles(propose(Sample(table), "t")) == {"note": "left out", "age": "quasi"}

    def test_rows_that_cannot_be_read_do_not_stop_the_run(self, tmp_path: Path) -> None:
        table = tmp_path / "odd.csv"
        table.write_text(made(age=between(18, 90), sex=one_of("f", "m")) + "1,2,3,4\n")
        assert used(table, tmp_path).found.refusals.row_count == 1

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"a": [None] * 9}, "no column looks like a quasi-identifier"),
            ({"only": [f"{MARK} {row} b" for row in range(99)]}, "known delimiters are"),
            ({"age": [31]}, "no column looks like a quasi-identifier"),
            ({"user_id": [1] * 30, "age": list(range(30))}, None),
        ],
    )
    def test_what_is_too_little(self, columns: Any, message: Any) -> None:
        if message is None:
            assert propose(Sample(pa.table(columns)), "t").text
            return
        with pytest.raises(DataError, match=message) as caught:
            propose(Sample(pa.table(columns)), "t")
        assert MARK not in str(caught.value)

    def test_names_that_a_policy_cannot_hold_beside_each_other(self, tmp_path: Path) -> None:
        table = tmp_path / "t.csv"
        names = ("size", "size.unit", "x.", "a b", "a_b", "a-b", "A_B", "line\\nbreak", "true", "#")
        table.write_text(made(90, **{name: one_of("p", "q", "r") for name in names}))
        assert roles(used(table, tmp_path).proposal)["size"] == "left out"


def test_a_name_may_hold_more_commas_than_the_file_has_columns(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age;income, yearly, in EUR\n" + "".join(f"{20 + row};{row % 7}\n" for row in range(60)))
    result = used(table, tmp_path)
    assert list(roles(result.proposal)) == ["age", "income, yearly, in EUR"]


CELLS = st.one_of(
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.sampled_from(["", "NA", "?", "a", "*", "any", "…", "25-34", "35-44", "45-54", "65+", "E11.9", "2024-01-31"]),
    st.dates().map(str),
    st.datetimes().map(str),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Z")), max_size=6),
)


class TooLittleError(Exception):
    """A table from which nothing can be proposed, and that was told so."""


TOO_LITTLE = ("no column looks like", "fewer than 2", "no rows", "is empty")


@given(data=st.data(), rows=st.integers(2, 40))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_table_holds_the_proposal_can_be_used_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: Any, rows: int
) -> None:
    directory = tmp_path_factory.mktemp("made")
    names = data.draw(
        st.lists(st.sampled_from(["age", "id", "user", "zip", "time", "rating", "x", "note"]), unique=True, min_size=1)
    )
    pools = {name: data.draw(st.lists(CELLS, min_size=1, max_size=12)) for name in names}
    columns = {
        name: [str(value) for value in itertools.islice(itertools.cycle(pool), rows)] for name, pool in pools.items()
    }
    table = directory / "t.csv"
    pa.csv.write_csv(pa.table(columns), table)
    with suppress(TooLittleError):
        try:
            used(table, directory)
        except DataError as error:
            raise (TooLittleError if any(words in str(error) for words in TOO_LITTLE) else error) from error

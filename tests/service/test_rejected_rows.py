"""Rejected rows are counted everywhere: the rows that were given are published, suppressed or rejected."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from microdata import PersonKey, Publication, read_table, table_from_frame
from microdata.ratings import read_ratings
from microdata.sinks import write_columns
from privacy import KAnonymity, audit
from service.policy import PolicyError, load_policy, parse_policy
from service.policy.file import RejectedSection
from service.report import Asked, TableReport, table_report
from service.report.verdict import table_verdict
from static_algos import Mondrian
from tests.service.cli.cli_world import MARK, POLICY, table_text
from tests.service.kinds.ratings.test_ratings_kind import SURVEY, small
from tests.service.pages import text_without_isolation

DROP = "table: {on_refused: drop}\n"
COUNTED = {"given": 80, "rejected": 22}
"""Rows of the shop, and of these the 20 from Umea and the two others that are wrong."""


def spoiled(rows: int = 80) -> str:
    """A table of which the hierarchy does not know a city, and two further rows are wrong in several columns."""
    lines = table_text(rows).replace("Umea", "Atlantis").splitlines()
    for row in (1, 3):
        lines[row] = lines[row].replace(f",{19 + row},", f",{MARK},").replace(",lamp,", ",x,")
    return "\n".join(lines) + "\n"


def as_file(text: str, path: Path) -> Path:
    rows = list(csv.DictReader(io.StringIO(text)))
    if path.suffix == ".csv":
        path.write_text(text)
    else:
        columns = pa.Table.from_pylist(rows)
        write_columns(columns.schema, columns.to_batches(), path)
    return path


@pytest.fixture
def spoiled_shop(shop: Path) -> Path:
    (shop / "table.csv").write_text(spoiled())
    (shop / "policy.yaml").write_text(POLICY + DROP)
    return shop


def total(rows: Any) -> int:
    return int(rows["published"] + rows["suppressed"] + rows["rejected"]["rows"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_table_of_which_a_quarter_is_rejected(portcullis: Any, spoiled_shop: Path, ending: str) -> None:
    home = spoiled_shop
    table = as_file(spoiled(), home / f"given.{ending}")
    arguments = ("--policy", home / "policy.yaml", "--out", home / f"safe.{ending}", "--report", home / "r.json")
    more = ("--html", home / "r.html", "--evidence", home / "e.json")
    result = portcullis("anonymize", table, *arguments, *more)
    assert result.exit_code == 0, result.output
    assert "warning: 22 of 80 rows (27.5 %) were rejected and are not published; by field: city 20, age 2, item 1." in (
        result.stderr
    )
    assert "city: not a leaf of the hierarchy in 20 rows" in result.stderr
    assert "58 rows in" in result.stdout
    assert "0 suppressed, 22 rejected" in result.stdout
    assert MARK not in result.output
    rows = json.loads((home / "r.json").read_text())["rows"]
    assert (rows["given"], rows["rejected"]["rows"]) == tuple(COUNTED.values())
    assert total(rows) == rows["given"]
    assert rows["rejected"]["share"] == pytest.approx(22 / 80)
    assert rows["rejected"]["reasons"][0] == {"field": "city", "reason": "unknown_category", "rows": 20}
    page = (home / "r.html").read_text()
    assert "Look at this before you publish" in page
    assert "no row is left out" not in page
    assert "of 80" in page
    assert (
        "22 of 80 rows (27.5 %) were rejected and are not published; by field: city 20, age 2, item 1"
        in text_without_isolation(page)
    )


def test_evidence_counts_them_and_its_verification_compares(portcullis: Any, spoiled_shop: Path) -> None:
    home = spoiled_shop
    arguments = ("--policy", home / "policy.yaml", "--out", home / "safe.csv", "--evidence", home / "e.json")
    assert portcullis("anonymize", home / "table.csv", *arguments).exit_code == 0
    parts = json.loads((home / "e.json").read_text())["parts"]
    assert parts["audited"]["rejected"] == 22
    assert total(parts["reported"]["rows"]) == parts["reported"]["rows"]["given"] == 80
    page = portcullis("evidence", "show", home / "e.json").stdout
    assert "0 of 80 rows were suppressed" in page
    assert "22 of 80 rows (27.5 %) were rejected" in page
    verify = ("evidence", "verify", home / "e.json", "--policy", home / "policy.yaml", "--published", home / "safe.csv")
    result = portcullis(*verify, "--original", home / "table.csv", "--json", "--html", home / "e.html")
    assert result.exit_code == 0, result.output
    assert "look at the marked lines" in (home / "e.html").read_text()
    lines = (home / "table.csv").read_text().splitlines()
    (home / "table.csv").write_text("\n".join(line for line in lines if "Atlantis" not in line) + "\n")
    result = portcullis(*verify, "--original", home / "table.csv", "--json")
    outcomes = {one["about"]: one["outcome"] for one in json.loads(result.stdout)["checks"]}
    assert (result.exit_code, outcomes["audited: rejected"]) == (1, "differs")


def test_an_audit_counts_them(portcullis: Any, spoiled_shop: Path) -> None:
    home = spoiled_shop
    arguments = ("--policy", home / "policy.yaml", "--links", home / "links")
    made = portcullis("anonymize", home / "table.csv", *arguments, "--out", home / "safe.csv")
    assert made.exit_code == 0, made.output
    for more in (arguments[:2], arguments):
        result = portcullis("audit", home / "table.csv", home / "safe.csv", *more)
        assert (result.exit_code, "0 suppressed, 22 rejected" in result.stdout) == (0, True), result.output
        found = json.loads(portcullis("audit", home / "table.csv", home / "safe.csv", *more, "--json").stdout)
        assert (found["rows"], found["suppressed"], found["rejected"]) == (58, 0, 22)


def test_a_library_counts_them(spoiled_shop: Path) -> None:
    schema = load_policy(spoiled_shop / "policy.yaml").schema
    table = read_table(spoiled_shop / "table.csv", schema, on_refused="drop").table
    publication = Mondrian(k=4).anonymize(table)
    assert (publication.given, publication.rejected) == tuple(COUNTED.values())
    assert int(publication.sizes.sum()) + publication.suppressed + publication.rejected == publication.given
    assert audit(table, publication, [KAnonymity(4)]).rejected == 22
    report = table_report(publication, [KAnonymity(4)], asked=Asked(algorithm=None, parameters={}), seconds=1.0)
    assert (report.rows.given, report.rows.rejected.rows, report.rows.rejected.is_notable) == (80, 22, True)
    frame = pa.Table.from_pylist(list(csv.DictReader(io.StringIO(spoiled()))))
    framed = table_from_frame(frame, schema, on_refused="drop", person_key=PersonKey.random()).table
    assert (len(framed), framed.rejected) == (58, 22)
    assert Publication.of(framed, np.zeros(58, int)).given == 80


@pytest.mark.parametrize(("warn_above", "mark"), [(0.274, "look"), (0.275, "good")])
def test_the_policy_sets_the_share(portcullis: Any, spoiled_shop: Path, warn_above: float, mark: str) -> None:
    home = spoiled_shop
    (home / "policy.yaml").write_text(POLICY + DROP + f"rejected: {{warn_above: {warn_above}}}\n")
    arguments = ("--policy", home / "policy.yaml", "--out", home / "safe.csv", "--report", home / "r.json")
    assert portcullis("anonymize", home / "table.csv", *arguments).exit_code == 0
    report = TableReport.model_validate_json((home / "r.json").read_text())
    assert report.rows.rejected.warn_above == warn_above
    assert {line.question: line.mark for line in table_verdict(report).lines}["Rejected"] == mark


@pytest.mark.parametrize("share", [-0.1, 1.1, "NaN", "x"])
def test_a_share_is_from_0_to_1(share: Any) -> None:
    with pytest.raises(PolicyError, match=r"rejected\.warn_above"):
        parse_policy(POLICY + f"rejected: {{warn_above: {share}}}\n")
    assert parse_policy(POLICY).rejected == RejectedSection(warn_above=0.01)
    assert parse_policy(POLICY + "rejected: {warn_above: 0.5}\n").fingerprint() == parse_policy(POLICY).fingerprint()


def test_ratings_count_them(portcullis: Any, tmp_path: Path) -> None:
    table = small(tmp_path)
    given = len(table.read_text().splitlines()) - 1
    table.write_text(table.read_text() + "1,q1,7\n1,q2,x\n,q3,1\n")
    policy = (SURVEY / "policy.yaml").read_text().replace("k: 5", "k: 3")
    (tmp_path / "policy.yaml").write_text(policy + DROP)
    arguments = ("--policy", tmp_path / "policy.yaml", "--out", tmp_path / "safe.csv")
    more = ("--report", tmp_path / "r.json", "--html", tmp_path / "r.html", "--evidence", tmp_path / "e.json")
    result = portcullis("anonymize", table, *arguments, *more)
    assert result.exit_code == 0, result.output
    sentence = f"3 of {given + 3} rows"
    assert f"warning: {sentence}" in result.stderr
    counts = json.loads((tmp_path / "r.json").read_text())["counts"]
    assert (counts["given"], counts["rejected"]["rows"]) == (given + 3, 3)
    for page in ((tmp_path / "r.html").read_text(), portcullis("evidence", "show", tmp_path / "e.json").stdout):
        assert sentence in page
        assert "0 rows in 0 classes" not in page
    assert json.loads((tmp_path / "e.json").read_text())["parts"]["audited"]["rejected"] == 3


def test_wide_ratings_count_their_rows(tmp_path: Path) -> None:
    policy = parse_policy(
        "name: wide\ndata: ratings\nschema: {person: id, layout: wide, items: [q*], rating: {min: 1, max: 5}}\n"
        "guarantee: {algorithm: ke_anon, k: 2, epsilon: 1}\n"
    )
    (tmp_path / "wide.csv").write_text("id,q1,q2\na,1,2\nb,9,2\nc,1,x\nd,1\ne,,\nf,2,2\n")
    read = read_ratings(tmp_path / "wide.csv", policy.schema, on_refused="drop")
    assert (read.rows, read.rejected, read.unrated) == (6, 3, 1)

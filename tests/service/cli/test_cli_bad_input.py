"""Bad input is answered clearly, with status 2, without a value, and nothing is written."""

import json
from typing import Any

import pytest

from tests.service.cli.cli_world import MARK, POLICY, table_text

GOOD = table_text()
HEADER = GOOD.splitlines()[0]

BAD_TABLES = {
    "empty file": ("", "table.csv: the file is empty"),
    "header only": (HEADER + "\n", "no rows"),
    "wrong delimiter": (GOOD.replace(",", "#"), "none of the declared columns"),
    "no header": (GOOD.split("\n", 1)[1], "none of the declared columns"),
    "missing column": (GOOD.replace("city", "town", 1), "city: is missing"),
    "duplicate column": (GOOD.replace("note", "age", 1), "column 'age' is there 2 times"),
    "unknown category": (table_text(city=MARK), "city: not a leaf of the hierarchy in 1 row (6)"),
    "number out of domain": (table_text(age=987654), "age: outside the declared domain in 1 row (6)"),
    "not a whole number": (table_text(age=30.5), "age: not a whole number in 1 row (6)"),
    "NaN": (table_text(age="NaN"), "age: not a finite number in 1 row (6)"),
    "infinity": (table_text(age="-inf"), "age: not a finite number in 1 row (6)"),
    "mixed types": (table_text(age=MARK), "age: not a number in 1 row (6)"),
    "missing value": (table_text(age=""), "age: missing value in 1 row (6)"),
    "missing person": (table_text(id=""), "id: missing value in 1 row (6)"),
    "10 MB cell": (table_text(note=MARK + "x" * 10_000_000), "a row is longer than"),
    "too few cells": (GOOD + "a,b\n", "another number of cells than the header"),
    "non-UTF-8 bytes": (table_text(city="Zürich").encode("latin-1"), "city: not UTF-8 text in 1 row (6)"),
    "NUL bytes": (GOOD.encode() + b"\0\0", "another number of cells than the header"),
}


def commands(shop: Any) -> Any:
    given = ("--policy", shop / "policy.yaml")
    return [
        ("policy", "check", shop / "policy.yaml", "--table", shop / "table.csv"),
        ("anonymize", shop / "table.csv", *given, "--out", shop / "out.csv", "--report", shop / "report.json"),
        ("audit", shop / "table.csv", shop / "table.csv", *given),
    ]


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table(portcullis: Any, shop: Any, kind: Any) -> None:
    content, expected = BAD_TABLES[kind]
    (shop / "table.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in commands(shop):
        result = portcullis(*command)
        assert result.exit_code == 2, result.output
        assert expected in result.stderr
        assert MARK not in result.output
        assert "987654" not in result.output
        assert "Traceback" not in result.output
    assert sorted(path.name for path in shop.iterdir()) == ["policy.yaml", "table.csv"]


@pytest.mark.parametrize("kind", ["unknown category", "number out of domain", "NaN", "mixed types", "non-UTF-8 bytes"])
def test_a_policy_may_leave_refused_rows_out(portcullis: Any, shop: Any, kind: str) -> None:
    content, expected = BAD_TABLES[kind]
    (shop / "table.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    (shop / "policy.yaml").write_text(POLICY + "table: {on_refused: drop}\n")
    for command in commands(shop)[:2]:
        result = portcullis(*command)
        assert result.exit_code == 0, result.output
        assert expected in result.stderr
        assert MARK not in result.output
    assert len((shop / "out.csv").read_text().splitlines()) == 80


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("absent.csv", "there is no such file"),
        ("folder.csv", "is a directory"),
        ("policy.yaml", "unknown kind of file"),
    ],
)
def test_files_that_are_no_tables(portcullis: Any, shop: Any, name: str, expected: str) -> None:
    (shop / "folder.csv").mkdir()
    for command in commands(shop):
        result = portcullis(*(shop / name if argument == shop / "table.csv" else argument for argument in command))
        assert result.exit_code == 2
        assert expected in result.stderr


BAD_POLICIES = {
    "misspelt key": (POLICY.replace("quasi:", "quazi:"), "schema.quazi: unknown key; did you mean 'quasi'?"),
    "hierarchy with a cycle": (
        POLICY.replace("{Any: [lamp, book, tea]}", "items.csv"),
        "items.csv: row 1 has a cycle: a label is its own ancestor, given 'lamp'",
    ),
    "wrong type": (POLICY.replace("k: 4", "k: four"), "guarantee.k: must be a valid integer, given 'four'"),
    "wrong indent": (POLICY.replace("  public", " public"), "YAML syntax, line"),
    "empty": ("", "policy.yaml: empty"),
    "NUL": ("\0", "YAML syntax"),
    "some text": (MARK, "this is no policy"),
    "a record": (f'{{"name": "{MARK}"}}', "this is no policy"),
    "a table": (GOOD, "this is no policy"),
}


@pytest.mark.parametrize("kind", BAD_POLICIES)
def test_a_bad_policy(portcullis: Any, shop: Any, kind: Any) -> None:
    content, expected = BAD_POLICIES[kind]
    (shop / "items.csv").write_text("lamp;thing;lamp;Any\n")
    (shop / "policy.yaml").write_text(content)
    for command in commands(shop):
        result = portcullis(*command)
        assert result.exit_code == 2
        assert expected in result.stderr
        assert MARK not in result.output
    programs = portcullis("policy", "check", shop / "policy.yaml", "--json")
    assert programs.exit_code == 2
    assert json.loads(programs.stdout)["usable"] is False
    assert MARK not in programs.output
    assert not (shop / "out.csv").exists()


@pytest.mark.parametrize("content", [b"name: caf\xe9\n", b"a: &a [x,x]\nb: [" + b"*a," * 300_000 + b"]"])
def test_policies_that_are_no_reasonable_text(portcullis: Any, shop: Any, content: Any) -> None:
    (shop / "policy.yaml").write_bytes(content)
    assert portcullis("policy", "check", shop / "policy.yaml").exit_code == 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"class,age,city,item,shop\n", "no rows"),
        (f"class,age,city,item,shop\n0,{MARK},Rome,tea,east\n".encode(), "published.csv"),
        (f"class,age,city,item,shop\n0,[1;2],{MARK},tea,east\n".encode(), "published.csv"),
        (b"class,age,city,item,shop\n0,\xff\xff,Rome,tea,east\n", "published.csv"),
    ],
)  # fmt: skip
def test_a_bad_publication(portcullis: Any, shop: Any, content: Any, expected: str) -> None:
    (shop / "published.csv").write_bytes(content)
    result = portcullis("audit", shop / "table.csv", shop / "published.csv", "--policy", shop / "policy.yaml")
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert MARK not in result.output

"""What attackers get of the orders is measured again by whoever wants it, and written between its marks."""

from pathlib import Path

import numpy as np

from load_tests.stream_attacks import (
    ENGINES,
    KNOWLEDGE_MARKS,
    MARKS,
    K,
    Stream,
    arrivals_table,
    compare,
    knowing,
    knowledge_lines,
    orders_table,
    write_between,
    write_tables,
)
from microdata import Number, Schema, Table


def test_the_tables_are_written_and_say_what_was_measured(tmp_path: Path) -> None:
    rows = compare(("castle", "castle, reuse"), (10, 100))
    assert [row["algorithm"] for row in rows] == ["castle", "castle, reuse", "castle, reuse"]
    forgetful, *alone = rows
    assert forgetful["fewest"] < K <= forgetful["one row"]
    assert forgetful["others"] is None
    assert all(row["alone"] > 0 for row in alone)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n")
    write_tables(rows, page)
    text = page.read_text()
    assert "old" not in text
    assert text.startswith(f"before\n{MARKS[0]}\n| algorithm |")
    assert text.count("`castle, reuse`") == 3
    assert text.endswith(f"{MARKS[1]}\nafter\n")


def test_repeated_persons_are_tried_with_and_without_memory() -> None:
    assert {"castle", "sabre_w", "cohorts, standing", "z"} <= ENGINES.keys()


def test_what_an_attacker_knows_rules_persons_out_by_hand() -> None:
    """Three persons of one age: 0 comes and goes first, 1 acts most, 2 comes last. All rows leave with one box."""
    persons = np.array([0, 1, 1, 1, 2, 1])
    table = Table(Schema("person", (Number("age", 0, 9),)), persons, np.full((6, 1), 5.0), np.empty((6, 0), np.int32))
    stream, ends = Stream(table), np.zeros((6, 1))
    release = np.arange(6), persons, ends, ends + 9

    def left(knows: str) -> list[int]:
        return sorted(stream.candidates([release], knows, 9).tolist())

    assert left("") == [3, 3, 3]
    assert left("came") == [1, 2, 3]
    assert left("left") == [1, 2, 3]
    assert left("active") == [1]
    away = release[0], persons, ends, np.where(persons[:, None] == 2, 4.0, 9.0)
    assert sorted(stream.candidates([release, away], "", 9).tolist()) == [0, 3, 3]


def test_only_what_is_promised_is_covered(tmp_path: Path) -> None:
    table = arrivals_table(150, 1500)
    rows = knowing("arrivals", table, (2,), 30)
    shares = {row["attacker knows"]: row.get("below k") for row in rows}
    assert shares["everybody's values (the promise)"] == 0
    assert all(share is None or share > 0 for name, share in shares.items() if name[:3] in {"(a)", "(b)", "(c)"})
    page = tmp_path / "page.md"
    page.write_text("\n".join(KNOWLEDGE_MARKS))
    write_between(KNOWLEDGE_MARKS, knowledge_lines(rows), page)
    begin, head, _, promise, *others, end = page.read_text().splitlines()
    assert (begin, end) == KNOWLEDGE_MARKS
    assert "arrivals, k = 2" in head
    assert "| yes | 0.0% (fewest " in promise
    assert len(others) == 7
    assert all("| not covered |" in line for line in others)


def test_the_orders_are_a_stream_of_returning_customers() -> None:
    table = orders_table()
    assert table.persons.max() + 1 == len(np.unique(table.persons)) < len(table)

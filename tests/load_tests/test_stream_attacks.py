"""What attackers get of the orders is measured again by whoever wants it, and written between its marks."""

from pathlib import Path

from load_tests.stream_attacks import ENGINES, MARKS, K, compare, write_tables


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

"""The table of attacks, at a size that is quick."""

from load_tests.category_attacks import ASKED, COLUMNS, claims, tables


def test_categories_end_what_diversity_leaves_open() -> None:
    rows = list(tables(600))
    assert [row[0] for row in rows] == list(ASKED)
    assert all(len(row) == len(COLUMNS) for row in rows)
    found = {str(row[0]): row for row in rows}
    assert found["2-sensitive"][2] > 0  # type: ignore[operator]
    assert found["2-sensitive"][4] > 0  # type: ignore[operator]
    assert found["2⁺-sensitive"][2:5] == [0, 0, 0]
    half = "2⁺, at most half most secret"
    assert found[half][2:5] == [0, 0, 0]
    assert found[half][5] <= found["2⁺-sensitive"][5]  # type: ignore[operator]
    assert [verdict for _, verdict in claims(rows)] == ["as claimed"] * 3

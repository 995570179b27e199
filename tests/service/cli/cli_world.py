"""A small shop whose every person is marked."""

from typing import Any

MARK = "Zq7mark"
"""Stands in the data where a value must never be seen again."""

POLICY = """\
name: shop
schema:
  person: id
  quasi:
    age: {type: number, min: 0, max: 120, integer: true}
    city: {type: category, hierarchy: {World: {North: [Oslo, Umea], South: [Rome, Bari]}}}
  sensitive:
    item: {type: category, hierarchy: {Any: [lamp, book, tea]}}
  public: [shop]
guarantee: {algorithm: mondrian, k: 4, l: 2}
"""
CITIES, ITEMS = ("Oslo", "Umea", "Rome", "Bari"), ("lamp", "book", "tea")


def table_text(rows: int = 80, **replaced: Any) -> Any:
    """CSV rows about as many marked persons; `replaced` overwrites cells of row 5."""
    lines = ["id,age,city,item,shop,note"]
    for row in range(rows):
        cells = {
            "id": f"{MARK}{row}",
            "age": 20 + row % 50,
            "city": CITIES[row % 4],
            "item": ITEMS[row % 3],
            "shop": "east",
            "note": f"{MARK} note",
        }
        cells |= replaced if row == 5 else {}
        lines.append(",".join(str(cell) for cell in cells.values()))
    return "\n".join(lines) + "\n"

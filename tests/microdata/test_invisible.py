"""Invisible and direction-changing characters: which ones are found, and how they are shown."""

import unicodedata

import pytest

from microdata import Hierarchy, HierarchyError, invisible_character, shown_escaped

VISIBLE = ["São Paulo", "naïve", "東京", "עברית 17", "می\u200cخواهم", "क्\u200dष", "a b", "a\u00a0b", "👍", "\U00018cd6"]
"""Also a joiner in Persian and in Hindi, a space that does not break, and a letter of a newer Unicode."""


@pytest.mark.parametrize("text", VISIBLE)
def test_visible_text_is_accepted_and_shown_as_it_is(text: str) -> None:
    assert invisible_character(text) is None
    assert shown_escaped(text) == text


@pytest.mark.parametrize(
    "character",
    [
        *("\u202a", "\u202b", "\u202d", "\u202e", "\u202c", "\u2066", "\u2067", "\u2068", "\u2069"),
        *(
            "\u200e",
            "\u200f",
            "\u061c",
            "\u200b",
            "\u2060",
            "\ufeff",
            "\u00ad",
            "\u034f",
            "\u3164",
            "\ufe0f",
            "\U000e0041",
        ),
        *("\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u200c", "\u200d"),
    ],
)
def test_each_of_these_is_found_with_its_position(character: str) -> None:
    found = invisible_character(f"ab{character}c")
    assert found is not None
    place, name = found
    assert place == 2
    assert name.startswith(f"U+{ord(character):04X} ")
    assert name.endswith(unicodedata.name(character, unicodedata.category(character)))
    assert character not in shown_escaped(f"ab{character}c")
    with pytest.raises(HierarchyError, match="at position 3; remove it"):
        Hierarchy.flat([f"ab{character}c", "d"])


def test_lines_and_tabs_of_a_message_stay() -> None:
    assert shown_escaped("first\n\tsecond \u202e%17") == "first\n\tsecond \\u202e%17"

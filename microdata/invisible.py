"""Characters that a reader does not see, or that change the order in which text is shown."""

from __future__ import annotations

import re
import unicodedata

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters, marks and symbols that are shown as nothing."""
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of control and format characters, surrogates, and separators of lines and paragraphs."""
_JOINERS = frozenset("\u200c\u200d")
_JOINED_SCRIPTS = re.compile(
    "ARABIC|SYRIAC|DEVANAGARI|BENGALI|GURMUKHI|GUJARATI|ORIYA|TAMIL|TELUGU|KANNADA|MALAYALAM|SINHALA|KHMER|MYANMAR"
)
"""Scripts in which a joiner between two letters changes how they are written."""


def invisible_character(text: str) -> tuple[int, str] | None:
    r"""Return position and name of the first invisible or direction-changing character; None where there is none.

    Control characters, direction marks and overrides, zero-width characters and variation selectors are such. A joiner
    between two letters of a script that needs it is none.

    >>> invisible_character("Risk \u202e%17")
    (5, 'U+202E RIGHT-TO-LEFT OVERRIDE')
    >>> invisible_character("São Paulo") is None
    True
    """
    if text.isprintable() and _BLANK.search(text) is None:
        return None
    for place, character in enumerate(text):
        if _is_invisible(character) and not _joins(text, place):
            name = unicodedata.name(character, unicodedata.category(character))
            return place, f"U+{ord(character):04X} {name}"
    return None


def shown_escaped(text: str) -> str:
    r"""Return a text for a terminal: invisible characters, besides line feeds and tabs, as escapes such as `\u202e`."""
    if text.isprintable() and _BLANK.search(text) is None:
        return text
    return "".join(
        character.encode("unicode_escape", "surrogatepass").decode()
        if _is_invisible(character) and character not in "\n\t" and not _joins(text, place)
        else character
        for place, character in enumerate(text)
    )


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _CATEGORIES or _BLANK.match(character) is not None


def _joins(text: str, place: int) -> bool:
    around = text[max(place - 1, 0) : place] + text[place + 1 : place + 2]
    return (
        text[place] in _JOINERS
        and len(around) == 2
        and all(_JOINED_SCRIPTS.match(unicodedata.name(one, "")) is not None for one in around)
    )

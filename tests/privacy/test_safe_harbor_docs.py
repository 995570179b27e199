"""The table of the 18 identifiers in the docs says what the code recognises."""

import re
from pathlib import Path

import pyarrow as pa

from privacy.safe_harbor import SMALL_AREAS_2000, Identifier, Meaning, meaning_of
from privacy.safe_harbor.content import text_hits

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in PAGE.splitlines() if re.match(r"\| [A-R] ", line)]


def test_every_identifier_has_a_row() -> None:
    assert {row[0].strip()[0] for row in ROWS} == {identifier.letter for identifier in Identifier}


def test_the_names_in_the_table_are_recognised() -> None:
    for row in ROWS:
        letter = row[0].strip()[0]
        for name in re.findall(r"`([^`]+)`", row[1]):
            meaning = meaning_of(name)
            reduced = {"B": {Meaning.POSTCODE}, "C": {Meaning.DATE, Meaning.AGE}}.get(letter, set())
            assert meaning in reduced or (isinstance(meaning, Identifier) and meaning.letter == letter), name


def test_the_contents_in_the_table_are_recognised() -> None:
    for row in ROWS:
        for text in re.findall(r"`([^`]+)`", row[2]):
            letters = {hit.identifier.letter for hit in text_hits(pa.array([text]))}
            assert row[0].strip()[0] in letters, text


def test_the_areas_in_the_text_are_those_of_the_code() -> None:
    paragraph = " ".join(PAGE.split()).partition("as the guidance of HHS lists them")[2].partition(". If you")[0]
    assert set(re.findall(r"\b\d{3}\b", paragraph)) == SMALL_AREAS_2000

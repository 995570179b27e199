"""What an attacker gets of a stream: who ties a person's rows together, and who knows when the person acted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from service.report.figures import Bar, bars, card, histogram, number, percent
from service.report.sections import Exposed, Section, Trial

NOTABLE_ROWS = 0.01
"""Share of the rows that may point at one person before a report or a command warns."""


class Candidates(Section):
    """Persons with `first` to `last` candidates."""

    first: int
    last: int
    persons: int


class Linked(Section):
    """What somebody is left with who ties all published rows of a person together, for a sample of the persons."""

    persons: int
    fewest: int = Field(description="persons who lie in every box of one of them, at the time of its rows")
    median: float
    one_row: float | None = Field(None, description="the median where only one row of each is known")
    asked: int | None = Field(None, description="persons that each cluster must have; null where none were asked for")
    below: float | None = Field(None, description="share of them with fewer persons than that")
    identified: float | None = Field(None, description="share of them for whom nobody else is left")
    bins: list[Candidates] = Field(default_factory=list, description="how many persons have how many candidates")

    @property
    def is_notable(self) -> bool:
        """Whether a person is left with fewer candidates than each cluster must have, or with none."""
        return bool(self.below or self.identified)


class Timing(Section):
    """What somebody is left with who knows in which tick a person acted, for a sample of the rows that left alone."""

    rows: int
    seconds: float = Field(description="how long a tick is")
    fewest: int = Field(description="other persons with a row in the same tick that could be the victim's")
    median: float
    asked: int | None = Field(None, description="persons that were asked for; null where none were")
    below: float = Field(description="share of the rows with fewer persons than that, the victim included")
    nobody: float = Field(description="share of the rows for which there is nobody else")

    @property
    def is_notable(self) -> bool:
        """Whether the person of more than a few rows is known."""
        return self.nobody > NOTABLE_ROWS


class Attacked(Section):
    """What attacks get of something that is already published, for somebody who has the original."""

    rows: int = Field(description="published rows")
    unplaced: int = Field(
        0,
        description="rows left over when as many as possible have a row of the original of their own; with any, the "
        "file is not a release of this original, and nothing was attacked",
    )
    certain: float = Field(description="share of them that are known to be that row: by links, or as the only one")
    linked: Linked | None = Field(None, description="the intersection attack; null where nobody has several rows")
    timing: Timing | None = Field(None, description="null where no row left alone, or nobody knows when rows left")
    attacks: list[Exposed] = Field(default_factory=list, description="of a table")
    tried: list[Trial] = Field(default_factory=list, description="with a control, of a table with enough persons")


def linked_of(left: NDArray[np.int64], single: NDArray[np.int64], asked: int | None) -> Linked | None:
    """What is left of the candidates of each person with all of their rows, and with one of them."""
    if not len(left):
        return None
    return Linked(
        persons=len(left),
        fewest=int(left.min()),
        median=float(np.median(left)),
        one_row=float(np.median(single)) if len(single) else None,
        asked=asked,
        below=None if asked is None else float((left < asked).mean()),
        identified=float((left == 1).mean()),
        bins=list(_bins(left)),
    )


def timing_of(others: NDArray[np.int64], seconds: float, asked: int | None) -> Timing | None:
    """What is left to hide each row that left alone; None where none did."""
    if not len(others):
        return None
    return Timing(
        rows=len(others),
        seconds=seconds,
        fewest=int(others.min()),
        median=float(np.median(others)),
        asked=asked,
        below=float((others + 1 < (asked or 1)).mean()),
        nobody=float((others == 0).mean()),
    )


def _bins(left: NDArray[np.int64]) -> Iterator[Candidates]:
    """Each twice as wide as the one before."""
    first = 1
    while first <= left.max():
        last = 2 * first - 1
        yield Candidates(first=first, last=last, persons=int(((left >= first) & (left <= last)).sum()))
        first = last + 1


def linked_card(linked: Linked) -> str:
    """The intersection attack."""
    lines = [
        *([Bar(f"fewer than {linked.asked} left", (linked.below,))] if linked.below is not None else []),
        *([Bar("nobody else left", (linked.identified,))] if linked.identified is not None else []),
    ]
    columns = [(one.first, one.last, one.persons) for one in linked.bins]
    drawn = [histogram(columns, "candidates (height: persons with so many)")] if columns else []
    return card("Rows of one person tied together", linked_sentence(linked), bars(lines), *drawn)


def linked_sentence(linked: Linked) -> str:
    """What the intersection attack gets."""
    one = "" if linked.one_row is None else f", where one row would leave {number(linked.one_row)}"
    return (
        "Somebody who can tie all published rows of a person together, by a habit or a rare public value, is left with "
        f"{number(linked.median)} persons in the median who lie in every box of theirs{one}, and with at least "
        f"{number(linked.fewest)}; tried for {number(linked.persons)} persons."
    )


def timing_card(timing: Timing) -> str:
    """The timing attack."""
    lines = [
        *([Bar(f"fewer than {timing.asked} persons", (timing.below,))] if timing.asked is not None else []),
        Bar("nobody else", (timing.nobody,)),
    ]
    return card("Rows that left alone, and who knows when", timing_sentence(timing), bars(lines))


def timing_sentence(timing: Timing) -> str:
    """What the timing attack gets."""
    return (
        f"Somebody who knows the {_tick(timing)} in which a person acted, and their quasi-identifiers, finds rows of "
        f"{number(timing.median)} other persons in the median that could be theirs as well, and of at least "
        f"{number(timing.fewest)}; for {percent(timing.nobody)} of the rows there is nobody else, so that they are "
        f"known. Tried for {number(timing.rows)} rows that left alone."
    )


def _tick(timing: Timing) -> str:
    return "second" if timing.seconds == 1 else f"{number(timing.seconds)} seconds"

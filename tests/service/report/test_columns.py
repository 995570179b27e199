from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Boxes, Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from service.report.columns import FEWEST, PARTS, Spreads, _together, spreads_of

SEX = Category("sex", Hierarchy.flat(["f", "m"]))
AGE = Number("age", 0, 119, integer=True)


def table(quasi: Any, *attributes: Any, persons: Any = None) -> Table:
    rows = np.array(quasi, float)
    owners = np.arange(len(rows)) if persons is None else np.array(persons)
    return Table(Schema(PersonSource.ROW, attributes, ()), owners, rows, np.empty((len(rows), 0), np.int32))


def test_bars_are_those_counted_by_hand() -> None:
    rows = [[0, 0]] * 10 + [[1, 15]] * 30
    sex, age = spreads_of(Publication.of(table(rows, SEX, AGE), np.zeros(40, int)), 5)
    assert [(one.width, one.before, one.after) for one in sex.parts] == [(0.5, 0.25, 0.5), (0.5, 0.75, 0.5)]
    assert sex.loss == 1
    assert age.loss == pytest.approx(15 / 119)
    # Published is 0 … 15, sixteen whole ages: ten of them in the first part, and nobody is beyond the second.
    assert age.parts[0].before == 0.25
    assert age.parts[0].after == pytest.approx(10 / 16)
    assert sum(one.before for one in age.parts) == pytest.approx(1)
    assert sum(one.after for one in age.parts) == pytest.approx(1)
    assert sum(one.width for one in age.parts) == pytest.approx(1)


def test_no_bar_stands_for_few_persons() -> None:
    # One person is over 100, and one has ten rows between 50 and 59.
    rows = [[5]] * 40 + [[55]] * 10 + [[105]]
    own = table(rows, AGE, persons=[*range(40), *[100] * 10, 200])
    (age,) = spreads_of(Publication.of(own, np.zeros(51, int)), 5)
    assert [one.before for one in age.parts] == [1.0]
    (more,) = spreads_of(Publication.of(table([*rows, *[[105]] * 8], AGE), np.zeros(59, int)), 5)
    assert [round(one.before * 59) for one in more.parts] == [40, 10, 9]
    (fewer,) = spreads_of(Publication.of(table([*rows, *[[105]] * 8], AGE), np.zeros(59, int)), 10)
    assert [round(one.before * 59) for one in fewer.parts] == [40, 19]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=PARTS), st.integers(1, 12))
def test_runs_have_enough_persons_or_all_have_not(persons: list[int], fewest: int) -> None:
    sets = [{100 * place + one for one in range(count)} for place, count in enumerate(persons)]
    runs = _together(sets, fewest)
    assert [place for first, last in runs for place in range(first, last)] == list(range(len(persons)))
    enough = [sum(persons[first:last]) >= fewest for first, last in runs]
    assert all(enough) or len(runs) == 1


def test_a_stream_adds_up_to_the_same_as_a_table() -> None:
    random = np.random.default_rng(1)
    rows = np.stack([random.integers(0, 2, 300), random.integers(0, 120, 300)], axis=1).astype(float)
    own = table(rows, SEX, AGE)
    publication = Publication.of(own, random.integers(0, 9, 300))
    streamed = Spreads(own.schema, FEWEST)
    for start in range(0, 300, 70):
        streamed.take(own.quasi[start : start + 70], own.persons[start : start + 70])
    shown = publication.shown()
    for start in range(0, 9, 4):
        part = slice(start, start + 4)
        streamed.publish(Boxes(own.schema, shown.lo[part], shown.hi[part]), publication.sizes[part])
    for one, other in zip(streamed.found(), spreads_of(publication, FEWEST), strict=True):
        assert [part.before for part in one.parts] == pytest.approx([part.before for part in other.parts])
        assert [part.after for part in one.parts] == pytest.approx([part.after for part in other.parts])
        assert (one.loss, one.risk) == pytest.approx((other.loss, other.risk))


def test_nothing_taken_and_nothing_published() -> None:
    (age,) = Spreads(Schema(PersonSource.ROW, (AGE,), ()), 5).found()
    assert (age.loss, age.risk) == (0, 0)
    assert [one.width for one in age.parts] == [1.0]

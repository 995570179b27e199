"""Attacks on what is already published, by somebody who has the original: for tests and rehearsals.

Where nobody kept which row is whose, one way is taken in which all rows can have come from the original. A table's
classes are the same in each of them; of a stream, the numbers are those of a world that nobody can tell from the true
one, and the share of rows that are certain says how far it can be from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import (
    DataError,
    Encoded,
    PersonSource,
    Progress,
    Publication,
    Published,
    Table,
    read_published,
    read_table,
)
from privacy import Assignment, Left, Watch, assign, candidates
from service.codec import Events, plain_values, read_events
from service.kinds.records.links import read_links
from service.kinds.records.replayed import read_lines, sightings_of
from service.policy import Policy
from service.report import Attacked, Linked, Timing, exposed, linked_of, timing_of, tried

MOST_ROWS = 1_000_000
"""Published rows; each is looked for in the original."""
_VICTIMS = 1_000
_TICK_SECONDS = 1.0


def attack_table(policy: Policy, original: Path, published: Path, links: Path | None, progress: Progress) -> Attacked:
    """All attacks of a report, on a file."""
    reading = read_table(original, policy.schema, on_refused=policy.table.on_refused, progress=progress)
    read = _bounded(read_published(published, policy.schema, formulas=policy.table.formulas, show=policy.show))
    found = place_rows(reading, read, links)
    if (found.rows < 0).any():
        return _not_a_release(found)
    publication = placed_publication(reading.table, read, found)
    return Attacked(
        rows=len(read),
        certain=float(found.certain.mean()),
        attacks=exposed(publication),
        tried=tried(publication),
    )


def place_rows(reading: Encoded, read: Published, links: Path | None) -> Assignment:
    """Return a row of the original for each published row: by links, else one way of placing all of them."""
    table = reading.table
    if links is not None:
        return _linked_rows(links, reading.rows, read, table.sensitive, table.quasi)
    public = () if table.public is None else tuple(table.public.column(name) for name in table.schema.public)
    return _assigned(read, table.sensitive, public, table.quasi)


def placed_publication(table: Table, read: Published, found: Assignment) -> Publication:
    """Return the publication in which each published row is the row of the table that it was placed on."""
    classes = np.full(len(table), -1, np.int32)
    classes[found.rows] = read.classes
    return Publication(table, classes, read.boxes)


def attack_stream(
    policy: Policy,
    original: Path | Events,
    published: Path,
    links: Path | None,
    ticks: Sequence[int] | None,
    progress: Progress,
) -> Attacked:
    """The intersection attack, and where it is known when rows left the timing attack."""
    if isinstance(original, Path):
        batches = read_events(original, policy.schema, topic=policy.format.input, progress=progress)
        original = Events.merged(list(batches), [])
    events = original
    lines, sizes = read_lines(policy, published)
    read = _bounded(lines)
    if links is None:
        found = _assigned(read, events.sensitive, events.public, events.quasi)
    else:
        found = _linked_rows(links, events.positions, read, events.sensitive, events.quasi)
    if (found.rows < 0).any():
        return _not_a_release(found)
    asked = max(model.least_persons for model in policy.models())
    moments = None if ticks is None else np.repeat(np.array(ticks, np.int64), sizes)
    return Attacked(
        rows=len(read),
        certain=float(found.certain.mean()),
        linked=None if policy.schema.person is PersonSource.ROW else _linked(events, read, found, asked),
        timing=None if moments is None else _timing(events, read, found, moments, asked),
    )


def _not_a_release(found: Assignment) -> Attacked:
    """Some rows cannot have come from the original, so nothing else is said of the file."""
    unplaced = found.rows < 0
    return Attacked(rows=len(found.rows), unplaced=int(unplaced.sum()), certain=float(found.certain.mean()))


def _linked_rows(
    links: Path,
    positions: NDArray[np.int64],
    read: Published,
    sensitive: NDArray[np.int32],
    quasi: NDArray[np.float64],
) -> Assignment:
    """The row of the original behind each published row, by the links of its owner; -1 where they cannot be true.

    The links of a cluster do not say which of its rows is which, so these are ordered by their sensitive values.
    """
    linked = read_links(links, positions, len(read))
    together = np.repeat(np.arange(len(linked)), [len(own) for own in linked])
    rows = np.concatenate([*linked, np.empty(0, np.int64)])
    order = np.lexsort((*sensitive[rows].T, together))
    placed = np.empty(len(rows), np.int64)
    placed[np.lexsort((*read.sensitive.T, together))] = rows[order]
    inside = read.boxes.cover(quasi[placed], read.classes)
    same = (sensitive[placed] == read.sensitive).all(axis=1)
    return Assignment(np.where(inside & same, placed, -1), np.ones(len(read), bool))


def _bounded(read: Published) -> Published:
    if len(read) > MOST_ROWS:
        raise DataError(f"there are {len(read):,} published rows; at most {MOST_ROWS:,} can be attacked at once")
    if read.show == "mean":
        raise DataError("means show no boxes, so nobody can tell who could be meant; the report of a replay has boxes")
    return read


def _assigned(
    read: Published, sensitive: NDArray[np.int32], public: Sequence[Any], quasi: NDArray[np.float64]
) -> Assignment:
    """By sensitive and public values, and the box."""
    shown = {} if read.public is None else {name: read.public.column(name) for name in read.public.column_names}
    compared = [name for name in read.schema.public if name in shown]
    own = [_texts(column) for name, column in zip(read.schema.public, public, strict=False) if name in compared]
    columns = [*sensitive.T, *own]
    others = [*read.sensitive.T, *(_texts(shown[name]) for name in compared)]
    codes = np.zeros(len(quasi) + len(read), np.int64)
    for one, other in zip(columns, others, strict=True):
        values = np.unique(np.concatenate([one, other]), return_inverse=True)[1].ravel()
        codes = np.unique(codes * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].ravel()
    own_codes, shown_codes = codes[: len(quasi)], codes[len(quasi) :]
    return assign(own_codes, quasi, shown_codes, read.classes, read.boxes.lo, read.boxes.hi)


def _texts(column: pa.Array | pa.ChunkedArray) -> NDArray[np.str_]:
    """Public values as texts that are the same wherever they come from: a record, a file or a message."""
    is_json = isinstance(column.type, pa.BaseExtensionType)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values = plain_values(column).to_pylist()
    return np.array([_text(json.loads(value) if is_json and value is not None else value) for value in values], str)


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _linked(events: Events, read: Published, found: Assignment, asked: int) -> Linked | None:
    """For a sample of the persons with published rows; codes of persons are hashes."""
    own = found.rows >= 0
    rows, classes = found.rows[own], read.classes[own]
    persons = events.persons[rows]
    chosen = np.isin(persons, np.unique(persons)[:_VICTIMS])
    rows, classes, persons = rows[chosen], classes[chosen], persons[chosen]
    seen, positions = sightings_of(events), events.positions[rows]
    lo, hi = read.boxes.lo[classes], read.boxes.hi[classes]
    _, left = candidates(seen, positions, persons, lo, hi)
    order = np.argsort(rows, kind="stable")
    first = order[np.unique(persons[order], return_index=True)[1]]
    _, single = candidates(seen, positions[first], persons[first], lo[first], hi[first])
    return linked_of(left, single, asked)


def _timing(events: Events, read: Published, found: Assignment, ticks: NDArray[np.int64], asked: int) -> Timing | None:
    """Rows that left alone are those of one person in their class and tick."""
    table_row = np.maximum(found.rows, 0)
    # A row whose person is not known is somebody's all the same.
    persons = np.where(found.rows >= 0, events.persons[table_row], -1 - np.arange(len(read)))
    entry = np.unique(np.column_stack([ticks, read.classes]), axis=0, return_inverse=True)[1].ravel()
    least, most = np.full((2, int(entry.max(initial=-1)) + 1), 0, np.int64)
    least[:], most[:] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    np.minimum.at(least, entry, persons)
    np.maximum.at(most, entry, persons)
    order = np.argsort(ticks, kind="stable")
    watch = Watch()
    left = Left(
        ticks,
        persons,
        events.quasi[table_row],
        read.boxes.lo[read.classes],
        read.boxes.hi[read.classes],
        (least == most)[entry] & (found.rows >= 0),
    )
    watch.see(left.take(order))
    return timing_of(watch.others(), _TICK_SECONDS, asked)

"""Audits of what a stream left behind: lines of JSON, each a cluster or a row, as a replay writes them.

A line shows no person. The owner of the events has kept which of them are behind each line, and with these links all
is recomputed. Without events, only what the lines themselves show can be: then every row counts as a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from microdata import DataError, Progress, Published, RejectedRows, Table, read_published
from microdata.published import class_column
from privacy import Audit, Model, Sightings, audit, audit_linked
from service.codec import Events, read_events
from service.kinds.records.links import read_links
from service.policy import Policy


class ReplayFiles(NamedTuple):
    """What a replay read and wrote, and which events are behind each line."""

    events: Events
    published: Published
    links: list[NDArray[np.int64]]
    """Rows of `events` behind each line."""


def read_replay(policy: Policy, published: Path, original: Path, links: Path, progress: Progress) -> ReplayFiles:
    """Read the events of a replay, what it published, and the links that it kept."""
    events = Events.merged(list(read_events(original, policy.schema, topic=policy.format.input, progress=progress)), [])
    read, _ = read_lines(policy, published)
    return ReplayFiles(events, read, list(read_links(links, events.positions, len(read))))


def audit_replayed(policy: Policy, files: ReplayFiles) -> tuple[Audit, list[Model], list[str]]:
    """What a replay wrote against the events, with what it kept of which are which: findings, their models, notes."""
    events, read, links = files
    models, left_out = _checkable(policy)
    table = Table(policy.schema, events.persons, events.quasi, events.sensitive, rejected=len(events.refused))
    return audit_linked(table, read, links, models, sightings_of(events)), models, left_out


def sightings_of(events: Events) -> Sightings:
    """Return what accepted events, and behind them rejected ones, show of persons."""
    rejected = events.rejected or RejectedRows.concat(events.quasi.shape[1], [])
    return Sightings(
        np.concatenate([events.positions, rejected.rows]),
        np.concatenate([events.persons, rejected.persons]),
        np.concatenate([events.quasi, rejected.quasi]),
    )


def audit_alone(policy: Policy, published: Path) -> tuple[Audit, list[Model], list[str]]:
    """What the lines themselves show, whoever has the events."""
    read, _ = read_lines(policy, published)
    models, left_out = _checkable(policy, alone=True)
    known = [np.asarray(one) for one in policy.schema.histograms(read.sensitive)]
    return audit(known, read, models), models, left_out


def _checkable(policy: Policy, *, alone: bool = False) -> tuple[list[Model], list[str]]:
    """The models that can be checked again, and why the others cannot.

    Nobody sees whose rows a line has, nor the window that it was compared with; and what must hold among all rows of a
    cohort needs the boxes that it had before.
    """
    models, adds = policy.models(), policy.asked_of_engine.adds
    remembers = any(model.checked_on == "history" for model in models)
    chosen, left_out = [], []
    for model in models:
        if model.checked_on == "window":
            left_out.append(f"{model.label} is about a window, which was checked when the rows left")
        elif model.checked_on == "history" and alone:
            left_out.append(f"{model.label} is about all rows of a person, which is checked when they leave")
        elif model.checked_on == "class" and adds and (remembers or alone):
            left_out.append(f"{model.label} holds among all rows of a cohort, which the replay checked")
        else:
            chosen.append(model)
    return chosen, left_out


def read_lines(policy: Policy, published: Path) -> tuple[Published, NDArray[np.int64]]:
    """The rows of all lines, and how many each line has; a line's cluster, where it names one, is their class."""
    sizes: list[int] = []
    with TemporaryDirectory() as folder:
        flat = Path(folder) / "rows.jsonl"
        with published.open("rb") as lines, flat.open("wb") as out:
            out.writelines(_flat_rows(lines, class_column(policy.schema), sizes))
        return read_published(flat, policy.schema, show=policy.show), np.array(sizes, np.int64)


def _flat_rows(lines: Iterable[bytes], class_name: str, sizes: list[int]) -> Iterator[bytes]:
    """One line per row, whether a line of the file is a row or a cluster."""
    for line in lines:
        message = _json(line, "what was published")
        if not isinstance(message, dict):
            raise DataError("what was published must be lines of JSON, as a replay writes them")
        rows, shared = message.get("rows"), message.get("generalization")
        if isinstance(rows, list) and isinstance(shared, dict) and all(isinstance(row, dict) for row in rows):
            sizes.append(len(rows))
            cluster = {class_name: str(message.get("cluster"))}
            yield from (orjson.dumps({**cluster, **shared, **row}) + b"\n" for row in rows)
        else:
            sizes.append(1)
            yield line.rstrip(b"\r\n") + b"\n"


def _json(line: bytes, what: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise DataError(f"{what} must be lines of JSON, as a replay writes them") from None

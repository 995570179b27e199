"""Figures of a report that can be measured again from files when evidence is verified.

Without links, it is not known which row of the original is in which class. The rows are then placed in one way in which
they can have been published, and only figures that are the same in every such way are returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from microdata import PersonSource, Progress, read_published, read_table
from privacy import MOST_VICTIMS, Model, Record, audit
from service.kinds.records.attacked import MOST_ROWS, place_rows, placed_publication
from service.kinds.records.replayed import ReplayFiles, audit_replayed, read_replay, sightings_of
from service.kinds.records.tables import rejected_rows
from service.policy import Policy
from service.report import determined_figures, linked_of, rows_of

_OF_PLACES: Mapping[str, frozenset[str]] = {
    "loss": frozenset({"entropy", "normalized_error", "rank_error"}),
    "utility": frozenset({"distortion"}),
}
"""Figures in a section of a report that depend on which row is in which class."""


def figures_of_table(
    policy: Policy, original: Path, published: Path, links: Path | None, progress: Progress
) -> dict[str, Any]:
    """Return what a report says of a table and its files determine, by the names of the report."""
    reading = read_table(original, policy.schema, on_refused=policy.table.on_refused, progress=progress)
    read = read_published(published, policy.schema, formulas=policy.table.formulas, show=policy.show)
    table, rejected = reading.table, rejected_rows(reading, policy.rejected.warn_above)
    counted = {"show": policy.show, "rows": _plain(rows_of(len(table), len(read), rejected))}
    if policy.show == "mean" or len(read) > MOST_ROWS or (links is None and table.people < len(table)):
        return counted
    placed = place_rows(reading, read, links)
    if (placed.rows < 0).any():
        return {}  # The audit says that the file is not a release of this table.
    publication = placed_publication(table, read, placed)
    models = policy.models()
    audited = audit(table, publication, models)
    found = {
        name: _plain(section) for name, section in determined_figures(publication, models, audited, rejected).items()
    }
    if links is not None:
        return found
    del found["squared_error"]
    return {name: _without(section, _OF_PLACES.get(name, frozenset())) for name, section in found.items()}


def figures_of_replay(
    policy: Policy, original: Path, published: Path, links: Path, progress: Progress
) -> dict[str, Any]:
    """Return what a report says of a replay and its files determine, by the names of the report."""
    files = read_replay(policy, published, original, links, progress)
    found, _, _ = audit_replayed(policy, files)
    suppressed, rejected = found.suppressed or 0, found.rejected or 0
    decided = found.rows + suppressed
    given = decided + rejected
    return {
        "events": given,
        "rejected": {
            "rows": rejected,
            "share": rejected / given if given else 0.0,
            "warn_above": policy.rejected.warn_above,
        },
        "released": found.rows,
        # Flat records do not show their cluster: two clusters with one box look like one.
        **({"clusters": found.classes} if files.published.labels else {}),
        "suppressed": suppressed,
        "suppressed_share": suppressed / max(decided, 1),
        "guarantees": [_asked(model) for model in policy.models()],
        "show": policy.show,
        **({} if found.loss is None else {"loss": found.loss}),
        **_linked(policy, files),
    }


def _linked(policy: Policy, files: ReplayFiles) -> dict[str, Any]:
    """Attack a replay by the linked rows of each person, unless there are so many that the replay drew a sample."""
    if policy.schema.person is PersonSource.ROW:
        return {"linked": None}
    events, published, links = files
    rows = np.concatenate([*links, np.empty(0, np.int64)])
    if policy.show == "mean" or len(np.unique(events.persons[rows])) > MOST_VICTIMS:
        return {}
    record, boxes, seen = Record(), published.boxes, sightings_of(events)
    order = np.argsort(seen.positions, kind="stable")
    record.take(seen.positions[order], seen.persons[order], seen.quasi[order])
    record.publish(
        events.positions[rows], events.persons[rows], boxes.lo[published.classes], boxes.hi[published.classes]
    )
    fewest = max(model.least_persons for model in policy.models())
    found = linked_of(record.linked()[1], record.linked(first=True)[1], fewest)
    return {"linked": found and found.model_dump(mode="json")}


def _asked(model: Model) -> dict[str, Any]:
    """What is known of a model without looking at any row: the audit says whether it holds."""
    return {"model": model.label, "asked": model.asked, "more_is_safer": model.more_is_safer}


def _plain(section: object) -> Any:
    """Return a section of a report as JSON has it."""
    if isinstance(section, BaseModel):
        return section.model_dump(mode="json")
    return [_plain(one) for one in section] if isinstance(section, list) else section


def _without(section: Any, names: frozenset[str]) -> Any:
    """Return a section without the figures of these names, wherever they are in it."""
    if isinstance(section, dict):
        return {name: _without(value, names) for name, value in section.items() if name not in names}
    return [_without(one, names) for one in section] if isinstance(section, list) else section

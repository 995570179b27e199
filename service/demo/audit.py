"""The audit of a demo: everything that left, against everything that was ordered, as a stranger would check it.

It uses nothing of the engine or the gate, and believes nothing that a message says of itself. Orders carry a number, so
that each published row is known again. Only how much was suppressed or refused is the worker's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata import Boxes, PersonKey, Schema, Table, boxes_from, encode, table_loss
from privacy import Sightings, candidates
from service.policy import Policy

_MAY_SAY = {"cluster", "generalization", "rows", "part", "parts"}
"""The parts of a message."""


@dataclass(frozen=True)
class DemoAudit:
    """What the audit of everything that was published found."""

    summary: list[tuple[str, str]]
    checks: list[tuple[str, bool]]

    @property
    def holds(self) -> bool:
        """Whether every check held."""
        return all(holds for _, holds in self.checks)


@dataclass(frozen=True, eq=False)
class Ordered:
    """What was produced: the orders by their number, what is known of their customers, and the partition of each."""

    rows: Sequence[Mapping[str, Any]]
    table: Table
    partitions: NDArray[np.int64]

    @classmethod
    def of(cls, policy: Policy, orders: pa.Table, keys: Sequence[bytes], partitions: NDArray[np.int64]) -> Ordered:
        """Orders that were all produced, each with its key."""
        table = encode(policy.schema, orders, keys, person_key=PersonKey.random()).table
        return cls(orders.to_pylist(), table, partitions)

    @property
    def numbers(self) -> range:
        """The numbers that orders have."""
        return range(len(self.rows))

    def says(self, order: int, row: Mapping[str, Any], declared: Iterable[str]) -> bool:
        """Whether a published row has the declared fields of this order, as they were, and nothing else."""
        return row == {name: self.rows[order][name] for name in declared}


@dataclass(frozen=True, eq=False)
class _Left:
    """What was published, row by row, as far as a row names an order that there is."""

    orders: NDArray[np.int64]
    box: NDArray[np.int64]
    """Of each row, the place of its box in `boxes`."""
    boxes: Boxes
    """Every box once."""
    values: list[set[Any]]
    """The sensitive values of the rows that left with each box."""
    strange: int
    """Rows and messages that say anything else than the declared fields of an order."""


def audited(
    policy: Policy, ordered: Ordered, messages: Iterable[Mapping[str, Any]], counts: Mapping[str, int]
) -> DemoAudit:
    """What is found in these messages; `counts` is what the worker says it did with the rest."""
    left = _read(policy.schema, ordered, messages)
    asked: Any = policy.parameters
    tied = _candidates(ordered, left)
    fewest, values = min(tied, default=0), min(_values_around(left), default=0)
    suppressed = counts.get("suppressed", 0)
    refused = sum(count for name, count in counts.items() if name.startswith("refused."))
    summary = [
        ("events produced", f"{len(ordered.rows):,}"),
        ("events released", f"{len(left.orders):,}"),
        ("events suppressed", f"{suppressed:,}"),
        ("records refused", f"{refused:,}"),
        ("boxes", f"{len(left.boxes):,}"),
        ("loss", f"{table_loss(left.boxes, np.bincount(left.box, minlength=len(left.boxes))):.3f}"),
        ("persons whose rows were tied together", f"{len(tied):,}"),
        (f"fewest persons in all boxes of one of them, asked {asked.k}", f"{fewest:,}"),
        (f"fewest values with a box or one around it, asked {asked.l}", f"{values:,}"),
    ]
    checks = [
        ("no event left twice", len(left.orders) == len(np.unique(left.orders))),
        ("every event is accounted for", len(left.orders) + suppressed + refused == len(ordered.rows)),
        ("no order was refused", refused == 0),
        ("no release was refused by a check", counts.get("refused_releases", 0) == 0),
        ("every row is an order as it was, and nothing undeclared left", not left.strange),
        ("every row lies inside its box", bool(left.boxes.cover(ordered.table.quasi[left.orders], left.box).all())),
        ("k persons of the partition lie in all boxes of everybody", fewest >= asked.k),
        ("l values left with every box or one around it", values >= asked.l),
    ]
    return DemoAudit(summary, checks)


def _read(schema: Schema, ordered: Ordered, messages: Iterable[Mapping[str, Any]]) -> _Left:
    """The rows of all messages, and how much is in them that does not belong there."""
    quasi, sensitive = {attribute.name for attribute in schema.quasi}, schema.roles()["sensitive"]
    places: dict[bytes, int] = {}
    rows: list[tuple[int, Mapping[str, Any]]] = []
    strange = 0
    for message in messages:
        box = message.get("generalization", {})
        strange += not (set(message) <= _MAY_SAY and set(box) == quasi)
        place = places.setdefault(msgspec.json.encode(box), len(places))
        rows += ((place, row) for row in message.get("rows", ()))
    known = [(place, row) for place, row in rows if row.get("order") in ordered.numbers]
    values: list[set[Any]] = [set() for _ in places]
    for place, row in known:
        values[place].add(tuple(row.get(name) for name in sensitive))
    same = sum(ordered.says(row["order"], row, (*sensitive, *schema.public)) for _, row in known)
    return _Left(
        orders=np.array([row["order"] for _, row in known], np.int64),
        box=np.array([place for place, _ in known], np.int64),
        boxes=boxes_from(schema, [msgspec.json.decode(box) for box in places]),
        values=values,
        strange=strange + len(rows) - same,
    )


def _candidates(ordered: Ordered, left: _Left) -> list[int]:
    """For each person of whom rows left, how many persons lie in all boxes of theirs.

    Each partition has cohorts of its own, so that its own persons must be enough.
    """
    found: list[int] = []
    table, where = ordered.table, ordered.partitions
    for partition in np.unique(where):
        came, own = np.flatnonzero(where == partition), where[left.orders] == partition
        orders, box = left.orders[own], left.box[own]
        seen = Sightings(came, table.persons[came], table.quasi[came])
        found += candidates(seen, orders, table.persons[orders], left.boxes.lo[box], left.boxes.hi[box])[1].tolist()
    return found


def _values_around(left: _Left) -> Iterator[int]:
    """For each box, how many values left with it or with a box around it.

    The boxes that a cohort had before lie around the one that it has. So do others, and nobody outside can tell which
    are which: fewer values than were asked are a proof that something is wrong, enough are none that all is right.
    """
    lo, hi = left.boxes.lo, left.boxes.hi
    for place in range(len(left.boxes)):
        around = ((lo <= lo[place]) & (hi >= hi[place])).all(axis=1)
        yield len(set().union(*(left.values[each] for each in np.flatnonzero(around))))

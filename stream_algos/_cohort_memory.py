"""What cohorts remember as tables: persons, those of them in the pool, and the nodes of the trees.

Lists, counts and buckets are left out: they follow from the rest. A member is written with the cohort of that time.
When that is split nothing is written for its members: each goes down the tree again, to the side of their values, which
are written whenever they change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, GuaranteeError, Schema
from stream_algos._cohort_kernels import look_up
from stream_algos._cohort_state import (
    ABOVE,
    AFTER,
    CODE,
    COUNT,
    CUT,
    EDGE,
    FREE,
    GONE,
    HEAD,
    KNOWN,
    LEAVES,
    LEFT,
    LOSS,
    MADE,
    MEMBER,
    MEMBERS,
    MORE,
    NEXT,
    NODE,
    NODES,
    OPEN,
    P_HI,
    P_LO,
    PERSON,
    PERSONS,
    POOLED,
    POOLED_PERSONS,
    POSITION,
    PREVIOUS,
    RIGHT,
    ROLE,
    SEEN,
    SHOWN,
    TRY,
    Rules,
    State,
)
from stream_algos._cohort_undo_kernels import Before, no_entries, note_before
from stream_algos._held_kernels import NONE
from stream_algos.engine import Batch, Snapshot, StreamParameters
from stream_algos.memory import Columns, Memory, Terms

_KEPT = [LEFT, RIGHT, CUT, TRY, OPEN, MADE, SHOWN, AFTER]
"""Columns of `State.nodes` that do not follow from the persons."""
_SIZES = [LOSS, EDGE]
"""Columns of `State.sizes` that do not follow from the others."""
_TIMES = 16
"""How often within the time for which silent persons are remembered it is written when they were seen."""


class CohortMemory(Memory):
    """The tables of cohorts."""

    loose = frozenset({"seen"})

    schema: Schema
    parameters: StreamParameters
    _state: State
    _rules: Rules
    _last: int
    _since: int
    _mark: tuple[int, NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], NDArray[np.uint64]]
    """Of the time of `kept`: the last position; persons in the pool or with rows that wait; who was gone; nodes."""
    _before: tuple[int, bool]
    """Of the same time: entries of persons, and whether some of them were free."""
    _tables_before: dict[str, Columns] | None
    """Of the same time: nodes, pool, and the persons of the mark. None: what there was then is not durable."""
    _entries_before: Before
    """What persons were before they came since then, the first `_came` entries."""
    _came: int

    def sizes(self) -> dict[str, int]:
        """Entries of each table."""
        meta = self._state.meta
        return {"persons": int(meta[PERSONS]), "pool": int(meta[POOLED_PERSONS]), "nodes": int(meta[NODES])}

    def kept(self) -> None:
        """Changes count from here on."""
        state, size = self._state, self.sizes()
        waiting = state.slots[self._waiting(), PERSON]
        self._mark = (
            self._last,
            np.unique(np.concatenate([state.pool[: size["pool"]], waiting])),
            state.persons[: size["persons"], ROLE] == GONE if np.isfinite(self._rules.memory) else np.empty(0, bool),
            state.nodes[: size["nodes"]][:, _KEPT],
            state.ids[: size["nodes"]].copy(),
        )
        self._before = size["persons"], state.meta[FREE] != NONE
        self._tables_before = {
            "persons": self.entries("persons", self._mark[1]),
            "pool": self.entries("pool", np.arange(size["pool"])),
            "nodes": {
                "nodes": self._mark[3],
                "boxes": state.boxes[: size["nodes"]].copy(),
                "sizes": state.sizes[: size["nodes"]][:, _SIZES],
                "ids": self._mark[4],
            },
        }
        self._came = 0

    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Whoever came, was in the pool or had rows that wait, or was forgotten; the whole pool; nodes that differ.

        The box of a node changes only with its id.
        """
        state, size = self._state, self.sizes()
        last, others, gone, nodes, ids = self._mark
        persons = state.persons[: size["persons"]]
        changed = state.tags[: size["persons"], SEEN] > last
        changed[others] = True
        changed[len(gone) :] |= len(gone) > 0
        changed[: len(gone)] |= (persons[: len(gone), ROLE] == GONE) != gone
        differ = np.ones(size["nodes"], bool)
        differ[: len(nodes)] = (state.nodes[: len(nodes)][:, _KEPT] != nodes).any(axis=1)
        differ[: len(nodes)] |= (state.ids[: len(nodes)] != ids).any(axis=1)
        return {
            "persons": np.flatnonzero(changed),
            "pool": np.arange(size["pool"]),
            "nodes": np.flatnonzero(differ),
        }

    def entries(self, table: str, numbers: NDArray[np.int64]) -> Columns:
        """Entries as they are kept."""
        state = self._state
        if table == "pool":
            return {
                "person": state.pool[numbers],
                "lo": state.hulls[0, numbers],
                "hi": state.hulls[1, numbers],
            }
        if table == "nodes":
            return {
                "nodes": state.nodes[numbers][:, _KEPT],
                "boxes": state.boxes[numbers],
                "sizes": state.sizes[numbers][:, _SIZES],
                "ids": state.ids[numbers],
            }
        persons, tags = state.persons[numbers], state.tags[numbers]
        there = persons[:, ROLE] != GONE
        known = there[:, np.newaxis]
        return {
            "tag": np.where(known, tags[:, [CODE, MORE]], 0),
            "role": persons[:, ROLE].astype(np.int8),
            "node": np.where(persons[:, ROLE] >= MEMBER, persons[:, NODE], NONE).astype(np.int32),
            "values": np.where(known, state.values[numbers], 0.0),
            "shown": np.where(known, state.shown[numbers], NONE),
            "time": np.where(there, self._coarse(state.times[numbers]), 0),
            "seen": np.where(there, tags[:, SEEN], 0),
        }

    def _note_before(self, who: NDArray[np.int64]) -> None:
        """Rows of these come: write down what they are."""
        room, before = self._came + len(who), self._entries_before
        if len(before.numbers) < room:
            self._entries_before = no_entries(2 * room, before.values.shape[1], before.shown.shape[1])
            columns: list[tuple[NDArray[Any], NDArray[Any]]] = list(zip(self._entries_before, before, strict=True))
            for column, old in columns:
                column[: self._came] = old[: self._came]
        self._came = note_before(self._state, who, self._mark[0], self._entries_before, self._came)

    def undone(self) -> dict[str, Columns] | None:
        """Whoever came, or waited, is what they were; who moved with a split is in the cohort that there was."""
        state, (size, free), before = self._state, self._before, self._tables_before
        if np.isfinite(self._rules.memory) or free or before is None:
            return None
        persons, came = dict(self.entries("persons", np.arange(size))), self._entries_before
        numbers, (role, node, seen) = came.numbers[: self._came], came.places[: self._came].T
        persons["role"][numbers], persons["node"][numbers] = role, np.where(role >= MEMBER, node, NONE)
        persons["values"][numbers], persons["shown"][numbers] = came.values[: self._came], came.shown[: self._came]
        persons["seen"][numbers] = seen
        nodes, late = len(before["nodes"]["ids"]), persons["node"] >= len(before["nodes"]["ids"])
        while late.any():
            persons["node"][late] = state.due[persons["node"][late], ABOVE]
            late = persons["node"] >= nodes
        for name, column in before["persons"].items():
            persons[name][self._mark[1]] = column
        return {"persons": persons, "pool": before["pool"], "nodes": before["nodes"]}

    def newcomers(self) -> NDArray[np.int64] | None:
        """Entries behind those that there were, unless some of these are free: then nobody knows whose they become."""
        state, (size, free) = self._state, self._before
        if np.isfinite(self._rules.memory) or free:
            return None
        return state.tags[size : self.sizes()["persons"], CODE]

    def alike(
        self, person: tuple[int, int], most: int
    ) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64], NDArray[np.float64]] | None:
        """The members of a member's cohort, and who waits for one within its box."""
        state, who = self._state, np.empty(1, np.int64)
        look_up(state, np.array([person]), who)
        own = int(who[0])
        if own == NONE or state.persons[own, ROLE] != MEMBER:
            return None
        node = int(state.persons[own, NODE])
        lo, hi = state.boxes[node, P_LO].copy(), state.boxes[node, P_HI].copy()
        at, listed = int(state.nodes[node, HEAD]), list[int]()
        while at != NONE and len(listed) <= most:
            listed.append(at)
            at = int(state.persons[at, NEXT])
        members = np.array(listed, np.int64)
        members = members[state.persons[members, ROLE] == MEMBER]
        pool = state.pool[: self.sizes()["pool"]]
        near = pool[((lo <= state.values[pool]) & (state.values[pool] <= hi)).all(axis=1)]
        found = np.concatenate([members, near])
        if len(listed) > most or len(found) > most:
            return None
        return (lo, hi), state.tags[found, CODE], state.values[found]

    def terms(self) -> Terms:
        """The same boxes, values and company; a cohort of k members is one of fewer too."""
        asked = self.parameters.model_dump(mode="json")
        counted = self.schema.sensitive if len(self._rules.needs) else ()
        same = {
            "list of quasi-identifiers": _digest(self.schema.quasi),
            "list of sensitive attributes": _digest(counted),
            **{name: json.dumps(asked.get(name)) for name in ("l", "p", "p_categories", "company", "memory")},
        }
        return Terms(same, {"k": self._rules.k})

    def _coarse(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Times as numbers of spans; nobody asks where everybody is remembered for good."""
        if not np.isfinite(self._rules.memory):
            return np.zeros(len(times), np.int64)
        return np.floor(times * _TIMES / self._rules.memory).astype(np.int64)

    def rest(self) -> Snapshot:
        """Rows that wait, and counts."""
        state, waiting = self._state, self._waiting()
        of_slots = {name: getattr(state, name)[waiting] for name in self._of_slots()}
        ends = {"last": np.array([self._last]), "since": np.array([self._since])}
        return {"meta": state.meta.copy(), **of_slots, **ends}

    def recalled(self, tables: Mapping[str, Columns], rest: Snapshot) -> Snapshot:
        """The snapshot that was taken apart; its lists have another order."""
        given, pool, trees = tables["persons"], tables["pool"], tables["nodes"]
        meta, role = rest["meta"].copy(), given["role"].astype(np.int64)
        _require_counts(meta, role, pool["person"], trees["nodes"][:, _KEPT.index(LEFT)])
        persons, tags = np.zeros((len(role), 5), np.int32), np.zeros((len(role), 3), np.int64)
        persons[:, ROLE] = role
        tags[:, [CODE, MORE]], tags[:, SEEN] = given["tag"], given["seen"]
        nodes = np.zeros((len(trees["nodes"]), 11), np.int64)
        nodes[:, _KEPT] = trees["nodes"]
        sizes = np.zeros((len(nodes), self._state.sizes.shape[1]))
        sizes[:, _SIZES] = trees["sizes"]
        belong = np.flatnonzero(role >= MEMBER)
        persons[belong, NODE] = self._resolved(nodes, sizes, given["node"][belong], given["values"][belong])
        persons[pool["person"], NODE] = np.arange(len(pool["person"]))
        _enlist(persons, nodes, belong)
        free = np.flatnonzero(role == GONE)
        persons[free, NEXT] = np.append(free[1:], NONE)[: len(free)]
        meta[FREE] = free[0] if len(free) else NONE
        span = self._rules.memory / _TIMES
        times = (given["time"] + 1) * span if np.isfinite(span) else np.zeros(len(role))
        return {
            "persons": persons,
            "tags": tags,
            "times": times,
            "values": given["values"],
            "shown": given["shown"],
            "pool": pool["person"],
            "hulls": np.stack([pool["lo"], pool["hi"]]),
            "nodes": nodes,
            "boxes": trees["boxes"],
            "sizes": sizes,
            "ids": trees["ids"],
            **{name: array for name, array in rest.items() if name != "meta"},
            "meta": meta,
        }

    def forget(self, persons: NDArray[np.int64], rows: Batch) -> NDArray[np.int64]:
        """Nobody counts them any more; a cohort that is left with fewer than k publishes nothing until others join."""
        tables = {table: dict(self.entries(table, np.arange(size))) for table, size in self.sizes().items()}
        known, rest = tables["persons"], dict(self.rest())
        role = known["role"].copy()
        # Whoever has the first word of one of them is looked at closer.
        likely = np.flatnonzero(np.isin(known["tag"][:, CODE], persons[:, CODE]) & (role != GONE))
        wanted = set(map(tuple, persons.tolist()))
        numbers = likely[[tuple(tag) in wanted for tag in known["tag"][likely].tolist()]]
        waits = np.isin(rest["slots"][:, PERSON], numbers)
        given_up = rest["slots"][waits, POSITION]
        rest |= {name: rest[name][~waits] for name in self._of_slots()}
        meta = rest["meta"]
        meta[KNOWN] -= len(numbers)
        meta[MEMBERS] -= (role[numbers] == MEMBER).sum()
        meta[POOLED_PERSONS] -= (role[numbers] == POOLED).sum()
        for name, column in known.items():
            column[numbers] = NONE if name in {"node", "shown"} else 0
        stay = ~np.isin(tables["pool"]["person"], numbers)
        tables["pool"] = {name: column[stay] for name, column in tables["pool"].items()}
        self.restore(self.recalled(tables, rest), rows)
        last, others, gone, nodes, ids = self._mark
        self._mark = (last, np.union1d(others, numbers), gone, nodes, ids)
        self._tables_before = None
        return given_up

    @staticmethod
    def _resolved(
        nodes: NDArray[np.int64], sizes: NDArray[np.float64], own: NDArray[Any], values: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """The cohorts that persons of these nodes are in now: where it was split, the side of their values."""
        own = own.astype(np.int64)
        inner = np.flatnonzero(nodes[own, LEFT] != NONE)
        while len(inner):
            at = own[inner]
            right = 2.0 * values[inner, nodes[at, CUT]] > sizes[at, EDGE]
            own[inner] = np.where(right, nodes[at, RIGHT], nodes[at, LEFT])
            inner = inner[nodes[own[inner], LEFT] != NONE]
        return own

    def _waiting(self) -> NDArray[np.int64]:
        raise NotImplementedError

    def _of_slots(self) -> tuple[str, ...]:
        raise NotImplementedError

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """See the engine."""
        raise NotImplementedError


def _digest(attributes: Iterable[Attribute]) -> str:
    """What tells whether attributes are declared alike."""
    text = json.dumps([attribute.declaration() for attribute in attributes], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _require_counts(
    meta: NDArray[np.int64], role: NDArray[np.int64], pool: NDArray[np.int64], left: NDArray[np.int64]
) -> None:
    """Raise `GuaranteeError` unless there are as many persons, members and cohorts as were noted."""
    members, known, leaves = ((role == MEMBER).sum(), (role != GONE).sum(), (left == NONE).sum())
    found = (len(role), known, len(pool), members, len(left), leaves)
    told = tuple(meta[entry] for entry in (PERSONS, KNOWN, POOLED_PERSONS, MEMBERS, NODES, LEAVES))
    if found != told or not np.array_equal(np.sort(pool), np.flatnonzero(role == POOLED)):
        raise GuaranteeError("what is remembered of persons does not have the counts that were noted")


def _enlist(persons: NDArray[np.int32], nodes: NDArray[np.int64], belong: NDArray[np.int64]) -> None:
    """Put persons on the lists of their cohorts, and count the members."""
    nodes[:, HEAD] = NONE
    order = belong[np.argsort(persons[belong, NODE], kind="stable")]
    own = persons[order, NODE]
    first = np.append(True, own[1:] != own[:-1])[: len(own)]
    last = np.append(own[1:] != own[:-1], True)[: len(own)]
    persons[order, NEXT] = np.where(last, NONE, np.roll(order, -1))
    persons[order, PREVIOUS] = np.where(first, NONE, np.roll(order, 1))
    nodes[own[first], HEAD] = order[first]
    members = persons[belong, ROLE] == MEMBER
    nodes[:, COUNT] = np.bincount(persons[belong[members], NODE], minlength=len(nodes))

"""What cohorts remember as tables: persons, those of them in the pool, and the nodes of the trees.

Lists, counts and buckets are left out: they follow from the rest. A member is written with the cohort of that time.
When that is split nothing is written for its members: each goes down the tree again, to the side of their values, which
are written whenever they change.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, GuaranteeError, Schema
from stream_algos._cohort_kernels import look_up
from stream_algos._cohort_moving_kernels import enlist_all
from stream_algos._cohort_state import (
    ABOVE,
    AFTER,
    BEHIND,
    CODE,
    COMPANY,
    CUT,
    EDGE,
    FREE,
    GONE,
    HEAD,
    ID,
    KNOWN,
    LASTING,
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
    NOTED,
    NOTES,
    OPEN,
    P_HI,
    P_LO,
    PARENT,
    PERSON,
    PERSONS,
    PLACE,
    POOLED,
    POOLED_PERSONS,
    POSITION,
    RIGHT,
    ROLE,
    SEEN,
    SHOWN,
    SWEPT,
    TRY,
    WHOLE,
    Rules,
    State,
    new_state,
)
from stream_algos._cohort_undo_kernels import Before, changed_since, no_entries, note_before, note_node
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE
from stream_algos.engine import Batch, Snapshot, StreamParameters
from stream_algos.memory import Column, Columns, Memory, PublishedWith, Room, Terms

_KEPT = [LEFT, RIGHT, CUT, TRY, OPEN, MADE, SHOWN, AFTER]
"""Columns of `State.nodes` that do not follow from the persons."""
_SIZES = [LOSS, EDGE]
"""Columns of `State.sizes` that do not follow from the others."""
_TIMES = 16
"""How often within the time for which silent persons are remembered it is written when they were seen."""
_SAME = 1e-9
"""Parts of such a time that are nothing."""


class _Mark(NamedTuple):
    """Of the time of `kept`: what is asked for later."""

    last: int
    """The last position."""
    persons: int
    """Entries of persons."""
    others: NDArray[np.int64]
    """Persons in the pool, or with rows that wait."""
    before: dict[str, Columns] | None
    """Those persons, and the pool. None: what there was then is not durable."""
    free: int
    """The first entry of persons that was free; NONE for none."""
    swept: int
    """Who is looked at next to be forgotten."""


class CohortMemory(Memory):
    """The tables of cohorts."""

    loose = frozenset({"seen"})

    schema: Schema
    parameters: StreamParameters
    _state: State
    _rules: Rules
    _last: int
    _since: int
    _mark: _Mark
    _entries_before: Before
    """What persons were before they came since the mark, the first `_came` entries."""
    _came: int
    _entered: list[NDArray[np.int64]]
    """Entries that were somebody else's, of those who came since; where the silent are forgotten, of all who came."""
    _free: NDArray[np.int64]
    """Entries of the erased when it was begun or restored, ascending: the first of them is taken first."""
    _rows: int
    """Rows that came since."""
    _room: tuple[State, dict[str, Room]]
    """Between `room` and `recall`: a state that is being filled, and its columns."""

    def sizes(self) -> dict[str, int]:
        """Entries of each table."""
        meta = self._state.meta
        return {"persons": int(meta[PERSONS]), "pool": int(meta[POOLED_PERSONS]), "nodes": int(meta[NODES])}

    def kept(self) -> None:
        """Changes count from here on."""
        state, meta, size = self._state, self._state.meta, self.sizes()
        state.due[self._noted(), NOTED] = 0
        meta[NOTES], meta[LASTING] = 0, size["nodes"]
        others = np.unique(np.concatenate([state.pool[: size["pool"]], state.slots[self._waiting(), PERSON]]))
        # Nearly everybody has waited once: without this, that nobody does any more would take memory.
        waiting = others[state.waits[others].any(axis=1)]
        waits = state.waits[waiting]
        _give_back(state.waits)
        state.waits[waiting] = waits
        before = {"persons": self.entries("persons", others), "pool": self.entries("pool", np.arange(size["pool"]))}
        self._mark = _Mark(self._last, size["persons"], others, before, int(meta[FREE]), int(meta[SWEPT]))
        self._came = self._rows = 0
        self._entered = []

    def _noted(self) -> NDArray[np.int64]:
        """Nodes that were there at the mark and have changed since."""
        count = int(self._state.meta[NOTES])
        return self._state.due[len(self._state.due) - count :, NOTED].astype(np.int64)

    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Who is new or not what they were, was in the pool, waited or was forgotten; the pool; nodes that changed."""
        size, mark = self.sizes(), self._mark
        new = np.arange(mark.persons, size["persons"])
        came = changed_since(self._state, self._entries_before, self._came)
        added = np.arange(self._state.meta[LASTING], size["nodes"])
        return {
            "persons": np.unique(np.concatenate([came, mark.others, new, *self._entered, self._forgotten()])),
            "pool": np.arange(size["pool"]),
            "nodes": np.concatenate([np.sort(self._noted()), added]),
        }

    def _forgotten(self) -> NDArray[np.int64]:
        """Who may have been forgotten since the mark: each row that comes looks at two, one after the other."""
        if not np.isfinite(self._rules.memory):
            return np.empty(0, np.int64)
        persons, looked = self.sizes()["persons"], 2 * self._rows
        first = np.arange(self._mark.swept, min(self._mark.swept + looked, persons))
        again = np.arange(min(looked, persons) if self._mark.swept + looked > self._mark.persons else 0)
        found = np.union1d(first, again)
        return found[self._state.persons[found, ROLE] == GONE]

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
        role = persons[:, ROLE].astype(np.int8)
        columns: dict[str, NDArray[Any]] = {
            "tag": tags[:, [CODE, MORE]],
            "role": role,
            "node": np.where(role >= MEMBER, persons[:, NODE], NONE).astype(np.int32),
            "values": LastValues(state)[numbers],
            "shown": state.shown[numbers],
            "seen": tags[:, SEEN].copy(),
        }
        if np.isfinite(self._rules.memory):
            columns["time"] = self._coarse(state.times[numbers])
        for name in columns.keys() - {"role", "node"}:
            columns[name][role == GONE] = NONE if name == "shown" else 0
        return columns

    def _note_before(self, who: NDArray[np.int64]) -> None:
        """Rows of these come: write down what they are."""
        room, before = self._came + len(who), self._entries_before
        if len(before.numbers) < room:
            self._entries_before = no_entries(2 * room, before.values.shape[1], before.shown.shape[1])
            columns: list[tuple[NDArray[Any], NDArray[Any]]] = list(zip(self._entries_before, before, strict=True))
            for column, old in columns:
                column[: self._came] = old[: self._came]
        self._came = note_before(self._state, who, self._mark.last, self._entries_before, self._came)

    def _note_after(self, whose: NDArray[np.int64]) -> None:
        """Rows of these have come; where somebody may be forgotten, it is looked which entries they have by now."""
        if not np.isfinite(self._rules.memory):
            self._entered = [self._taken()]
        else:
            entries = np.empty(len(whose), np.int64)
            look_up(self._state, whose, entries)
            self._entered.append(entries[entries != NONE])
            self._rows += len(whose)

    def _taken(self) -> NDArray[np.int64]:
        """Entries of the erased that others have got since the mark; not where the silent are forgotten as well."""
        begin, end = (
            len(self._free) if first == NONE else int(np.searchsorted(self._free, first))
            for first in (self._mark.free, int(self._state.meta[FREE]))
        )
        return self._free[begin:end]

    def take_over(self, other: Memory) -> bool:
        """Whoever came, or waited, is what they were; who moved with a split is in the cohort that there was."""
        undone = other.undo() if isinstance(other, CohortMemory) else None
        if undone is None:
            return False
        state, sizes, others, before = undone
        into = self._room_in(state, sizes)
        into["nodes"]["nodes"][:] = state.nodes[: sizes["nodes"], _KEPT]
        into["nodes"]["sizes"][:] = state.sizes[: sizes["nodes"], _SIZES]
        for name, column in before["persons"].items():
            into["persons"][name][others] = column
        for name, column in before["pool"].items():
            into["pool"][name][:] = column
        return True

    def undo(self) -> tuple[State, dict[str, int], NDArray[np.int64], dict[str, Columns]] | None:
        """Undo what came since the mark, in place and for somebody else: the state and its sizes at the mark.

        Only the pool, and whoever was there or had rows that waited, is told beside it. None where it is not known.
        """
        mark, state = self._mark, self._state
        if np.isfinite(self._rules.memory) or mark.before is None:
            return None
        noted, lasting = self._noted(), int(state.meta[LASTING])
        for table in (state.nodes, state.boxes, state.sizes, state.ids):
            table[noted] = table[len(table) - len(noted) :]
        state.due[noted, NOTED] = 0
        state.waits[state.slots[self._waiting(), PERSON]] = 0
        persons, came = state.persons[: mark.persons], self._entries_before
        numbers, (role, node, seen) = came.numbers[: self._came], came.places[: self._came].T
        persons[numbers, ROLE], persons[numbers, NODE], state.tags[numbers, SEEN] = role, node, seen
        LastValues(state)[numbers] = came.values[: self._came]
        state.shown[numbers] = came.shown[: self._came]
        persons[self._taken(), ROLE] = GONE
        late = np.flatnonzero((persons[:, ROLE] >= MEMBER) & (persons[:, NODE] >= lasting))
        while len(late):
            persons[late, NODE] = state.due[persons[late, NODE], ABOVE]
            late = late[persons[late, NODE] >= lasting]
        sizes = {"persons": mark.persons, "pool": len(mark.before["pool"]["person"]), "nodes": lasting}
        return state, sizes, mark.others, mark.before

    def retired(self) -> NDArray[np.uint64]:
        """Ids of cohorts that were split, or whose boxes have grown, since the mark."""
        state, noted = self._state, self._noted()
        ids = state.ids[len(state.ids) - len(noted) :, ID]
        return ids[(state.ids[noted, ID] != ids) | (state.nodes[noted, LEFT] != NONE)]

    def keep_whole(self, ids: NDArray[np.uint64]) -> None:
        """At splits values count that were decided: where some never left, the cohort is split no more.

        Nor is what it was split into meanwhile. A box that grew twice since is not known any more: then none is.
        """
        if not len(self._state.tally) or not len(ids):
            return
        size = self.sizes()["nodes"]
        nodes, own = self._state.nodes[:size], self._state.ids[:size]
        whole = np.full(size, not np.isin(ids, own).all())
        whole[np.isin(own, ids).any(axis=1)] = True
        below = nodes[whole][:, [LEFT, RIGHT]]
        while (below != NONE).any():
            whole[below[below != NONE]] = True
            below = nodes[below[below != NONE]][:, [LEFT, RIGHT]]
        cohorts = np.flatnonzero(whole & (nodes[:, LEFT] == NONE))
        self._make_room(len(cohorts))
        for cohort in cohorts.tolist():
            note_node(self._state, cohort)
        self._state.nodes[cohorts, TRY] = WHOLE

    def parents(self) -> NDArray[np.uint64]:
        """What every cohort published last before it got its box; those before come before that."""
        nodes = self._state.nodes[: self._state.meta[NODES]]
        return self._state.ids[: len(nodes), PARENT][nodes[:, LEFT] == NONE]

    def boxes(self, entries: NDArray[np.int64]) -> PublishedWith:
        """The published boxes of these cohorts; one that was split has its last one."""
        if len(entries) and not 0 <= entries.min() <= entries.max() < self.sizes()["nodes"]:
            raise GuaranteeError("there is no such cohort")
        ids, boxes = self._state.ids[entries], self._state.boxes[entries]
        return PublishedWith(ids[:, ID], ids[:, PARENT], boxes[:, P_LO], boxes[:, P_HI])

    def newcomers(self) -> NDArray[np.int64] | None:
        """Of entries behind those that there were, and of erased ones that were taken.

        Where the silent are forgotten nobody knows whose entries become free, and whose they were.
        """
        if np.isfinite(self._rules.memory):
            return None
        added = np.arange(self._mark.persons, self.sizes()["persons"])
        return self._state.tags[np.concatenate([self._taken(), added]), CODE]

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
        values = LastValues(state)
        near = pool[((lo <= values[pool]) & (values[pool] <= hi)).all(axis=1)]
        found = np.concatenate([members, near])
        if len(listed) > most or len(found) > most:
            return None
        return (lo, hi), state.tags[found, CODE], values[found]

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

    def _coarse(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times as they are written: a little later, and seldom another one. Written again, they stay what they are."""
        span = self._rules.memory / _TIMES
        return np.ceil(times / span - _SAME) * span

    def rest(self) -> Snapshot:
        """Rows that wait, and counts."""
        state, waiting = self._state, self._waiting()
        of_slots = {name: getattr(state, name)[waiting] for name in self._of_slots()}
        ends = {"last": np.array([self._last]), "since": np.array([self._since])}
        return {"meta": state.meta.copy(), **of_slots, **ends}

    def room(self, sizes: Mapping[str, int]) -> dict[str, Room]:
        """Columns of a new state, so that whoever reads the entries puts them where they stay."""
        persons, pool, nodes = (sizes.get(table, 0) for table in ("persons", "pool", "nodes"))
        state = new_state(self.schema, self._rules, persons, pool, nodes)
        return self._room_in(state, {"persons": persons, "pool": pool, "nodes": nodes})

    def _room_in(self, state: State, sizes: Mapping[str, int]) -> dict[str, Room]:
        persons, pool, nodes = (slice(0, sizes[table]) for table in ("persons", "pool", "nodes"))
        own: dict[str, Column] = {
            "tag": state.tags[persons, :SEEN],
            "role": state.persons[persons, ROLE],
            "node": state.persons[persons, NODE],
            "values": LastValues(state, sizes["persons"]),
            "shown": state.shown[persons],
            "seen": state.tags[persons, SEEN],
        }
        if np.isfinite(self._rules.memory):
            own["time"] = state.times[persons]
        waiting = {"person": state.pool[pool], "lo": state.hulls[0, pool], "hi": state.hulls[1, pool]}
        trees = {
            "nodes": np.zeros((sizes["nodes"], len(_KEPT)), np.int64),
            "boxes": state.boxes[nodes],
            "sizes": np.zeros((sizes["nodes"], len(_SIZES))),
            "ids": state.ids[nodes],
        }
        tables: dict[str, Room] = {"persons": own, "pool": waiting, "nodes": trees}
        self._room = state, tables
        return tables

    def recall(self, rest: Snapshot, rows: Batch) -> None:
        """Go on with what stands in `room`; lists have another order."""
        state, tables = self._room
        del self._room
        role, pool = tables["persons"]["role"][:], tables["pool"]["person"][:]
        trees, sizes = (tables["nodes"][name][:] for name in ("nodes", "sizes"))
        meta, count = rest["meta"].copy(), len(trees)
        persons = state.persons[: len(role)]
        _require_counts(meta, role, pool, trees[:, _KEPT.index(LEFT)])
        state.nodes[:count, _KEPT], state.sizes[:count, _SIZES] = trees, sizes
        persons[pool, NODE] = np.arange(len(pool))
        enlist_all(state, len(role), count)
        free = np.flatnonzero(role == GONE)
        persons[free, NEXT] = np.append(free[1:], NONE)[: len(free)]
        meta[FREE] = free[0] if len(free) else NONE
        self._free = free
        self._last, self._since = int(rest["last"][0]), int(rest["since"][0])
        self._go_on(state, {**rest, "meta": meta}, rows)

    def forget(self, persons: NDArray[np.int64], rows: Batch) -> NDArray[np.int64]:
        """Nobody counts them any more; a cohort that is left with fewer than k publishes nothing until others join."""
        tables = {table: dict(self.entries(table, np.arange(size))) for table, size in self.sizes().items()}
        known, rest = tables["persons"], dict(self.rest())
        role = known["role"].copy()
        # Whoever has the first word of one of them is looked at closer.
        likely = np.flatnonzero(np.isin(known["tag"][:, CODE], persons[:, CODE]) & (role != GONE))
        wanted = set(map(tuple, persons.tolist()))
        numbers = likely[[tuple(tag) in wanted for tag in known["tag"][likely].tolist()]]
        self._bound_company(rest["slots"], known, numbers)
        slots = rest["slots"]
        gone = np.isin(slots[:, PERSON], numbers) | ((slots[:, PLACE] == COMPANY) & (slots[:, BEHIND] < self._rules.k))
        rest |= {name: rest[name][~gone] for name in self._of_slots()}
        meta = rest["meta"]
        meta[KNOWN] -= len(numbers)
        meta[MEMBERS] -= (role[numbers] == MEMBER).sum()
        meta[POOLED_PERSONS] -= (role[numbers] == POOLED).sum()
        for name, column in known.items():
            column[numbers] = NONE if name in {"node", "shown"} else 0
        stay = ~np.isin(tables["pool"]["person"], numbers)
        tables["pool"] = {name: column[stay] for name, column in tables["pool"].items()}
        into = self.room({table: len(next(iter(columns.values()))) for table, columns in tables.items()})
        for table, columns in tables.items():
            for name, column in columns.items():
                into[table][name][:] = column
        self.recall(rest, rows)
        others = np.union1d(self._mark.others, numbers)
        # What there was is not to come back: it would have to be read.
        self._mark = self._mark._replace(others=others, before=None)
        return slots[gone, POSITION]

    def _bound_company(self, slots: NDArray[np.int64], known: Columns, erased: NDArray[np.int64]) -> None:
        """Rows that wait for company have no more members behind them than their cohort has without the erased."""
        role, node = known["role"].copy(), known["node"]
        role[erased] = GONE
        left = np.bincount(node[role == MEMBER], minlength=self.sizes()["nodes"])
        own = node[slots[:, PERSON]]
        bound = (slots[:, PLACE] == COMPANY) & np.isin(own, node[erased])
        slots[bound, BEHIND] = np.minimum(slots[bound, BEHIND], left[own[bound]])

    def _waiting(self) -> NDArray[np.int64]:
        raise NotImplementedError

    def _of_slots(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _make_room(self, rows: int) -> None:
        raise NotImplementedError

    def _go_on(self, state: State, rest: Snapshot, rows: Batch) -> None:
        raise NotImplementedError


def _give_back(table: NDArray[Any]) -> None:
    """Set a table to zeros, and let the system have its memory until something is written."""
    memory: Any = table
    while isinstance(memory, np.ndarray):
        memory = memory.base
    if isinstance(memory, memoryview):
        owner: Any = memory.obj
        owner.madvise(mmap.MADV_DONTNEED)
    else:
        table.fill(0)


def _digest(attributes: Iterable[Attribute]) -> str:
    """What tells whether attributes are declared alike."""
    text = json.dumps([attribute.declaration() for attribute in attributes], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _require_counts(
    meta: NDArray[np.int64], role: NDArray[np.int32], pool: NDArray[np.int64], left: NDArray[np.int64]
) -> None:
    """Raise `GuaranteeError` unless there are as many persons, members and cohorts as were noted."""
    members, known, leaves = ((role == MEMBER).sum(), (role != GONE).sum(), (left == NONE).sum())
    found = (len(role), known, len(pool), members, len(left), leaves)
    told = tuple(meta[entry] for entry in (PERSONS, KNOWN, POOLED_PERSONS, MEMBERS, NODES, LEAVES))
    if found != told or not np.array_equal(np.sort(pool), np.flatnonzero(role == POOLED)):
        raise GuaranteeError("what is remembered of persons does not have the counts that were noted")

"""Cohorts: k persons over time, for streams of people who come back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from microdata import (
    DataError,
    GuaranteeError,
    InfeasibleError,
    PersonSource,
    Schema,
    SchemaError,
    Words,
    geometry,
    system_words,
)
from privacy import (
    KEYS,
    Distinct,
    DistinctDiversity,
    KAnonymity,
    KOverTime,
    Model,
    PPlusSensitivity,
    PSensitivity,
    check_domains,
)
from privacy.keys import not_asked
from stream_algos import _cohort_kernels as kernels
from stream_algos import _cohort_split_kernels as splits
from stream_algos import _company_kernels as company
from stream_algos._cohort_memory import CohortMemory
from stream_algos._cohort_moving import let_wait, moved_in, notes_moved
from stream_algos._cohort_release_kernels import outside
from stream_algos._cohort_state import (
    BEGIN,
    CHUNK,
    CLUSTERS,
    COMPANY,
    COUNT,
    END,
    GONE,
    ID,
    KNOWN,
    LEAVES,
    LEFT,
    MANY,
    MEMBER,
    MEMBERS,
    NEEDED,
    NODES,
    P_HI,
    P_LO,
    PARENT,
    PERSONS,
    PLACE,
    POOLED_PERSONS,
    POSITION,
    ROLE,
    ROWS,
    SEEN,
    SHOWN,
    SOUGHT,
    SUPPRESSED,
    WAITING,
    WORDS,
    Rules,
    State,
    new_output,
    new_state,
)
from stream_algos._cohort_undo_kernels import no_entries
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE
from stream_algos.castle import Delay
from stream_algos.conditions import codes_of, conditions_of
from stream_algos.engine import (
    LONGEST,
    MOST_PERSONS,
    STREAM_ALGORITHMS,
    Batch,
    Engine,
    Hold,
    Release,
    Snapshot,
    StreamParameters,
)

NEVER = np.iinfo(np.int64).min
_ASKED = 100_000
"""Persons of whom it is looked when they were last seen."""


class CohortsParameters(StreamParameters):
    """Parameters of Cohorts."""

    k: int = Field(
        ge=1, le=MOST_PERSONS, description="persons who lie in every box that any of them was published with"
    )
    l: int = Field(  # noqa: E741 - ℓ is its name in the literature
        default=1,
        ge=1,
        le=MOST_PERSONS,
        description="distinct values of every sensitive attribute. With company standing they are counted over all "
        "published rows of a cohort and of the cohorts that it was split from, so the rows of one box may show fewer; "
        "with company present, over the rows of every class",
    )
    p: Distinct | None = Field(
        None, exclude_if=not_asked, description="distinct values, as l; of every sensitive attribute or each its own"
    )
    p_categories: Distinct | None = Field(
        None, exclude_if=not_asked, description="distinct categories of sensitivity (p⁺), counted as values are for l"
    )
    delay: Delay
    company: Literal["standing", "present"] = Field(
        description="standing: a row leaves at once, its company are the members of its cohort, silent or not; "
        "present: it waits, and leaves in a class with rows of at least k persons"
    )
    founders: int | None = Field(
        None,
        ge=1,
        le=MOST_PERSONS,
        description="persons without a cohort that found new ones at a deadline, from k on; 3k if left out. More make "
        "better boxes and suppress more",
    )
    memory: float | None = Field(
        None,
        gt=0,
        le=LONGEST,
        description="seconds after which a silent person is forgotten; never if left out. Policies must leave it out: "
        "the guarantee does not hold for persons who move, are forgotten and return",
    )

    may_change: bool = Field(
        default=False,
        description="take quasi-identifiers although most persons' values change, so that much is suppressed; else "
        "policy check refuses a table that shows it",
    )

    @model_validator(mode="after")
    def _feasible(self) -> CohortsParameters:
        if self.founders is not None and self.founders < self.k:
            raise InfeasibleError(
                f"fewer than k={self.k} persons are no cohort",
                parameter="founders",
                given=self.founders,
                nearest=self.k,
            )
        if self.company == "present" and self.delay.tuples < self.k - 1:
            raise InfeasibleError(
                f"within δ={self.delay.tuples} tuples there are never k={self.k} persons",
                parameter="delay",
                nearest=self.k - 1,
            )
        return self

    @property
    def hold(self) -> Hold:
        """A row waits δ positions, or until its time is over."""
        return Hold(self.delay.tuples, self.delay.seconds)

    def within(self, seconds: float) -> Self:
        """The same with another bound in seconds."""
        return self.model_copy(update={"delay": self.delay.model_copy(update={"seconds": seconds})})

    @property
    def adds(self) -> str | None:
        """A cohort's box gets further rows, but where rows leave in classes."""
        return "company" if self.company == "standing" else None

    @property
    def refused(self) -> tuple[str, str] | None:
        """Forgetting silent persons breaks the guarantee."""
        if self.memory is None:
            return None
        return "memory", (
            "leave it out, because a person who left the box, was forgotten and returns inside it would count as if "
            "they had never left"
        )

    @property
    def steady(self) -> bool:
        """Unless the policy insists."""
        return not self.may_change

    @property
    def alone(self) -> str | None:
        """Members who are silent are in no class; and of boxes only it is promised who lies in them."""
        return "company"


@STREAM_ALGORITHMS.register("cohorts", CohortsParameters)
class Cohorts(CohortMemory, Engine):
    """k persons over time: however many rows of a person are tied together, k persons are in all of their boxes.

    Every person belongs to one cohort of at least k, for good, and every row leaves with the box that its cohort
    publishes at that time, or not at all. So somebody who knows which rows are yours, and intersects their boxes, finds
    at least k persons in all of them. Whoever returns leaves at once.

    - A cohort publishes a box that contains the last seen values of its members. Its *joining box* is the intersection
      of all boxes that it, or a cohort it was split from, ever published: a new person inside becomes a member.
    - Once it has 2k members, or 2.4k while many rows are of new persons (the more to cut, the better), it is split
      where the loss of both halves is least: some rows behind the one that made it large enough.
    - New persons outside of every joining box wait in the pool. At a deadline, if there are `founders` of them, all of
      them found new cohorts, as Mondrian would cut them; else the expiring row is suppressed. Its person stays there. A
      pool of 2,048 waits for no deadline.
    - A member whose values leave the published box is dismissed, never to be counted again: their rows leave while they
      are inside. Where that costs more, the box grows instead: then rows wait until k members leave with it at once.
    - Fewer than k members publish nothing until others join: those who find no other cohort.
    - The engine also takes the rows of rejected events, which are never published. A member who moved with such an
      event, or whose values cannot be read in it, is dismissed.
    - `l`, `p` and `p_categories` count all values that left with the boxes of a cohort and of the cohorts that it was
      split from. They say nothing about the rows of one box: a box that is new after a split may show a single value.

    That is `company: standing`. With `company: present` a row waits until its delay is over, and leaves in a class with
    rows of at least k persons: it gathers those whose cohorts' boxes enlarge its own least, and all of them leave with
    the hull of these boxes, so k holds in every class and over time.

    For quasi-identifiers that rarely change. What is promised begins with the first row, covers one stream, and holds
    for the values that the stream has shown: somebody who knows that a silent member has moved may leave them out. With
    standing company rows leave alone: whoever knows when the victim acted, and that nobody else did, sees that row.

    >>> import numpy as np
    >>> from microdata import Number, Schema
    >>> from stream_algos import Batch, Cohorts
    >>> schema = Schema("person", (Number("age", 0, 100),))
    >>> cohorts = Cohorts(schema, k=2, delay={"tuples": 3}, company="standing", founders=4)
    >>> ages, nothing = np.array([[30.0], [71.0], [33.0], [70.0], [71.0]]), np.empty((5, 0), np.int32)
    >>> release = cohorts.push(Batch(np.arange(5), np.zeros(5), np.array([0, 1, 2, 3, 1]), ages, nothing))
    >>> release.lo.tolist(), release.hi.tolist(), np.diff(release.starts).tolist()
    ([[30.0], [70.0], [70.0]], [[33.0], [71.0], [71.0]], [2, 2, 1])
    """

    Parameters = CohortsParameters
    parameters: CohortsParameters
    guarantees = (KOverTime, KAnonymity, DistinctDiversity, PSensitivity, PPlusSensitivity)
    remembers = True
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "delay": {"tuples": 40}, "company": "standing"}
    variants = (
        {"delay": {"tuples": 40, "seconds": 10.0}},
        {"k": 2, "l": 2, "delay": {"tuples": 60}},
        {"k": 2, "p": 2, "p_categories": 2, "delay": {"tuples": 60}},
        {"memory": 60.0, "founders": 8},
        {"company": "present"},
        {"company": "present", "k": 2, "l": 2, "delay": {"tuples": 60, "seconds": 20.0}},
    )

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        if schema.person is PersonSource.ROW:
            raise SchemaError("where every row is another person, nobody comes back: use castle", at="person")
        check_domains(self.models(), schema)
        asked, self._conditions = self.parameters, conditions_of(schema, self.models())
        needs = np.array([one.need for one in self._conditions], np.int64)
        self._rules = Rules(
            k=asked.k,
            needs=needs,
            most=int(needs.max(initial=0)),
            present=asked.company == "present",
            delta=asked.delay.tuples,
            founders=asked.founders or 3 * asked.k,
            patient=12 * asked.k // 5,
            few=3 * MANY // 20,
            memory=np.inf if asked.memory is None else asked.memory,
        )
        self._space = geometry(schema)
        self._last = NEVER
        self._since = -1
        self._state = new_state(schema, self._rules, 0, 0, 0)
        self._out = new_output(0, len(schema.quasi))
        self._entries_before = no_entries(0, len(schema.quasi), self._state.shown.shape[1])
        self._free = np.empty(0, np.int64)
        self.kept()

    def models(self) -> tuple[Model, ...]:
        """So many persons over time, in every class if they must be present, and values if they are asked for."""
        asked = self.parameters
        models: list[Model] = [KOverTime(asked.k)]
        models += [KAnonymity(asked.k)] if asked.company == "present" else []
        models += [DistinctDiversity(asked.l)] if asked.l > 1 else []
        for key in ("p", "p_categories"):
            given = getattr(asked, key)
            models += [] if given is None else KEYS[key].read(given, {}, self.schema)
        return tuple(models)

    def push(self, batch: Batch) -> Release:
        """Take rows: those with a cohort leave, the others wait for one."""
        behind = batch.positions[1:] <= batch.positions[:-1]
        if len(batch) and (batch.positions[0] <= self._last or behind.any()):
            raise DataError("positions must grow from row to row and from batch to batch")
        if len(batch) and self._since < 0:
            self._since = int(batch.positions[0])
        parts, overdue = list[Release](), self._overdue(batch)
        for begin in range(0, len(batch), CHUNK):
            chunk = batch if len(batch) <= CHUNK else batch.take(slice(begin, begin + CHUNK))
            late = np.append(overdue[begin : begin + CHUNK], NEVER)
            parts.append(self._advance(chunk, late, int(chunk.positions[-1])))
        return Release.concat(parts) if parts else Release.empty(len(self.schema.quasi))

    def advance(self, position: int) -> Release:
        """Decide every row whose δ is over at this position."""
        if position <= self._last:
            return Release.empty(len(self.schema.quasi))
        return self._advance(Batch.empty(self.schema), np.array([NEVER]), position)

    def expire(self, now: float) -> Release:
        """Decide every row that was taken `seconds` ago or earlier, and those that came before such a row."""
        seconds, waiting = self.parameters.delay.seconds, self._waiting()
        if seconds is None or not len(waiting):
            return Release.empty(len(self.schema.quasi))
        late = waiting[self._state.clock[waiting] <= now - seconds]
        until = self._state.slots[late[-1], POSITION] if len(late) else NEVER
        return self._advance(Batch.empty(self.schema), np.array([until]), self._last)

    def flush(self) -> Release:
        """Found cohorts of k persons or more; suppress what still waits."""
        everything = np.array([np.iinfo(np.int64).max])
        return self._advance(Batch.empty(self.schema), everything, self._last, self.parameters.k)

    def pending(self) -> NDArray[np.int64]:
        """Positions of rows that wait for a cohort, or for company."""
        return self._state.slots[self._waiting(), POSITION]

    def needed_from(self) -> int | None:
        """The oldest pending position."""
        pending = self.pending()
        return int(pending[0]) if len(pending) else None

    def reusable(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """The boxes of all cohorts that rows have left with."""
        state = self._state
        nodes = state.nodes[: state.meta[NODES]]
        shown = np.flatnonzero((nodes[:, LEFT] == NONE) & (nodes[:, SHOWN] == 1))
        return state.ids[shown, ID], state.boxes[shown, P_LO], state.boxes[shown, P_HI]

    def snapshot(self) -> Snapshot:
        """All that is known of persons and cohorts, and which rows wait. It holds values: keep it as a secret."""
        return {name: array.copy() for name, array in self._contents(self._waiting()).items()} | {
            "last": np.array([self._last]),
            "since": np.array([self._since]),
        }

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the persons and cohorts of the snapshot, and the rows that waited."""
        self._last, self._since = int(snapshot["last"][0]), int(snapshot["since"][0])
        held, of_slots = self._held(snapshot, rows)
        self._state = moved_in(self.schema, self._rules, {**snapshot, **of_slots}, held.quasi, self._codes(held))
        self._free = np.flatnonzero(snapshot["persons"][:, ROLE] == GONE)
        self.kept()

    def _go_on(self, state: State, rest: Snapshot, rows: Batch) -> None:
        """The same with persons and cohorts that are in place."""
        held, of_slots = self._held(rest, rows)
        let_wait(state, self._space, self._rules, {**rest, **of_slots}, held.quasi, self._codes(held))
        self._state = state
        self.kept()

    def _held(self, rest: Snapshot, rows: Batch) -> tuple[Batch, Snapshot]:
        """The rows that waited and are there, and their entries."""
        waited = rest["slots"][:, POSITION]
        held = rows.take(np.isin(rows.positions, waited))
        index = np.searchsorted(waited, held.positions)
        return held, {name: rest[name][index] for name in self._of_slots()}

    def status(self) -> Mapping[str, float]:
        """Persons and cohorts, who is counted and who waits; since which position it holds, how old last values are."""
        state, meta = self._state, self._state.meta
        # Of very many persons some are looked at: this is asked for all the time.
        some = slice(0, int(meta[PERSONS]), 1 + int(meta[PERSONS]) // _ASKED)
        seen = state.tags[some, SEEN][state.persons[some, ROLE] == MEMBER]
        return {
            "since": float(self._since),
            "persons": float(meta[KNOWN]),
            "cohorts": float(meta[LEAVES]),
            "members": float(meta[MEMBERS]),
            "dismissed": float(meta[KNOWN] - meta[MEMBERS] - meta[POOLED_PERSONS]),
            "pool": float(meta[POOLED_PERSONS]),
            # In binary trees every split adds two nodes, of which one takes the place of the cohort.
            "founded": float(2 * meta[LEAVES] - meta[NODES]),
            "splits": float(meta[NODES] - meta[LEAVES]),
            **self._counted(),
            "waiting_rows": float(meta[WAITING]),
            "last_seen_median": float(self._last - np.median(seen)) if len(seen) else 0.0,
        }

    def _counted(self) -> dict[str, float]:
        """How many members cohorts have, and how many cohorts have too few to publish anything."""
        nodes = self._state.nodes[: self._state.meta[NODES]]
        counts = nodes[nodes[:, LEFT] == NONE, COUNT]
        least, median, most = np.quantile(counts, [0, 0.5, 1]).tolist() if len(counts) else (0.0, 0.0, 0.0)
        silent = float((counts < self.parameters.k).sum())
        return {"fewest_members": least, "median_members": median, "most_members": most, "silent_cohorts": silent}

    def _overdue(self, batch: Batch) -> NDArray[np.int64]:
        """Up to which position rows are late by their time when each of these comes."""
        overdue = np.full(len(batch), NEVER)
        if self.parameters.delay.seconds is None:
            return overdue
        turns = np.flatnonzero(np.diff(batch.times) > 0) + 1
        if not len(turns):
            return overdue
        waiting = self._waiting()
        times = np.concatenate([self._state.clock[waiting], batch.times])
        positions = np.concatenate([self._state.slots[waiting, POSITION], batch.positions])
        earliest = np.minimum.accumulate(times[::-1])[::-1]  # a clock may be set back
        late = np.searchsorted(earliest, batch.times[turns] - self.parameters.delay.seconds, side="right")
        overdue[turns] = np.minimum(np.append(NEVER, positions)[late], batch.positions[turns - 1])
        return overdue

    def _advance(self, rows: Batch, overdue: NDArray[np.int64], passed: int, founders: int | None = None) -> Release:
        """Let the kernels take rows and decide what is due, in turns: one takes, others divide, or gather company."""
        who = np.empty(len(rows), np.int64)
        (positions, times, _, quasi, _), whose, done = rows.columns(), rows.tags(), 0
        rules, codes = self._rules, self._codes(rows)
        columns: tuple[NDArray[Any], ...] = (positions, times, whose, quasi, codes, who, rows.rejections())
        most = int(self._state.meta[WAITING]) + len(rows)
        if len(self._out.members) < most:
            words = self._out.words[self._out.meta[WORDS] :]
            self._out = new_output(2 * most, len(self.schema.quasi))._replace(words=words)
        self._out.meta[SOUGHT] = 0
        kernels.look_up(self._state, whose, who)
        self._note_before(who)
        while done != NONE:
            self._make_room(len(rows))
            at: tuple[int, int, int, int] = (self._last, passed, founders or rules.founders, done)
            done = kernels.advance(self._state, self._out, self._space, rules, *at, overdue, *columns)
            if self._state.meta[NEEDED] == COMPANY:
                company.gather(self._state, self._out, self._space, rules)
        self._last = max(self._last, passed)
        self._note_after(whose)
        return self._collect()

    def _waiting(self) -> NDArray[np.int64]:
        """Slots of the rows that wait, oldest first."""
        state = self._state
        slots = np.arange(state.meta[BEGIN], state.meta[END]) & (len(state.slots) - 1)
        return slots[state.slots[slots, PLACE] != NONE]

    def _contents(self, waiting: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """What means something in the arrays of the state, but for the rows that wait."""
        state = self._state
        persons, pool, nodes = (int(state.meta[entry]) for entry in (PERSONS, POOLED_PERSONS, NODES))
        contents = {name: getattr(state, name)[:persons] for name in ("persons", "tags", "times", "shown")}
        contents["values"] = LastValues(state, persons)[:]
        contents |= {name: getattr(state, name)[:nodes] for name in ("nodes", "sizes", "ids")}
        contents |= {"pool": state.pool[:pool], "hulls": state.hulls[:, :pool], "boxes": state.boxes[:nodes]}
        return contents | {"meta": state.meta, **{name: getattr(state, name)[waiting] for name in self._of_slots()}}

    def _of_slots(self) -> tuple[str, ...]:
        """The arrays of the state, beside those of rows, that have an entry for each row that waits."""
        return ("slots", "clock", "covers") if self._rules.present else ("slots", "clock")

    def _codes(self, rows: Batch) -> NDArray[np.int32]:
        """What rows show in each condition."""
        return codes_of(self.schema, self._conditions, rows.sensitive)

    def _make_room(self, rows: int) -> None:
        """See to room for so many further rows, whoever they are of, and for what is divided before them."""
        state, out, meta = self._state, self._out, self._state.meta
        persons, pool, nodes, waiting = (int(meta[entry]) for entry in (PERSONS, POOLED_PERSONS, NODES, WAITING))
        more = int(splits.room_for(state, self._rules, rows))
        if len(state.persons) < persons + rows or len(state.pool) < pool + rows or len(state.nodes) < nodes + more:
            held = self._waiting()
            rows_ = state.quasi[held], state.codes[held]
            self._state = moved_in(self.schema, self._rules, self._contents(held), *rows_, more)
            notes_moved(state, self._state)
        left = len(out.words) - int(out.meta[WORDS])
        most = 2 * waiting + more
        if left < most:
            words = np.concatenate([out.words[out.meta[WORDS] :], self.words(most + CHUNK - left)])
            self._out = out._replace(words=words)
            out.meta[WORDS] = 0

    def _collect(self) -> Release:
        """What the kernel has written; its buffers are free again."""
        out = self._out
        clusters, rows, suppressed = (int(out.meta[entry]) for entry in (CLUSTERS, ROWS, SUPPRESSED))
        out.meta[[CLUSTERS, ROWS, SUPPRESSED]] = 0
        release = Release(
            ids=out.ids[:clusters, ID].copy(),
            lo=out.boxes[0, :clusters].copy(),
            hi=out.boxes[1, :clusters].copy(),
            starts=out.starts[: clusters + 1].copy(),
            members=out.members[:rows].copy(),
            reused=out.facts[:clusters, 0] == 1,
            windows=np.full((clusters, 2), -1),
            suppressed=out.suppressed[:suppressed, 0].copy(),
            decided=out.facts[:clusters, 2].copy(),
            given_up=out.suppressed[:suppressed, 1].copy(),
            company=out.facts[:clusters, 1].copy(),
            parents=out.ids[:clusters, PARENT].copy(),
            entries=out.facts[:clusters, 3].copy(),
        )
        self._require(release, out.quasi[:rows])
        return release

    def _require(self, release: Release, quasi: NDArray[np.float64]) -> None:
        """Raise `GuaranteeError` unless k persons stand behind every box and it covers its rows."""
        if (release.company < self.parameters.k).any():
            raise GuaranteeError("a cohort of fewer than k members publishes")
        if outside(release.lo, release.hi, release.starts, quasi):
            raise GuaranteeError("a released box does not cover its rows")

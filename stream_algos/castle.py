"""CASTLE: k-anonymous clusters from a stream within a delay."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from microdata import Boxes, DataError, GuaranteeError, InfeasibleError, Schema, Words, geometry, system_words
from privacy import (
    KEYS,
    Distinct,
    DistinctDiversity,
    Groups,
    KAnonymity,
    LargestShare,
    LeastWeight,
    MaxShare,
    Model,
    check_domains,
    require,
)
from privacy.keys import not_asked
from static_algos import parse
from stream_algos._held_kernels import (
    CLUSTER,
    CODE,
    DUE,
    HEAD,
    HELD,
    NONE,
    OPEN,
    PERSONS,
    POSITION,
    TAIL,
    Rules,
    oldest,
)
from stream_algos._order import InOrder
from stream_algos._release_kernels import (
    CLUSTERS,
    HI,
    KEPT,
    LO,
    LOSSES,
    MEMBERS,
    NEXT_LOSS,
    REACHED,
    SUPPRESSED,
    WORDS,
    Published,
    keep,
    new_output,
    new_published,
    note_loss,
    words_needed,
)
from stream_algos.conditions import CONDITIONS, codes_of, conditions_of, packed, rounded_share
from stream_algos.engine import (
    LONGEST,
    MOST_PERSONS,
    MOST_ROWS,
    STREAM_ALGORITHMS,
    Batch,
    Engine,
    Hold,
    Release,
    Snapshot,
    StreamParameters,
)

CHUNK = 1024
"""Rows that one kernel call takes at most; the ring has room for so many more than are held."""

CATEGORY_KEYS = ("p", "p_categories", "alpha_weight", "max_category_share")
"""Parameters that are keys of a guarantee."""


class Delay(BaseModel):
    """How long a row may be held before it is decided."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tuples: int = Field(ge=1, le=MOST_ROWS, description="δ: positions between a row and the one at which it is decided")
    seconds: float | None = Field(None, gt=0, le=LONGEST, description="time after which a row is decided in any case")


class CastleParameters(StreamParameters):
    """Parameters of CASTLE. `delta` and `seconds` may be given instead of `delay`."""

    k: int = Field(ge=1, le=MOST_PERSONS, description="distinct persons of every class")
    l: int = Field(  # noqa: E741 - ℓ is its name in the literature
        default=1, ge=1, le=MOST_PERSONS, description="distinct values of every sensitive attribute in every class"
    )
    p: Distinct | None = Field(
        None, exclude_if=not_asked, description="distinct values, as l; of every sensitive attribute or each its own"
    )
    p_categories: Distinct | None = Field(
        None, exclude_if=not_asked, description="distinct categories of sensitivity in every class (p⁺)"
    )
    alpha_weight: LeastWeight | None = Field(
        None, exclude_if=not_asked, description="least total weight of the categories of sensitivity of every class"
    )
    max_category_share: LargestShare | None = Field(
        None,
        exclude_if=not_asked,
        description="largest share of a category of sensitivity in a class's rows; not with reuse",
    )
    delay: Delay
    formation: Literal["deadline", "arrival"] = Field(
        "deadline", description="when a row finds its class: at its deadline, or on arrival as in the thesis"
    )
    eta: int = Field(50, ge=1, le=100_000, description="η: most clusters that are open at a time (arrival)")
    mu: int = Field(100, ge=1, le=1_000_000, description="μ: latest clusters whose mean loss is τ")
    reuse: bool = Field(default=False, description="release an expiring row alone with a published box that covers it")
    reuse_bound: int = Field(500, ge=1, le=100_000, description="published boxes that are kept for reuse")
    max_share: float | None = Field(None, ge=1e-6, le=1, description="largest share of one person in a class's rows")
    order: Literal["shuffled", "arrival"] = Field(
        "shuffled", description="arrival: row by row in order of position, which tells positions to who knows the input"
    )

    @model_validator(mode="before")
    @classmethod
    def _flat_delay(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not {"delta", "seconds"} & given.keys():
            return given
        rest = dict(given)
        if "delay" in rest:
            raise ValueError("delay: give either delay or delta and seconds, not both")
        flat = {"tuples": rest.pop("delta", None), "seconds": rest.pop("seconds", None)}
        rest["delay"] = {name: value for name, value in flat.items() if value is not None}
        return rest

    @model_validator(mode="after")
    def _feasible(self) -> CastleParameters:
        if self.delta < self.least_persons - 1:
            by_share = f"the {self.least_persons} persons that max_share={self.max_share} needs"
            needed = f"k={self.k} persons" if self.least_persons == self.k else by_share
            raise InfeasibleError(
                f"within δ={self.delta} tuples there are never {needed}",
                parameter="delay",
                nearest=self.least_persons - 1,
            )
        return self

    @property
    def share(self) -> Fraction:
        """The largest share of one person, as the kernels count it."""
        return rounded_share(self.max_share or 1)

    @property
    def least_persons(self) -> int:
        """Persons of the smallest class that meets `k` and `max_share`."""
        return max(self.k, math.ceil(1 / self.share))

    @property
    def delta(self) -> int:
        """δ, in positions."""
        return self.delay.tuples

    @property
    def seconds(self) -> float | None:
        """The time bound, if there is one."""
        return self.delay.seconds

    @property
    def hold(self) -> Hold:
        """A row waits δ positions, or until its time is over."""
        return Hold(self.delta, self.seconds)

    def within(self, seconds: float) -> Self:
        """The same with another bound in seconds."""
        return self.model_copy(update={"delay": self.delay.model_copy(update={"seconds": seconds})})

    @property
    def adds(self) -> str | None:
        """A reused box gets further rows."""
        return "reuse" if self.reuse else None

    @property
    def in_order(self) -> bool:
        """As it was asked for."""
        return self.order == "arrival"

    def shuffled(self) -> Self:
        """The same with whole clusters that leave shuffled."""
        return self.model_copy(update={"order": "shuffled"})


@STREAM_ALGORITHMS.register("castle", CastleParameters)
class Castle(Engine):
    """Clusters of at least k persons (and ℓ values), each row released or suppressed within its delay.

    A row waits for company at most δ positions (or `seconds`). Then it leaves with a class of at least k distinct
    persons and at least ℓ distinct values of every sensitive attribute, or not at all. What differs is how the class is
    found:

    - `formation: deadline`, the default. Rows wait together. The expiring one gathers its class, one row at a time:
      the one that enlarges the class least, less what it would cost to leave it behind, which is much for rows far from
      most others and more for old ones. Once k persons are together (and ℓ values), their other waiting rows come
      along: those in the box at no cost, the rest, and rows that would find no company, where the larger box costs
      less. On real Adult, one row per person, losses are a fifth to a third below the thesis' way. Without reuse
      no row ever leaves alone.
    - `formation: arrival`, the thesis' way: a row joins one of at most η clusters when it arrives, a cluster leaves
      when its oldest row expires, split into clusters of about k, or united with its nearest ones where it is too
      small; τ, the mean loss of the μ latest clusters, says how large a cluster may grow. Clusters too large to look
      at every pair of rows are split block by block. At δ = 100,000 a push may take half a second, since nearly all
      rows can leave at once.

    What is asked of sensitive values beside ℓ is met in the same way: `p` distinct values, `p_categories` distinct
    categories of sensitivity, `alpha_weight` in total. Under `max_category_share` no row is chosen that would make a
    category too frequent in the class that is to come; the class grows until none is.

    `reuse: true` releases an expiring row alone with a published box that covers it, drawn uniformly among distinct
    boxes (any preference would tell where the row is not). Kept are boxes with a loss below τ (deadline: 0.6 τ), at
    most `reuse_bound`; the one whose latest release is longest ago makes room. Whoever watches the live output can time
    a row that leaves alone: hence off by default, and refused together with `max_share` and `max_category_share`.

    `order: arrival` lets rows out one by one in the order of their positions. Whoever knows the input's order then
    knows which output belongs to which input.

    Cao, Carminati, Ferrari, Tan: CASTLE, Continuously Anonymizing Data Streams (2011; thesis 2010, chapter 5), with
    the thesis' gaps closed: a class is possible if the *union* of all held rows has k persons; clusters shrink when a
    row leaves them; ℓ-diverse splits round shares up. Decisions for k alone look at no sensitive value.
    Categories: Sun, Privacy Preserving Data Sharing in Data Mining Environment (2010); Sadad (2012).

    >>> import numpy as np
    >>> from microdata import Number, Schema
    >>> from stream_algos import Batch, Castle
    >>> castle = Castle(Schema("person", (Number("age", 0, 100),)), k=2, delta=3)
    >>> ages, nothing = np.array([[30.0], [71.0], [33.0], [70.0], [50.0]]), np.empty((5, 0), np.int32)
    >>> release = castle.push(Batch(np.arange(5), np.zeros(5), np.arange(5), ages, nothing))
    >>> release.lo.tolist(), release.hi.tolist()
    ([[30.0], [70.0]], [[33.0], [71.0]])
    >>> castle.pending().tolist()
    [4]
    """

    Parameters = CastleParameters
    parameters: CastleParameters
    guarantees = (KAnonymity, MaxShare, *CONDITIONS)
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "delay": {"tuples": 40}}
    variants = (
        {"delay": {"tuples": 40, "seconds": 10.0}},
        {"k": 2, "l": 2, "delay": {"tuples": 60}},
        {"k": 2, "p_categories": 2, "alpha_weight": 1, "delay": {"tuples": 60}},
        {"k": 2, "p": 2, "alpha_weight": {"every": 0.5, "over": "values"}, "delay": {"tuples": 60}},
        {"k": 2, "max_category_share": 0.7, "delay": {"tuples": 60}},
        {"k": 2, "max_category_share": {"every": 0.7, "of": "first"}, "delay": {"tuples": 60}},
        {"k": 2, "max_share": 0.6, "delay": {"tuples": 60}},
        {"reuse": True},
        {"formation": "arrival"},
    )

    formations: ClassVar[dict[str, type[Castle]]] = {}
    """The engine of each formation."""
    keep_below: ClassVar[float]
    """A box is kept for reuse if its loss is below this part of τ."""

    def __init_subclass__(cls, formation: str | None = None) -> None:
        if formation:
            cls.formations[formation] = cls

    def __new__(cls, *_schema: Schema, **given: Any) -> Self:
        """An engine of the formation that is asked for."""
        given.pop("words", None)
        chosen: Any = cls if cls is not Castle else cls.formations[parse(CastleParameters, given).formation]
        return super().__new__(chosen)

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        self._check_values()
        parameters = self.parameters
        self._conditions = conditions_of(schema, self._models)
        self._check_delay()
        self._packed = packed(self._conditions)
        self._rules = Rules(
            k=parameters.least_persons,
            delta=parameters.delta,
            reuse=parameters.reuse,
            share_of=parameters.share.numerator,
            share_in=parameters.share.denominator,
            keep_below=self.keep_below,
            is_conditional=bool(self._conditions),
        )
        self._space = geometry(schema)
        self._last = np.iinfo(np.int64).min
        self._largest_share = 0.0
        self._published_ids = np.empty(0, np.uint64)
        self._in_order = InOrder(len(schema.quasi)) if parameters.order == "arrival" else None
        self._refill(self._new_published(), Batch.empty(schema), np.empty(0, np.int64))

    def _check_values(self) -> None:
        l = self.parameters.l  # noqa: E741 - as above
        most = min((attribute.size or 0 for attribute in self.schema.sensitive), default=1)
        if l > most:
            what = "a sensitive attribute has only so many values" if self.schema.sensitive else "nothing is sensitive"
            raise InfeasibleError(f"ℓ={l} cannot be reached: {what}", parameter="l", nearest=most)
        check_domains(self._models, self.schema)

    def _check_delay(self) -> None:
        """Refuse what not even a class of all rows that can be held at a time would meet."""
        for one in self._conditions:
            most = 1 if one.gains is None else int(one.gains.max())
            if one.need > most * (self.parameters.delta + 1):
                reason = f"within δ={self.parameters.delta} tuples there is never enough to meet the guarantee"
                raise InfeasibleError(reason, parameter="delay", nearest=-(-one.need // most) - 1)

    @cached_property
    def _models(self) -> tuple[Model, ...]:
        models: list[Model] = [KAnonymity(self.parameters.k)]
        if self.parameters.l > 1:
            models.append(DistinctDiversity(self.parameters.l))
        if self.parameters.max_share is not None:
            models.append(MaxShare(self.parameters.max_share))
        for key in CATEGORY_KEYS:
            given = getattr(self.parameters, key)
            models += [] if given is None else KEYS[key].read(given, {}, self.schema)
        return tuple(models)

    def models(self) -> tuple[Model, ...]:
        """k-anonymity, and what else was asked for."""
        return self._models

    def push(self, batch: Batch) -> Release:
        """Take rows and decide those whose δ is over; the row that arrives can still help the one that expires."""
        if len(batch) and (batch.positions[0] <= self._last or np.any(np.diff(batch.positions) <= 0)):
            raise DataError("positions must grow from row to row and from batch to batch")
        parts, due = [], self._due(batch)
        for begin in range(0, len(batch), CHUNK):
            own = slice(begin, begin + CHUNK)
            chunk = batch.take(own)
            self._make_room(len(chunk))
            parts += self._advance(chunk, due[own])
            self._last = int(chunk.positions[-1])
        return self._let_out(parts)

    def advance(self, position: int) -> Release:
        """Decide every row whose δ is over at this position."""
        if position <= self._last:
            return Release.empty(len(self.schema.quasi))
        parts = self._advance(Batch.empty(self.schema), np.array([position]))
        self._last = position
        return self._let_out(parts)

    def expire(self, now: float) -> Release:
        """Decide every row that was taken `seconds` ago or earlier, and those that came before such a row."""
        if self.parameters.seconds is None:
            return Release.empty(len(self.schema.quasi))
        held, meta = self._held(), self._state.rows.meta
        late = held[self._times[held] <= now - self.parameters.seconds]
        if len(late):
            meta[DUE] = max(meta[DUE], self._state.rows.slots[late[-1], POSITION])
        return self._let_out(self._advance(Batch.empty(self.schema), np.empty(0, np.int64)))

    def flush(self) -> Release:
        """Release full clusters, then rows that a published box covers, then the rest as one; suppress what is left."""
        parts, done = [], False
        while not done:
            self._fetch_words(0)
            self._out.meta[REACHED] = self._last
            done = self._flush_rows()
            parts.append(self._collect())
        return self._let_out(parts)

    def pending(self) -> NDArray[np.int64]:
        """Positions of rows that are held, with order-preserving output also of those that wait for their turn."""
        held = self._positions(self._held())
        return np.union1d(held, self._in_order.positions()) if self._in_order else held

    def needed_from(self) -> int | None:
        """The oldest pending position."""
        pending = self.pending()
        return int(pending[0]) if len(pending) else None

    def reusable(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """The published boxes that are kept for reuse, longest unused first."""
        published = self._state.published
        kept = np.argsort(published.used[: published.meta[KEPT]])
        return published.ids[kept], published.boxes[LO, kept], published.boxes[HI, kept]

    def snapshot(self) -> Snapshot:
        """Positions, take-times and clusters of the held rows; published boxes; recent losses, oldest first."""
        held, published = self._held(), self._state.published
        ids, lo, hi = self.reusable()
        losses = np.roll(published.losses[:-1], -published.meta[NEXT_LOSS])
        return {
            "positions": self._positions(held),
            "times": self._times[held],
            "clusters": self._clusters(held),
            "reusable_ids": ids,
            "reusable_lo": lo,
            "reusable_hi": hi,
            "losses": losses[len(losses) - published.meta[LOSSES] :],
            "last": np.array([self._last]),
            "largest_share": np.array([self._largest_share]),
        } | dict(self._in_order.snapshot() if self._in_order else {})

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the held rows in their clusters; the take-times are the snapshot's."""
        published = self._new_published()
        boxes = zip(snapshot["reusable_ids"], snapshot["reusable_lo"], snapshot["reusable_hi"], strict=True)
        for number, lo, hi in boxes:
            keep(published, np.uint64(number), np.array(lo, np.float64), np.array(hi, np.float64))
        for loss in snapshot["losses"]:
            note_loss(published, float(loss))
        self._published_ids = np.asarray(snapshot["reusable_ids"], np.uint64)
        self._last = int(snapshot["last"][0])
        # States that were written before this was counted do not have it.
        self._largest_share = float(snapshot.get("largest_share", np.zeros(1))[0])
        if self._in_order:
            self._in_order.restore(snapshot, rows.positions)
        positions, clusters = np.asarray(snapshot["positions"]), np.asarray(snapshot["clusters"], np.int64)
        if np.any(clusters < 0) or np.any(clusters >= self._most_clusters):
            raise DataError("the snapshot was not taken with these parameters: it has more clusters than there can be")
        held = rows.take(np.isin(rows.positions, positions))
        index = np.searchsorted(positions, held.positions)
        self._refill(published, replace(held, times=np.asarray(snapshot["times"])[index]), clusters[index])

    def status(self) -> Mapping[str, float]:
        """Held rows and persons, open clusters, τ, boxes that may be reused, largest share of a person in any class."""
        meta, published = self._state.rows.meta, self._state.published
        return {
            "held_rows": float(meta[HELD]),
            "held_persons": float(meta[PERSONS]),
            "open_clusters": float(meta[OPEN]),
            "tau": float(published.losses[-1]),
            "reusable_boxes": float(published.meta[KEPT]),
            "largest_share": self._largest_share,
        }

    def _new_published(self) -> Published:
        return new_published(self.parameters.reuse_bound, len(self.schema.quasi), self.parameters.mu)

    def _refill(self, published: Published, rows: Batch, clusters: NDArray[np.int64]) -> None:
        """Hold these rows, and nothing else, in a ring with room for as many again."""
        capacity = 2 * CHUNK
        while capacity < 2 * len(rows) + CHUNK:
            capacity *= 2
        self._state = self._new_state(capacity, published)
        self._out = new_output(capacity, len(self.schema.quasi))
        self._times = np.zeros(capacity)
        self._times[: len(rows)] = rows.times
        self._sensitive = np.zeros((capacity, len(self.schema.sensitive)), np.int32)
        self._sensitive[: len(rows)] = rows.sensitive
        if len(rows):  # who only looks at an engine's guarantee does not wait for a kernel
            self._hold_rows(clusters, *self._columns(rows))

    def _columns(self, rows: Batch) -> tuple[NDArray[Any], ...]:
        """What kernels want of rows: positions, persons, quasi-identifiers, and what they show in each condition."""
        positions, _, persons, quasi, sensitive = rows.columns()
        return positions, persons, quasi, codes_of(self.schema, self._conditions, sensitive)

    def _held(self) -> NDArray[np.int64]:
        """Slots of the held rows, oldest first."""
        rows = self._state.rows
        slots = np.arange(rows.meta[HEAD], rows.meta[TAIL]) & (len(rows.slots) - 1)
        return slots[rows.slots[slots, CLUSTER] != NONE]

    def _positions(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._state.rows.slots[slots, POSITION]

    def _rows_at(self, slots: NDArray[np.int64]) -> Batch:
        rows = self._state.rows
        return Batch(
            positions=self._positions(slots),
            times=self._times[slots],
            persons=rows.slots[slots, CODE],
            quasi=rows.quasi[slots],
            sensitive=self._sensitive[slots],
        )

    @property
    def _most_clusters(self) -> int:
        """Clusters that are open at a time; 1 for a formation that has none."""
        return 1

    def _clusters(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Open cluster of each row."""
        return np.zeros(len(slots), np.int64)

    # What a formation brings. Not abstract: `Castle(…)` is one of its formations, which a type checker cannot know.

    def _new_state(self, capacity: int, published: Published) -> Any:
        """An empty ring of this capacity, with what the formation knows beside it."""
        raise NotImplementedError

    def _hold_rows(self, clusters: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]) -> None:
        """Hold rows that were held before, in these clusters."""
        raise NotImplementedError

    def _take_rows(
        self, done: int, due: NDArray[np.int64], positions: NDArray[np.int64], *columns: NDArray[Any]
    ) -> int:
        """Take rows from the one on that is not done yet, and decide what is due; NONE when all is done."""
        raise NotImplementedError

    def _flush_rows(self) -> bool:
        """Decide what is held; False where more words are needed first."""
        raise NotImplementedError

    def _make_room(self, more: int) -> None:
        """See to it that the ring can take so many rows, so that no slot is used twice within a kernel call."""
        rows = self._state.rows
        oldest(rows)
        if rows.meta[TAIL] - rows.meta[HEAD] + more > len(rows.slots):
            held, words = self._held(), self._out.words[self._out.meta[WORDS] :]
            self._refill(self._state.published, self._rows_at(held), self._clusters(held))
            self._state.rows.meta[DUE] = rows.meta[DUE]
            self._out = self._out._replace(words=words)

    def _fetch_words(self, arriving: int) -> None:
        """Have enough unpredictable words for any decision, and throw away none."""
        out, held = self._out, int(self._state.rows.meta[HELD])
        needed = words_needed(self._rules, held + arriving)
        left = out.words[out.meta[WORDS] :]
        if len(left) < needed:
            self._out = out._replace(words=np.concatenate([left, self.words(needed + CHUNK - len(left))]))
            out.meta[WORDS] = 0

    def _advance(self, rows: Batch, due: NDArray[np.int64]) -> list[tuple[Release, Batch]]:
        """Let the kernel take rows and decide what is due, fetching more words as often as it asks."""
        positions, *others = self._columns(rows)
        tail = self._state.rows.meta[TAIL]
        slots = np.arange(tail, tail + len(rows)) & (len(self._times) - 1)
        self._times[slots], self._sensitive[slots] = rows.times, rows.sensitive
        self._out.meta[REACHED] = self._last
        parts, done = [], 0
        while done != NONE:
            self._fetch_words(len(rows))
            done = self._take_rows(done, due, positions, *others)
            parts.append(self._collect())
        return parts

    def _due(self, batch: Batch) -> NDArray[np.int64]:
        """Up to which position rows are due once each of these is there: by their δ, or overdue when the next comes."""
        due = batch.positions - self.parameters.delta
        turns = np.flatnonzero(np.diff(batch.times) > 0)
        if self.parameters.seconds is None or not len(turns):
            return due
        held = self._held()
        times = np.concatenate([self._times[held], batch.times])
        positions = np.concatenate([self._positions(held), batch.positions])
        earliest = np.minimum.accumulate(times[::-1])[::-1]  # a clock may be set back
        late = np.searchsorted(earliest, batch.times[turns + 1] - self.parameters.seconds, side="right")
        overdue = np.append(np.iinfo(np.int64).min, positions)[late]
        due[turns] = np.clip(overdue, due[turns], batch.positions[turns])
        return due

    def _collect(self) -> tuple[Release, Batch]:
        """What the kernel has written, with the released rows; its buffers are free again."""
        out = self._out
        clusters, members, suppressed = (int(out.meta[entry]) for entry in (CLUSTERS, MEMBERS, SUPPRESSED))
        out.meta[CLUSTERS] = out.meta[MEMBERS] = out.meta[SUPPRESSED] = 0
        rows = self._rows_at(out.slots[:members])
        release = Release(
            ids=out.ids[:clusters].copy(),
            lo=out.boxes[LO, :clusters].copy(),
            hi=out.boxes[HI, :clusters].copy(),
            starts=out.starts[: clusters + 1].copy(),
            members=rows.positions,
            reused=out.reused[:clusters].copy(),
            windows=np.full((clusters, 2), -1),
            suppressed=self._positions(out.suppressed[:suppressed]),
            decided=out.decided[:clusters].copy(),
            given_up=out.given_up[:suppressed].copy(),
        )
        return release, rows

    def _let_out(self, parts: list[tuple[Release, Batch]]) -> Release:
        """Check what was decided and let it out, or hold it back until its turn."""
        if not parts:
            return Release.empty(len(self.schema.quasi))
        if len(parts) == 1:
            release, rows = parts[0]
        else:
            release = Release.concat([part for part, _ in parts])
            rows = Batch.concat([rows for _, rows in parts])
        self._require(release, rows)
        if self._in_order:
            return self._in_order.pass_on(release, self._positions(self._held()))
        return release

    def _require(self, release: Release, rows: Batch) -> None:
        """Raise `GuaranteeError` unless every new cluster meets every model and every box covers its rows."""
        cluster = np.repeat(np.arange(len(release)), np.diff(release.starts))
        number = np.cumsum(~release.reused) - 1
        number[release.reused] = -1
        groups = Groups.of(self.schema, rows.persons, rows.sensitive, number[cluster], int((~release.reused).sum()))
        require(self._models, groups)
        self._largest_share = max(self._largest_share, float((groups.most / groups.rows).max(initial=0.0)))
        if not Boxes(self.schema, release.lo, release.hi).cover(rows.quasi, cluster).all():
            raise GuaranteeError("a released box does not cover its rows")
        if release.reused.any():
            known = np.concatenate([self._published_ids, release.ids[~release.reused]])
            if not np.isin(release.ids[release.reused], known).all():
                raise GuaranteeError("a reused box was never published")
        self._published_ids = self.reusable()[0]

"""Blocks: any algorithm for tables, over a stream, block by block.

The stream is collected until a block is complete: after so many positions, with a row or without, or so many seconds
after its first row. The block is then a table of its own, and the algorithm that `table` names makes it safe; what that
one leaves out is suppressed. A block too poor for its guarantee waits and is tried again together with the next one, as
long as the delay allows; then it is suppressed.

Every class keeps the guarantee within its block: models that compare a class with a table (t, β, …) compare it with its
block. Nothing is promised about several blocks together: somebody who knows that a person is in two of them may put the
two classes side by side.

X. Sun, Privacy Preserving Data Sharing in Data Mining Environment (thesis 2010), section 1.2.2.

>>> import numpy as np
>>> from microdata import Number, Schema
>>> from stream_algos.engine import Batch
>>> schema = Schema("person", (Number("age", 0, 99, integer=True),))
>>> engine = Blocks(schema, size=4, table={"algorithm": "mondrian", "k": 2})
>>> ages = np.array([[21.0], [60.0], [22.0], [61.0], [40.0]])
>>> release = engine.push(Batch(np.arange(5), np.zeros(5), np.arange(5), ages, np.empty((5, 0), np.int32)))
>>> sorted(zip(release.lo.ravel().tolist(), release.hi.ravel().tolist()))
[(21.0, 22.0), (60.0, 61.0)]
>>> engine.pending().tolist()
[4]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from microdata import Boxes, DataError, GuaranteeError, InfeasibleError, Schema, Table, Words, system_words
from privacy import KEYS, Groups, Model, check_domains, require
from static_algos import STATIC_ALGORITHMS, Entry, Parameters, StaticAlgorithm, out_of_range
from stream_algos.engine import (
    LONGEST,
    MOST_ROWS,
    STREAM_ALGORITHMS,
    Batch,
    Engine,
    Hold,
    Release,
    Snapshot,
    StreamParameters,
)

NEVER = np.iinfo(np.int64).max


class Patience(BaseModel):
    """How long a row may be held before it is decided."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tuples: int = Field(ge=1, le=MOST_ROWS, description="positions between a row and the one at which it is decided")
    seconds: float | None = Field(None, gt=0, le=LONGEST, description="time after which a row is decided in any case")


class BlocksParameters(StreamParameters):
    """How the stream is cut, and what makes a block safe."""

    size: int = Field(ge=1, le=MOST_ROWS, description="positions of a block")
    seconds: float | None = Field(
        None, gt=0, le=LONGEST, description="time after its first row at which a block is complete in any case"
    )
    table: dict[str, Any] = Field(
        description="what makes a block safe: `algorithm`, one of those for tables, and its parameters"
    )
    delay: Patience | None = Field(
        None, description="how long rows of a block that is too poor may wait; twice a block if left out"
    )

    @field_validator("table")
    @classmethod
    def _known(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The request as the algorithm understands it, with its defaults: two that mean the same are the same."""
        entry, asked = _requested(given)
        return {"algorithm": entry.name, **asked.model_dump(mode="json", exclude_none=True)}

    @model_validator(mode="after")
    def _long_enough(self) -> BlocksParameters:
        if self.delay is None:
            return self
        if self.delay.tuples < self.size:
            raise InfeasibleError("a block is longer", parameter="delay.tuples", nearest=self.size)
        if self.delay.seconds is not None and self.seconds is None:
            raise InfeasibleError("the block has no seconds; give it some", parameter="seconds")
        if self.seconds is not None and (self.delay.seconds or 0.0) < self.seconds:
            raise InfeasibleError("a block is longer", parameter="delay.seconds", nearest=self.seconds)
        return self

    @property
    def hold(self) -> Hold:
        """A row is decided with its block, or with the last one that it may wait for."""
        if self.delay is not None:
            return Hold(self.delay.tuples, self.delay.seconds)
        return Hold(min(2 * self.size, MOST_ROWS), None if self.seconds is None else 2 * self.seconds)

    def within(self, seconds: float) -> Self:
        """The same with another bound in seconds; blocks are complete at half of it at the latest."""
        delay = Patience(tuples=self.hold.tuples or self.size, seconds=seconds)
        return self.model_copy(update={"delay": delay, "seconds": min(self.seconds or seconds, seconds / 2)})

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        """With the parameters of every algorithm for tables that there is."""
        schema = super().model_json_schema(*args, **options)
        forms = [_form(entry) for entry in STATIC_ALGORITHMS]
        described = schema["properties"]["table"]["description"]
        schema["properties"]["table"] = {"description": described, "anyOf": forms}
        return schema


def _requested(given: Mapping[str, Any]) -> tuple[Entry[StaticAlgorithm], Parameters]:
    """The algorithm that is asked for and its parameters, read strictly as JSON like every policy."""
    name = given.get("algorithm")
    if not isinstance(name, str) or name not in STATIC_ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(STATIC_ALGORITHMS.names())}")
    entry = STATIC_ALGORITHMS[name]
    rest = {key: value for key, value in given.items() if key != "algorithm"}
    try:
        return entry, entry.parameters.model_validate_json(json.dumps(rest), strict=True)
    except ValidationError as error:
        refusal = out_of_range(error)
        if refusal is not None:
            raise _of_table(refusal) from None
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"]) or name
        raise ValueError(f"{place}: {problem['msg']}") from None
    except InfeasibleError as error:
        raise _of_table(error) from None


def _of_table(error: InfeasibleError) -> InfeasibleError:
    """A refusal of the algorithm for tables, as one of the parameters of blocks."""
    at = "table" if error.parameter == "guarantee" else f"table.{error.parameter}"
    return InfeasibleError(error.reason, parameter=at, given=error.given, nearest=error.nearest)


def _form(entry: Entry[StaticAlgorithm]) -> dict[str, Any]:
    """The JSON schema of a request to one algorithm, complete in itself."""
    whole = entry.parameters.model_json_schema()
    form: dict[str, Any] = _resolved(whole, whole.get("$defs", {}))
    del form["title"]
    name = {"const": entry.name, "description": entry.summary}
    return {
        **form,
        "title": entry.name,
        "properties": {"algorithm": name, **form.get("properties", {})},
        "required": ["algorithm", *form.get("required", [])],
    }


def _resolved(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Part of a JSON schema with what it refers to in the place of the references."""
    if isinstance(part, list):
        return [_resolved(one, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        meant = definitions[part["$ref"].rsplit("/", 1)[1]]
        return _resolved({**meant, **{key: one for key, one in part.items() if key != "$ref"}}, definitions)
    return {key: _resolved(one, definitions) for key, one in part.items() if key != "$defs"}


def _every_model() -> Sequence[Mapping[str, Any]]:
    """Requests that ask for every model together: each time another way to ask of every key."""
    most = max(len(key.requests) for key in KEYS)
    return [
        {"k": 2, **{key.name: key.requests[turn][0] for key in KEYS if turn < len(key.requests)}}
        for turn in range(most)
    ]


@dataclass
class Block:
    """Rows that arrived together."""

    begin: int
    """Position of its first row, whether that is still there or not."""
    parts: list[Batch]

    @property
    def since(self) -> float:
        """When its first row was taken."""
        return float(self.parts[0].times[0]) if self.parts else np.inf


@STREAM_ALGORITHMS.register("blocks", BlocksParameters)
class Blocks(Engine):
    """Any algorithm for tables, block by block: each block of the stream is made safe as a table of its own."""

    Parameters = BlocksParameters
    parameters: BlocksParameters
    guarantees: ClassVar[tuple[type[Model], ...]] = KEYS.models()
    windowed = True  # a class is compared with its block
    example: ClassVar[Mapping[str, Any]] = {"size": 40, "table": {"algorithm": "mondrian", "k": 3}}
    variants: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"seconds": 10.0, "size": 25, "delay": {"tuples": 90, "seconds": 35.0}},
        *({"size": 70, "table": {"algorithm": "mondrian", **request}} for request in _every_model()),
    )

    def __init__(self, schema: Schema, *, words: Words = system_words, **given: Any) -> None:
        super().__init__(schema, words=words, **given)
        check_domains(self.models(), schema)
        try:
            self._algorithm.check_able(schema)
            # What it would refuse of every table of this schema, it refuses of an empty one.
            self._algorithm.anonymize(_table(schema, Batch.empty(schema)))
        except InfeasibleError as error:
            raise _of_table(error) from None
        self._blocks: list[Block] = []
        """The oldest first; only the last may still be filling."""
        self._filling = False
        self._last = np.iinfo(np.int64).min
        self.steps = {"released": 0, "waited": 0, "given_up": 0}
        """What became of blocks."""

    @property
    def _algorithm(self) -> StaticAlgorithm:
        entry, asked = _requested(self.parameters.table)
        return entry.algorithm(**asked.model_dump(exclude_none=True))

    def models(self) -> tuple[Model, ...]:
        """Those of the algorithm for tables."""
        try:
            return self._algorithm.models(self.schema)
        except InfeasibleError as error:
            raise _of_table(error) from None

    def push(self, batch: Batch) -> Release:
        """Take rows and decide every block that they complete."""
        if len(batch) and (batch.positions[0] <= self._last or np.any(np.diff(batch.positions) <= 0)):
            raise DataError("positions must grow from row to row and from batch to batch")
        releases, start = [self._no], 0
        while start < len(batch):
            if start and batch.times[start] > batch.times[start - 1]:
                releases.append(self.expire(float(batch.times[start])))
            releases += self._passed(int(batch.positions[start]) - 1)
            stop = start + self._until_due(batch.positions[start:], batch.times[start:])
            self._arrive(batch.take(slice(start, stop)))
            releases += self._passed(int(batch.positions[stop - 1]))
            start = stop
        return Release.concat(releases)

    def advance(self, position: int) -> Release:
        """Decide the blocks that are complete, or overdue, at this position."""
        releases = self._passed(position)
        self._last = max(self._last, position)
        return Release.concat([self._no, *releases])

    def expire(self, now: float) -> Release:
        """Decide the blocks that are complete, or overdue, by now."""
        releases = [self._no]
        longest, waits = self.parameters.seconds, self.parameters.hold.seconds
        if longest is not None and waits is not None:
            if self._filling and self._blocks[-1].since <= now - longest:
                releases.append(self._close())
            while self._blocks and self._blocks[0].since <= now - waits:
                releases.append(self._give_up())
        return Release.concat(releases)

    def flush(self) -> Release:
        """Decide everything: the last block is complete, however short."""
        release = self._formed()
        if release is None:
            release = self._suppressed(self._held().positions)
            self.steps["given_up"] += len(self._blocks)
        self._blocks, self._filling = [], False
        return release

    def pending(self) -> NDArray[np.int64]:
        """Positions of everything that is held."""
        return self._held().positions

    def needed_from(self) -> int | None:
        """The oldest row that is held."""
        held = self._held()
        return int(held.positions[0]) if len(held) else None

    def snapshot(self) -> Snapshot:
        """What is held, where blocks begin, and whether the last one is filling."""
        return {
            "pending": self._held().positions,
            "begins": np.array([block.begin for block in self._blocks], np.int64),
            "filling": np.array([self._filling]),
            "last": np.array([self._last]),
        }

    def restore(self, snapshot: Snapshot, rows: Batch) -> None:
        """Continue with the same blocks; of what is lost, the others go on."""
        held = rows.take(np.isin(rows.positions, snapshot["pending"]))
        begins = snapshot["begins"]
        stops = np.append(np.searchsorted(held.positions, begins[1:]), len(held))
        self._blocks, start = [], 0
        for begin, stop in zip(begins.tolist(), stops.tolist() if len(begins) else [], strict=True):
            if stop > start:
                self._blocks.append(Block(begin, [held.take(slice(start, stop))]))
            start = stop
        self._filling = bool(snapshot["filling"][0]) and bool(self._blocks) and self._blocks[-1].begin == begins[-1]
        self._last = int(snapshot["last"][0])

    def status(self) -> Mapping[str, float]:
        """Rows and blocks that are held, and what became of blocks."""
        return {
            "held_rows": float(len(self._held())),
            "held_blocks": float(len(self._blocks)),
            **{f"{what}_blocks": float(count) for what, count in self.steps.items()},
        }

    def _arrive(self, rows: Batch) -> None:
        if not self._filling:
            self._blocks.append(Block(int(rows.positions[0]), []))
            self._filling = True
        # A copy: a few rows must not keep all that they came with.
        self._blocks[-1].parts.append(Batch(*(column.copy() for column in rows.columns())))
        self._last = int(rows.positions[-1])

    def _until_due(self, positions: NDArray[np.int64], times: NDArray[np.float64]) -> int:
        """How many of these rows, the first and more, come before something is complete or overdue."""
        begin, since = (self._blocks[-1].begin, self._blocks[-1].since) if self._filling else (positions[0], times[0])
        oldest, waiting = (self._blocks[0].begin, self._blocks[0].since) if self._blocks else (begin, since)
        end = min(begin + self.parameters.size - 1, oldest + (self.parameters.hold.tuples or NEVER) - 1)
        stop = int(np.searchsorted(positions, end, side="right"))
        longest, waits = self.parameters.seconds, self.parameters.hold.seconds
        if longest is not None and waits is not None:
            late = (times - longest >= since) | (times - waits >= waiting)
            due = np.flatnonzero(late[1:stop] & (np.diff(times[:stop]) > 0))
            stop = int(due[0]) + 1 if len(due) else stop
        return max(stop, 1)

    def _passed(self, position: int) -> list[Release]:
        """Every position up to this one has passed."""
        releases = []
        if self._filling and self._blocks[-1].begin + self.parameters.size - 1 <= position:
            releases.append(self._close())
        while self._blocks and self._blocks[0].begin + (self.parameters.hold.tuples or NEVER) - 1 <= position:
            releases.append(self._give_up())
        return releases

    def _close(self) -> Release:
        """The last block is complete: everything that is held is made safe, or waits."""
        self._filling = False
        release = self._formed()
        if release is None:
            self.steps["waited"] += 1
            return self._no
        self._blocks = []
        return release

    def _give_up(self) -> Release:
        """The oldest block may not wait any longer: it leaves with all others, or never."""
        release = self._formed() if self._filling else None
        if release is not None:
            self._blocks, self._filling = [], False
            return release
        overdue = self._blocks.pop(0)
        self._filling = self._filling and bool(self._blocks)
        self.steps["given_up"] += 1
        return self._suppressed(Batch.concat(overdue.parts).positions)

    def _formed(self) -> Release | None:
        """Everything that is held, made safe as one table; None where that cannot be."""
        rows = self._held()
        if not len(rows):
            return self._no
        table = _table(self.schema, rows)
        seed = int(self.words(1)[0] >> np.uint64(1))
        try:
            publication = self._algorithm.anonymize(table, seed=seed)
        except InfeasibleError:
            return None
        kept = publication.classes >= 0
        if not kept.any():
            return None
        self.steps["released"] += len(self._blocks)
        labels, count = publication.classes[kept], len(publication.boxes)
        return replace(
            self._released(rows, kept, labels, publication.boxes.widened(), count),
            suppressed=rows.positions[~kept],
            given_up=np.full(int((~kept).sum()), self._last),
        )

    def _released(
        self, rows: Batch, kept: NDArray[np.bool_], labels: NDArray[np.int32], boxes: Boxes, count: int
    ) -> Release:
        """The classes as a release, checked against the very rows and their block."""
        own = rows.take(kept)
        references = self.schema.histograms(rows.sensitive)
        require(self.models(), Groups.of(self.schema, own.persons, own.sensitive, labels, count, references))
        if not boxes.cover(own.quasi, labels).all():
            raise GuaranteeError("a released box does not cover its rows")
        order = np.lexsort((self.words(len(own)), labels))
        ends = np.array([rows.positions[0], rows.positions[-1]], np.int64)
        return Release(
            ids=self.words(count),
            lo=boxes.lo,
            hi=boxes.hi,
            starts=np.append(0, np.cumsum(np.bincount(labels, minlength=count))),
            members=own.positions[order],
            reused=np.zeros(count, bool),
            windows=np.tile(ends, (count, 1)),
            suppressed=np.empty(0, np.int64),
            decided=np.full(count, self._last),
        )

    def _held(self) -> Batch:
        """All rows, the oldest first."""
        parts = [part for block in self._blocks for part in block.parts]
        return Batch.concat([Batch.empty(self.schema), *parts])

    @property
    def _no(self) -> Release:
        return Release.empty(len(self.schema.quasi))

    def _suppressed(self, positions: NDArray[np.int64]) -> Release:
        return replace(self._no, suppressed=positions, given_up=np.full(len(positions), self._last))


def _table(schema: Schema, rows: Batch) -> Table:
    return Table(schema, rows.persons, rows.quasi, rows.sensitive)

"""The report of a replay, as data. Shares are from 0 to 1; free of record values."""

from __future__ import annotations

from pydantic import Field

from microdata import Show
from service.report.sections import Asked, Rejected, Result, Section, Spread, SquaredLoss
from service.report.stream_attacks import Linked, Timing


class Point(Section):
    """What was decided up to an event since the point before."""

    events: int
    released: int
    loss: float = Field(description="mean over the released events; 0 where none is")
    suppressed: int
    reused: int


class DelayBin(Section):
    """Decided events that waited for `first` to `last` further ones."""

    first: int
    last: int
    events: int


class Delays(Section):
    """How many further events came before one left; rejected ones count."""

    p50: int
    p99: int
    max: int
    bins: list[DelayBin]


class ReplayReport(Section):
    """What a replay did."""

    name: str
    fingerprint: str
    asked: Asked
    holds: bool
    repeatable: bool = Field(description="made with a seed: for experiments, not for release")
    seconds: float
    events: int = Field(description="that were given: each is released, suppressed or rejected")
    rejected: Rejected
    released: int
    suppressed: int
    suppressed_share: float
    clusters: int
    reused: int = Field(description="rows that were released with a box published before")
    guarantees: list[Result]
    largest_share: float | None = Field(description="of one person in the rows of a cluster; null where none left")
    at_once: float | None = Field(
        description="share of the released events that waited for no other; null where none is"
    )
    linked: Linked | None = Field(
        description="the intersection attack; null where every event is about another person, or nobody asked"
    )
    timing: Timing | None = Field(
        None, description="the attack of who knows when a person acted; null where no row left alone, or nobody asked"
    )
    loss: float | None = Field(description="mean over the released events; null where none is")
    show: Show = Field("interval", description="how clusters are published")
    squared_error: SquaredLoss | None = Field(None, description="where means are shown")
    workload_error: float | None = Field(
        description="median error of counting queries, mean over stretches of 10,000 events; null where not measured"
    )
    columns: list[Spread] = Field(default_factory=list, description="empty in reports of earlier versions")
    loss_over_time: list[Point]
    delays: Delays | None = Field(description="null where nothing was decided")
    engine: dict[str, float] = Field(description="the engine's own numbers at the end")

"""The parts of a report, as data. Shares are from 0 to 1; what cannot be expressed as a number is null."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from microdata import Show


class Section(BaseModel):
    """Base of every part."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Asked(Section):
    """What was asked for."""

    algorithm: str | None
    parameters: dict[str, Any]


class Rejection(Section):
    """Rows that fail validation because of one field, for one reason."""

    field: str
    reason: str
    rows: int


class Rejected(Section):
    """Rows that fail validation, so that they are not published."""

    rows: int
    share: float = Field(description="of the rows that were given")
    warn_above: float = Field(description="share above which the policy wants a warning")
    reasons: list[Rejection] = Field(
        description="by field and reason; a row with several wrong fields counts for each of them, an event of a "
        "stream for the first"
    )

    @classmethod
    def of(cls, rows: int, given: int, reasons: Sequence[Rejection], warn_above: float) -> Self:
        """So many of the given rows."""
        most_first = sorted(reasons, key=lambda one: (-one.rows, one.field, one.reason))
        return cls(rows=rows, share=rows / given if given else 0.0, warn_above=warn_above, reasons=most_first)

    @property
    def is_notable(self) -> bool:
        """Whether they are more than the policy puts up with."""
        return self.share > self.warn_above

    @property
    def fields(self) -> list[tuple[str, int]]:
        """The fields that are wrong, with the rows that each one cost, the most first."""
        costs: Counter[str] = Counter()
        for one in self.reasons:
            costs[one.field] += one.rows
        return costs.most_common()


class Rows(Section):
    """What became of the rows: each one that was given is published, suppressed or rejected."""

    given: int
    published: int
    suppressed: int
    suppressed_share: float = Field(description="of the rows that were given")
    rejected: Rejected


class Result(Section):
    """One privacy model that was asked for."""

    model: str
    asked: float
    achieved: float | None = Field(description="of the least safe class")
    holds: bool
    failing: int = Field(description="classes that do not meet it")
    more_is_safer: bool
    ground: str | None = Field(None, description="the ground distance of closeness")
    counted_over: str | None = Field(
        None, description="the rows that the numbers are about, where these are not the rows of a class"
    )


class Measure(Section):
    """One privacy model, whether asked for or not, as measured."""

    model: str
    worst: float | None = Field(description="of the least safe class")
    typical: float | None = Field(description="median over the rows")
    more_is_safer: bool
    ground: str | None = Field(None, description="the ground distance of closeness")


class Higher(Section):
    """One quasi-identifier, published one level higher than it is."""

    risk: float = Field(description="mean risk of a row then, going by who fits its box")
    cost: float = Field(description="what it adds to the mean loss")


class Part(Section):
    """Some of a domain, next to the one before."""

    width: float = Field(description="share of the domain")
    before: float = Field(description="share of the rows whose value lies in it")
    after: float = Field(description="the same of what is published, taken to lie evenly in its intervals")


class Spread(Section):
    """How one quasi-identifier is spread over its domain, before and after."""

    name: str
    loss: float = Field(description="mean share of the domain that a published value covers")
    risk: float = Field(description="by how much the share of rows that were unique falls without it")
    parts: list[Part]


class AttributeLoss(Section):
    """What generalization cost in one quasi-identifier."""

    name: str
    loss: float = Field(description="mean share of the domain that a published value covers")
    entropy: float = Field(description="share of the attribute's information that is lost")
    lm: float = Field(description="mean of (P - 1) / (N - 1), with P of N values below a published one")
    unsuppressed: float = Field(description="share of the rows whose published value is not the whole domain")
    normalized_error: float | None = Field(
        description="squares of taking a number for the middle of its interval, over its variance; null for categories"
    )
    rank_error: float | None = Field(
        description="mean ranks by which that guess is wrong, as a share of the rows; null for categories"
    )
    risk: float | None = Field(
        None, description="by how much the share of rows that were unique falls without it; null in earlier reports"
    )
    higher: Higher | None = Field(None, description="with one level more; null where it has none, or is a mean")
    weight: float


class Loss(Section):
    """What generalization cost."""

    mean: float
    risk: float | None = Field(
        None, description="mean risk of a row, going by who fits its box; null where means are shown"
    )
    weighted_discernibility: float = Field(
        description="rows that a row cannot be told from, weighted by what its class lost; 0 to 1, suppressed rows as 1"
    )
    attributes: list[AttributeLoss]


class SquaredShare(Section):
    """One quasi-identifier that has a mean or a median."""

    name: str
    share: float


class SquaredLoss(Section):
    """SSE / SST: the share of the variance that is lost where a class is shown as its mean."""

    total: float | None = Field(description="over all of them, each divided by its standard deviation")
    attributes: list[SquaredShare]


class SizeBin(Section):
    """Classes with `first` to `last` rows."""

    first: int
    last: int
    classes: int
    rows: int


class Sizes(Section):
    """How large the classes are."""

    classes: int
    smallest: int
    median: float
    mean: float
    largest: int
    fewest_persons: int
    largest_person_share: float = Field(description="of the rows of one class")
    bins: list[SizeBin]


class Utility(Section):
    """The measures by which the literature compares generalizations."""

    discernibility: int = Field(description="for each row, with how many it is published alike, added up")
    average_to_k: float | None = Field(description="mean rows of a class in units of k; null where k was not asked for")
    distortion: float = Field(description="levels by which values were raised, as a share of all up to the roots")


class RiskFigures(Section):
    """Risk that a row is traced to its person by somebody who knows that the person is in the table."""

    highest: float
    average: float
    above: float = Field(description="share of the rows with a risk above the threshold")


class Risk(Section):
    """Re-identification risk."""

    threshold: float
    before: RiskFigures
    after: RiskFigures


class Exposed(Section):
    """What one attack gets, as shares of the published rows."""

    attack: str
    attribute: str | None = Field(description="the sensitive attribute; null where it asks whose a row is")
    gets: str = Field(description="what the numbers say")
    before: float = Field(description="of the table as it was")
    after: float
    baseline: float = Field(description="what it gets without the table, from how often each sensitive value occurs")


class Trial(Section):
    """An attack on some people in the table, and on as many who are not: the control."""

    attack: str
    attribute: str | None = Field(description="the sensitive attribute; null where it asks for none")
    gets: str = Field(description="when it succeeds")
    tried: int
    before: float | None = Field(description="share of the people in the table as it was on whom it succeeds")
    after: float
    low: float = Field(description="the share of everybody is above this with 97.5 % confidence")
    high: float = Field(description="and below this")
    control: float = Field(description="share of the people who are not in the table on whom it succeeds")
    baseline: float = Field(description="without the table")
    risk: float = Field(description="what being in the table adds, as a share of what is left to get")
    risk_low: float
    risk_high: float


class AmongPeople(Section):
    """What somebody gets who knows a population, and not who of it is in the table."""

    k_map: int | None = Field(description="fewest people who fit a class; null where they are not known")
    highest: float | None = Field(description="1 / that")
    average: float | None = Field(description="the same, mean over the rows")
    unique: float = Field(description="share of the rows whose person is unique in the population")


class Population(Section):
    """Journalist risk."""

    people: int
    how: str = Field(description="counted, or estimated by pitman, zayatz or snb (slide negative binomial)")
    before: AmongPeople
    after: AmongPeople


class CountsBeside(Section):
    """What counts that are published beside the table give away, of one sensitive attribute. Shares of the rows."""

    attribute: str
    counts: list[list[str]] = Field(description="fields by which it is counted")
    off: float = Field(0.0, description="what the counts are off by on the average; 0 where they are exact")
    rows: int = Field(description="that were looked at")
    guessed_alone: float = Field(description="values guessed right from the table alone")
    guessed: float = Field(description="the same with the counts")
    certain_alone: float = Field(description="rows whose value is as good as certain from the table alone")
    certain: float = Field(description="the same with the counts")
    wrong: float = Field(0.0, description="rows for which another value seems as certain, because the counts are off")


class Learnt(Section):
    """How often a model was right that learnt from half of the persons and was asked for the other half."""

    attribute: str
    rows: int = Field(description="that it was asked for")
    before: float | None = Field(description="with the values as they were; null where there was nothing to learn")
    after: float | None = Field(description="learnt from what is published, and asked with what is published")
    baseline: float | None = Field(description="always saying the most frequent value")
    missing: str | None = Field(None, description="why nothing was learnt")


class Within(Section):
    """Share of the queries whose relative error is at most `error`."""

    error: float
    queries: float


class QueryError(Section):
    """Relative error of random counting queries that are answered from the publication."""

    queries: int
    predicates: int
    selectivity: float
    sensitive: bool = Field(description="whether a query has a predicate on a sensitive attribute too")
    median: float | None
    low: float | None = Field(description="the median of all queries is above this with 97.5 % confidence")
    high: float | None = Field(description="and below this")
    within: list[Within]


class ValueShare(Section):
    """Share of one sensitive value (or of a few together)."""

    label: str
    table: float
    worst: float


class Distribution(Section):
    """A sensitive attribute in the whole table, and in the class that is farthest from it."""

    attribute: str
    distance: float = Field(description="earth mover's distance of that class from the table")
    rows: int = Field(description="rows of that class")
    values: list[ValueShare]


class TableReport(Section):
    """The report of one anonymized table."""

    version: int = 1
    name: str | None = Field(description="of the policy")
    fingerprint: str | None = Field(description="of the policy: the same wherever it publishes alike")
    asked: Asked
    holds: bool
    seconds: float
    repeatable: bool = Field(description="made with a seed: not for release")
    rows: Rows
    results: list[Result]
    measured: list[Measure]
    loss: Loss = Field(description="of boxes around the classes, however these are shown")
    show: Show = Field("interval", description="how classes are published")
    squared_error: SquaredLoss | None = Field(None, description="what showing means costs, whether they are shown")
    sizes: Sizes | None = Field(description="null where no class is published")
    utility: Utility | None = Field(None, description="null in reports of earlier versions")
    risk: Risk
    attacks: list[Exposed] = Field(default_factory=list, description="empty in reports of earlier versions")
    tried: list[Trial] = Field(default_factory=list, description="empty where there are too few persons")
    population: Population | None = Field(None, description="null where none was declared")
    beside: list[CountsBeside] = Field(default_factory=list, description="empty where no counts were declared")
    learnt: list[Learnt] = Field(default_factory=list, description="empty where the policy asks for none")
    queries: QueryError
    columns: list[Spread] = Field(default_factory=list, description="empty in reports of earlier versions")
    sensitive: list[Distribution]
    details: dict[str, Any] = Field(description="what the algorithm says about its run")

"""What a worker is told about one stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from microdata import InfeasibleError, Schema, Show
from privacy import KOverTime, Model
from service.codec import Emit, Format, Route
from service.kafka.partitioners import Partitioner
from service.policy import Policy, PolicyError, PolicyProblem
from service.worker.settings import WorkerSettings
from stream_algos import Engine, Memory


@dataclass(frozen=True)
class Stream:
    """One input topic, one output topic, and what must hold between them."""

    name: str
    input: str
    output: str
    schema: Schema
    models: tuple[Model, ...]
    engine: Callable[[], Engine]
    """Makes an empty engine, one per input partition."""
    fingerprint: str
    start: Literal["earliest", "latest"]
    format: Format = field(default_factory=Format)
    """How the records of both topics are written."""
    emit: Emit = "clusters"
    show: Show = "interval"
    """How a cluster is published."""
    dead_letters: str | None = None
    delay_seconds: float | None = None
    """End to end, as the policy says it."""
    history_seconds: float | None = None
    """How long an event must stay readable in the input: its delay, or the windows that it counts in."""
    keyed: Partitioner | None = None
    """How producers choose a record's partition by its key, where the policy says it."""
    remembers: bool = False
    """Whether its engines are `Memory`, which is kept in a topic of its own."""
    allow_compacted: bool = False
    """Whether the policy accepts an input topic whose records may vanish by compaction."""

    @property
    def group(self) -> str:
        """The consumer group of its workers."""
        return f"portcullis.{self.name}"

    @property
    def stays_put(self) -> bool:
        """Whether a person's records must stay in one partition: then the input may not get further ones."""
        return self.keyed is not None or self.remembers

    @property
    def company(self) -> int:
        """Persons who must be in all boxes of anybody, where that is promised."""
        return max((model.k for model in self.models if isinstance(model, KOverTime)), default=0)

    @property
    def same_persons(self) -> dict[str, str]:
        """What must be the same for a later policy to know the same persons in the same partitions."""
        person = self.schema.person
        field = self.schema.key_field or "true"
        return {
            "person": person if isinstance(person, str) else f"{{{person.value}: {field}}}",
            "format of the input": self.format.input.type,
            "format of the key": self.format.key_type,
            "keyed": self.keyed or "",
        }

    @property
    def route(self) -> Route:
        """What its codec is made for."""
        return Route(self.schema, self.format, self.input, self.output, self.emit, self.show)

    @property
    def state_topic(self) -> str:
        """Where its state is kept. It is named after the output, so that two streams into one output meet there."""
        return f"portcullis.{self.output}.state"

    @property
    def memory_topic(self) -> str:
        """Where it is kept what its engines remember of persons, if they do."""
        return f"portcullis.{self.output}.memory"


def stream_of(policy: Policy, settings: WorkerSettings) -> Stream:
    """The stream that a policy describes.

    `seconds` is promised end to end, so the engine must decide two commit intervals earlier: one until the decision is
    committed, one until it is published.
    """
    route = policy.stream
    if route is None:
        raise PolicyError([PolicyProblem("stream", "a worker needs the topics: input, output and start")])
    if route.start is None:
        raise PolicyError([PolicyProblem("stream.start", "say where the very first start begins: earliest or latest")])
    asked = policy.asked_of_engine
    if asked.in_order:
        raise PolicyError(
            [
                PolicyProblem(
                    "guarantee.order",
                    "a worker publishes whole clusters in random order: shuffled (`portcullis replay` can keep the "
                    "order of a file)",
                    "arrival",
                )
            ]
        )
    algorithm = policy.data.engines[policy.algorithm_name or ""].algorithm
    if algorithm.remembers and not issubclass(algorithm, Memory):
        raise PolicyError(
            [
                PolicyProblem(
                    "guarantee.algorithm",
                    "what this algorithm knows of persons cannot be kept across restarts (it is no `Memory`), and "
                    "without that its promise would end with the process; `portcullis replay` runs it over a file",
                    policy.algorithm_name or "",
                )
            ]
        )
    hold = asked.hold
    if hold.seconds is not None:
        reserve = 2 * settings.commit_interval
        if hold.seconds <= reserve:
            raise InfeasibleError(
                f"{hold.seconds:g} s leave no time beside two commit intervals of {settings.commit_interval:g} s",
                parameter="delay.seconds",
                nearest=f"more than {reserve:g}",
            )
        asked = asked.within(hold.seconds - reserve)
    return Stream(
        name=policy.name,
        input=route.input,
        output=route.output,
        schema=policy.schema,
        models=policy.models(),
        engine=lambda: policy.engine(asked=asked),
        fingerprint=policy.fingerprint(),
        start=route.start,
        format=policy.format,
        emit=route.emit,
        show=policy.show,
        dead_letters=route.dead_letters,
        delay_seconds=hold.seconds,
        history_seconds=hold.readable,
        keyed=route.keyed,
        remembers=algorithm.remembers,
        allow_compacted=route.allow_compacted,
    )

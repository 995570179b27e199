"""What a worker is told about one stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microdata import Schema
from privacy import Model
from stream_algos import Engine


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
    emit: Literal["clusters", "tuples"] = "clusters"
    dead_letters: str | None = None
    delay_seconds: float | None = None
    """End to end, as the policy says it."""
    allow_compacted: bool = False
    """Whether the policy accepts an input topic whose records may vanish by compaction."""

    @property
    def group(self) -> str:
        """The consumer group of its workers."""
        return f"portcullis.{self.name}"

    @property
    def state_topic(self) -> str:
        """Where its state is kept. It is named after the output, so that two streams into one output meet there."""
        return f"portcullis.{self.output}.state"

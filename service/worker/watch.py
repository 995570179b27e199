"""Looks whether the topics of a running stream are still those that it began with.

Deleting a topic and creating it again gives it another id, and its offsets to other events. Clients do not tell: they
go on with the new topic at the old offset. So a worker asks for the ids before each commit, with one small request, and
now and then while there is nothing to commit.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple
from uuid import UUID

from service.kafka import Admin, Client, KafkaError, RetriableError, TopicShape
from service.worker.stream import Stream
from service.worker.topics import StreamTopics

log = logging.getLogger(__name__)


class Held(NamedTuple):
    """What must not change of the topics while a stream runs."""

    input_id: UUID
    state_id: UUID
    output_partitions: int
    input_partitions: int | None
    """Where keys choose the partition; None where it may grow."""
    memory_id: UUID | None
    """Where persons are remembered."""


class TopicWatch:
    """Asks the broker what the topics of a stream are now."""

    def __init__(self, client: Client, stream: Stream) -> None:
        self._client = client
        self._stream = stream
        self._admin: Admin | None = None

    def look(self) -> Held:
        """What the topics are now."""
        stream = self._stream
        memory = [stream.memory_topic] if stream.remembers else []
        shapes = self._shapes([stream.input, stream.state_topic, stream.output, *memory])
        return Held(
            shapes[stream.input].topic_id,
            shapes[stream.state_topic].topic_id,
            shapes[stream.output].partitions,
            shapes[stream.input].partitions if stream.stays_put else None,
            shapes[stream.memory_topic].topic_id if stream.remembers else None,
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _shapes(self, names: list[str]) -> dict[str, TopicShape]:
        try:
            if self._admin is None:
                self._admin = self._client.admin()
            shapes = self._admin.topic_shapes(names)
        except KafkaError:
            self.close()
            raise
        for name in names:
            if name not in shapes:  # a broker that is just starting knows no topics yet
                raise RetriableError(f"topic {name!r} does not exist at the moment")
        return shapes


class IdleWatch:
    """A look for which nobody has to wait: a broker that does not answer must not hold up polling.

    It has a connection of its own, which nobody else uses meanwhile.
    """

    def __init__(self, client: Client, stream: Stream) -> None:
        self._watch = TopicWatch(client, stream)
        self._looking: threading.Thread | None = None
        self._seen: Held | None = None
        self._is_closed = False

    def look(self, seconds: float) -> Held | None:
        """As `TopicWatch.look`; None where that does not work, or takes longer: then a later call has the answer."""
        if self._looking is None:
            self._looking = threading.Thread(target=self._look, name="topics", daemon=True)
            self._looking.start()
            self._looking.join(seconds)
        if self._looking.is_alive():
            return None
        self._looking, seen, self._seen = None, self._seen, None
        return seen

    def close(self) -> None:
        """Let go of the connection; a look that is under way does so at its end."""
        self._is_closed = True
        if self._looking is None or not self._looking.is_alive():
            self._watch.close()

    def _look(self) -> None:
        try:
            self._seen = self._watch.look()
        except KafkaError as error:  # whoever commits looks again, and minds
            log.debug("the topics cannot be looked at (%s)", error)
        if self._is_closed:
            self._watch.close()


def held(topics: StreamTopics, stream: Stream) -> Held:
    """What `TopicWatch.look` answers while nothing has changed."""
    partitions = topics.input_partitions if stream.stays_put else None
    return Held(topics.input_id, topics.state_id, topics.output_partitions, partitions, topics.memory_id)

"""Errors of Kafka that may pass: counted, said once per kind, and waited for a little longer each time."""

from __future__ import annotations

import logging
import random
import time

from service.kafka import KafkaError
from service.worker.metrics import Metrics
from service.worker.topics import TopicError

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
_QUIET_SECONDS = 60.0
"""A kind of error that was not seen for so long is news again."""


class Trouble:
    """What one activity of a worker ("restoring partitions") has to put up with."""

    def __init__(self, doing: str, metrics: Metrics) -> None:
        self._doing = doing
        self._metrics = metrics
        self._tries = 0
        self._until = 0.0
        self._seen: dict[str, float] = {}

    def note(self, error: KafkaError | TopicError) -> None:
        """It did not work: count it, say it unless it was said, and wait longer than the last time."""
        now = time.monotonic()
        if now - self._seen.get(error.code, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            log.warning("%s does not work at the moment (%s), trying again", self._doing, error)
        self._seen[error.code] = now
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._tries, 30))
        self._until = now + pause * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all workers come back at once
        self._tries += 1
        self._metrics.failed(self._doing, error.code, str(error))

    def over(self) -> None:
        """It has worked."""
        if self._tries:
            self._tries, self._until = 0, 0.0
            self._metrics.worked(self._doing)

    @property
    def pause(self) -> float:
        """Seconds to wait before the next try; 0 where nothing is wrong."""
        return max(0.0, self._until - time.monotonic())

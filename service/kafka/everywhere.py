"""Waits until every broker of a cluster knows what the controller has decided about a topic.

A topic is created when the controller says so; each broker hears of it at its own time. Whoever then asks one that has
not is told that there is no such topic.
"""

import time
from collections.abc import Collection
from typing import Protocol

from service.kafka.errors import KafkaError, RetriableError, UnknownTopicError

ANSWER_SECONDS = 2.0
"""How long one broker may take to answer; one that does not is down, and will know when it is back."""


class Broker(Protocol):
    """One broker of a cluster."""

    def partitions_led(self, name: str) -> int:
        """How many partitions of a topic it knows the leader of."""


def wait_for_all(name: str, partitions: int, brokers: Collection[Broker], timeout: float) -> None:
    """Until every broker that answers knows so many partitions of a topic; 0: until none knows any."""
    deadline = time.monotonic() + timeout
    for broker in brokers:
        while not _knows(broker, name, partitions):
            if time.monotonic() > deadline:
                raise RetriableError(f"topic {name!r}: not every broker knows its {partitions} partitions yet")
            time.sleep(0.02)


def _knows(broker: Broker, name: str, partitions: int) -> bool:
    try:
        led = broker.partitions_led(name)
    except UnknownTopicError:
        led = 0
    except KafkaError:
        return True
    return led >= partitions > 0 or led == partitions == 0

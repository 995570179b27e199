"""Says which topic is unknown: what client libraries and brokers say of it often names none."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.kafka.errors import UnknownTopicError


@contextmanager
def naming(topic: str) -> Iterator[None]:
    """Name the topic in what is raised because there is none."""
    try:
        yield
    except UnknownTopicError as error:
        raise UnknownTopicError(f"topic {topic!r}: {error}") from error

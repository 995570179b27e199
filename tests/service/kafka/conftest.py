"""One client on one broker: every combination of both."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.service.kafka.world import World


@pytest.fixture(params=["kafka-python", "confluent-kafka"])
def world(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[World]:
    """Opens parts of one client on one broker and closes them at the end."""
    with contextlib.ExitStack() as stack:
        yield World(request.param, bootstrap, stack)

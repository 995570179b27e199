"""Connections to PostgreSQL that do not wait for ever.

A server that is frozen, or a machine that is cut off, keeps its connections open and says nothing. No setting of the
server or of TCP ends that wait: so the client does.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

ANSWER_SECONDS = 10.0
"""How long the server may take to answer. Every statement of ours takes milliseconds, or waits for such a one."""


class ImpatientConnection(psycopg.Connection[Any]):
    """Gives up, and is closed, when the server does not answer in time."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        """Wait for an answer."""
        return super().wait(self._in_time(gen), *args, **kwargs)

    def _in_time(self, answer: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same answer; whoever waits for it asks several times a second whether to go on."""
        until = time.monotonic() + ANSWER_SECONDS
        try:
            wanted = next(answer)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > until:
                    self.close()
                    raise psycopg.OperationalError(f"no answer for {ANSWER_SECONDS:g} s")
                wanted = answer.send(ready)
        except StopIteration as end:
            return end.value

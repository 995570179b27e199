"""Connections of the HTTP service: so many at a time, and none that keeps its request to itself."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from service.api.settings import ServiceSettings


def guarded_protocol(settings: ServiceSettings) -> type[H11Protocol]:
    """The server's protocol with a limit of connections and of the time until a request's head has arrived."""

    class Guarded(H11Protocol):
        """A connection; a request that is being answered has no limit here, its body has its own."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
            """Begin, or end at once where there are too many."""
            super().connection_made(transport)
            self._head = self.loop.call_later(settings.header_seconds, self._end)
            if len(self.connections) > settings.max_connections:
                self._end()

        def data_received(self, data: bytes) -> None:
            """The first bytes of a further request start the clock again."""
            if not self._is_answering() and self._head.cancelled():
                self._head = self.loop.call_later(settings.header_seconds, self._end)
            super().data_received(data)
            if self._is_answering():
                self._head.cancel()

        def connection_lost(self, exc: Any) -> None:
            """Forget it."""
            self._head.cancel()
            super().connection_lost(exc)

        def _is_answering(self) -> bool:
            cycle: Any = self.cycle  # None before the first request, whatever the server's types say
            return cycle is not None and not cycle.response_complete

        def _end(self) -> None:
            self.transport.abort()

    return Guarded

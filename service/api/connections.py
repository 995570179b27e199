"""Connections of the HTTP service: a limit in all and for each address, and none that keeps its request to itself.

Health checks are always answered: connections beyond the limits are accepted for `/healthz` and `/readyz` alone, as
long as there are few of them.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection
from typing import Any, ClassVar

from fastapi.security.utils import get_authorization_scheme_param
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.api.settings import ServiceSettings
from service.api.tokens import Token, find

_HEALTH = (b"GET /healthz ", b"GET /readyz ", b"HEAD /healthz ", b"HEAD /readyz ")
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_MOST_FOR_HEALTH = 64
_MOST_FOR_HEALTH_OF_ADDRESS = 8
_HEALTH_SECONDS = 1.0
"""How long a connection beyond the limits may take to ask for the service's health."""
_KEEP_ALIVE_SECONDS = 30
_KEEP_ALIVE_SECONDS_WITHOUT_TOKEN = 5


def guarded_protocol(settings: ServiceSettings) -> type[H11Protocol]:
    """Return the server's protocol with limits of connections and of the time until a request's head has arrived."""
    places = _Places(settings.max_connections, settings.max_connections_per_address)
    return type("Guarded", (_Guarded,), {"_settings": settings, "_tokens": settings.all_tokens, "_places": places})


class _Guarded(H11Protocol):
    """A connection; a request that is being answered has no limit here, its body has its own."""

    _settings: ClassVar[ServiceSettings]
    _tokens: ClassVar[tuple[Token, ...]]
    _places: ClassVar[_Places]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Begin, for all requests, for health checks alone, or not at all."""
        super().connection_made(transport)
        self._has_asked = False
        self._place = self._places.take(self.client[0] if self.client else "")
        seconds = self._settings.header_seconds if self._place.is_regular else _HEALTH_SECONDS
        self._head = self.loop.call_later(seconds, self._end)
        if not self._place.is_taken:
            self._end()

    def data_received(self, data: bytes) -> None:
        """The first bytes of a further request start the clock again."""
        if not self._place.is_regular:
            if self._has_asked or not _is_health_check(data):
                self._end()
                return
            self._has_asked = True
        if not self._is_answering() and self._head.cancelled():
            self._head = self.loop.call_later(self._settings.header_seconds, self._end)
        super().data_received(data)
        if self._is_answering():
            self._head.cancel()

    def on_response_complete(self) -> None:
        """Keep the connection for a further request, longer with a token than without."""
        if not self._place.is_regular:
            self.timeout_keep_alive = 0
        elif not self._tokens or _has_token(self.headers, self._tokens):
            self.timeout_keep_alive = _KEEP_ALIVE_SECONDS
        else:
            self.timeout_keep_alive = _KEEP_ALIVE_SECONDS_WITHOUT_TOKEN
        super().on_response_complete()

    def connection_lost(self, exc: Any) -> None:
        """Forget it."""
        self._head.cancel()
        self._places.give_back(self._place)
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # None before the first request, whatever the server's types say
        return cycle is not None and not cycle.response_complete

    def _end(self) -> None:
        self.transport.abort()


class _Place:
    """What one connection may do."""

    def __init__(self, address: str, *, is_regular: bool, is_taken: bool) -> None:
        self.address = address
        self.is_regular = is_regular
        """Whether it may send any request, or only ask for the service's health."""
        self.is_taken = is_taken
        """Whether it may stay at all."""


class _Places:
    """Counts connections, in all and for each address, by whether they may send any request."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self._most = {True: most, False: _MOST_FOR_HEALTH}
        self._most_of_address = {True: most_of_address, False: _MOST_FOR_HEALTH_OF_ADDRESS}
        self._all: Counter[bool] = Counter()
        self._of_address: Counter[tuple[bool, str]] = Counter()

    def take(self, address: str) -> _Place:
        """Take a place for a new connection."""
        for is_regular in (True, False):
            if (
                self._all[is_regular] < self._most[is_regular]
                and self._of_address[is_regular, address] < self._most_of_address[is_regular]
            ):
                self._all[is_regular] += 1
                self._of_address[is_regular, address] += 1
                return _Place(address, is_regular=is_regular, is_taken=True)
        return _Place(address, is_regular=False, is_taken=False)

    def give_back(self, place: _Place) -> None:
        """Free the place of a connection that is lost."""
        if not place.is_taken:
            return
        self._all[place.is_regular] -= 1
        key = (place.is_regular, place.address)
        self._of_address[key] -= 1
        if not self._of_address[key]:
            del self._of_address[key]


def _is_health_check(data: bytes) -> bool:
    """Return whether this is one whole request for the service's health, with nothing behind it.

    What follows in the same bytes would be answered as a further request.
    """
    end = _END_OF_HEAD.search(data)
    return data.startswith(_HEALTH) and end is not None and end.end() == len(data)


def _has_token(headers: list[tuple[bytes, bytes]], tokens: Collection[Token]) -> bool:
    """Return whether the headers of a request hold a token that is configured."""
    given = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, text = get_authorization_scheme_param(given.decode("latin-1"))
    return scheme.lower() == "bearer" and find(text, tokens) is not None

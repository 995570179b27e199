"""A schema registry that is away is waited for as a broker is: its errors are told as those that may pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.codec import Codec, Emit, Events, Leaving, Records
from service.kafka import RetriableError
from service.registry import RegistryError


@contextmanager
def asking() -> Iterator[None]:
    """Around what may ask the registry."""
    try:
        yield
    except RegistryError as error:
        raise RetriableError(str(error), error.code) from error


@dataclass(frozen=True)
class AskingCodec:
    """A codec that may have to ask for the schema of a record."""

    codec: Codec

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        with asking():
            return self.codec.decode(batch)

    def encode(self, leaving: Leaving, emit: Emit) -> Iterable[list[bytes]]:
        """The messages of each cluster."""
        return self.codec.encode(leaving, emit)

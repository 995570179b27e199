"""A schema registry that is away is waited for as a broker is: its errors are told as those that may pass.

So is a subject with a newer schema than the decoder's: records wait until the worker reads by the newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from service.codec import Decoder, Events, NewerSchemaError, Records
from service.kafka import RetriableError
from service.registry import RegistryError


@contextmanager
def asking() -> Iterator[None]:
    """Around what may ask the registry."""
    try:
        yield
    except RegistryError as error:
        raise RetriableError(str(error), error.code) from error


class SchemaChangedError(RetriableError):
    """A record names a schema that is newer than the decoder; the record waits for another decoder."""


@dataclass(frozen=True)
class AskingDecoder:
    """A decoder that may have to ask for the schema of a record."""

    decoder: Decoder
    on_change: Callable[[], None]
    """Called when a record shows that a subject has a newer schema."""

    def decode(self, batch: Records) -> Events:
        """Rows and refusals of one batch."""
        try:
            with asking():
                return self.decoder.decode(batch)
        except NewerSchemaError as error:
            self.on_change()
            raise SchemaChangedError(str(error), error.code) from None

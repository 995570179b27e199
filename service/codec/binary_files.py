"""What files of Avro and of Protobuf have in common: how they are opened, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from microdata import DataError, PersonSource, Schema, SchemaError


@contextmanager
def records_of(path: Path, schema: Schema) -> Iterator[BinaryIO]:
    """A file to read records from; what goes wrong names the file and shows none of its values."""
    if schema.person is PersonSource.KEY:
        raise DataError(f"{path.name}: the schema takes the person from record keys, and records of a file have none")
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path.name}: there is no such file") from None
    except OSError:
        raise DataError(f"{path.name}: may not be read") from None
    except DataError as error:
        raise error.of(path.name) from None
    except SchemaError as error:
        raise DataError(f"{path.name}: {error}") from None

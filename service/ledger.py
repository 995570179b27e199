"""What was released of a data set, and whether a further release may be joined with it to tell more than either.

Two releases of the same table are comparable if one can be computed from the other: every quasi-identifier is on the
same level or higher. Whoever has both then knows what the finer one says. All others may be joined: a row that is in a
class of each is in what both classes have in common. The data set is named by the policy. A fingerprint of the table
alone would be evaded by one row more, so another table of the same data set is never comparable.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from microdata import DataError, PortcullisError


class IncomparableError(PortcullisError):
    """A release that may be joined with an earlier one to tell more than either."""


@dataclass(frozen=True)
class Facts:
    """What decides whether two releases are comparable. No value of a record is in it."""

    table: str
    """SHA-256 of what was read, whatever the order of its rows."""
    ladder: str | None = None
    """SHA-256 of the levels that there are; None where classes have none, and can be compared with nothing."""
    levels: Mapping[str, int] | None = None
    """The level of each quasi-identifier."""


@dataclass(frozen=True)
class Released:
    """One release of a data set."""

    data_set: str
    policy: str
    purpose: str | None
    who: str
    at: float
    facts: Facts

    @classmethod
    def now(cls, data_set: str, policy: str, purpose: str | None, who: str, facts: Facts) -> Released:
        """A release that is about to leave."""
        return cls(data_set, policy, purpose, who, time.time(), facts)

    def as_dict(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Released:
        """From what `as_dict` made."""
        return cls(**{**given, "facts": Facts(**given["facts"])})


def comparable(one: Facts, other: Facts) -> bool:
    """Whether one release can be computed from the other."""
    if one.table != other.table or one.ladder is None or one.ladder != other.ladder:
        return False
    if one.levels is None or other.levels is None or one.levels.keys() != other.levels.keys():
        return False
    steps = [one.levels[name] - level for name, level in other.levels.items()]
    return all(step >= 0 for step in steps) or all(step <= 0 for step in steps)


def check_comparable(release: Released, earlier: Iterable[Released]) -> None:
    """Raise `IncomparableError` unless a release is comparable with each that there was of its data set."""
    against = [one for one in earlier if one.data_set == release.data_set and not comparable(release.facts, one.facts)]
    if against:
        first = against[0]
        what = f"policy {first.policy}" + (f", purpose {first.purpose}" if first.purpose else "")
        raise IncomparableError(
            f"{len(against)} earlier releases of this data set are neither finer nor coarser: joined with one of them, "
            "this one may tell more than either; nothing is released",
            given=f"{release.data_set}, released for {what}",
        )


class LedgerFile:
    """Releases as lines of JSON in a file, for commands."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, release: Released, *, allow: bool) -> None:
        """Write a release down before it leaves; `IncomparableError` where it must not, unless that is allowed."""
        with self._locked() as file:
            if not allow:
                check_comparable(release, self._read(file))
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(release.as_dict(), sort_keys=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def releases(self) -> list[Released]:
        """All that were written down."""
        with self._locked() as file:
            return list(self._read(file))

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file, for one process at a time."""
        try:
            file = self._path.open("a+b")
        except OSError as error:
            raise DataError(f"{self._path}: cannot be written ({error.strerror})") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def _read(self, file: BinaryIO) -> Iterator[Released]:
        file.seek(0)
        for number, line in enumerate(file, start=1):
            try:
                yield Released.of(json.loads(line))
            except (ValueError, TypeError, KeyError):
                raise DataError(f"{self._path}: line {number} is no release; restore the file") from None

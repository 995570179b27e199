"""The key under which persons are compared."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from microdata._kernels import hash_texts
from microdata.randomness import system_words

_BYTES = 16


@dataclass(frozen=True, eq=False)
class PersonKey:
    """A secret. Under one key two rows have the same code exactly when they are about the same person.

    Without the key nobody can make two persons fall together on purpose, or try who a code stands for. So a run draws
    its own and writes it nowhere. Where several processes, or one after its restart, must agree about persons, one of
    them draws a key and hands `bytes(key)` to the others.

    >>> key = PersonKey.random()
    >>> (PersonKey.from_bytes(bytes(key)).words == key.words).all()
    np.True_
    """

    words: NDArray[np.uint64] = field(repr=False)
    second: PersonKey | None = field(default=None, repr=False)
    """Where a code of 64 bits is not enough, the key of another 64."""

    @classmethod
    def random(cls) -> PersonKey:
        """A new key from the operating system."""
        return cls(system_words(_BYTES // 8))

    @classmethod
    def from_bytes(cls, secret: bytes) -> PersonKey:
        """A key that was handed over."""
        if len(secret) != _BYTES:
            raise ValueError(f"a key of persons has {_BYTES} bytes, given {len(secret)}")
        return cls(np.frombuffer(secret, "<u8").astype(np.uint64))

    def wide(self) -> PersonKey:
        """The same key, with a second one that follows from it: two persons never share both codes.

        Among ten million persons some two share a code of 64 bits with a chance of three in a million. That only makes
        a count smaller, but whoever remembers values of persons would mix theirs.
        """
        texts = np.frombuffer(b"second, 0second, 1", np.uint8)
        return replace(self, second=PersonKey(hash_texts(np.array([0, 9, 18]), texts, self.words).view(np.uint64)))

    def __bytes__(self) -> bytes:
        return self.words.astype("<u8").tobytes()


def count_persons(persons: NDArray[np.int64]) -> int:
    """How many persons there are among these codes. Sorting is many times faster than the hash table of `np.unique`.

    >>> count_persons(np.array([7, 3, 7]))
    2
    """
    ordered = np.sort(persons)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + min(len(persons), 1)

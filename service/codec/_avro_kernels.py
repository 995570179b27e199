"""A reader of Avro's binary encoding, and writers of its numbers.

A schema is a program: the types of a record as nodes, each with what it is and what is inside of it. Of the declared
fields it is noted what is there and where; everything else is passed over. A record that ends elsewhere than its schema
says is not taken, whatever was noted of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from service.codec._found import Found

NULL, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, FIXED, ENUM, ARRAY, MAP, UNION, RECORD = range(13)
_DEEPEST = 64
"""Records, lists and maps inside of each other."""
_STEPS = 1_024
"""Values that a record may have beyond those of its schema and eight per byte: lists may hold values without bytes."""
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


class Program(NamedTuple):
    """The types of one schema; the first is the record."""

    kinds: NDArray[np.int64]
    first: NDArray[np.int64]
    """Where the types inside of each begin in `inner`; of a fixed type its size, of an enumeration its symbols."""
    sizes: NDArray[np.int64]
    """How many there are."""
    inner: NDArray[np.int64]
    field: NDArray[np.int64]
    """The declared field that a type is of, or -1."""
    choice: NDArray[np.int64]
    """Which of the field's types it is; -1 for null."""


@kernel
def scan(
    data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64], program: Program, found: Found
) -> NDArray[np.bool_]:
    """Fill in what is found of each record; says which of them end where their schema says."""
    taken = np.zeros(len(begins), np.bool_)
    stack = np.empty((_DEEPEST, 3), np.int64)
    word = np.empty(8, np.uint8)
    for row in range(len(begins)):
        end = _record(row, data, begins[row], ends[row], program, found, stack, word)
        taken[row] = end == ends[row]
    return taken


@kernel
def split(
    data: NDArray[np.uint8], program: Program, found: Found, bounds: NDArray[np.int64], at: int, stop: int
) -> int:
    """As above for records that follow each other; notes where each begins. How many of them are whole."""
    stack = np.empty((_DEEPEST, 3), np.int64)
    word = np.empty(8, np.uint8)
    bounds[0] = at
    for row in range(len(bounds) - 1):
        end = _record(row, data, bounds[row], stop, program, found, stack, word)
        if end < 0:
            return row
        bounds[row + 1] = end
    return len(bounds) - 1


@kernel
def _record(  # noqa: PLR0911 - each is where a record can break off
    row: int,
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    program: Program,
    found: Found,
    stack: NDArray[np.int64],
    word: NDArray[np.uint8],
) -> int:
    """Where the record ends; -1 where it is not one."""
    steps = _STEPS + len(program.kinds) + 8 * (stop - at)
    # Of each type that is under way: which, how many values of it are to come, and which is next.
    depth, stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, program.sizes[0], program.first[0]
    while depth >= 0:
        steps -= 1
        if steps < 0:
            return -1
        outer = stack[depth, 0]
        kind = program.kinds[outer]
        if stack[depth, 1] == 0:
            if kind == RECORD:
                depth -= 1
                continue
            more, at = _long(data, at, stop)
            if at >= 0 and more < 0:  # a count below zero: how many bytes follow is said as well
                more = -more
                _, at = _long(data, at, stop)
            if at < 0 or more < 0:
                return -1
            if more == 0:
                depth -= 1
                continue
            stack[depth, 1] = more
        stack[depth, 1] -= 1
        if kind == MAP:
            begin, at = _bytes(data, at, stop)
            if at < 0:
                return -1
        node = program.inner[stack[depth, 2]]
        if kind == RECORD:
            stack[depth, 2] += 1
        if program.kinds[node] == UNION:
            branch, at = _long(data, at, stop)
            if at < 0 or branch < 0 or branch >= program.sizes[node]:
                return -1
            node = program.inner[program.first[node] + branch]
        kind, field = program.kinds[node], program.field[node]
        if field >= 0:
            found.choice[field, row] = program.choice[node]
        if kind >= ARRAY:
            depth += 1
            if depth == _DEEPEST:
                return -1
            stack[depth, 0], stack[depth, 2] = node, program.first[node]
            stack[depth, 1] = program.sizes[node] if kind == RECORD else 0
            continue
        begin, number = at, 0.0
        if kind in (INT, LONG, ENUM):
            begin, at = _long(data, at, stop)
            if (kind == INT and not _LEAST <= begin <= _MOST) or (
                kind == ENUM and not 0 <= begin < program.first[node]
            ):
                return -1
        elif kind == BYTES:
            begin, at = _bytes(data, at, stop)
        elif kind != NULL:
            size = 1 if kind == BOOLEAN else 4 if kind == FLOAT else 8 if kind == DOUBLE else program.first[node]
            at += size
            if at > stop:
                return -1
            if kind == BOOLEAN:
                begin = int(data[at - 1])
                if begin > 1:
                    return -1
            elif kind != FIXED:
                for place in range(size):
                    word[place] = data[at - size + place]
                number = np.float64(word[:4].view(np.float32)[0]) if kind == FLOAT else word.view(np.float64)[0]
        if at < 0:
            return -1
        if field >= 0:
            found.begins[field, row], found.ends[field, row], found.numbers[field, row] = begin, at, number
    return at


@kernel
def _long(data: NDArray[np.uint8], at: int, stop: int) -> tuple[int, int]:
    """A whole number and where it ends; -1 where there is none."""
    value, shift = np.uint64(0), np.uint64(0)
    while at < stop:
        byte = np.uint64(data[at])
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            break
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return int(np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))), at
        shift += np.uint64(7)
    return 0, -1


@kernel
def _bytes(data: NDArray[np.uint8], at: int, stop: int) -> tuple[int, int]:
    """Where bytes begin and end; -1 where they are cut off."""
    size, begin = _long(data, at, stop)
    if begin < 0 or size < 0 or size > stop - begin:
        return 0, -1
    return begin, begin + size


@kernel
def decimals(
    data: NDArray[np.uint8],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    most_low: np.uint64,
    most_high: np.uint64,
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Read numbers in two's complement, the highest byte first.

    Return the low and high word of each number, and which of them are at most `most` without their sign.
    """
    words, fits = np.zeros((len(begins), 2), np.uint64), np.zeros(len(begins), np.bool_)
    one, shift, ones = np.uint64(1), np.uint64(8), np.uint64(0xFFFFFFFFFFFFFFFF)
    for row in range(len(begins)):
        at, end = begins[row], ends[row]
        if at == end:
            continue
        negative = data[at] > 127
        while at < end - 16 and data[at] == np.uint8(255 if negative else 0):
            at += 1
        low = high = ones if negative else np.uint64(0)
        for place in range(at, end):
            high = (high << shift) | (low >> np.uint64(56))
            low = (low << shift) | np.uint64(data[place])
        words[row, 0], words[row, 1] = low, high
        if negative:
            low = ~low + one
            high = ~high + (one if low == 0 else np.uint64(0))
        # Sixteen bytes of which the first has the other sign would have taken a seventeenth: `high` is too large then.
        below = high < most_high or (high == most_high and low <= most_low)
        fits[row] = end - at <= 16 and below
    return words, fits


@kernel
def write_longs(
    values: NDArray[np.int64], valid: NDArray[np.bool_], optional: bool
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Whole numbers side by side, and where each begins; optional ones are the second branch of a union with null."""
    offsets, texts = np.zeros(len(values) + 1, np.int64), np.empty(11 * len(values), np.uint8)
    at = 0
    for row in range(len(values)):
        if optional:
            texts[at] = 2 if valid[row] else 0
            at += 1
        if valid[row]:
            at = _write(texts, at, values[row])
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def write_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], valid: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The same for optional bytes, those of each row up to where the next begins."""
    rows = len(valid)
    offsets, texts = np.zeros(rows + 1, np.int64), np.empty(11 * rows + begins[rows] - begins[0], np.uint8)
    at = 0
    for row in range(rows):
        texts[at] = 2 if valid[row] else 0
        at += 1
        if valid[row]:
            at = _write(texts, at, begins[row + 1] - begins[row])
            for place in range(begins[row], begins[row + 1]):
                texts[at] = data[place]
                at += 1
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def write_words(
    words: NDArray[np.uint8], size: int, valid: NDArray[np.bool_], optional: bool
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The same for values that take `size` bytes each, as they are."""
    rows = len(valid)
    offsets, texts = np.zeros(rows + 1, np.int64), np.empty((size + 1) * rows, np.uint8)
    at = 0
    for row in range(rows):
        if optional:
            texts[at] = 2 if valid[row] else 0
            at += 1
        if valid[row]:
            for place in range(size * row, size * (row + 1)):
                texts[at] = words[place]
                at += 1
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def _write(texts: NDArray[np.uint8], at: int, value: int) -> int:
    """Write a whole number; where it ends."""
    rest = np.uint64((np.int64(value) << 1) ^ (np.int64(value) >> 63))
    while rest > np.uint64(127):
        texts[at] = np.uint8((rest & np.uint64(127)) | np.uint64(128))
        rest >>= np.uint64(7)
        at += 1
    texts[at] = np.uint8(rest)
    return at + 1

"""A reader of Protobuf's binary encoding, and writers of its values.

A schema is a program: of each message on the way to declared fields the fields that matter. Of the declared ones it is
noted what is there last and where; everything else is passed over by what is said of it in front. A record that ends
inside of a value is not taken, nor one that holds a declared field that is written as another type is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel
from service.codec._found import Found

NOTHING, MESSAGE, BYTES, WHOLE, WHOLE32, UNSIGNED32, SIGNED, SIGNED32, BOOLEAN, FIXED, FIXED32, SFIXED32 = range(12)
FLOAT, DOUBLE = 12, 13
VARINT, EIGHT_BYTES, LENGTH, GROUP, GROUP_END, FOUR_BYTES = 0, 1, 2, 3, 4, 5
"""How a value is written."""
VALUE, DEFAULT = 0, 1
"""What there is of a field."""
_HALF = np.uint64(0xFFFFFFFF)
_KEY, _LONGEST_PATH = 16, 11
_DEEPEST = 64
"""Groups inside of each other."""


class Program(NamedTuple):
    """The fields that matter; the first message is the record."""

    first: NDArray[np.int64]
    """Where the fields of each message begin, and the end of all; by number in each."""
    numbers: NDArray[np.int64]
    kinds: NDArray[np.int64]
    wires: NDArray[np.int64]
    targets: NDArray[np.int64]
    """Where the value is noted, or the message that it is."""
    absent: NDArray[np.int64]
    """What there is of a field that its message does not hold."""
    rivals: NDArray[np.int64]
    """Where those begin of which there is nothing any more once this one is there, and the end of all."""
    cleared: NDArray[np.int64]


@kernel
def scan(
    data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64], program: Program, found: Found
) -> NDArray[np.bool_]:
    """Fill in what is found of each record; says which of them are whole."""
    taken = np.zeros(len(begins), np.bool_)
    stack = np.empty((len(program.first), 3), np.int64)
    word = np.empty(8, np.uint8)
    for row in range(len(begins)):
        taken[row] = _record(row, data, begins[row], ends[row], program, found, stack, word)
    return taken


@kernel
def _record(
    row: int,
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    program: Program,
    found: Found,
    stack: NDArray[np.int64],
    word: NDArray[np.uint8],
) -> bool:
    """Whether the record is whole."""
    # Of each message that is under way: which, where it ends, and the field that may come next.
    depth, stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, stop, program.first[0]
    _enter(row, 0, program, found)
    while True:
        stop = stack[depth, 1]
        if at == stop:
            if depth == 0:
                return True
            depth -= 1
            continue
        tag, at = _varint(data, at, stop)
        if at < 0 or tag > _HALF or tag < np.uint64(8):
            return False
        number, wire = np.int64(tag >> np.uint64(3)), np.int64(tag & np.uint64(7))
        value, begin = np.uint64(0), at
        if wire == VARINT:
            value, at = _varint(data, at, stop)
        elif wire == LENGTH:
            value, begin = _varint(data, at, stop)
            at = begin + int(np.int64(value)) if begin >= 0 and value <= np.uint64(stop - begin) else -1
        elif wire == EIGHT_BYTES:
            at += 8
        elif wire == FOUR_BYTES:
            at += 4
        elif wire == GROUP:
            at = _group(data, at, stop, number)
        else:
            return False
        if at < 0 or at > stop:
            return False
        node = stack[depth, 0]
        field, last = stack[depth, 2], program.first[node + 1]
        if field > program.first[node] and program.numbers[field - 1] >= number:
            field = program.first[node]
        while field < last and program.numbers[field] < number:
            field += 1
        stack[depth, 2] = field
        if field == last or program.numbers[field] != number:
            continue
        for place in range(program.rivals[field], program.rivals[field + 1]):
            found.choice[program.cleared[place], row] = -1
        kind, target = program.kinds[field], program.targets[field]
        if kind == NOTHING:
            continue
        if wire != program.wires[field]:
            return False
        if kind == MESSAGE:
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = target, at, program.first[target]
            at = begin
            _enter(row, target, program, found)
            continue
        found.choice[target, row] = VALUE
        found.ends[target, row] = at
        if wire == VARINT:
            begin = int(_whole(value, kind))
        elif wire != LENGTH:
            size = at - begin
            for place in range(size):
                word[place] = data[begin + place]
            if kind == FLOAT:
                found.numbers[target, row] = np.float64(word[:4].view(np.float32)[0])
            elif kind == DOUBLE:
                found.numbers[target, row] = word.view(np.float64)[0]
            elif kind == FIXED:
                begin = int(word.view(np.int64)[0])
            else:
                begin = int(np.int64(word[:4].view(np.int32)[0]))
                if kind == FIXED32:
                    begin &= 0xFFFFFFFF
        found.begins[target, row] = begin


@kernel
def _group(data: NDArray[np.uint8], at: int, stop: int, number: np.int64) -> int:
    """Where a group ends, the mark behind it included; -1 where it does not."""
    open_groups, depth = np.empty(_DEEPEST, np.int64), 0
    open_groups[0] = number
    while True:
        tag, at = _varint(data, at, stop)
        if at < 0 or tag > _HALF or tag < np.uint64(8):
            return -1
        inner, wire = np.int64(tag >> np.uint64(3)), np.int64(tag & np.uint64(7))
        if wire == GROUP_END:
            if inner != open_groups[depth]:
                return -1
            if depth == 0:
                return at
            depth -= 1
        elif wire == GROUP:
            depth += 1
            if depth == _DEEPEST:
                return -1
            open_groups[depth] = inner
        elif wire == LENGTH:
            size, at = _varint(data, at, stop)
            if at < 0 or size > np.uint64(stop - at):
                return -1
            at += int(np.int64(size))
        elif wire == VARINT:
            _, at = _varint(data, at, stop)
            if at < 0:
                return -1
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            at += 8 if wire == EIGHT_BYTES else 4
        else:
            return -1
        if at > stop:
            return -1


@kernel
def _enter(row: int, node: int, program: Program, found: Found) -> None:
    """Note what there is of fields that a message need not hold, unless it held them before."""
    for field in range(program.first[node], program.first[node + 1]):
        if program.absent[field] >= 0 and found.choice[program.targets[field], row] < 0:
            found.choice[program.targets[field], row] = program.absent[field]
            # What was there may have been cleared since.
            found.begins[program.targets[field], row] = found.ends[program.targets[field], row] = 0
            found.numbers[program.targets[field], row] = 0.0


@kernel
def _whole(value: np.uint64, kind: int) -> np.int64:
    """The whole number that a varint is."""
    if kind == BOOLEAN:
        return np.int64(value != np.uint64(0))
    if kind == WHOLE:
        return np.int64(value)
    if kind == SIGNED:
        return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))
    low = np.int64(value & _HALF)
    if kind == SIGNED32:
        return (low >> 1) ^ -(low & 1)
    if kind == WHOLE32 and low >= (np.int64(1) << 31):
        return low - (np.int64(1) << 32)
    return low


@kernel
def _varint(data: NDArray[np.uint8], at: int, stop: int) -> tuple[np.uint64, int]:
    """A whole number without a sign and where it ends; -1 where there is none."""
    value, shift = np.uint64(0), np.uint64(0)
    while at < stop:
        byte = np.uint64(data[at])
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            break
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            return value, at
        shift += np.uint64(7)
    return np.uint64(0), -1


@kernel
def heads(
    data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """What is in front of records, a zero, an id and the place of a message: as keys, and where it ends (-1: nowhere).

    The place is a count and as many numbers; a zero alone is the first message. A key is the id, the bytes of the place
    and how many these are.
    """
    keys, after = np.zeros((len(begins), _KEY), np.uint8), np.full(len(begins), -1, np.int64)
    for row in range(len(begins)):
        at, stop = begins[row], ends[row]
        if stop - at < 6 or data[at] != 0:
            continue
        path = at + 5
        count, end = _varint(data, path, stop)
        if end < 0 or count & np.uint64(1) or count > np.uint64(2 * _LONGEST_PATH):
            continue
        for _ in range(np.int64(count) // 2):
            if end >= 0:
                _, end = _varint(data, end, stop)
        if end < 0 or end - path > _LONGEST_PATH:
            continue
        for place in range(end - at - 1):
            keys[row, place] = data[at + 1 + place]
        keys[row, _KEY - 1] = end - path
        after[row] = end
    return keys, after


@kernel
def split(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> tuple[int, int]:
    """Records that follow each other, each behind its length: notes begin and end of each.

    How many of them are whole, and where the next one begins; -1 where what follows is no length.
    """
    at = 0
    for row in range(len(bounds)):
        size, begin = _varint(data, at, len(data))
        if begin < 0:
            # A length takes no more than ten bytes.
            return row, at if len(data) - at < 10 else -1
        if size > np.uint64(len(data) - begin):
            return row, at
        bounds[row, 0], bounds[row, 1] = begin, begin + np.int64(size)
        at = bounds[row, 1]
    return len(bounds), at


# -- writing -----------------------------------------------------------------------------------------------------------


@kernel
def write_varints(
    values: NDArray[np.int64], valid: NDArray[np.bool_], tag: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Whole numbers side by side, each behind its tag, and where each begins; nothing of those that are not valid."""
    offsets, texts = np.zeros(len(values) + 1, np.int64), np.empty((10 + len(tag)) * len(values), np.uint8)
    at = 0
    for row in range(len(values)):
        if valid[row]:
            at = _write(texts, _write_tag(texts, at, tag), np.uint64(values[row]))
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def write_texts(
    data: NDArray[np.uint8], begins: NDArray[np.int64], valid: NDArray[np.bool_], tag: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The same for bytes, those of each row up to where the next begins."""
    rows = len(valid)
    offsets = np.zeros(rows + 1, np.int64)
    texts = np.empty((10 + len(tag)) * rows + begins[rows] - begins[0], np.uint8)
    at = 0
    for row in range(rows):
        if valid[row]:
            at = _write(texts, _write_tag(texts, at, tag), np.uint64(begins[row + 1] - begins[row]))
            for place in range(begins[row], begins[row + 1]):
                texts[at] = data[place]
                at += 1
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def write_words(
    words: NDArray[np.uint8], size: int, valid: NDArray[np.bool_], tag: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The same for values that take `size` bytes each, as they are."""
    rows = len(valid)
    offsets, texts = np.zeros(rows + 1, np.int64), np.empty((size + len(tag)) * rows, np.uint8)
    at = 0
    for row in range(rows):
        if valid[row]:
            at = _write_tag(texts, at, tag)
            for place in range(size * row, size * (row + 1)):
                texts[at] = words[place]
                at += 1
        offsets[row + 1] = at
    return offsets, texts[:at]


@kernel
def _write_tag(texts: NDArray[np.uint8], at: int, tag: NDArray[np.uint8]) -> int:
    for byte in tag:
        texts[at] = byte
        at += 1
    return at


@kernel
def _write(texts: NDArray[np.uint8], at: int, value: np.uint64) -> int:
    """Write a whole number; where it ends."""
    while value > np.uint64(127):
        texts[at] = np.uint8((value & np.uint64(127)) | np.uint64(128))
        value >>= np.uint64(7)
        at += 1
    texts[at] = np.uint8(value)
    return at + 1

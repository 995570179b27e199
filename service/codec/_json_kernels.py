"""A scanner of plain JSON records.

It knows less than JSON: what it does not surely understand it leaves to the decoder that does. What it understands, it
understands as that decoder does. Every record ends with a byte that JSON has nowhere, so nothing runs into the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata.compile import kernel

PUBLIC, TEXT, NUMBER = 0, 1, 2
"""What a field is for: any value, as its text; a text or a whole number, as its text; a number."""
END = 0
"""The byte behind every record."""
_DEEPEST = 60
_EXACT = 1 << 53
_MOST_SCALE = 22
_MOST_DIGITS = 25
_MOST_WHOLE = 18
_QUOTE, _ESCAPE, _COMMA, _COLON, _MINUS, _DOT = 34, 92, 44, 58, 45, 46
_EXPONENT = tuple(b"eE")
_OPEN, _CLOSE, _LIST, _LIST_END = 123, 125, 91, 93
_ESCAPES = tuple(b'"\\/bfnrt')


class Tree(NamedTuple):
    """The declared fields as they are nested; names are UTF-8."""

    children: NDArray[np.int64]
    """Of each object the first of its fields; they stand side by side."""
    names: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    """Where the name of each field begins and ends."""
    inner: NDArray[np.int64]
    """The object that a field holds, or -1."""
    field: NDArray[np.int64]
    """The number of a declared field, or -1."""
    kinds: NDArray[np.int64]
    """Of each declared field."""


class Found(NamedTuple):
    """Fields × records: where the text of each value is, and its number."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    numbers: NDArray[np.float64]
    """Not a number where it has to be read from its text."""


@kernel
def scan(
    data: NDArray[np.uint8], bounds: NDArray[np.int64], tree: Tree, found: Found, ascii_only: bool
) -> NDArray[np.bool_]:
    """Fill in what is found of each plain record; says which they are."""
    taken = np.zeros(len(bounds) - 1, np.bool_)
    seen = np.empty(len(tree.field), np.int64)
    seen[:] = -1
    above = np.empty(len(tree.children), np.int64)
    for row in range(len(taken)):
        taken[row] = _record(row, data, bounds[row], bounds[row + 1] - 1, tree, found, seen, above, ascii_only)
    return taken


@kernel
def gather(
    data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """These texts side by side, and where each of them begins."""
    offsets = np.zeros(len(begins) + 1, np.int64)
    for row in range(len(begins)):
        offsets[row + 1] = offsets[row] + ends[row] - begins[row]
    texts = np.empty(offsets[-1], np.uint8)
    for row in range(len(begins)):
        shift = begins[row] - offsets[row]
        for place in range(offsets[row], offsets[row + 1]):
            texts[place] = data[place + shift]
    return offsets, texts


@kernel
def _record(
    row: int,
    data: NDArray[np.uint8],
    at: int,
    stop: int,
    tree: Tree,
    found: Found,
    seen: NDArray[np.int64],
    above: NDArray[np.int64],
    ascii_only: bool,
) -> bool:
    """Whether the record from `at` to `stop` is plain and holds every field that must be there, each once."""
    at = _space(data, at)
    if data[at] != _OPEN:
        return False
    at, node, depth, first, next_ = at + 1, 0, 0, True, tree.children[0]
    missing = 0
    for kind in tree.kinds:
        missing += kind != PUBLIC
    while True:
        at = _space(data, at)
        if data[at] == _CLOSE:
            at = at + 1
            if depth == 0:
                return missing == 0 and _space(data, at) == stop
            depth -= 1
            node, first, next_ = above[depth], False, tree.children[above[depth]]
            continue
        if not first:
            if data[at] != _COMMA:
                return False
            at = _space(data, at + 1)
        name, at = at + 1, _key(data, at, ascii_only)
        if at < 0:
            return False
        first = False
        child = _child(data, name, tree, node, next_)
        if child < 0:
            at = _skip(data, at, ascii_only)
            if at < 0:
                return False
            continue
        if seen[child] == row:
            return False
        seen[child], next_ = row, child + 1
        if tree.inner[child] >= 0:
            if data[at] != _OPEN:
                return False
            above[depth] = node
            depth, node, first, at = depth + 1, tree.inner[child], True, at + 1
            next_ = tree.children[node]
            continue
        field = tree.field[child]
        missing -= tree.kinds[field] != PUBLIC
        at = _value(row, field, data, at, tree.kinds[field], found, ascii_only)
        if at < 0:
            return False


@kernel
def _value(row: int, field: int, data: NDArray[np.uint8], at: int, kind: int, found: Found, ascii_only: bool) -> int:
    """Note a declared value; where it ends, or -1."""
    begin = at
    if kind == TEXT and data[at] == _QUOTE:
        begin = at + 1
        end = _text(data, begin, ascii_only)
        at = end + 1 if end >= 0 else -1
    elif kind == TEXT:
        end = at = _whole(data, at)
    elif kind == PUBLIC:
        end = at = _skip(data, at, ascii_only)
    else:
        end = at = _number(row, field, data, at, found)
    found.begins[field, row], found.ends[field, row] = begin, end
    return at


@kernel
def _child(data: NDArray[np.uint8], name: int, tree: Tree, node: int, guess: int) -> int:
    """The declared field of this name, or -1. Most records have their fields in the order of those before."""
    first, last = tree.children[node], tree.children[node + 1]
    for step in range(last - first):
        child = guess + step
        if child >= last:
            child -= last - first
        begin, length = tree.bounds[child, 0], tree.bounds[child, 1] - tree.bounds[child, 0]
        same = 0
        while same < length and data[name + same] == tree.names[begin + same]:
            same += 1
        if same == length and data[name + length] == _QUOTE:
            return child
    return -1


@kernel
def _space(data: NDArray[np.uint8], at: int) -> int:
    while data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9:
        at += 1
    return at


@kernel
def _key(data: NDArray[np.uint8], at: int, ascii_only: bool) -> int:
    """Where the value of the key at this place begins, or -1."""
    if data[at] != _QUOTE:
        return -1
    at = _text(data, at + 1, ascii_only)
    if at < 0:
        return -1
    at = _space(data, at + 1)
    return _space(data, at + 1) if data[at] == _COLON else -1


@kernel
def _text(data: NDArray[np.uint8], at: int, ascii_only: bool) -> int:
    """The quote that ends the text; -1 where a text is not simply what it says."""
    while data[at] != _QUOTE:
        byte = data[at]
        if byte < 32 or byte == _ESCAPE or (ascii_only and byte > 127):
            return -1
        at += 1
    return at


@kernel
def _skip_text(data: NDArray[np.uint8], at: int, ascii_only: bool) -> int:
    """Behind a text that need not be understood; -1 for codes of characters, which may be wrong."""
    while data[at] != _QUOTE:
        byte = data[at]
        if byte < 32 or (ascii_only and byte > 127):
            return -1
        if byte == _ESCAPE:
            at += 1
            if data[at] not in _ESCAPES:
                return -1
        at += 1
    return at + 1


@kernel
def _digits(data: NDArray[np.uint8], at: int) -> int:
    while 48 <= data[at] <= 57:
        at += 1
    return at


@kernel
def _whole(data: NDArray[np.uint8], at: int) -> int:
    """Behind a whole number whose digits are its name, or -1."""
    begin = at + 1 if data[at] == _MINUS else at
    end = _digits(data, begin)
    if end == begin or end - begin > _MOST_WHOLE or (data[begin] == 48 and (end - begin > 1 or begin > at)):
        return -1
    return -1 if data[end] == _DOT or data[end] in _EXPONENT else end


@kernel
def _number_end(data: NDArray[np.uint8], at: int) -> int:
    """Behind a number, or -1."""
    at = at + 1 if data[at] == _MINUS else at
    end = _digits(data, at)
    if end == at or (data[at] == 48 and end > at + 1):
        return -1
    if data[end] == _DOT:
        at = end + 1
        end = _digits(data, at)
        if end == at:
            return -1
    if data[end] in _EXPONENT:
        at = end + 1
        if data[at] == _MINUS or data[at] == 43:
            at += 1
        end = _digits(data, at)
        if end == at or end > at + 2:
            return -1
    return end


@kernel
def _number(row: int, field: int, data: NDArray[np.uint8], at: int, found: Found) -> int:
    """Behind a number whose value is noted, if a division of two exact numbers gives it; or -1."""
    end = _number_end(data, at)
    if end < 0 or end - at > _MOST_DIGITS:
        return -1
    sign = 1.0
    if data[at] == _MINUS:
        sign, at = -1.0, at + 1
    mantissa, scale, point = np.int64(0), 0, False
    found.numbers[field, row] = np.nan
    for place in range(at, end):
        byte = data[place]
        if byte == _DOT:
            point = True
            continue
        if byte in _EXPONENT or mantissa > _EXACT:
            return end
        mantissa = 10 * mantissa + (np.int64(byte) - 48)
        scale += point
    if mantissa <= _EXACT and scale <= _MOST_SCALE:
        power = 1.0
        for _ in range(scale):
            power *= 10.0
        found.numbers[field, row] = sign * (np.float64(mantissa) / power)
    return end


@kernel
def _literal_end(data: NDArray[np.uint8], at: int) -> int:
    """Behind true, false or null, or -1."""
    if data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4
    if data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4
    if data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101:
        return at + 5
    return -1


@kernel
def _skip(data: NDArray[np.uint8], at: int, ascii_only: bool) -> int:
    """Behind any value, or -1. One bit per level says whether it is an object."""
    depth, objects = 0, np.uint64(0)
    while True:
        byte = data[at]
        if byte in (_OPEN, _LIST):
            is_object = byte == _OPEN
            depth, objects = depth + 1, (objects << np.uint64(1)) | np.uint64(is_object)
            if depth > _DEEPEST:
                return -1
            at = _space(data, at + 1)
            if data[at] != (_CLOSE if is_object else _LIST_END):
                if is_object:
                    at = _key(data, at, ascii_only)
                    if at < 0:
                        return -1
                continue
        elif byte == _QUOTE:
            at = _skip_text(data, at + 1, ascii_only)
        elif byte == _MINUS or 48 <= byte <= 57:
            at = _number_end(data, at)
        else:
            at = _literal_end(data, at)
        if at < 0:
            return -1
        while True:
            if depth == 0:
                return at
            at = _space(data, at)
            is_object = (objects & np.uint64(1)) == np.uint64(1)
            if data[at] == _COMMA:
                at = _space(data, at + 1)
                if is_object:
                    at = _key(data, at, ascii_only)
                    if at < 0:
                        return -1
                break
            if data[at] != (_CLOSE if is_object else _LIST_END):
                return -1
            at, depth, objects = at + 1, depth - 1, objects >> np.uint64(1)

"""What a worker keeps of persons, for an engine that remembers them: in a compacted topic beside that of its state.

Each cycle writes what has changed as one delta (in parts, where it is large), in the transaction that commits its
decisions. Beside that, pages of the tables are written again, one after the other. Once all of them are newer than a
delta, nobody needs it any more and it is deleted; so the topic stays as large as the tables are, and everything is
sealed anew in turn. Whoever reads all records in their order, the later over the earlier, has the tables. The state
record names where they end, how large the tables are and a checksum over all of their entries: a record that is
missing, old or foreign shows.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from microdata import DataError
from service.kafka import Partition, Reader
from service.worker.packing import pack, packed, unpack
from service.worker.sealing import Keys
from stream_algos import Columns, Room

log = logging.getLogger(__name__)

RECORD_BYTES = 900_000
"""Largest record; brokers take a million unless they are told otherwise."""
_RAW_BYTES = RECORD_BYTES - 20_000
"""What one record holds before it is packed and sealed, which adds a little where nothing can be made smaller."""
_PER_PAGE = _RAW_BYTES // 2
"""Bytes of deltas for which one page is written again."""
_PER_DELTA = _PER_PAGE // 200
"""What a delta counts at least: many small ones are as slow to read as a large one."""
_MOST_PAGES = 8
"""Pages that one transaction writes."""
_READ_TIMEOUT = 30.0
_TELL_SECONDS = 5.0
"""How often it is told how far reading has come."""
_DELTA = b"delta/"
"""How keys of deltas begin; those of pages are table and number."""
_HASHED_AT_ONCE = 1 << 16

Pieces: TypeAlias = list[tuple[str, NDArray[np.int64], Columns]]
"""Entries of tables: the table, their numbers, and what they are."""


class LostMemoryError(DataError):
    """Memory that is not what its state says; nobody may go on with it."""


class Tables(Protocol):
    """Whose entries are kept; see `stream_algos.Memory`."""

    @property
    def loose(self) -> frozenset[str]:
        """Columns of which an old value does no harm."""

    def sizes(self) -> dict[str, int]:
        """Entries of each table."""

    def touched(self) -> dict[str, NDArray[np.int64]]:
        """Entries that may have changed since `kept`."""

    def entries(self, table: str, numbers: NDArray[np.int64]) -> Columns:
        """What they hold."""

    def kept(self) -> None:
        """Everything is kept."""

    def room(self, sizes: Mapping[str, int]) -> Mapping[str, Room]:
        """Columns to be filled."""


class MemoryNote(msgspec.Struct, frozen=True):
    """What a state record says of the memory that belongs to it."""

    topic_id: str
    persons_check: str
    """Of the key by which persons are known again: `Keys.persons_check`."""
    start: int
    """Where the records of this run begin."""
    end: int
    """Behind the last record."""
    sizes: dict[str, int]
    checksum: int
    """Over all entries of all tables."""
    turn: tuple[int, int, int, int] = (0, 0, 0, 0)
    """How far writing pages again has come: `begun`, `next` and `owed` of `_Live`. Restarts do not begin it anew."""
    layout: str = ""
    """How entries are written: whoever does it in another way has other pages, and would leave gaps between them."""


@dataclass(frozen=True)
class _Live:
    """What the topic holds, and how far writing pages again has come."""

    pages: Mapping[bytes, int] = field(default_factory=dict)
    """Key of each, and the sequence with which it was written."""
    deltas: tuple[tuple[int, bytes], ...] = ()
    """Sequence and key of each."""
    begun: int = 0
    """Sequence at which the round of pages that is under way began."""
    next: tuple[int, int] = (0, 0)
    """Table and page that are next."""
    owed: int = 0
    """Bytes of deltas for which no page was written yet."""


@dataclass(frozen=True, eq=False)
class Written:
    """What one transaction writes of a partition's memory."""

    where: Partition
    records: tuple[tuple[bytes, bytes | None], ...]
    note: MemoryNote
    live: _Live = field(default_factory=_Live)

    def deleting(self, keys: Collection[bytes]) -> Written:
        """The same after whatever the topic holds under these keys is deleted."""
        return replace(self, records=(*((key, None) for key in keys), *self.records))

    def ending(self, end: int) -> Written:
        """The same once it is known where its records end."""
        return replace(self, note=msgspec.structs.replace(self.note, end=end))


class _Sums:
    """A hash of every entry as it was last written, and their sum."""

    def __init__(self) -> None:
        self._hashes: dict[str, NDArray[np.uint64]] = {}
        """Of each table, with room for more; 0 is nobody's hash."""
        self._undo: list[tuple[str, NDArray[np.int64], NDArray[np.uint64]]] = []
        """What there was before, since it was last `kept`."""
        self._sizes: dict[str, int] = {}
        self.checksum = np.uint64(0)

    def fill(self, table: str, entries: Room, loose: frozenset[str]) -> None:
        """These are all entries of a table, and were written."""
        hashes = _all_hashes(table, entries, loose)
        self._hashes[table], self._sizes[table] = hashes, len(hashes)
        with np.errstate(over="ignore"):
            self.checksum += hashes.sum(dtype=np.uint64)

    def resize(self, table: str, size: int) -> None:
        """The table has so many entries now."""
        known, before = self._hashes.setdefault(table, np.empty(0, np.uint64)), self._sizes.get(table, 0)
        if size > len(known):
            grown = np.zeros(size + size // 2, np.uint64)
            grown[:before] = known[:before]
            self._hashes[table] = grown
        if size < before:
            self._put(table, np.arange(size, before), np.zeros(before - size, np.uint64))
        self._sizes[table] = size

    def take(
        self, table: str, numbers: NDArray[np.int64], entries: Columns, loose: frozenset[str]
    ) -> NDArray[np.bool_]:
        """Which of these entries differ from what was written; all of them are written now."""
        new = hashes_of(table, numbers, entries, loose)
        return self._put(table, numbers, new)

    def _put(self, table: str, numbers: NDArray[np.int64], new: NDArray[np.uint64]) -> NDArray[np.bool_]:
        known = self._hashes[table]
        old = known[numbers]
        changed = new != old
        with np.errstate(over="ignore"):
            self.checksum += new.sum(dtype=np.uint64) - old.sum(dtype=np.uint64)
        known[numbers] = new
        self._undo.append((table, numbers[changed], old[changed]))
        return changed

    def kept(self) -> None:
        """What was written is durable."""
        self._undo.clear()

    def undo(self) -> None:
        """What was written since is not durable, and never will be."""
        for table, numbers, old in reversed(self._undo):
            self._put(table, numbers, old)
            self._sizes[table] = max(self._sizes[table], int(numbers.max(initial=-1)) + 1)
        self._undo.clear()


class DurableMemory:
    """The memory of one partition: tables of one or several owners, each under its name."""

    def __init__(self, where: Partition, keys: Keys, owners: Sequence[Tables], note: MemoryNote) -> None:
        self._where = where
        self._keys = keys
        self._owners = owners
        self._note = note
        self._sums = _Sums()
        self._live = _Live()
        self._hurried = False

    @property
    def note(self) -> MemoryNote:
        """What is durable."""
        return self._note

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, sequence: int) -> Written:
        """What has changed since the last cycle, and pages; it counts once it is `committed`."""
        sizes: dict[str, int] = {}
        pieces, sums = Pieces(), self._sums
        sums.undo()
        for owner in self._owners:
            own = owner.sizes()
            sizes |= own
            for table, numbers in owner.touched().items():
                sums.resize(table, own[table])
                entries = owner.entries(table, numbers)
                changed = sums.take(table, numbers, entries, owner.loose)
                pieces.append((table, numbers[changed], {name: column[changed] for name, column in entries.items()}))
        records = [
            (_DELTA + f"{sequence}/{part}".encode(), content) for part, content in enumerate(_packed(sequence, pieces))
        ]
        live = replace(
            self._live,
            deltas=self._live.deltas + tuple((sequence, key) for key, _ in records),
            owed=self._live.owed + sum(max(len(content), _PER_DELTA) for _, content in records),
        )
        if self._hurried:
            live = replace(live, owed=max(live.owed, _MOST_PAGES * _PER_PAGE))
        pages, gone, live = self._rewritten(live, sizes, sequence, sums)
        sealed: list[tuple[bytes, bytes | None]] = [
            (key, self._keys.seal(content, self._where, key, sequence)) for key, content in [*records, *pages]
        ]
        turn = (live.begun, *live.next, live.owed)
        note = msgspec.structs.replace(
            self._note, sizes=sizes, checksum=int(sums.checksum), turn=turn, layout=_layout(self._owners)
        )
        return Written(self._where, (*sealed, *((key, None) for key in gone)), note, live)

    def _rewritten(
        self, live: _Live, sizes: Mapping[str, int], sequence: int, sums: _Sums
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes], _Live]:
        """The pages whose turn it is, keys that nobody needs any more, and what there is then."""
        records: list[tuple[bytes, bytes]] = []
        gone: list[bytes] = []
        while live.owed >= _PER_PAGE and len(records) < _MOST_PAGES:
            table, page = live.next
            if live.next == (0, 0):
                live = replace(live, begun=sequence)
            names = [(owner, name) for owner in self._owners for name in owner.sizes()]
            owner, name = names[table]
            rows = _rows_of_a_page(owner, name)
            if page * rows < sizes[name]:
                numbers = np.arange(page * rows, min((page + 1) * rows, sizes[name]))
                key = f"{name}/{page}".encode()
                entries = owner.entries(name, numbers)
                # An entry may say the same in other words by now: of a cohort that was split, a part.
                sums.take(name, numbers, entries, owner.loose)
                records.append((key, next(_packed(sequence, [(name, numbers, entries)]))))
                live = replace(
                    live,
                    pages={**live.pages, key: sequence},
                    next=(table, page + 1),
                    owed=live.owed - _PER_PAGE,
                )
                continue
            live = replace(live, next=(table + 1, 0))
            if table + 1 == len(names):
                live, old = self._round_ended(live, sizes)
                gone += old
                if not any(sizes.values()):  # there is nothing to write pages of
                    live = replace(live, owed=0)
        return records, gone, live

    def _round_ended(self, live: _Live, sizes: Mapping[str, int]) -> tuple[_Live, list[bytes]]:
        """All pages are as new as the round: deltas from before it, and pages of what was given up, are not needed."""
        last = {
            name: -(-sizes[name] // _rows_of_a_page(owner, name)) for owner in self._owners for name in owner.sizes()
        }
        beyond = {key for key in live.pages if int(key.split(b"/")[1]) >= last[key.split(b"/")[0].decode()]}
        old = [key for sequence, key in live.deltas if sequence <= live.begun]
        deltas = tuple((sequence, key) for sequence, key in live.deltas if sequence > live.begun)
        pages = {key: sequence for key, sequence in live.pages.items() if key not in beyond}
        return replace(live, pages=pages, deltas=deltas, next=(0, 0)), [*sorted(beyond), *old]

    def hurry(self) -> None:
        """Write as many pages with each transaction as it may have, whether much has changed or not."""
        self._hurried = True

    def older_than(self, sequence: int) -> bool:
        """Whether the topic still needs records that were written before this one."""
        deltas = (delta for delta, _ in self._live.deltas)
        return any(one < sequence for one in (*deltas, *self._live.pages.values()))

    def erased(self) -> Written:
        """Nothing is remembered any more."""
        keys = (*sorted(self._live.pages), *(key for _, key in self._live.deltas))
        note = msgspec.structs.replace(self._note, sizes={}, checksum=0)
        return Written(self._where, tuple((key, None) for key in keys), note)

    def committed(self, written: Written) -> None:
        """What was written is durable."""
        self._note, self._live = written.note, written.live
        self._sums.kept()
        for owner in self._owners:
            owner.kept()

    def go_on_from(self, other: DurableMemory) -> None:
        """Everything is as durable as with another one, of which the same is remembered."""
        self._note, self._live, self._sums = other._note, other._live, other._sums
        self._sums.undo()

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, reader: Reader) -> dict[str, Room]:
        """The tables that the note is about, in the room that their owners have for them."""
        if self._note.sizes and self._note.layout != _layout(self._owners):
            raise LostMemoryError(
                "another version of the worker has written it, in another way; run that version, or drain with it"
            )
        tables = {name: columns for owner in self._owners for name, columns in owner.room(self._note.sizes).items()}
        live = self._read_records(reader, tables)
        for owner in self._owners:
            for name in owner.sizes():
                self._sums.fill(name, tables[name], owner.loose)
        if int(self._sums.checksum) != self._note.checksum:
            raise LostMemoryError("it does not hold what its state says: records are missing or old")
        deltas = tuple((sequence, key) for key, sequence in live.items() if key.startswith(_DELTA))
        begun, table, page, owed = self._note.turn
        pages = {key: sequence for key, sequence in live.items() if not key.startswith(_DELTA)}
        self._live = _Live(pages, deltas, begun, (table, page), owed)
        return tables

    def _read_records(self, reader: Reader, tables: Mapping[str, Room]) -> dict[bytes, int]:
        """Put all records of this run into the tables; the keys that are not deleted, with their sequences.

        Records that no worker has sealed are ignored: what they are in the place of is missing then, which shows.
        """
        live: dict[bytes, int] = {}
        foreign: list[tuple[int, int]] = []
        start, end, tell_at = self._note.start, self._note.end, time.monotonic() + _TELL_SECONDS
        for batch in reader.read(self._where, start, end, _READ_TIMEOUT) if end > start else ():
            for offset, key, value in zip(batch.offsets.tolist(), batch.keys, batch.values, strict=True):
                if value is not None and not self._keys.is_sealed(value):
                    foreign.append((offset, len(key or b"")))
                    continue
                try:
                    self._apply(tables, live, key or b"", value)
                except DataError as error:
                    raise LostMemoryError(f"the record at offset {offset} is damaged: {error}") from None
            if time.monotonic() > tell_at:
                tell_at += _TELL_SECONDS
                done = (int(batch.offsets[-1]) + 1 - start) / (end - start)
                log.info("%s/%d: %.0f %% of what is remembered is read", *self._where, 100 * done)
        if foreign:
            sentence = (
                "%s/%d: %d records were not written by a worker and are ignored; the first is at offset %d, with a key "
                "of %d bytes. Only workers should be able to write to this topic"
            )
            log.warning(sentence, *self._where, len(foreign), *foreign[0])
        return live

    def _apply(self, tables: Mapping[str, Room], live: dict[bytes, int], key: bytes, value: bytes | None) -> None:
        """Put what a record holds over what is there; `live` are the records that nobody has deleted."""
        if value is None:
            live.pop(key, None)
            return
        content, live[key] = self._keys.open(value, self._where, key)
        head, arrays = unpack(content)
        for name in head["tables"]:
            numbers = arrays[f"{name}.#"]
            there = numbers < self._note.sizes.get(name, 0)
            for column, array in tables[name].items():
                array[numbers[there]] = arrays[f"{name}.{column}"][there]


def hashes_of(table: str, numbers: NDArray[np.int64], entries: Columns, loose: frozenset[str]) -> NDArray[np.uint64]:
    """A hash of each entry with its number and its table, but for loose columns; never 0.

    It finds what is missing or old. Against forgery there are the seals.
    """
    hashes = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(hash_of_name(table))
    for name, column in sorted(entries.items()):
        if name in loose:
            continue
        wide = column.astype(np.int64) if column.dtype.kind == "i" else column
        flat = np.ascontiguousarray(wide).reshape(len(numbers), int(np.prod(wide.shape[1:])))
        words = flat.view(np.uint64)
        for place in range(words.shape[1]):
            hashes = (hashes ^ words[:, place]) * np.uint64(0xD6E8FEB86659FD93)
            hashes ^= hashes >> np.uint64(32)
    return hashes | np.uint64(1)


def hash_of_name(table: str) -> int:
    """A number for a table's name, the same in every process."""
    return int.from_bytes(table.encode()[:7].ljust(8, b"\0"), "little")


def _all_hashes(table: str, entries: Room, loose: frozenset[str]) -> NDArray[np.uint64]:
    hashes = np.empty(len(next(iter(entries.values()))), np.uint64)
    for begin in range(0, len(hashes), _HASHED_AT_ONCE):
        some = slice(begin, min(begin + _HASHED_AT_ONCE, len(hashes)))
        own = {name: column[some] for name, column in entries.items()}
        hashes[some] = hashes_of(table, np.arange(some.start, some.stop), own, loose)
    return hashes


def _layout(owners: Sequence[Tables]) -> str:
    """Tables and columns with their types, as a digest."""
    nothing = np.empty(0, np.int64)
    columns = sorted(
        (table, name, column.dtype.str, column.shape[1:])
        for owner in owners
        for table in owner.sizes()
        for name, column in owner.entries(table, nothing).items()
    )
    return hashlib.sha256(repr(columns).encode()).hexdigest()[:16]


def _row_bytes(entries: Columns) -> int:
    return 8 + sum(column.dtype.itemsize * int(np.prod(column.shape[1:])) for column in entries.values())


def _rows_of_a_page(owner: Tables, table: str) -> int:
    """The same in every process with the same policy."""
    return max(1, _RAW_BYTES // _row_bytes(owner.entries(table, np.empty(0, np.int64))))


def _packed(sequence: int, pieces: Pieces) -> Iterator[bytes]:
    """The contents of records that hold all of these entries, none of them too large."""
    together: Pieces = []
    room = _RAW_BYTES
    for table, numbers, entries in pieces:
        size, done = _row_bytes(entries), 0
        while done < len(numbers):
            if room < size and together:
                yield _content(sequence, together)
                together, room = [], _RAW_BYTES
            some = slice(done, done + max(1, room // size))
            together.append((table, numbers[some], {name: column[some] for name, column in entries.items()}))
            room -= size * len(numbers[some])
            done += len(numbers[some])
    if together:
        yield _content(sequence, together)


def _content(sequence: int, pieces: Pieces) -> bytes:
    arrays = {
        f"{table}.{name}": column
        for table, numbers, entries in pieces
        for name, column in [("#", numbers), *entries.items()]
    }
    return pack({"sequence": sequence, "tables": [table for table, _, _ in pieces]}, packed(arrays))

"""The share of recent records that are rejected, and the reason that is named."""

from typing import Any

import numpy as np
import pytest

from microdata import Reason
from service.codec import Refused
from service.kafka import Partition, RecordBatch
from service.worker.rejections import RecentRejections

INPUT = Partition("raw", 0)


def batch(first: int, values: list[bytes | None]) -> RecordBatch:
    offsets = np.arange(first, first + 2 * len(values), 2)
    return RecordBatch(INPUT, offsets, np.zeros(len(values), np.int64), [None] * len(values), values)


def recent(*batches: tuple[int, int], prefixed: bool = False) -> RecentRejections:
    """What is known after batches of so many records, of which so many are rejected."""
    found, first = RecentRejections(prefixed=prefixed), 0
    for records, rejected in batches:
        values: list[bytes | None] = [b"\0\0\0\0\x09rest"] * records
        refused = [Refused(first + 2 * row, "item", Reason.WRONG_TYPE) for row in range(rejected)]
        found.note(batch(first, values), refused)
        first += 2 * records
    return found


@pytest.mark.parametrize(
    ("batches", "rejected", "records"),
    [
        ([(99, 99)], None, None),
        ([(100, 50)], None, None),
        ([(100, 51)], 51, 100),
        ([(60, 60), (60, 60)], 120, 120),
        ([(1_000, 1_000), (60, 0), (60, 0)], None, None),
        ([(60, 0), (60, 0), (1_000, 1_000)], 1_000, 1_000),
        ([(100, 0)] * 5 + [(150, 76)], 76, 150),
        ([(0, 0), (100, 100), (0, 0)], 100, 100),
    ],
)
def test_share_is_of_the_last_hundred_records_or_more(batches: Any, rejected: Any, records: Any) -> None:
    found = recent(*batches).above(0.5)
    assert (found and found.rejected, found and found.records) == (rejected, records)


def test_most_frequent_reason_and_its_schema_id_are_named() -> None:
    found, values = RecentRejections(prefixed=True), list[bytes | None]()
    values += [b"\0\0\0\0\x07x"] * 60 + [b"{}"] * 40 + [None] * 20
    letters = [Refused(2 * row, "age", Reason.WRONG_TYPE) for row in range(60)]
    letters += [Refused(2 * row, "(record)", Reason.MALFORMED) for row in range(60, 100)]
    found.note(batch(0, values), letters)
    assert str(found.above(0.5)) == (
        "100 of the last 120 records are rejected, most of them for age wrong_type, schema id 7"
    )


@pytest.mark.parametrize("value", [None, b"{}", b"\0\0\0\0", b"\x01\0\0\0\x05x"])
def test_record_without_an_id_names_none(value: bytes | None) -> None:
    found = RecentRejections(prefixed=True)
    found.note(batch(0, [value] * 100), [Refused(2 * row, "(record)", Reason.MALFORMED) for row in range(100)])
    assert str(found.above(0.5)).endswith("most of them for (record) malformed")

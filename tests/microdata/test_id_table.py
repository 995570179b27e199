"""Ids and their places, held against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microdata import IdTable


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=200), max_size=6))
def test_every_id_has_the_place_at_which_it_came_first(batches: list[list[int]]) -> None:
    table, known = IdTable(), dict[int, int]()
    for batch in batches:
        asked = np.array(batch, np.uint64)
        assert table.find(asked).tolist() == [known.get(one, IdTable.NONE) for one in batch]
        for one in batch:
            known.setdefault(one, len(known))
        assert table.add(asked).tolist() == [known[one] for one in batch]
        assert table.ids.tolist() == list(known)
        assert len(table) == len(known) <= table.room
    again = IdTable(table.ids)
    assert again.find(table.ids).tolist() == list(range(len(known)))


def test_ids_that_meet_are_told_apart() -> None:
    ids = np.arange(1, 5001, dtype=np.uint64) << np.uint64(40)
    table = IdTable()
    for begin in range(0, 5000, 700):
        table.add(ids[begin : begin + 700])
    assert table.find(ids).tolist() == list(range(5000))
    assert (table.find(ids + np.uint64(1)) == IdTable.NONE).all()
    assert IdTable(ids).find(ids[::-1]).tolist() == list(range(5000))[::-1]


def test_what_is_there_takes_no_room_again() -> None:
    ids, table = np.arange(1000, dtype=np.uint64), IdTable()
    for _ in range(50):
        table.add(ids)
    assert table.room < 2000

"""Who is the same person to a worker: by an explicit key, and by position where every record is another one."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from microdata import Number, PersonKey, PersonSource, Schema
from service.codec import JsonCodec, read_events
from service.kafka import Partition, RecordBatch
from tests.service.worker.test_cycle import RAW, Hall, event

BY_FIELD = Schema("who", (Number("age", 0, 99),))
BY_ROW = Schema(PersonSource.ROW, (Number("age", 0, 99),))


def persons(codec: Any, *names: Any, first: int = 0) -> Any:
    offsets = np.arange(first, first + len(names))
    values = [json.dumps({"who": name, "age": 7}).encode() for name in names]
    batch = RecordBatch(Partition("raw", 0), offsets, offsets, [None] * len(names), values)  # type: ignore[arg-type]
    return codec.decode(batch).persons.tolist()


def test_codecs_agree_about_persons_only_under_one_key() -> None:
    key = PersonKey.random()
    one, other = JsonCodec(BY_FIELD, person_key=key), JsonCodec(BY_FIELD, person_key=key)
    assert persons(one, "a", "b") == persons(other, "a", "b")
    assert persons(JsonCodec(BY_FIELD), "a", "b") != persons(JsonCodec(BY_FIELD), "a", "b")


def test_a_record_that_is_a_person_of_its_own_is_the_same_one_when_it_is_read_again() -> None:
    first = persons(JsonCodec(BY_ROW), "a", "a", "a", first=40)
    assert first == [40, 41, 42]
    assert persons(JsonCodec(BY_ROW), "a", "a", first=41) == first[1:]


def test_lines_of_a_file_are_persons_by_their_number(tmp_path: Path) -> None:
    for name, lines in {"t.jsonl": '{"age": 1}\n{"age": 2}\n', "t.csv": "age\n1\n2\n"}.items():
        (tmp_path / name).write_text(lines)
        read = [[events.persons.tolist() for events in read_events(tmp_path / name, BY_ROW)] for _ in range(2)]
        assert read[0] == read[1]
        assert len({code for codes in read[0] for code in codes}) == 2


def test_a_codec_that_is_made_anew_does_not_make_new_persons() -> None:
    hall = Hall(k=9)
    hall.feed(event(0, "p"))
    hall.cycle(3)
    assert len(hall.worker._owned.running[RAW].rows) == 1
    hall.worker._connections.look_at_topics()
    hall.feed(event(1, "p"), event(2, "q"))
    hall.cycle(3)
    codes = hall.worker._owned.running[RAW].rows.persons.tolist()
    hall.worker.close()
    assert len(codes) == 3
    assert codes[0] == codes[1] != codes[2]

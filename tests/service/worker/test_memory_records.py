"""No record of what is remembered is larger than brokers take, whatever it holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.kafka import Partition
from service.worker.memory import RECORD_BYTES, DurableMemory, MemoryNote
from service.worker.sealing import add_key, load_keys

WHERE = Partition("portcullis.safe.memory", 0)


class Noise:
    """Tables that nothing makes smaller."""

    loose = frozenset[str]()

    def __init__(self, sizes: Mapping[str, int], columns: int) -> None:
        random = np.random.default_rng(7)
        self._sizes = dict(sizes)
        self._tables: dict[str, dict[str, Any]] = {
            name: {
                "tag": np.frombuffer(random.bytes(16 * size)).reshape(size, 2).view(np.int64),
                "values": np.frombuffer(random.bytes(8 * size * columns)).reshape(size, columns),
                "narrow": np.frombuffer(random.bytes(2 * size * columns), np.int16).reshape(size, columns),
            }
            for name, size in sizes.items()
        }

    def sizes(self) -> dict[str, int]:
        return self._sizes

    def touched(self) -> dict[str, Any]:
        return {name: np.arange(size) for name, size in self._sizes.items()}

    def entries(self, table: str, numbers: Any) -> Any:
        return {name: column[numbers] for name, column in self._tables[table].items()}

    def kept(self) -> None:
        pass

    def room(self, sizes: Mapping[str, int]) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("columns", [10, 1000])
def test_a_full_record_that_nothing_makes_smaller_is_not_too_large(tmp_path: Path, columns: int) -> None:
    add_key(tmp_path / "keys.json", "k" * 255)
    keys = load_keys(tmp_path / "keys.json")
    rows = 3 * RECORD_BYTES // (24 + 10 * columns)
    noise = Noise({"persons": rows, "nodes": rows // 2}, columns)
    memory = DurableMemory(WHERE, keys, [noise], MemoryNote("t", keys.persons_check, 0, 0, {}, 0))
    memory.hurry()
    records = memory.write(1).records
    deltas = [len(value) for key, value in records if key.startswith(b"delta/") and value is not None]
    pages = [len(value) for key, value in records if not key.startswith(b"delta/") and value is not None]
    assert len(deltas) > 3
    assert len(pages) > 3
    assert max(deltas + pages) <= RECORD_BYTES
    for sizes in (deltas, pages):
        assert max(sizes) > 0.9 * RECORD_BYTES, "some of them are full"

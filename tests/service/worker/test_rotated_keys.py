"""After a further key was made, everything that is remembered is sealed with it in the end."""

from pathlib import Path

import pytest

from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.sealing import add_key
from service.worker.settings import WorkerSettings
from tests.service.worker.quarter import MEMORY, K, Quarter, small_pages


def sealing(quarter: Quarter) -> set[str]:
    """Ids of the keys with which all records are sealed that compaction would leave."""
    live = dict(quarter.paper.logs[MEMORY])
    return {value[13 : 13 + value[4]].decode() for value in live.values() if value is not None}


def test_a_round_of_pages_after_a_key_was_made_everything_is_sealed_with_it(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_pages(monkeypatch)
    quarter = Quarter(key_file)
    quarter.hall.cycle()
    for _ in range(4):
        quarter.come(40)
        quarter.hall.cycle()
    (old,) = sealing(quarter)
    new = add_key(key_file)
    other = Quarter(key_file, paper=quarter.paper)
    other.values, other.seen = quarter.values, quarter.seen
    seen = [sealing(other)]
    while seen[-1] != {new}:
        assert len(seen) < 40
        other.come(20)
        other.hall.cycle()
        seen.append(sealing(other))
    assert seen[0] == {old}
    assert {old, new} in seen
    other.hall.cycle(3)
    other.restart()
    other.hall.cycle()
    assert other.known()["persons"] > 50
    assert other.least() >= K


def test_whoever_forgets_somebody_seals_everything_anew_at_once(quarter: Quarter, key_file: Path) -> None:
    """So a stream in which nothing happens changes its key too."""
    quarter.hall.cycle(3)
    new = add_key(key_file)
    other = Quarter(key_file, paper=quarter.paper)
    written = len(quarter.paper.logs[MEMORY])
    other.hall.cycle(5)
    assert len(quarter.paper.logs[MEMORY]) == written, "nothing happens"
    assert new not in sealing(quarter)
    other.hall.worker.close()
    stream = quarter.hall.stream
    worker = Worker(stream, quarter.paper, WorkerSettings(key_file=key_file), Metrics(stream))
    quarter.paper.assign(0)
    assert worker.forget(["stranger"]) == {0: 0}
    assert sealing(quarter) == {new}

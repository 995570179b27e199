"""A worker that remembers people, on paper, and the attacker who ties their rows together."""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from privacy.over_time import Sightings, candidates
from service.kafka import Partition
from service.worker import memory
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from stream_algos import Cohorts
from tests.service.worker.test_cycle import RAW, STATE, Hall

MEMORY = Partition("portcullis.safe.memory", 0)
STATES = Partition(STATE, 0)
K = 3
REJECTED: tuple[dict[str, Any], ...] = ({"age": 1000}, {"age": None}, {"age": "old"}, {"city": "?"}, {"item": "?"})
"""Fields of which one is wrong in an event that is rejected."""
ASKED: dict[str, Any] = {"k": K, "founders": 2 * K, "delay": {"tuples": 40}, "company": "standing"}


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a few persons, many of which make a round."""
    monkeypatch.setattr(memory, "_RAW_BYTES", 600)
    monkeypatch.setattr(memory, "_PER_PAGE", 300)
    monkeypatch.setattr(memory, "_PER_DELTA", 30)


class Quarter:
    """People who come back, a worker that takes their events, and what an attacker knows of them."""

    open: ClassVar[list[Any]] = []

    def __init__(
        self, key_file: Path, paper: Any = None, seed: int = 1, persons: int = 60, settings: Any = None, **asked: Any
    ) -> None:
        chosen = {"key_file": key_file, **(settings or {})}
        self.hall = Hall(paper=paper, kind=Cohorts, settings=chosen, **{**ASKED, **asked})
        self.random = np.random.default_rng(seed)
        self.values = np.stack([self.random.integers(0, 100, persons), self.random.integers(0, 3, persons)], axis=1)
        self.seen: list[tuple[int, float, float]] = []
        self.open.append(self)

    @property
    def paper(self) -> Any:
        return self.hall.paper

    def come(self, count: int, moving: float = 0.02, among: slice = slice(None), rejected: float = 0.0) -> None:
        persons = np.arange(len(self.values))[among]
        for person in self.random.choice(persons, count).tolist():
            if self.random.random() < moving:
                self.values[person, 0] = self.random.integers(0, 100)
            if self.random.random() < rejected:
                self.bring(person, **REJECTED[int(self.random.integers(len(REJECTED)))])
            else:
                self.bring(person)

    def bring(self, person: int, **wrong: Any) -> None:
        """Feed an event of a person, in which some fields may be wrong: the attacker knows what those are in truth."""
        age, city = self.values[person].tolist()
        item = "xy"[int(self.random.integers(2))]
        trace = len(self.paper.logs[RAW])
        self.seen.append((person, np.nan, np.nan) if "age" in wrong or "city" in wrong else (person, age, city))
        fields = {"who": f"p{person}", "age": age, "city": "abc"[city], "item": item, "trace": trace, **wrong}
        self.hall.feed((None, json.dumps(fields).encode()))

    def published(self) -> Any:
        """Position and box of every row that left."""
        rows, lo, hi, items = [], [], [], []
        for message in self.hall.output():
            age, city = message["generalization"]["age"], message["generalization"]["city"]
            ages = age if isinstance(age, list) else [age, age]
            cities = (0, 2) if city not in "abc" else ("abc".index(city),) * 2
            for row in message["rows"]:
                rows.append(row["trace"])
                lo.append((ages[0], cities[0]))
                hi.append((ages[1], cities[1]))
                items.append((message["cluster"], row["item"]))
        return np.array(rows), np.array(lo, float), np.array(hi, float), items

    def least(self) -> int:
        """The fewest persons who lie in all boxes of somebody."""
        rows, lo, hi, _ = self.published()
        assert len(rows) == len(set(rows.tolist())), "released once"
        seen = np.array(self.seen)
        sightings = Sightings(np.arange(len(seen)), seen[:, 0], seen[:, 1:].astype(float))
        _, left = candidates(sightings, rows, seen[rows, 0], lo, hi)
        return int(left.min())

    def restart(self) -> None:
        """As a new process does: nothing is in memory."""
        self.hall.worker._owned.discard()
        self.hall.worker._owned._left.clear()

    def compact(self) -> None:
        """What a broker does to a compacted topic."""
        log = self.paper.logs[MEMORY]
        latest = {key: number for number, (key, _) in enumerate(log)}
        self.paper.gone |= {(MEMORY, number) for number, (key, _) in enumerate(log) if latest[key] != number}
        self.paper.gone |= {(MEMORY, number) for number, (_, value) in enumerate(log) if value is None}

    def known(self) -> Any:
        status = self.hall.worker.metrics.status()
        assert not status["stopped"], status["stopped"]
        (own,) = self.hall.worker._owned.running.values()
        return own.engine.status()

    def stopped(self) -> str:
        self.hall.cycle()
        (reason,) = self.hall.worker.metrics.status()["stopped"].values()
        return str(reason)


def kept(quarter: Quarter, key_file: Path, partitions: int = 1) -> Any:
    """End a stream and keep its cohorts."""
    quarter.hall.cycle(2)
    quarter.hall.worker.close()
    stream = quarter.hall.stream
    worker = Worker(stream, quarter.paper, WorkerSettings(key_file=key_file), Metrics(stream))
    quarter.paper.assign(*range(partitions))
    return worker.drain(keep=True)

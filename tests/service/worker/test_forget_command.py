"""`portcullis forget` and `portcullis drain` of a stream that remembers people: what they do, refuse and say."""

import threading
from pathlib import Path
from typing import Any

import pytest

from service.policy import load_policy
from service.worker import command
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.state import State
from service.worker.stream import stream_of
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.quarter import MEMORY, STATES
from tests.service.worker.test_cycle import RAW, event

POLICY = """
name: s
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
guarantee: {algorithm: cohorts, k: 2, founders: 4, delay: {tuples: 5}, company: standing}
stream: {input: raw, output: safe, start: earliest}
"""


class Desk:
    """An operator with a policy, a key file and a list of persons, before a Kafka on paper."""

    def __init__(self, portcullis: Any, directory: Path, key_file: Path) -> None:
        self.paper = Paper()
        self._portcullis = portcullis
        self._policy, self._persons = directory / "policy.yaml", directory / "persons.txt"
        self._policy.write_text(POLICY)
        self._persons.write_text("p1\nstranger\n")
        self._settings = WorkerSettings(key_file=key_file)

    def run(self, name: str, *options: str) -> tuple[int, str]:
        """Status of a command, and what it says."""
        self.paper.assign(*range(self.paper.grown.get("raw", 1)))
        more = ["--person-file", str(self._persons)] if name == "forget" else []
        done = self._portcullis(name, self._policy, *more, *options)
        return done.exit_code, " ".join(done.output.split())

    def work(self) -> None:
        """Let a worker take the events of some persons."""
        stream = stream_of(load_policy(str(self._policy)), self._settings)
        worker = Worker(stream, self.paper, self._settings, Metrics(stream))
        worker.open(threading.Event())
        worker._owned.join()
        self.paper.assign(0)
        self.paper.logs[RAW] += [event(number, f"p{number}") for number in range(8)]
        once = threading.Event()
        once.set()
        for _ in range(3):
            worker._cycle(once)
        worker.close()

    def written(self) -> Any:
        """What is durable."""
        return [list(self.paper.logs[STATES]), list(self.paper.logs[MEMORY]), dict(self.paper.committed_offsets)]


@pytest.fixture
def desk(portcullis: Any, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(portcullis, tmp_path, key_file)
    monkeypatch.setenv("PORTCULLIS_WORKER_KEY_FILE", str(key_file))
    monkeypatch.setattr(command, "connect", lambda _: desk.paper)
    return desk


def test_persons_are_forgotten_and_it_is_said_what_must_happen_for_their_bytes_to_be_gone(desk: Desk) -> None:
    desk.work()
    status, said = desk.run("forget")
    assert status == 0, said
    assert "raw/0: 1 of 2 persons were known, and are forgotten" in said
    assert "if workers run again and events come" in said
    assert "run this again after that time" in said
    before = len(desk.paper.logs[MEMORY])
    assert desk.run("forget")[0] == 0
    assert len(desk.paper.logs[MEMORY]) > before, "else no segment would be closed by it"


def test_a_stream_that_was_never_started_is_not_begun_to_forget_somebody(desk: Desk) -> None:
    status, said = desk.run("forget")
    assert (status, "stream 's' was never started: there is nobody to forget" in said) == (2, True), said
    assert desk.written() == [[], [], {}]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ([], "was drained, which forgot everybody: there is nobody to forget"),
        (["--keep-cohorts"], "was drained with --keep-cohorts: start the policy that goes on with them"),
    ],
)
def test_a_stream_that_was_drained_is_not_begun_to_forget_somebody(desk: Desk, options: list[str], reason: str) -> None:
    desk.work()
    status, said = desk.run("drain", *options)
    assert status == 0, said
    assert ("delete that topic to be rid of it" in said) == (not options)
    before = desk.written()
    status, said = desk.run("forget")
    assert (status, reason in said) == (2, True), said
    assert desk.written() == before
    assert State.decode(before[0][-1][1]).engine is None


def test_a_partition_that_was_never_begun_is_not_begun_to_forget_somebody(desk: Desk) -> None:
    desk.work()
    before = desk.written()
    policy = POLICY.replace("person: who", "person: {key: true}").replace("earliest", "earliest, keyed: murmur2")
    desk._policy.write_text(policy)
    desk.paper.grown = dict.fromkeys(("raw", STATES.topic, MEMORY.topic), 2)
    status, said = desk.run("forget")
    assert (status, "has not begun in raw/1: start its workers" in said) == (2, True), said
    assert desk.written() == before

"""Whoever computes and whoever waits gets tests of its own kind, and of the other kind when there are no more."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.two_queues import TwoQueues, processes

WAITING = [f"tests/service/kafka/test_worker.py::test_{number}" for number in range(6)]
COMPUTING = [f"tests/privacy/test_models.py::test_{number}" for number in range(6)]
GROUP = [f"tests/service/console/test_console.py::test_{number}@browser" for number in range(2)]


class Node:
    """A process of xdist, as its scheduler sees it."""

    gateway = SimpleNamespace(id="gw")
    shutting_down = False

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given += places

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(count: int, tests: list[str]) -> tuple[TwoQueues, list[Node]]:
    config: Any = SimpleNamespace(getvalue=lambda _: ["popen"] * count, option=SimpleNamespace(loadscopereorder=True))
    scheduler = TwoQueues(config)
    nodes: Any = [Node() for _ in range(count)]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    return scheduler, nodes


@pytest.mark.parametrize("tests", [WAITING + COMPUTING + GROUP, COMPUTING + GROUP + WAITING])
def test_two_of_five_compute_and_the_others_wait(tests: list[str]) -> None:
    _, nodes = scheduled(5, tests)
    given = [[tests[place] for place in node.given] for node in nodes]
    assert [test for own in given[:2] for test in own] == [COMPUTING[place] for place in (0, 2, 1, 3)]
    assert given[2][:2] == GROUP
    assert {test for own in given[2:] for test in own} <= {*WAITING, *GROUP}


@pytest.mark.parametrize("count", [1, 2, 5])
def test_everything_is_done_once(count: int) -> None:
    tests = [*WAITING, *GROUP, *COMPUTING]
    scheduler, nodes = scheduled(count, tests)
    while scheduler.has_pending:
        for node in nodes:
            for place in node.given:
                scheduler.mark_test_complete(node, place)
    assert sorted(place for node in nodes for place in node.given) == list(range(len(tests)))


def test_who_finds_nothing_of_its_own_kind_takes_the_other() -> None:
    for tests in (WAITING, COMPUTING):
        _, nodes = scheduled(3, tests)
        assert all(len(node.given) == 2 for node in nodes)


@pytest.mark.parametrize(("cores", "count"), [(1, 3), (2, 5), (4, 10)])
def test_for_two_that_compute_there_are_three_that_wait(cores: int, count: int) -> None:
    assert processes(cores) == count

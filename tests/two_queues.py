"""Which process of a run gets which test: two of five compute, three wait.

Half of a run's time tests wait: for brokers, services, deadlines. Where all processes wait at once the processors are
idle, where all compute they are in each other's way. So tests that mostly wait have a queue of their own, with the
groups before all others, as they take longest. Who finds its own queue empty takes from the other one.
"""

from typing import Any

from xdist.scheduler import LoadGroupScheduling

WAITING = ("tests/service/api/", "tests/service/kafka/", "tests/service/registry/")
"""Processors are busy for less than a third of the time that tests in these folders take."""


def processes(cores: int) -> int:
    """As many that compute as there are cores, and half as many more that wait."""
    return cores + (3 * cores + 1) // 2


def waits(scope: str) -> bool:
    """A scope is a test, or a group of them by its name."""
    return "::" not in scope or scope.startswith(WAITING)


class TwoQueues(LoadGroupScheduling):  # type: ignore[misc]
    """xdist's groups, handed out from two queues."""

    def _assign_work_unit(self, node: Any) -> None:
        wanted = self.nodes.index(node) >= max(1, self.numnodes * 2 // 5)
        scope = next((each for each in self.workqueue if waits(each) == wanted), None)
        if scope is not None:
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

"""Waiting for what others do, without keeping them from it."""

import time
from collections.abc import Callable


def happens(done: Callable[[], object], seconds: float) -> bool:
    """Whether something happens in time; looks often at first, and the less often the more a look costs.

    Looking may mean to read a topic or to ask a service. On a busy machine whoever does that a hundred times a second
    waits for himself.
    """
    begun = time.monotonic()
    while True:
        cost = time.thread_time()
        if done():
            return True
        cost = time.thread_time() - cost
        waited = time.monotonic() - begun
        if waited > seconds:
            return False
        time.sleep(min(max(0.01, 4 * cost, waited / 20), 0.5))

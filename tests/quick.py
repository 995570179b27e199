"""What `make quick` leaves out of what `make test` tries."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def first_of_each(cases: Iterable[Any], group: Callable[[Any], Hashable]) -> list[Any]:
    """The same cases for `parametrize`; all but the first of each group are slow."""
    seen: set[Hashable] = set()
    marked = []
    for case in cases:
        slow = group(case) in seen
        marked.append(pytest.param(case, id=str(case), marks=[pytest.mark.slow] if slow else []))
        seen.add(group(case))
    return marked

"""What `make quick` leaves out of what `make test` tries, and what is tried there without measuring coverage."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def first_of_each(cases: Iterable[Any], group: Callable[[Any], Hashable]) -> list[Any]:
    """The same cases for `parametrize`; all but the first of each group are slow, and measured they would be slower."""
    seen: set[Hashable] = set()
    marked = []
    for case in cases:
        further = [pytest.mark.slow, pytest.mark.no_cover] if group(case) in seen else []
        marked.append(pytest.param(case, id=str(case), marks=further))
        seen.add(group(case))
    return marked

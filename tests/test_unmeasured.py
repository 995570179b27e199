"""Coverage looks away while kernels are compiled, and looks on afterwards."""

import sys
from typing import Any

import numba


def test_a_tracer_sees_nothing_of_the_compiler_and_goes_on_after_it() -> None:
    seen = set()

    def tracer(frame: Any, *_: Any) -> None:
        seen.add(frame.f_globals.get("__name__"))

    def inner(number: int) -> int:
        return number + 1

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        numba.njit(inner)(1)
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is tracer
    assert "numba.core.dispatcher" in seen
    assert "numba.core.compiler" not in seen

"""Arrays that a kernel was given, without counting who uses them.

numba counts for every array how many variables hold it, and a tuple of arrays that is handed to a part counts each of
them up and down again. Whoever calls a kernel holds what is given to it until it is done, so nothing need be counted.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

Given = TypeVar("Given")


def borrowed(given: Given) -> Given:
    """An array, or a named tuple with arrays, that was given to the kernel: never to be returned by it."""
    return given


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        made = context.make_array(kind)(context, builder, value)
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        return made._getvalue()  # noqa: SLF001 - what numba's own arrays are taken out of their proxies by
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value)
        own = [_uncounted(context, builder, one, part) for one, part in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, own)
    return value


@intrinsic  # type: ignore[untyped-decorator]
def _borrow(_context: Any, given: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _uncounted(context, builder, signature.args[0], values[0])

    return given(given), generate


@overload(borrowed)  # type: ignore[untyped-decorator]
def _borrowed(given: Any) -> Any:  # noqa: ARG001 - numba compares the names
    def compiled(given: Any) -> Any:
        return _borrow(given)

    return compiled

"""Memory that a kernel will want soon is asked for, while it goes on with something else."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def prefetch(array: NDArray[Any], row: int | np.int64, part: int = 0) -> None:
    """Ask for the beginning of a row of a table, or of one of its parts, which the second index names.

    It changes nothing but how long the next read of it takes.
    """


@intrinsic  # type: ignore[untyped-decorator]
def _ask(_context: Any, array: Any, _row: Any, _part: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, given[0])
        strides = cgutils.unpack_tuple(builder, made.strides)
        offset = builder.add(builder.mul(given[1], strides[0]), builder.mul(given[2], strides[1]))
        place = cgutils.pointer_add(builder, made.data, offset)
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # For reading, to be kept, as data.
        builder.call(ask, [builder.bitcast(place, byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@overload(prefetch)  # type: ignore[untyped-decorator]
def _prefetch(array: Any, row: Any, part: Any = 0) -> Any:  # noqa: ARG001 - numba compares the names
    def compiled(array: Any, row: Any, part: Any = 0) -> None:
        _ask(array, row, part)

    return compiled

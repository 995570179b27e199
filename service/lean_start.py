"""What libraries would import into our processes where it is installed, though nobody there asks for it.

With the first array pyarrow looks for pandas, and with the first kernel numba for scipy's linear algebra. Many
environments have both, and every process would wait for them. Whoever has looked once in vain does not look again; and
what is asked for by name (`to_pandas`, a kernel with `np.dot`) is there all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_UNASKED = frozenset({"pandas", "scipy.linalg"})


def leave_out_what_nobody_asked_for() -> None:
    """Have the libraries that are loaded look now, while there is nothing to be found."""
    with _hidden():
        if "pyarrow" in sys.modules and "pandas" not in sys.modules:
            import_module("pyarrow").array([])
        if "numba" in sys.modules and "scipy.linalg" not in sys.modules:
            import_module("numba.np.arraymath")


class _Nothing:
    """A finder that finds none of them."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name in _UNASKED:
            raise ModuleNotFoundError(f"{name} is left out of this process", name=name)


@contextmanager
def _hidden() -> Iterator[None]:
    finder = _Nothing()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)

"""Processes of ours do without what libraries would load unasked; `test_live` and `test_run` look at theirs as well."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np, pyarrow as pa
from service.cli.commands import load

if sys.argv[1:]:
    load("anonymize")
from privacy._kernels import category_counts
pa.array(np.arange(3))
category_counts(*(np.zeros(2, np.int64), *[np.zeros(0, kind) for kind in ("i4", "i8", "i4")], 1))
print(*sorted({"pandas", "scipy.linalg"} & sys.modules.keys()))
from numba.np.linalg import ensure_blas
ensure_blas()
assert pa.table({"a": [1, 2]}).to_pandas().a.tolist() == [1, 2]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("given", "loaded"), [([], "pandas scipy.linalg"), (["load"], "")])
def test_a_command_loads_neither_pandas_nor_linear_algebra_until_somebody_asks(given: list[str], loaded: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *given], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == loaded

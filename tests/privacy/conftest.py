from typing import Any
from unittest.mock import patch

import numpy as np
import pytest


def _objects(values: Any, largest: Any) -> Any:
    return np.asarray(values).astype(object)


@pytest.fixture(scope="session")
def with_unbounded_integers() -> Any:
    """Decide a model with Python's integers throughout."""

    def holds(model: Any, groups: Any) -> Any:
        modules = ["exact", "diversity", "emd", "likeness"]
        patches = [patch(f"privacy.{module}.integers", _objects) for module in modules]
        for one in patches:
            one.start()
        try:
            return model.holds(groups)
        finally:
            for one in patches:
                one.stop()

    return holds

"""The check that stands before every release: few classes, often."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from microdata import GuaranteeError
from privacy.model import Groups, Model


def check(models: Iterable[Model], groups: Groups) -> NDArray[np.bool_]:
    """Which classes meet every model."""
    result = np.ones(len(groups), bool)
    for model in models:
        result &= model.holds(groups)
    return result


def require(models: Iterable[Model], groups: Groups) -> None:
    """Raise `GuaranteeError`, naming the models, unless every class meets every one of them."""
    failed = []
    for model in models:
        failing = len(groups) - int(model.holds(groups).sum())
        if failing:
            failed.append(f"{model.label} ({model.asked:g}) fails in {failing} of {len(groups)} classes")
    if failed:
        raise GuaranteeError("; ".join(failed))

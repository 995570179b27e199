"""Hierarchies of a policy: read from a file beside it, written into it, or built."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from microdata import (
    Hierarchy,
    HierarchyError,
    date_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
    quantile_hierarchy,
)
from service.policy.errors import PolicyError, dotted, unknown_name
from service.policy.file import Finite, Section
from service.policy.validation import validated

MAX_LEAVES = 200_000
"""Leaves that a builder makes at most: a few characters of a policy must not fill the memory."""

Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole: TypeAlias = Annotated[int, Field(ge=1)]


class Builder(Section):
    """Makes a hierarchy from a few parameters."""

    builder: str

    @abstractmethod
    def build(self) -> Hierarchy:
        """The hierarchy."""


class Intervals(Builder):
    """Numbers in intervals of fixed widths."""

    builder: Literal["intervals"]
    min: Finite = Field(description="least number")
    max: Finite = Field(description="greatest number")
    step: Positive = Field(default=1.0, description="distance between neighbouring numbers")
    widths: list[Positive] = Field(default=[5.0, 10.0, 20.0], min_length=1, description="of the intervals, ascending")

    def build(self) -> Hierarchy:
        """Intervals from `min` to `max`."""
        _check_size((self.max - self.min) / self.step + 1)
        return interval_hierarchy(self.min, self.max, self.widths, step=self.step)


class Quantiles(Builder):
    """Numbers in intervals that hold about equally many of the given values."""

    builder: Literal["quantiles"]
    values: list[Finite] = Field(min_length=1, max_length=MAX_LEAVES, description="numbers, repeated ones too")
    levels: list[Whole] = Field(default=[16, 4], min_length=1, description="intervals per level, descending")

    def build(self) -> Hierarchy:
        """Quantiles of the values."""
        return quantile_hierarchy(self.values, self.levels)


class Dates(Builder):
    """Days in months, quarters and years."""

    builder: Literal["dates"]
    start: date = Field(description="first day, as 2024-01-31")
    end: date = Field(description="last day")
    levels: list[Literal["day", "month", "quarter", "year"]] = Field(
        default=["day", "month", "quarter", "year"], min_length=1, description="from fine to coarse"
    )

    def build(self) -> Hierarchy:
        """Days from `start` to `end`."""
        _check_size((self.end - self.start).days + 1)
        return date_hierarchy(self.start, self.end, self.levels)


class Prefixes(Builder):
    """Texts such as postcodes by their first characters."""

    builder: Literal["prefixes"]
    values: list[str] = Field(min_length=1, max_length=MAX_LEAVES, description="all values, as texts")
    keep: list[Whole] = Field(default=[3, 2, 1], min_length=1, description="characters kept per level, descending")

    def build(self) -> Hierarchy:
        """Prefixes of the values."""
        return prefix_hierarchy(self.values, self.keep)


BUILDERS: dict[str, type[Builder]] = {
    "intervals": Intervals,
    "quantiles": Quantiles,
    "dates": Dates,
    "prefixes": Prefixes,
}


def resolve_hierarchy(source: str | Mapping[str, Any], base: Path | None, at: tuple[str, ...]) -> Hierarchy:
    """The tree that a policy names. Without `base`, a policy came from outside and no file is opened for it."""
    if isinstance(source, str):
        if base is None:
            raise HierarchyError("a policy that is not a file on this machine cannot name files; write it inline")
        return Hierarchy.from_csv(base / source)
    name = source.get("builder")
    if not isinstance(name, str):
        _check_labels(source)
        return Hierarchy.from_mapping(source)
    if name not in BUILDERS:
        raise PolicyError([unknown_name(name, list(BUILDERS))._replace(path=dotted((*at, "builder")))])
    return validated(BUILDERS[name], source, at).build()


def _check_size(leaves: float) -> None:
    if leaves > MAX_LEAVES:
        raise HierarchyError(f"at most {MAX_LEAVES} leaves are built, these parameters make {leaves:.12g}")


def _check_labels(source: Mapping[str, Any]) -> None:
    """Whole numbers may be labels; what YAML may have rewritten on the way (1.10, true) must be quoted."""
    stack: list[Any] = [source]
    while stack:
        node = stack.pop()
        if isinstance(node, Mapping):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, float | bool):
            raise HierarchyError(f"label {node!r} is not a text; write it in quotes")

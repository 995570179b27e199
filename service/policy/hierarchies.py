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
MAX_CELLS = 400_000
"""Leaves times levels of all hierarchies of a policy together: that many labels are written out for them."""
MAX_CELLS_OF_FILES = 10_000_000
"""The same for a policy that is a file on this machine, whose author waits for it and takes nobody else's time."""

MAX_LEVELS = 100
"""Levels of a hierarchy that is built or sent along: every one is a pass over all leaves, however few there are."""
MAX_SENT = 16 << 20
"""Characters of the files sent along with a policy, each as often as a field names it."""

MAX_PREFIXED = 100
"""Characters of a value that is known by its prefixes: each level writes it out once more."""

Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole: TypeAlias = Annotated[int, Field(ge=1)]
PrefixedText: TypeAlias = Annotated[str, Field(max_length=MAX_PREFIXED)]


class Builder(Section):
    """Makes a hierarchy from a few parameters."""

    builder: str

    @abstractmethod
    def shape(self) -> tuple[float, int]:
        """How many leaves and how many levels it will have at most, leaves and root among them."""

    @abstractmethod
    def build(self) -> Hierarchy:
        """The hierarchy."""


class Intervals(Builder):
    """Numbers in intervals of fixed widths."""

    builder: Literal["intervals"]
    min: Finite = Field(description="least number")
    max: Finite = Field(description="greatest number")
    step: Positive = Field(default=1.0, description="distance between neighbouring numbers")
    widths: list[Positive] = Field(
        default=[5.0, 10.0, 20.0], min_length=1, max_length=MAX_LEVELS, description="of the intervals, ascending"
    )

    def shape(self) -> tuple[float, int]:
        """A level per width."""
        return (self.max - self.min) / self.step + 1, len(self.widths) + 2

    def build(self) -> Hierarchy:
        """Intervals from `min` to `max`."""
        return interval_hierarchy(self.min, self.max, self.widths, step=self.step)


class Quantiles(Builder):
    """Numbers in intervals that hold about equally many of the given values."""

    builder: Literal["quantiles"]
    values: list[Finite] = Field(min_length=1, max_length=MAX_LEAVES, description="numbers, repeated ones too")
    levels: list[Whole] = Field(
        default=[16, 4], min_length=1, max_length=MAX_LEVELS, description="intervals per level, descending"
    )

    def shape(self) -> tuple[float, int]:
        """A leaf per value."""
        return len(self.values), len(self.levels) + 2

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

    def shape(self) -> tuple[float, int]:
        """A leaf per day."""
        return (self.end - self.start).days + 1, len(self.levels) + 1

    def build(self) -> Hierarchy:
        """Days from `start` to `end`."""
        return date_hierarchy(self.start, self.end, self.levels)


class Prefixes(Builder):
    """Texts such as postcodes by their first characters."""

    builder: Literal["prefixes"]
    values: list[PrefixedText] = Field(
        min_length=1, max_length=MAX_LEAVES, description=f"all values, as texts of at most {MAX_PREFIXED} characters"
    )
    keep: list[Whole] = Field(
        default=[3, 2, 1], min_length=1, max_length=MAX_PREFIXED, description="characters kept per level, descending"
    )

    def shape(self) -> tuple[float, int]:
        """A leaf per value."""
        return len(self.values), len(self.keep) + 2

    def build(self) -> Hierarchy:
        """Prefixes of the values."""
        return prefix_hierarchy(self.values, self.keep)


BUILDERS: dict[str, type[Builder]] = {
    "intervals": Intervals,
    "quantiles": Quantiles,
    "dates": Dates,
    "prefixes": Prefixes,
}


class Hierarchies:
    """Resolves the hierarchies of one policy, and keeps them together below a limit.

    Without a `base` directory a policy came from outside, and no file is opened for it: those that it may name came
    along, as `sent`.
    """

    def __init__(self, base: Path | None, sent: Mapping[str, str] | None = None) -> None:
        self._base = base
        self._sent = sent
        self._most = MAX_CELLS if base is None else MAX_CELLS_OF_FILES
        self._left = self._most
        self._sent_left = MAX_SENT

    def resolve(self, source: str | Mapping[str, Any], at: tuple[str, ...]) -> Hierarchy:
        """The tree that a policy names."""
        if isinstance(source, str):
            return self._counted(self._from_sent(source) if self._base is None else self._from_file(source, self._base))
        name = source.get("builder")
        if not isinstance(name, str):
            _check_labels(source)
            return self._counted(Hierarchy.from_mapping(source))
        if name not in BUILDERS:
            raise PolicyError([unknown_name(name, list(BUILDERS))._replace(path=dotted((*at, "builder")))])
        builder = validated(BUILDERS[name], source, at)
        leaves, levels = builder.shape()
        if leaves > MAX_LEAVES:
            raise HierarchyError(f"at most {MAX_LEAVES} leaves are built", given=f"parameters that make {leaves:.12g}")
        self._take(int(leaves), levels)
        return builder.build()

    def _from_file(self, name: str, base: Path) -> Hierarchy:
        return Hierarchy.from_csv(base / name, most_cells=self._left)

    def _from_sent(self, name: str) -> Hierarchy:
        """The tree in a CSV file that came along; only the last part of its name counts."""
        if self._sent is None:
            raise HierarchyError("a policy that is not a file on this machine cannot name files; write it inline")
        text = self._sent.get(name.replace("\\", "/").rpartition("/")[2])
        if text is None:
            raise HierarchyError(
                "names a file; send it along as a part `hierarchies` with this file name, or write the tree inline"
            )
        self._sent_left -= len(text)
        if self._sent_left < 0:
            raise HierarchyError(
                f"files that a policy names have at most {MAX_SENT} characters, each counted as often as it is named"
            )
        return Hierarchy.from_csv_text(text, most_cells=self._left, most_levels=MAX_LEVELS)

    def _counted(self, tree: Hierarchy) -> Hierarchy:
        self._take(tree.size, int(tree.height[0]) + 1)
        return tree

    def _take(self, leaves: int, levels: int) -> None:
        self._left -= leaves * levels
        if self._left < 0:
            raise HierarchyError(
                f"{leaves} leaves on {levels} levels are too many: all hierarchies of a policy together have at most "
                f"{self._most} leaves times levels"
            )


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
            raise HierarchyError("a label is not a text; write it in quotes", given=repr(node))

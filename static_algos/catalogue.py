"""The catalogue: every algorithm with its parameters and what it guarantees, declared once.

The same declaration validates policies, makes the API's JSON schema and the console's form, and fills the docs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from microdata import InfeasibleError

_BOUNDS = ("ge", "gt", "le", "lt")


class Parameters(BaseModel):
    """Base of every algorithm's parameters: unknown names are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Entry(Generic[Kind]):
    """One algorithm of a catalogue."""

    name: str
    summary: str
    parameters: type[Parameters]
    algorithm: type[Kind]


class Catalogue(Generic[Kind]):
    """Algorithms by the name that a policy gives them."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry[Kind]] = {}

    def register(self, name: str, parameters: type[Parameters]) -> Callable[[type[Kind]], type[Kind]]:
        """Class decorator: put an algorithm into the catalogue; its summary is the docstring's first line."""

        def add(algorithm: type[Kind]) -> type[Kind]:
            if name in self._entries:
                raise ValueError(f"algorithm {name!r} is registered twice")
            summary = (algorithm.__doc__ or "").strip().splitlines()[0]
            self._entries[name] = Entry(name, summary, parameters, algorithm)
            return algorithm

        return add

    def __getitem__(self, name: str) -> Entry[Kind]:
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Entry[Kind]]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def names(self) -> tuple[str, ...]:
        """Names in alphabetical order."""
        return tuple(sorted(self._entries))


Asked = TypeVar("Asked", bound=Parameters)


def parse(parameters: type[Asked], given: Mapping[str, Any]) -> Asked:
    """The parameters of an algorithm by name, as a constructor gets them; `InfeasibleError` outside their ranges."""
    try:
        return parameters.model_validate(given)
    except ValidationError as error:
        refusal = out_of_range(error)
        if refusal is None:
            raise
        raise refusal from None


def out_of_range(error: ValidationError) -> InfeasibleError | None:
    """The first value that is outside of its range, with the nearest inside; None where something else is wrong."""
    for problem in error.errors(include_input=False, include_url=False):
        bound = next((problem["ctx"][one] for one in _BOUNDS if one in problem.get("ctx", {})), None)
        if bound is not None:
            name = ".".join(str(part) for part in problem["loc"])
            nearest = bound if problem["type"].endswith("_equal") else None
            return InfeasibleError(problem["msg"], parameter=name, nearest=nearest)
    return None

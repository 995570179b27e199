"""What every static algorithm is: a table in, a publication out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from microdata import Progress, Publication, Schema, Table, silent
from privacy import Model
from static_algos.catalogue import Catalogue, Parameters, parse


class StaticAlgorithm(ABC):
    """Makes a table safe. The constructor takes the parameters that the catalogue declares, by name."""

    Parameters: ClassVar[type[Parameters]]
    guarantees: ClassVar[tuple[type[Model], ...]] = ()
    """Every privacy model that it can guarantee; the parameters decide which of them `models` returns."""
    data: ClassVar[str] = "records"
    """The kind of data that it is for, as a policy names it."""
    example: ClassVar[Mapping[str, Any]]
    """Parameters that fit a small table: warm-ups, docs and generic checks run it with them."""

    def __init__(self, **given: Any) -> None:
        self.parameters = parse(self.Parameters, given)

    @abstractmethod
    def models(self, schema: Schema) -> tuple[Model, ...]:
        """The privacy models that every class of the publication meets."""

    @abstractmethod
    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Partition the rows into classes; an infeasible request raises `InfeasibleError` with the nearest value."""


STATIC_ALGORITHMS: Catalogue[StaticAlgorithm] = Catalogue()

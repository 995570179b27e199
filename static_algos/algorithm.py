"""What every static algorithm is: a table in, a publication out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from microdata import Progress, Publication, Schema, Show, Table, example_table, silent
from privacy import Model, check_able
from static_algos.catalogue import Catalogue, Parameters, parse


class StaticAlgorithm(ABC):
    """Makes a table safe. The constructor takes the parameters that the catalogue declares, by name.

    What stands before the constructor is all that others know of an algorithm: policies, commands, warm-ups, docs and
    generic checks look nowhere else.
    """

    Parameters: ClassVar[type[Parameters]]
    guarantees: ClassVar[tuple[type[Model], ...]] = ()
    """Every privacy model that it can guarantee; the parameters decide which of them `models` returns."""
    data: ClassVar[str] = "records"
    """The kind of data that it is for, as a policy names it."""
    merges: ClassVar[bool] = False
    """Whether it unites classes without looking at the models again: then they must survive merging."""
    shows: ClassVar[Show] = "interval"
    """How its classes are published unless somebody asks for another way; `anonymize` marks its result so."""
    example: ClassVar[Mapping[str, Any]]
    """Parameters that fit `example_data`: warm-ups, docs and generic checks run it with them."""

    @classmethod
    def example_data(cls) -> Table:
        """A small table that `example` fits."""
        return example_table()

    def __init__(self, **given: Any) -> None:
        self.parameters = parse(self.Parameters, given)

    def check_able(self, schema: Schema) -> None:
        """Refuse parameters that ask for a model that it cannot keep."""
        # A table is the one window that its classes are compared with.
        check_able(self.models(schema), self.guarantees, merges=self.merges, compares="window")

    @abstractmethod
    def models(self, schema: Schema) -> tuple[Model, ...]:
        """The privacy models that every class of the publication meets."""

    @abstractmethod
    def anonymize(self, table: Table, *, seed: int | None = None, progress: Progress = silent) -> Publication:
        """Partition the rows into classes; an infeasible request raises `InfeasibleError` with the nearest value."""


STATIC_ALGORITHMS: Catalogue[StaticAlgorithm] = Catalogue()

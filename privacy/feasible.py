"""What can be met at all: by a domain, by a table, by an algorithm. What cannot is refused early, with what could."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from microdata import Attribute, InfeasibleError, Schema, SchemaError, Table
from privacy.keys import KEYS
from privacy.model import CHECKED_ON, CheckedOn, Groups, Histogram, Model, SensitiveModel


def check_domains(models: Iterable[Model], schema: Schema) -> None:
    """Refuse what no data of this schema can meet."""
    for model in models:
        if isinstance(model, SensitiveModel):
            _check_domain(model, schema)


def check_feasible(models: Iterable[Model], table: Table) -> None:
    """Refuse what cannot be met by publishing every row of this table.

    A union of classes that meet a model meets it too (where the model survives merging). So if the whole table as one
    class does not, no partition does, and what it achieves is the nearest feasible value.
    """
    if not len(table):
        return
    one = np.zeros(len(table), np.int32)
    whole = Groups.of(table.schema, table.persons, table.sensitive, one, 1, people=table.people)
    for model in models:
        if model.survives_merging and not model.holds(whole)[0]:
            raise _infeasible(model, whole, f", even by all {len(table)} rows as one class")


def check_able(
    models: Iterable[Model],
    guarantees: Collection[type[Model]],
    *,
    merges: bool = False,
    adds: str | None = None,
    compares: CheckedOn = "class",
) -> None:
    """Refuse models that an algorithm cannot keep.

    It declares the models that it can guarantee, and what it does to classes: whether it unites two without looking at
    the models again, the switch (if it is on) that lets it add rows to one that is published, and what it can compare a
    class with.
    """
    for model in models:
        objection = _objection(model, guarantees, merges=merges, compares=compares)
        if objection:
            raise InfeasibleError(f"the algorithm cannot keep {objection}", parameter=KEYS.name_for(model))
        if adds and not model.survives_adding:
            reason = f"published classes get further rows by it, which {model.name} may not survive"
            raise InfeasibleError(reason, parameter=adds, nearest="false")


def _objection(model: Model, guarantees: Collection[type[Model]], *, merges: bool, compares: CheckedOn) -> str | None:
    if type(model) not in guarantees:
        names = ", ".join(sorted({one.name for one in guarantees}))
        return f"{model.name}; it guarantees {names or 'nothing'}"
    if merges and not model.survives_merging:
        return f"{model.name}: it unites classes, which may break it"
    if CHECKED_ON.index(model.checked_on) > CHECKED_ON.index(compares):
        return f"{model.name}, which is checked on {_BASES[model.checked_on]}; it has only {_BASES[compares]}"
    return None


_BASES: dict[CheckedOn, str] = {
    "class": "the rows of a class",
    "window": "the table or window that a class is compared with",
    "history": "a record of what was published before",
}


def _check_domain(model: SensitiveModel, schema: Schema) -> None:
    protected = [one for one in schema.sensitive if model.attribute in {None, one.name}]
    try:
        model.check_attributes(protected)
    except SchemaError as error:
        raise InfeasibleError(error.reason, parameter=KEYS.name_for(model), given=error.given) from None
    if not model.limited_by_domain:
        return
    for attribute in protected:
        best = _class_of(attribute, model.best_counts(attribute))
        if not model.holds(best)[0]:
            raise _infeasible(model, best, f" by the {attribute.size} values of {attribute.name}")


def _infeasible(model: Model, best: Groups, by_what: str) -> InfeasibleError:
    """That not even the best class there can be meets the model, and what it would meet."""
    return InfeasibleError(
        f"{model.label} cannot be met{by_what}",
        parameter=KEYS.name_for(model),
        given=f"{model.asked:g}",
        nearest=model.nearest(float(model.achieved(best)[0])),
    )


def _class_of(attribute: Attribute, counts: NDArray[np.int64]) -> Groups:
    """A class with so many rows of every value of the domain, each row another person."""
    values = np.flatnonzero(counts).astype(np.int32)
    reference, rows = np.ones(len(counts), np.int64), np.array([counts.sum()])
    histogram = Histogram(attribute, reference, np.array([0, len(values)]), values, counts[values])
    return Groups(
        rows=rows, persons=np.array([np.iinfo(np.int64).max]), most=np.ones(1, np.int64), histograms=(histogram,)
    )

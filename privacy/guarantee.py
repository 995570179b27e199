"""A guarantee as people write it: which models, with which parameters.

Algorithms that can keep any guarantee inherit these fields as their own parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, create_model

from microdata import Attribute, InfeasibleError, Schema, SchemaError, Table, load_extensions
from privacy.keys import KEYS, Part
from privacy.model import Groups, Histogram, Model, SensitiveModel

load_extensions("portcullis.models")


class AnyGuarantee(Part):
    """What a guarantee does with its keys, whichever there are."""

    def models(self, schema: Schema) -> tuple[Model, ...]:
        """The models, checked against the schema: what no data could meet is refused with the nearest value."""
        found = tuple(self._models(schema))
        if not found:
            names = ", ".join(key.name for key in KEYS)
            raise InfeasibleError(f"nothing is asked for; give at least one of {names}", parameter="guarantee")
        check_domains(found, schema)
        return found

    def _models(self, schema: Schema) -> Iterator[Model]:
        values = ((key, getattr(self, key.name)) for key in KEYS)
        asked = {key.name: value for key, value in values if value is not None}
        for key in KEYS:
            if key.name in asked:
                yield from key.read(asked[key.name], asked, schema)


if TYPE_CHECKING:

    class Guarantee(AnyGuarantee):
        """What every class must meet; its fields are the keys that models declare."""

        def __init__(self, **asked: Any) -> None: ...

else:
    Guarantee = create_model(
        "Guarantee",
        __base__=AnyGuarantee,
        __module__=__name__,
        __doc__="""What every class must meet. Everything that is given must hold.

        >>> from microdata import Category, Hierarchy, Number, PersonSource, Schema
        >>> illness = Category("illness", Hierarchy.flat(["flu", "ulcer", "cancer"]))
        >>> schema = Schema(PersonSource.ROW, (Number("age", 0, 120),), (illness,))
        >>> Guarantee(k=5, l={"entropy": 2.5}).models(schema)
        (KAnonymity(k=5), EntropyDiversity(l=2.5, attribute=None))
        """,
        **{key.name: (key.form | None, Field(None, **key.field)) for key in KEYS},
    )


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
    whole = Groups.of(table.schema, table.persons, table.sensitive, np.zeros(len(table), np.int32), 1)
    for model in models:
        if model.survives_merging and not model.holds(whole)[0]:
            raise _infeasible(model, whole, f", even by all {len(table)} rows as one class")


def _check_domain(model: SensitiveModel, schema: Schema) -> None:
    protected = [one for one in schema.sensitive if model.attribute in {None, one.name}]
    try:
        model.check_attributes(protected)
    except SchemaError as error:
        raise InfeasibleError(str(error), parameter=KEYS.name_for(model)) from None
    if not model.limited_by_domain:
        return
    for attribute in protected:
        best = _even(attribute)
        if not model.holds(best)[0]:
            raise _infeasible(model, best, f" by the {attribute.size} values of {attribute.name}")


def _infeasible(model: Model, best: Groups, by_what: str) -> InfeasibleError:
    """That not even the best class there can be meets the model, and what it would meet."""
    return InfeasibleError(
        f"{model.label} of {model.asked:g} cannot be met{by_what}",
        parameter=KEYS.name_for(model),
        nearest=model.nearest(float(model.achieved(best)[0])),
    )


def _even(attribute: Attribute) -> Groups:
    """The most diverse class that a domain allows: each value once, each row another person."""
    values = np.arange(attribute.size or 0, dtype=np.int32)
    counts, rows = np.ones(len(values), np.int64), np.array([len(values)])
    histogram = Histogram(attribute, counts, np.array([0, len(values)]), values, counts)
    return Groups(
        rows=rows, persons=np.array([np.iinfo(np.int64).max]), most=np.ones(1, np.int64), histograms=(histogram,)
    )

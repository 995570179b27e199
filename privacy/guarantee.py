"""A guarantee as people write it: which models, with which parameters.

Algorithms that can keep any guarantee inherit these fields as their own parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from microdata import InfeasibleError, Schema, load_extensions
from privacy.feasible import check_domains
from privacy.keys import KEYS, Part
from privacy.model import Model

load_extensions("portcullis.models")
KEYS.close()


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

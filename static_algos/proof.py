"""What algorithms that keep any guarantee share: the list of models, and the check of their own result."""

from __future__ import annotations

from collections.abc import Sequence

from microdata import Publication
from privacy import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    MaxShare,
    Model,
    RangeLikeness,
    RecursiveDiversity,
    SemanticLikeness,
    TCloseness,
    require,
)

EVERY_MODEL: tuple[type[Model], ...] = (
    KAnonymity,
    MaxShare,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    FrequencyDiversity,
    AlphaK,
    TCloseness,
    BetaLikeness,
    SemanticLikeness,
    RangeLikeness,
    DeltaDisclosure,
)
"""What a guarantee can ask for."""


def proven(publication: Publication, models: Sequence[Model]) -> Publication:
    """The publication, if all its classes meet every model; otherwise `GuaranteeError`."""
    table = publication.table
    groups = Groups.of(table.schema, table.persons, table.sensitive, publication.classes, len(publication.boxes))
    require(models, groups)
    return publication

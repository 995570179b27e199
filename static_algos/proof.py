"""What algorithms that keep any guarantee share: the check of their own result."""

from __future__ import annotations

from collections.abc import Sequence

from microdata import Publication
from privacy import Groups, Model, require


def proven(publication: Publication, models: Sequence[Model]) -> Publication:
    """The publication, if all its classes meet every model; otherwise `GuaranteeError`."""
    table = publication.table
    classes, count = publication.classes, len(publication.boxes)
    groups = Groups.of(table.schema, table.persons, table.sensitive, classes, count, people=table.people)
    require(models, groups)
    return publication

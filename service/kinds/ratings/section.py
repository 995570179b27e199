"""What a policy says about ratings: whose they are, of what, on which scale, and which items are sensitive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from microdata import SchemaError
from microdata.ratings import RatingSchema, Scale
from service.policy import PolicyProblem
from service.policy.file import FieldName, Finite, Section
from service.policy.policy import located

MOST_NAMES = 10_000


class RatingField(Section):
    """The ratings that can be given."""

    field: FieldName | None = Field(None, description="column with the rating; long tables only")
    min: Finite = Field(description="least rating")
    max: Finite = Field(description="greatest rating")
    step: Finite = Field(1.0, gt=0, description="distance between neighbouring ratings")


class RatingsSection(Section):
    """The roles of the fields; a column that is not named here is dropped."""

    person: FieldName = Field(description="column that says whose ratings they are")
    layout: Literal["long", "wide"] = Field(
        "long", description="one row per rating, or one row per person with a column for each item"
    )
    item: FieldName | None = Field(None, description="column with the item that was rated; long tables only")
    rating: RatingField = Field(description="the scale, and in a long table its column")
    items: list[FieldName] | None = Field(
        None,
        min_length=1,
        max_length=MOST_NAMES,
        description="names or patterns (q*) of items: the columns of a wide table, what may be rated in a long one",
    )
    sensitive: list[FieldName] = Field(
        default_factory=list,
        max_length=MOST_NAMES,
        description="names or patterns of items that are published as they are and tell nobody apart",
    )


def schema_of(section: RatingsSection, problems: list[PolicyProblem]) -> RatingSchema | None:
    """The schema that a section describes; None where `problems` were found."""
    long = section.layout == "long"
    for path, given in (("schema.item", section.item), ("schema.rating.field", section.rating.field)):
        if long and given is None:
            problems.append(PolicyProblem(path, "a long table needs this column"))
        if not long and given is not None:
            problems.append(PolicyProblem(path, "a wide table has a column for each item instead; leave it out"))
    if problems:
        return None
    scale = section.rating
    try:
        return RatingSchema(
            person=section.person,
            scale=Scale(scale.min, scale.max, scale.step),
            layout=section.layout,
            item=section.item or "item",
            rating=scale.field or "rating",
            items=None if section.items is None else tuple(section.items),
            sensitive=tuple(section.sensitive),
        )
    except SchemaError as error:
        problems.append(located(error))
        return None

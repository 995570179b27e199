"""From what a policy says about records to their schema."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from microdata import Attribute, Category, HierarchyError, Number, PersonSource, Schema, SchemaError, Sensitivity
from service.kinds.records.section import CategoryField, KeyField, NumberField, SchemaSection, SensitivitySection
from service.policy.errors import PolicyError, PolicyProblem, dotted
from service.policy.hierarchies import Hierarchies
from service.policy.policy import located

MAX_VALUES = 1_000_000
"""Values of all sensitive domains together: there is one count for each of them."""
MAX_FIELDS = 1_000
"""Fields that a policy declares."""


def check_fields(schema: object) -> None:
    """First of all: every field that is wrong is a problem to describe."""
    roles = [schema.get(role) for role in ("quasi", "sensitive", "public")] if isinstance(schema, Mapping) else []
    fields = sum(len(fields) for fields in roles if isinstance(fields, Mapping | list))
    if fields > MAX_FIELDS:
        raise PolicyError([PolicyProblem("schema", f"at most {MAX_FIELDS} fields are declared", f"{fields} of them")])


def schema_of(section: SchemaSection, trees: Hierarchies, problems: list[PolicyProblem]) -> Schema | None:
    """The schema that a section describes; None where `problems` were found."""
    quasi = [_attribute(("schema", "quasi", name), field, trees, problems) for name, field in section.quasi.items()]
    for name, field in section.quasi.items():
        if isinstance(field, NumberField) and field.ranks:
            at = dotted(("schema", "quasi", name, "ranks"))
            problems.append(PolicyProblem(at, "only sensitive numbers have ranks; leave it out"))
        if field.sensitivity:
            at = dotted(("schema", "quasi", name, "sensitivity"))
            problems.append(PolicyProblem(at, "only sensitive attributes have a sensitivity; leave it out"))
    sensitive = []
    for name, field in section.sensitive.items():
        path = ("schema", "sensitive", name)
        if "weight" in field.model_fields_set:
            problems.append(
                PolicyProblem(dotted((*path, "weight")), "only quasi-identifiers have a weight; leave it out")
            )
        sensitive.append(_attribute(path, field, trees, problems))
    problems.extend(_too_many_values([one for one in sensitive if one]))
    if problems:
        return None
    in_key = section.person if isinstance(section.person, KeyField) else None
    try:
        return Schema(
            person=section.person if not isinstance(section.person, KeyField) else PersonSource.KEY,
            quasi=tuple(attribute for attribute in quasi if attribute),
            sensitive=tuple(attribute for attribute in sensitive if attribute),
            public=tuple(section.public),
            weights=tuple(field.weight for field in section.quasi.values()),
            key_field=None if in_key is None else in_key.name,
        )
    except SchemaError as error:
        problems.append(located(error))
        return None


def _too_many_values(sensitive: Collection[Attribute]) -> Iterator[PolicyProblem]:
    """Those of these attributes from which on there are too many values."""
    values = 0
    for attribute in sensitive:
        values += attribute.size or 0
        if values > MAX_VALUES:
            reason = (
                f"its distribution is measured value by value, over at most {MAX_VALUES} of them (of all sensitive "
                "attributes together); declare a coarser step"
            )
            path = dotted(("schema", "sensitive", attribute.name))
            yield PolicyProblem(path, reason, f"a domain of {attribute.size} values")


def _attribute(
    path: tuple[str, ...], field: NumberField | CategoryField, trees: Hierarchies, problems: list[PolicyProblem]
) -> Attribute | None:
    name = path[-1]
    try:
        sensitivity = _sensitivity(field.sensitivity)
        if isinstance(field, NumberField):
            quantiles = tuple(field.ranks.quantiles) if field.ranks else ()
            return Number(name, field.min, field.max, field.integer, field.step, quantiles, sensitivity, field.capped)
        tree = trees.resolve(field.hierarchy, (*path, "hierarchy"))
        reading = (field.characters, tuple(field.forms))
        return Category(name, tree, field.other, field.ordered, sensitivity, *reading)
    except PolicyError as error:
        problems.extend(error.problems)
    except HierarchyError as error:
        problems.append(PolicyProblem(dotted((*path, "hierarchy")), error.reason, error.given))
    except SchemaError as error:
        problems.append(PolicyProblem(dotted(path), error.reason, error.given))
    return None


def _sensitivity(section: SensitivitySection | None) -> Sensitivity | None:
    if section is None:
        return None
    categories = tuple(tuple(items) for items in section.categories)
    return Sensitivity(categories, tuple(Fraction(str(weight)) for weight in section.weights or ()))

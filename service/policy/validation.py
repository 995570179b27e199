"""Validation by pydantic, answered in our words: path, what is allowed, what was given."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from service.policy.errors import PolicyError, Problem, dotted, shown, unknown_key

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]


def validated(model: type[Model], given: Mapping[str, Any], at: Path = ()) -> Model:
    """`given` as this model; every problem is raised at once, with paths below `at`.

    It is read as JSON, strictly: a text is not taken for a number and `true` is not taken for 1.
    """
    try:
        text = json.dumps(given)
    except (TypeError, ValueError, RecursionError):
        raise PolicyError(
            [Problem(dotted(at), "must consist of mappings, lists, texts, numbers and booleans")]
        ) from None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise PolicyError(_problem(model, details, at) for details in error.errors(include_url=False)) from None


def _problem(model: type[BaseModel], details: ErrorDetails, at: Path) -> Problem:
    path = at + _without_tags(details["loc"])
    given = details["input"]
    context = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            known = sorted(_known_keys(model, details["loc"][:-1]))
            return Problem(dotted(path), unknown_key(str(details["loc"][-1]), known))
        case "missing":
            return Problem(dotted(path), "is missing")
        case "union_tag_not_found":
            return Problem(dotted((*path, "type")), "is missing; must be 'number' or 'category'")
        case "union_tag_invalid":
            allowed = " or ".join(str(context["expected_tags"]).split(", "))
            return Problem(dotted((*path, "type")), f"must be {allowed}", shown(context["tag"]))
        case "dict_type" | "model_type" | "model_attributes_type":
            return Problem(dotted(path), "must be a mapping", shown(given))
        case _:
            reason = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            nearest = context.get("ge", context.get("le"))
            return Problem(dotted(path), reason, "" if isinstance(given, dict) else shown(given), nearest)


def _without_tags(loc: Path) -> Path:
    """Leave out the names that pydantic adds for the chosen kind of an attribute."""
    if len(loc) > 3 and loc[0] == "schema" and loc[1] in {"quasi", "sensitive"}:
        return (*loc[:3], *loc[4:])
    return loc


def _known_keys(annotation: Any, loc: Path) -> set[str]:
    """Keys that a policy may use at this place, found by walking down the model's annotations."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) in {dict, list, tuple}:
        return set().union(*(_known_keys(argument, loc[1:]) for argument in arguments)) if loc else set()
    if arguments:
        return set().union(*(_known_keys(argument, loc) for argument in arguments))
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return set()
    fields = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
    if not loc:
        return set(fields)
    if loc[0] in fields:
        return _known_keys(fields[str(loc[0])], loc[1:])
    # pydantic names the chosen kind of an attribute in the path.
    return _known_keys(annotation, loc[1:]) if loc[0] in typing.get_args(fields.get("type")) else set()

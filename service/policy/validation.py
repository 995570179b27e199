"""Validation by pydantic, answered in our words: path, what is allowed, what was given."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from service.policy.errors import PolicyError, PolicyProblem, dotted, shown, unknown_key

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
            [PolicyProblem(dotted(at), "must consist of mappings, lists, texts, numbers and booleans")]
        ) from None
    try:
        return model.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise PolicyError(_problem(model, details, at) for details in error.errors(include_url=False)) from None


def _problem(model: type[BaseModel], details: ErrorDetails, at: Path) -> PolicyProblem:
    below, models = _place(model, details["loc"])
    path = at + below
    given = details["input"]
    context = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            _, around = _place(model, details["loc"][:-1])
            known = {key for one in around for key in _fields(one)}
            return PolicyProblem(dotted(path), unknown_key(str(details["loc"][-1]), sorted(known)))
        case "missing":
            return PolicyProblem(dotted(path), "is missing")
        case "union_tag_not_found":
            name = str(context["discriminator"]).strip("'")
            allowed = " or ".join(repr(_words(one)[name]) for one in models)
            return PolicyProblem(dotted((*path, name)), f"is missing; must be {allowed}")
        case "union_tag_invalid":
            name = str(context["discriminator"]).strip("'")
            allowed = " or ".join(str(context["expected_tags"]).split(", "))
            return PolicyProblem(dotted((*path, name)), f"must be {allowed}", shown(context["tag"]))
        case "dict_type" | "model_type" | "model_attributes_type":
            return PolicyProblem(dotted(path), "must be a mapping", shown(given))
        case _:
            reason = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            nearest = context.get("ge", context.get("le"))
            return PolicyProblem(dotted(path), reason, "" if isinstance(given, dict) else shown(given), nearest)


def _place(model: type[BaseModel], loc: Path) -> tuple[Path, list[type[BaseModel]]]:
    """A place as a policy has it, and the models that it may hold, found by walking down the annotations.

    Where there are several, pydantic adds the word by which one of them was chosen.
    """
    path: list[str | int] = []
    found: list[Any] = [model]
    for part in loc:
        models = [one for one in found if _is_model(one)]
        chosen = [one for one in models if part in _words(one).values()]
        if len(models) > 1 and chosen:
            found = chosen
        else:
            path.append(part)
            found = [below for one in found for below in _below(one, part)]
    return tuple(path), [one for one in found if _is_model(one)]


def _below(annotation: Any, part: str | int) -> list[Any]:
    """What may stand under a key, or at a place of a list."""
    if not _is_model(annotation):
        return [one for argument in typing.get_args(annotation) for one in _alternatives(argument)]
    return _alternatives(_fields(annotation).get(str(part)))


def _alternatives(annotation: Any) -> list[Any]:
    """An annotation without the wrapping: the models, mappings and lists of which it takes one."""
    if _is_model(annotation) or typing.get_origin(annotation) in {dict, list, tuple}:
        return [annotation]
    return [one for argument in typing.get_args(annotation) for one in _alternatives(argument)]


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Annotations by the keys that a policy uses."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _words(model: type[BaseModel]) -> dict[str, str]:
    """Fields that allow a single word, by which a model is told from others, and the word."""
    words = {name: typing.get_args(annotation) for name, annotation in _fields(model).items()}
    return {name: word[0] for name, word in words.items() if len(word) == 1 and isinstance(word[0], str)}


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)

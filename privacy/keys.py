"""What may stand in a guarantee. Each model's file says it for its own keys; nobody else lists them.

A key has a form (what may be written behind it) and a function that turns what was written into models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from microdata import Schema
from privacy.model import Model, SensitiveModel

Reading = Callable[[Any, Mapping[str, Any], Schema], Iterable[Model]]
"""From what stands behind a key, everything that is asked for beside it, and the schema: the models."""


MOST = 10**12
"""Persons, values and levels that a guarantee may count: more than any table has, and far from the end of a word."""


def not_asked(given: object) -> bool:
    """Whether a key is left out of a guarantee as data: policies from before there was one keep their fingerprint."""
    return given is None


class Part(BaseModel):
    """Part of a guarantee: unknown names are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Form(Part):
    """A part that may be written as a bare number, which then is the field `plain`."""

    plain: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, given: Any) -> Any:
        return given if isinstance(given, Mapping | cls) else {cls.plain: given}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        form = handler.resolve_ref_schema(handler(core))
        field = form["properties"][cls.plain]
        number = next((one for one in field.get("anyOf", []) if one.get("type") != "null"), field)
        return {"anyOf": [number, form]}


class OneOf(Form):
    """A form of which exactly one field is given."""

    @model_validator(mode="after")
    def _exactly_one(self) -> OneOf:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(type(self).model_fields)} is needed, given {len(given)}")
        return self


@dataclass(frozen=True)
class Key:
    """One key of a guarantee."""

    name: str
    form: Any
    """Type of what is written behind it."""
    field: Mapping[str, Any]
    """Its range and its description, as pydantic takes them."""
    asks_for: tuple[type[Model], ...]
    """Every model that it can ask for."""
    requests: tuple[tuple[Any, Any], ...]
    """For each way to ask: something that most tables allow, and something much stricter; checks ask both."""
    read: Reading

    @property
    def about_persons(self) -> bool:
        """Whether it asks for something that needs no sensitive attribute."""
        return not any(issubclass(model, SensitiveModel) for model in self.asks_for)


class Keys:
    """The keys that are known: those about persons first, then those about sensitive values, each by name."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._closed = False

    def add(
        self, name: str, form: Any, *asks_for: type[Model], requests: Sequence[tuple[Any, Any]], **field: Any
    ) -> Callable[[Reading], Reading]:
        """Decorator of the function that reads what stands behind a key."""

        def remember(read: Reading) -> Reading:
            if self._closed:
                raise ValueError(
                    f"the key {name!r} is declared too late: guarantees are made already. Declare it in a module that "
                    "imports nothing above `privacy`, and name that module under `portcullis.models`"
                )
            if name in self._keys:
                raise ValueError(f"the key {name!r} of a guarantee is declared twice")
            self._keys[name] = Key(name, form, field, asks_for, tuple(requests), read)
            return read

        return remember

    def close(self) -> None:
        """No key comes any more: a guarantee has a field for each."""
        self._closed = True

    def __getitem__(self, name: str) -> Key:
        return self._keys[name]

    def __iter__(self) -> Iterator[Key]:
        return iter(sorted(self._keys.values(), key=lambda key: (not key.about_persons, key.name)))

    def models(self) -> tuple[type[Model], ...]:
        """Every model that a guarantee can ask for."""
        return tuple(model for key in self for model in key.asks_for)

    def name_for(self, model: Model) -> str:
        """The key that asks for a model; its own parameter for one that no key asks for."""
        return next((key.name for key in self if type(model) in key.asks_for), model.parameter)


KEYS = Keys()

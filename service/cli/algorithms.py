"""`portcullis algorithms`: what there is to choose from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from service.catalogue import algorithm_catalogue
from service.cli.output import say, say_json, say_table

_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def algorithms(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document with full parameter schemas.")] = False,
) -> None:
    """List the algorithms with their parameters and what they guarantee."""
    entries = algorithm_catalogue()
    if as_json:
        say_json(entries)
        return
    for entry in entries:
        say(f"{entry['name']} (for a {entry['runs_on']}): {entry['summary']}")
        say(f"guarantees {', '.join(entry['guarantees'])}")
        say_table(("parameter", "allowed", "default", "meaning"), list(_parameters(entry["parameters"])))


def _parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else _value(field.get("default"))
        yield name, _allowed(field, schema.get("$defs", {})), default, field.get("description", "")


def _value(value: object) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _allowed(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """What a JSON schema allows, in a few words."""
    if "$ref" in field:
        return _allowed(definitions[field["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in field:
        kinds = [_allowed(option, definitions) for option in field["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in field:
        return " or ".join(map(str, field["enum"]))
    if "const" in field:
        return str(field["const"])
    if field.get("type") == "object":
        return "{" + ", ".join(field["properties"]) + "}" if "properties" in field else "a mapping"
    bounds = [f"{sign} {field[key]}" for key, sign in _BOUNDS.items() if key in field]
    return " ".join([field.get("type", "any"), *bounds])

"""Reference pages, written when the site is built from what the code says of itself, so that they cannot drift.

mkdocs calls `on_files` (see `hooks` in mkdocs.yml); `python docs/reference.py` prints all pages.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import typer

import service
from microdata import PortcullisError, Reason
from service.api import ServiceSettings, create_app
from service.cli.commands import COMMANDS, load
from service.demo import POLICY
from service.kafka import KafkaSettings
from service.policy import DEFAULT, data_kinds, parse_policy, policy_file
from service.problems import KINDS, PREFIX
from service.kafka import (
    DeniedError,
    FencedError,
    FinalError,
    InstanceTakenError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    TooLargeError,
    TopicExistsError,
    UnknownTopicError,
)
from service.kafka.codes import NAMES, kind_of
from service.registry import RegistrySettings
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of

NOTE = "*Generated from the code by `docs/reference.py` when this site is built.*"


def pages() -> dict[str, str]:
    """Markdown by path below docs/."""
    logging.getLogger("service.api").setLevel(logging.ERROR)  # this app serves nobody and needs no token
    with TemporaryDirectory() as data:
        app = create_app(ServiceSettings(data=Path(data), job_workers=0))
        made = {
            "algorithms": algorithms(),
            "policy": policy(),
            "settings": settings(),
            "commands": commands(),
            "api": api(app.openapi()),
            "metrics": metrics(app.state.service.metrics.registry),
            "errors": errors(),
        }
        app.state.service.store.close()
    return {f"reference/{name}.md": f"{text}\n\n{NOTE}\n" for name, text in made.items()}


def on_files(files: Any, config: Any) -> Any:
    """Hook of mkdocs: add the pages to the site, and the README as its front."""
    from mkdocs.structure.files import File

    readme = (Path(config.docs_dir).parent / "README.md").read_text()
    front = readme.replace("](docs/", "](").replace("[CHANGELOG.md](CHANGELOG.md)", "`CHANGELOG.md`")
    for path, text in {"index.md": front, **pages()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def algorithms() -> str:
    """Every algorithm from its module's docstring and its parameter model."""
    parts = ["# Algorithms"]
    rooms = [("tables", kind.algorithms) for kind in data_kinds()] + [
        ("streams", kind.engines) for kind in data_kinds()
    ]
    for where, catalogue in rooms:
        for entry in catalogue:
            idea, _, example = inspect.getdoc(sys.modules[entry.algorithm.__module__]).partition("\n>>> ")
            parts += [f"## `{entry.name}` (for {where})", _text(inspect.getdoc(entry.algorithm)), _text(idea)]
            parts += [f"Guarantees: {', '.join(model.name for model in entry.algorithm.guarantees) or 'none'}."]
            given = json.dumps(dict(entry.algorithm.example), ensure_ascii=False)
            parts += [f"For: {entry.algorithm.data}. A small example: `{given}`."]
            parts += [_fields(entry.parameters.model_json_schema())]
            if example:
                parts += [f"```pycon\n>>> {example}\n```"]
    return "\n\n".join(parts)


def policy() -> str:
    """The sections of a policy from its models."""
    parts = ["# Policy", "See [Policies](../policies.md) for what it means."]
    for kind in data_kinds():
        schema = policy_file(kind).model_json_schema()
        parts += [f"# `data: {kind.name}`"] * (kind.name != DEFAULT) + [_fields(schema)]
        for name, section in sorted(schema.get("$defs", {}).items()):
            if "properties" in section:
                parts += [f"## {name}", _text(section.get("description", "")), _fields(section, schema["$defs"])]
    return "\n\n".join(parts)


def settings() -> str:
    """Every setting from its model."""
    parts = ["# Settings", "Flags go before the environment, the environment before a file of `NAME=value` lines."]
    for title, model in (
        ("Kafka", KafkaSettings),
        ("Schema registry", RegistrySettings),
        ("Worker", WorkerSettings),
        ("HTTP service", ServiceSettings),
    ):
        rows = [
            (f"`{model.model_config['env_prefix']}{name.upper()}`", field.description or "", _default(field))
            for name, field in model.model_fields.items()
        ]
        parts += [f"## {title}", _table(("setting", "meaning", "default"), rows)]
    return "\n\n".join(parts)


def commands() -> str:
    """The help of every command."""
    parts = ["# Commands"]
    for name, command in COMMANDS.items():
        parts += [f"## `portcullis {name}`", command.help, f"```sh\n{command.example}\n```"]
        for title, one in _leaves(load(name), f"portcullis {name}"):
            context = typer.Context(one, info_name=title)
            parts += [f"```text\n{one.get_help(context)}\n```"]
    return "\n\n".join(parts)


def _leaves(command: Any, title: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield title, command
        return
    for name, one in command.commands.items():
        yield from _leaves(one, f"{title} {name}")


def api(schema: Mapping[str, Any]) -> str:
    """Every route of the HTTP service from its OpenAPI description, which the service has at /openapi.json."""
    parts = ["# HTTP API", _text(schema["info"]["description"]), "The whole description is at `/openapi.json`."]
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            answers = [(f"`{status}`", answer["description"]) for status, answer in sorted(route["responses"].items())]
            parts += [f"## `{method.upper()} {path}`", _text(route.get("description") or route.get("summary", ""))]
            given = [(f"`{one['name']}`", one["in"], one.get("description", "")) for one in route.get("parameters", [])]
            if given:
                parts += [_table(("parameter", "in", "meaning"), given)]
            if form := route.get("requestBody", {}).get("content", {}).get("multipart/form-data"):
                parts += [_table(("part", "needed", "meaning"), list(_parts(form["schema"])))]
            parts += [_table(("answer", "meaning"), answers)]
    return "\n\n".join(parts)


def _parts(form: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The parts of a multipart request."""
    for name, part in form["properties"].items():
        yield f"`{name}`", "yes" if name in form["required"] else "", part["description"]


def metrics(http: Any) -> str:
    """Every metric that workers and API have."""
    stream = stream_of(parse_policy(json.dumps(POLICY)), WorkerSettings())
    parts = ["# Metrics"]
    for title, registry in (("Of a worker", Metrics(stream).registry), ("Of the HTTP service", http)):
        families = sorted(registry.collect(), key=lambda family: family.name)
        rows = [
            (f"`{family.name}{'_total' if family.type == 'counter' else ''}`", family.type, family.documentation)
            for family in families
        ]
        parts += [f"## {title}", _table(("metric", "type", "meaning"), rows)]
    return "\n\n".join(parts)


def errors() -> str:
    """The tree of exceptions, the problems of the HTTP service, and why records are refused."""
    for module in pkgutil.walk_packages(service.__path__, "service."):
        if "migrations" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    rows = [(f"`{name}`", f"`{module}`", text) for name, module, text in _tree(PortcullisError, 0)]
    problems = [(f"`{PREFIX}{name}`", str(kind.status), kind.title) for name, kind in KINDS.items()]
    reasons = [(f"`{reason.code}`", reason.sentence) for reason in Reason]
    parts = ["# Errors", "## Exceptions", _table(("exception", "of", "meaning"), rows)]
    parts += ["## Problems (RFC 9457)", _table(("type", "status", "title"), problems)]
    parts += ["## Reasons of refused values and records", _table(("code", "meaning"), reasons)]
    codes = [(f"`{name}`", str(number), _DOES[kind_of(name)]) for number, name in NAMES.items()]
    parts += ["## Error codes of Kafka, and what a worker does", _table(("code", "number", "what it does"), codes)]
    return "\n\n".join(parts)


_AGAIN = "waits and tries again; in a transaction: aborts it and restores from what is durable"
_DOES: dict[type[KafkaError], str] = {
    RetriableError: _AGAIN,
    UnknownTopicError: f"{_AGAIN}; at the start: says which topic is missing",
    TopicExistsError: "uses the topic",
    StaleGroupError: "drops its partitions, restores those that the group gives it",
    FencedError: "throws the producer away, restores from what is durable with another",
    TooLargeError: "ends: a topic or `max_request_bytes` allows less than is needed",
    DeniedError: "ends: the broker refuses who we are or what we want to do",
    InstanceTakenError: "ends: another worker has joined the group under the same instance name",
    FinalError: "ends: not supported, or a setting that is not allowed",
}


def _tree(kind: type, depth: int) -> Iterator[tuple[str, str, str]]:
    first = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    yield "  " * depth + kind.__name__, kind.__module__.split(".")[0], first
    for below in sorted(kind.__subclasses__(), key=lambda one: one.__name__):
        yield from _tree(below, depth + 1)


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> str:
    known = definitions or schema.get("$defs", {})
    return _table(("name", "allowed", "default", "meaning"), list(_rows(schema, known, "")))


def _rows(schema: Mapping[str, Any], known: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    """A row per field, those of nested models below it."""
    required = set(schema.get("required", []))
    for name, field in schema.get("properties", {}).items():
        default = json.dumps(field.get("default"), ensure_ascii=False)
        text = "required" if name in required else f"`{default}`"
        yield f"`{prefix}{name}`", _allowed(field, known), text, field.get("description", "")
        for one in [field, *field.get("anyOf", [])]:
            below = known.get(one.get("$ref", "").rsplit("/", 1)[-1], {})
            yield from _rows(below, known, f"{prefix}{name}.")


_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _allowed(field: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        target = known.get(name, {})
        return name if "properties" in target else _allowed(target, known)
    for many in ("anyOf", "oneOf"):
        if many in field:
            return " or ".join(dict.fromkeys(_allowed(one, known) for one in field[many]))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    bounds = " ".join(f"{sign} {field[key]}" for key, sign in _BOUNDS.items() if key in field)
    return f"{field.get('type', 'any')} {bounds}".strip()


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value == () or value == {} else f"`{value}`"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return (
        text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
        if "`" not in text
        else text.replace("|", "\\|")
    )


def _text(text: str) -> str:
    return inspect.cleandoc(text).replace("<", "&lt;")


if __name__ == "__main__":
    for path, text in pages().items():
        print(f"<!-- {path} -->\n\n{text}")

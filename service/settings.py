"""Settings from flags, environment and file, in this order, with errors that name the setting and never its value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from dotenv import load_dotenv
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from microdata import PortcullisError

Settings = TypeVar("Settings", bound=BaseSettings)


class SettingsError(PortcullisError):
    """A setting that cannot be used."""


def read_settings_file(path: Path | None) -> None:
    """Take `NAME=value` lines of a file into the environment; what the environment has already stays."""
    if path is None:
        return
    if not path.is_file():
        raise SettingsError(f"settings file {path} does not exist")
    load_dotenv(path, override=False)


def settings_of(kind: type[Settings], flags: Mapping[str, Any]) -> Settings:
    """Settings with these flags (None: not given) in front of the environment.

    >>> from service.worker.settings import WorkerSettings
    >>> settings_of(WorkerSettings, {"commit_interval": -1})
    Traceback (most recent call last):
        ...
    service.settings.SettingsError: commit_interval (PORTCULLIS_WORKER_COMMIT_INTERVAL): Input should be greater than 0
    """
    try:
        return kind(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        problems = [_sentence(found["loc"], found["msg"], prefix) for found in error.errors(include_input=False)]
        raise SettingsError("; ".join(problems)) from None


def _sentence(place: tuple[int | str, ...], message: str, prefix: str) -> str:
    if not place:
        return message.removeprefix("Value error, ")
    name = str(place[0])
    return f"{name} ({prefix}{name.upper()}): {message}"

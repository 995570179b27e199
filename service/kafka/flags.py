"""Flags of every command that talks to Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from service.kafka.settings import KafkaSettings
from service.settings import settings_of

Bootstrap: TypeAlias = Annotated[str | None, typer.Option("--bootstrap", help="Kafka's host:port, comma-separated.")]
ClientName: TypeAlias = Annotated[str | None, typer.Option("--client", help="auto, kafka-python or confluent-kafka.")]
SettingsFile: TypeAlias = Annotated[
    Path | None, typer.Option("--settings", help="File of NAME=value lines; the environment and flags go before it.")
]


def kafka_settings(bootstrap: str | None, client: str | None) -> KafkaSettings:
    """The settings of the environment, with these in front."""
    return settings_of(KafkaSettings, {"bootstrap_servers": bootstrap, "client": client})

"""Chooses the adapter."""

from importlib.util import find_spec

from service.kafka.errors import FinalError
from service.kafka.port import Client
from service.kafka.settings import KafkaSettings


def connect(settings: KafkaSettings) -> Client:
    """The client that the settings ask for; nothing is sent before one of its parts is opened."""
    has_confluent = find_spec("confluent_kafka") is not None
    if settings.client == "kafka-python" or (settings.client == "auto" and not has_confluent):
        from service.kafka.kafka_python import KafkaPythonClient  # noqa: PLC0415 - load one library only

        return KafkaPythonClient(settings)
    if not has_confluent:
        raise FinalError("client: confluent-kafka is not installed (extra `fast`); allowed: auto, kafka-python")
    from service.kafka.confluent import ConfluentClient  # noqa: PLC0415 - load one library only

    return ConfluentClient(settings)

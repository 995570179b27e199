"""The small port through which everything here talks to Kafka, with two interchangeable adapters."""

from service.kafka.connect import connect
from service.kafka.errors import (
    AbortableError,
    DeniedError,
    FatalError,
    FencedError,
    FinalError,
    GoneError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    TooLargeError,
    TopicExistsError,
    UnclearError,
    UnknownTopicError,
)
from service.kafka.port import (
    Admin,
    Client,
    Committed,
    GroupConsumer,
    GroupToken,
    Partition,
    Reader,
    RecordBatch,
    TopicDescription,
    TransactionalProducer,
    Watermarks,
)
from service.kafka.reach import reach
from service.kafka.settings import KafkaSettings

__all__ = [
    "AbortableError",
    "Admin",
    "Client",
    "Committed",
    "DeniedError",
    "FatalError",
    "FencedError",
    "FinalError",
    "GoneError",
    "GroupConsumer",
    "GroupToken",
    "KafkaError",
    "KafkaSettings",
    "Partition",
    "Reader",
    "RecordBatch",
    "RetriableError",
    "StaleGroupError",
    "TooLargeError",
    "TopicDescription",
    "TopicExistsError",
    "TransactionalProducer",
    "UnclearError",
    "UnknownTopicError",
    "Watermarks",
    "connect",
    "reach",
]

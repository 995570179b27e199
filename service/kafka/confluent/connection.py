"""The settings in librdkafka's words, and its errors in ours."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck

from service.kafka.errors import (
    AbortableError,
    DeniedError,
    FatalError,
    FencedError,
    InstanceTakenError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    TooLargeError,
    TopicExistsError,
    UnknownTopicError,
)
from service.kafka.oauth import fetch_token
from service.kafka.settings import KafkaSettings

log = logging.getLogger("service.kafka")

Code = ck.KafkaError
KIND: dict[int, type[KafkaError]] = {
    Code._FENCED: FencedError,  # noqa: SLF001 - librdkafka's own codes start with an underscore
    Code.PRODUCER_FENCED: FencedError,
    Code.INVALID_PRODUCER_EPOCH: FencedError,
    Code.ILLEGAL_GENERATION: StaleGroupError,
    Code.UNKNOWN_MEMBER_ID: StaleGroupError,
    Code.REBALANCE_IN_PROGRESS: StaleGroupError,
    Code.FENCED_INSTANCE_ID: InstanceTakenError,
    Code._ASSIGNMENT_LOST: StaleGroupError,  # noqa: SLF001
    Code._AUTHENTICATION: DeniedError,  # noqa: SLF001
    Code._SSL: DeniedError,  # noqa: SLF001
    Code.SASL_AUTHENTICATION_FAILED: DeniedError,
    Code.UNSUPPORTED_SASL_MECHANISM: DeniedError,
    Code.TOPIC_AUTHORIZATION_FAILED: DeniedError,
    Code.GROUP_AUTHORIZATION_FAILED: DeniedError,
    Code.CLUSTER_AUTHORIZATION_FAILED: DeniedError,
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: DeniedError,
    Code._UNKNOWN_TOPIC: UnknownTopicError,  # noqa: SLF001
    Code._UNKNOWN_PARTITION: UnknownTopicError,  # noqa: SLF001
    Code.UNKNOWN_TOPIC_OR_PART: UnknownTopicError,
    Code.TOPIC_ALREADY_EXISTS: TopicExistsError,
    Code.MSG_SIZE_TOO_LARGE: TooLargeError,
    Code.RECORD_LIST_TOO_LARGE: TooLargeError,
    Code._PURGE_QUEUE: AbortableError,  # noqa: SLF001 - thrown away because the transaction had failed
    Code._PURGE_INFLIGHT: AbortableError,  # noqa: SLF001
    Code._TIMED_OUT: RetriableError,  # noqa: SLF001
    Code._MSG_TIMED_OUT: RetriableError,  # noqa: SLF001
    Code._TRANSPORT: RetriableError,  # noqa: SLF001
    Code._ALL_BROKERS_DOWN: RetriableError,  # noqa: SLF001
    Code.REQUEST_TIMED_OUT: RetriableError,
    Code.UNSTABLE_OFFSET_COMMIT: RetriableError,
    Code.LEADER_NOT_AVAILABLE: RetriableError,
    Code.NOT_LEADER_FOR_PARTITION: RetriableError,
}


def translate(error: ck.KafkaError) -> KafkaError:
    """Our error for librdkafka's."""
    text = f"{error.name()}: {error.str()}"
    kind = KIND.get(error.code())
    if kind is not None:
        return kind(text)
    if error.txn_requires_abort():
        return AbortableError(text)
    return RetriableError(text) if error.retriable() else FatalError(text)


class Connection:
    """The settings in librdkafka's words, and what it reports in the background."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.timeout = settings.request_timeout_ms / 1000
        self.serve: Callable[[], object] = lambda: None  # let the handle run callbacks that are due
        self._denied: ck.KafkaError | None = None

    def _config(self, **more: Any) -> dict[str, Any]:
        """A configuration for one librdkafka handle; keyword underscores stand for dots."""
        settings = self.settings
        config: dict[str, Any] = {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings.client_id,
            "security.protocol": settings.security_protocol,
            "topic.metadata.refresh.interval.ms": settings.metadata_max_age_ms,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": self._on_error,
            "logger": log,
        }
        files = {
            "ca": settings.tls_ca_file,
            "certificate": settings.tls_cert_file,
            "key": settings.tls_key_file,
        }
        config |= {f"ssl.{name}.location": str(path) for name, path in files.items() if path is not None}
        if settings.sasl_mechanism is not None:
            config["sasl.mechanism"] = settings.sasl_mechanism
        if settings.sasl_mechanism == "OAUTHBEARER":
            config["oauth_cb"] = lambda _: tuple(fetch_token(settings))
        elif settings.sasl_password is not None:
            config["sasl.username"] = settings.sasl_username
            config["sasl.password"] = settings.sasl_password.get_secret_value()
        return config | settings.extra | {name.replace("_", "."): value for name, value in more.items()}

    def open(self, kind: Callable[[dict[str, Any]], Any], **more: Any) -> Any:
        """A librdkafka handle; a setting that it does not take is an error of ours."""
        with self.translated():
            return kind(self._config(**more))

    def raise_denied(self) -> None:
        """A refused login arrives in the background only; calls just time out. So they ask here."""
        if self._denied is not None:
            raise translate(self._denied)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn librdkafka's exceptions into ours."""
        try:
            yield
        except ck.KafkaException as exception:
            error = translate(exception.args[0])
            if isinstance(error, RetriableError):
                self.serve()
                self.raise_denied()
            raise error from exception

    def _on_error(self, error: ck.KafkaError) -> None:
        if KIND.get(error.code()) is DeniedError:
            self._denied = error

"""The settings in librdkafka's words, and its errors in ours."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import confluent_kafka as ck

from service.kafka.codes import NAMES, explained, kind_of, name_of
from service.kafka.errors import (
    AbortableError,
    DeniedError,
    FatalError,
    FencedError,
    FinalError,
    KafkaError,
    RetriableError,
    StaleGroupError,
    UnknownTopicError,
)
from service.kafka.oauth import fetch_token
from service.kafka.settings import KafkaSettings

log = logging.getLogger("service.kafka")

Code = ck.KafkaError
OWN: dict[str, type[KafkaError]] = {
    "_AUTHENTICATION": DeniedError,
    "_SSL": DeniedError,
    "_INVALID_ARG": FinalError,
    "_NOT_CONFIGURED": FinalError,
    "_NOT_IMPLEMENTED": FinalError,
    "_UNSUPPORTED_FEATURE": FinalError,
    "_FENCED": FencedError,
    "_FATAL": FatalError,
    "_ASSIGNMENT_LOST": StaleGroupError,
    "_UNKNOWN_TOPIC": UnknownTopicError,
    "_UNKNOWN_PARTITION": UnknownTopicError,
    "_PURGE_QUEUE": AbortableError,  # thrown away because the transaction had failed
    "_PURGE_INFLIGHT": AbortableError,
}
"""librdkafka's own codes that calling again does not cure; every other one is retried."""


def code_of(error: ck.KafkaError) -> str:
    """The name of an error's code: Kafka's where a broker said it, else librdkafka's."""
    own = error.code() < 0 and error.code() not in NAMES and not error.name().startswith("ERR_")
    return str(error.name()) if own else name_of(error.code())


def translate(error: ck.KafkaError) -> KafkaError:
    """Our error for librdkafka's: final is what is known to be, what the client says of itself comes next."""
    text, code = f"{error.name()}: {error.str()}", code_of(error)
    kind = OWN.get(code) or kind_of(code)
    if error.fatal() and not issubclass(kind, FinalError | FencedError):
        kind = FatalError
    elif kind is RetriableError and error.txn_requires_abort():
        kind = AbortableError
    return kind(explained(code, text), code)


class Connection:
    """The settings in librdkafka's words, and what it reports in the background."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self.timeout = settings.request_timeout_ms / 1000
        self.serve: Callable[[], object] = lambda: None  # let the handle run callbacks that are due
        self._denied: ck.KafkaError | None = None

    def _config(self, usual: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """A configuration for one librdkafka handle; keyword underscores stand for dots."""
        settings = self.settings
        config: dict[str, Any] = {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings.client_id,
            "security.protocol": settings.security_protocol,
            "topic.metadata.refresh.interval.ms": settings.metadata_max_age_ms,
            "reconnect.backoff.max.ms": 1_000,
            "builtin.features": "gzip,snappy,lz4,zstd",  # refuses to open where one of them is missing
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
        return config | dict(usual) | settings.extra | {name.replace("_", "."): value for name, value in more.items()}

    def open(
        self, kind: Callable[[dict[str, Any]], Any], usual: Mapping[str, Any] = MappingProxyType({}), **more: Any
    ) -> Any:
        """A librdkafka handle; a setting that it does not take is an error of ours. `usual` gives way to `extra`."""
        with self.translated():
            return kind(self._config(usual, **more))

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
        if isinstance(translate(error), DeniedError):
            self._denied = error

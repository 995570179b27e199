"""The settings in kafka-python's words, and its errors in ours."""

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, codec
from kafka import errors as kp
from kafka.consumer.fetcher import Fetcher
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from service.kafka.codes import explained, kind_of, name_of
from service.kafka.errors import DeniedError, FinalError, KafkaError, RetriableError, StaleGroupError
from service.kafka.oauth import fetch_token
from service.kafka.settings import KafkaSettings

# The library's debug lines hold whole requests, and so the records in them.
logging.getLogger("kafka").setLevel(logging.WARNING)

OWN: dict[type[Exception], type[KafkaError]] = {
    ssl.SSLError: DeniedError,
    kp.KafkaConfigurationError: FinalError,
    kp.UnrecognizedBrokerVersion: FinalError,
    kp.UnsupportedCodecError: FinalError,
    kp.IllegalArgumentError: FinalError,
    kp.CommitFailedError: StaleGroupError,
}
"""kafka-python's own errors that calling again does not cure; every other one is retried."""


def translate(error: BaseException) -> KafkaError:
    """Our error for kafka-python's: final is what is known to be."""
    text, name = f"{type(error).__name__}: {error}", type(error).__name__
    if isinstance(error, kp.BrokerResponseError) and error.errno is not None:
        name = name_of(error.errno)
        return kind_of(name)(explained(name, text), name)
    kind = next((ours for theirs, ours in OWN.items() if isinstance(error, theirs)), RetriableError)
    return kind(text, name)


@contextmanager
def translated() -> Iterator[None]:
    """Turn kafka-python's exceptions into ours."""
    try:
        yield
    except (kp.KafkaError, ssl.SSLError, ConnectionError, TimeoutError) as error:
        raise translate(error) from error


@contextmanager
def unpacking(consumer: Any) -> Iterator[None]:
    """As above, around a poll. A codec's own errors may quote what they were given, so they are not quoted.

    The library would go on for ever with a batch that it has failed to unpack: it is dropped, to be fetched again.
    """
    try:
        with translated():
            yield
    except BaseException as error:
        consumer._fetcher._next_partition_records = None  # noqa: SLF001 - nothing public drops it
        if isinstance(error, KafkaError) or not isinstance(error, Exception):
            raise
        name = type(error).__name__
        raise RetriableError(f"a batch cannot be unpacked ({name})", "CORRUPT_MESSAGE") from None


def require_codecs() -> None:
    """Whether every batch that a producer may send can be read; better found out now than by the first one."""
    needed = {"snappy": (codec.has_snappy, "python-snappy"), "lz4": (codec.has_lz4, "lz4")}
    needed |= {"zstd": (codec.has_zstd, "zstandard")}
    missing = {name: package for name, (is_there, package) in needed.items() if not is_there()}
    if missing:
        raise FinalError(
            f"kafka-python cannot read batches compressed with {', '.join(missing)}: "
            f"install {' '.join(missing.values())}, or use confluent-kafka"
        )


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # the library ships no types
    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__()
        self._settings = settings

    def token(self) -> str:
        return fetch_token(self._settings).value


def config_of(kind: Any, settings: KafkaSettings) -> dict[str, Any]:
    """The settings in kafka-python's words, for one kind of part."""
    config: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers.split(","),
        "client_id": settings.client_id,
        "security_protocol": settings.security_protocol,
        "metadata_max_age_ms": settings.metadata_max_age_ms,
        "request_timeout_ms": settings.request_timeout_ms,
        "bootstrap_timeout_ms": settings.request_timeout_ms,
        "reconnect_backoff_max_ms": 1_000,
    }
    files = {
        "cafile": settings.tls_ca_file,
        "certfile": settings.tls_cert_file,
        "keyfile": settings.tls_key_file,
    }
    config |= {f"ssl_{name}": str(path) for name, path in files.items() if path is not None}
    if settings.sasl_mechanism is not None:
        config["sasl_mechanism"] = settings.sasl_mechanism
    if settings.sasl_mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = _TokenProvider(settings)
    elif settings.sasl_password is not None:
        config["sasl_plain_username"] = settings.sasl_username
        config["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    known = kind.DEFAULT_CONFIG
    return config | {key: value for key, value in settings.extra.items() if key in known}


class _Net(KafkaNetClient):  # type: ignore[misc]  # the library ships no types
    """Gives up on a refused login while opening; the library would only log it and keep trying.

    It also hears a broker's last words: the library drops what arrives together with the hang-up, and a refused login
    is answered just so.
    """

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self.denied: Exception | None = None
        self.is_opening = True
        self._get_connection = self._manager.get_connection
        self._manager.get_connection = self._watched_connection
        self._build_transport = self._manager._build_transport  # noqa: SLF001 - nothing public makes transports
        self._manager._build_transport = self._attentive_transport  # noqa: SLF001 - see above

    async def _attentive_transport(self, *arguments: Any, **options: Any) -> Any:
        transport = await self._build_transport(*arguments, **options)
        receive = transport._sock_recv  # noqa: SLF001 - the one place that knows both data and hang-up

        def received() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return data, None if data else error  # the hang-up is seen again by the next read

        transport._sock_recv = received  # noqa: SLF001 - see above
        return transport

    def _watched_connection(self, *arguments: Any, **options: Any) -> Any:
        connection = self._get_connection(*arguments, **options)
        connection.close_future.add_errback(self._note)
        return connection

    def _note(self, error: Exception) -> None:
        if isinstance(translate(error), DeniedError):
            self.denied = error
            if self.is_opening:
                self._manager.closed = True  # ends the library's attempts


def opened(kind: Callable[..., Any], config: dict[str, Any]) -> Any:
    """A part of the library; when it does not open, its thread and sockets do not stay behind."""
    nets: list[_Net] = []

    def net(**options: Any) -> _Net:
        nets.append(_Net(**options))
        return nets[-1]

    try:
        part = kind(**config, kafka_client=net)
    except kp.KafkaError as error:
        for each in nets:
            each.close()
            each._net.stop()  # noqa: SLF001 - what the library's own close does
        raise translate(nets[0].denied or error if nets else error) from error
    nets[0].is_opening = False
    return part


class _Records(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library ships no types
    """What was fetched. Compaction leaves batches behind that hold no record any more, markers too.

    The library asks such a batch how its transaction ended, fails, and would never get past it.
    """

    def _contains_abort_marker(self, batch: Any) -> bool:
        return batch.records_count > 0 and super()._contains_abort_marker(batch)


def open_consumer(settings: KafkaSettings, options: dict[str, Any]) -> Any:
    """The library's consumer, which reads compacted topics to their end."""
    consumer = opened(KafkaConsumer, config_of(KafkaConsumer, settings) | options)
    consumer._fetcher.PartitionRecords = _Records  # noqa: SLF001 - nothing public chooses it
    return consumer

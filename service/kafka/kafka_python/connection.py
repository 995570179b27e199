"""The settings in kafka-python's words, and its errors in ours."""

import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka import errors as kp
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from service.kafka.errors import (
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

# The library's debug lines hold whole requests, and so the records in them.
logging.getLogger("kafka").setLevel(logging.WARNING)

KIND: list[tuple[tuple[type[Exception], ...], type[KafkaError]]] = [
    ((kp.ProducerFencedError, kp.InvalidProducerEpochError), FencedError),
    ((kp.FencedInstanceIdError,), InstanceTakenError),
    (
        (
            kp.CommitFailedError,
            kp.IllegalGenerationError,
            kp.UnknownMemberIdError,
            kp.RebalanceInProgressError,
        ),
        StaleGroupError,
    ),
    (
        (
            kp.AuthorizationError,
            kp.SaslAuthenticationFailedError,
            kp.UnsupportedSaslMechanismError,
            ssl.SSLError,
        ),
        DeniedError,
    ),
    ((kp.UnknownTopicOrPartitionError, kp.UnknownTopicIdError), UnknownTopicError),
    ((kp.TopicAlreadyExistsError,), TopicExistsError),
    ((kp.MessageSizeTooLargeError, kp.RecordListTooLargeError), TooLargeError),
    ((kp.RetriableError,), RetriableError),
]


def translate(error: BaseException) -> KafkaError:
    """Our error for kafka-python's."""
    text = f"{type(error).__name__}: {error}"
    if type(error) is kp.KafkaError:
        return RetriableError(text)  # into this the library wraps a transaction's request that got no answer in time
    return next((ours(text) for theirs, ours in KIND if isinstance(error, theirs)), FatalError(text))


@contextmanager
def translated() -> Iterator[None]:
    """Turn kafka-python's exceptions into ours."""
    try:
        yield
    except (kp.KafkaError, ssl.SSLError) as error:
        raise translate(error) from error


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

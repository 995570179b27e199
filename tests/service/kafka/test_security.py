"""Who we are: SASL and TLS against a real broker, with both clients."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.kafka import DeniedError, KafkaError, KafkaSettings, connect
from service.kafka.kafka_python.connection import _Net
from tests.service.kafka.real_kafka import PASSWORD, USER

pytestmark = pytest.mark.needs_tool("kafka")
# librdkafka tells of a refused login only when the call has timed out; kafka-python at once, but needs time to connect.
PATIENCE = {"kafka-python": 10_000, "confluent-kafka": 3_000}
CLIENTS = pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])


@pytest.fixture
def topics() -> Any:
    """The topics that a client sees, if it is let in."""

    def listed(client: Any, **settings: Any) -> Any:
        admin = connect(KafkaSettings(client=client, **{"request_timeout_ms": PATIENCE[client], **settings})).admin()
        try:
            return admin.list_topics()
        finally:
            admin.close()

    return listed


@CLIENTS
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_opens_the_door_and_a_wrong_one_does_not(
    real_kafka: Any, topics: Any, client: Any, mechanism: str
) -> None:
    login = {"bootstrap_servers": real_kafka.sasl_bootstrap, "sasl_mechanism": mechanism, "sasl_username": USER}
    assert topics(client, **login, sasl_password=PASSWORD) is not None
    with pytest.raises(DeniedError) as caught:
        topics(client, **login, sasl_password="wrong-sesame")
    assert "sesame" not in str(caught.value)


def test_what_a_broker_says_before_it_hangs_up_is_heard() -> None:
    """Data and hang-up at once: data first, the hang-up with the next read."""
    hang_up = OSError("hung up")
    transport = SimpleNamespace(_sock_recv=iter([(b"refused", hang_up), (b"", hang_up)]).__next__)

    async def build() -> Any:
        return transport

    net = _Net.__new__(_Net)
    net._build_transport = build
    asyncio.run(net._attentive_transport())
    assert [transport._sock_recv(), transport._sock_recv()] == [(b"refused", None), (b"", hang_up)]


@CLIENTS
def test_a_consumer_and_a_producer_that_are_not_let_in_say_so(real_kafka: Any, client: Any) -> None:
    settings = KafkaSettings(
        client=client, request_timeout_ms=PATIENCE[client], bootstrap_servers=real_kafka.sasl_bootstrap,
        sasl_mechanism="PLAIN", sasl_username=USER, sasl_password="wrong-sesame",
    )  # fmt: skip

    def consume() -> None:
        consumer = connect(settings).group_consumer("g")
        try:
            consumer.subscribe(["t"], *[lambda _: None] * 3)
            for _ in range(200):
                consumer.poll(0.1, 1)
        finally:
            consumer.close()

    def produce() -> None:
        producer = connect(settings).producer("p")
        try:
            producer.init_transactions()
        finally:
            producer.close()

    for attempt in (consume, produce):
        with pytest.raises(DeniedError):
            attempt()


@CLIENTS
def test_a_token_from_a_file_opens_the_door(real_kafka: Any, topics: Any, client: Any, tmp_path: Path) -> None:
    now = int(time.time())
    parts = [{"alg": "none"}, {"sub": USER, "iat": now - 10, "exp": now + 300}]
    token = ".".join(urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts) + "."
    file = tmp_path / "token"
    file.write_text(token)
    login = {"bootstrap_servers": real_kafka.sasl_bootstrap, "sasl_mechanism": "OAUTHBEARER"}
    assert topics(client, **login, oauth_token_file=file) is not None


@CLIENTS
def test_tls_is_spoken_with_who_the_authority_vouches_for_only(real_kafka: Any, topics: Any, client: Any) -> None:
    address = {"bootstrap_servers": real_kafka.tls_bootstrap}
    assert topics(client, **address, tls_ca_file=real_kafka.ca_file) is not None
    with pytest.raises(KafkaError):
        topics(client, **address, tls=True, request_timeout_ms=3_000)

"""How to reach Kafka: what is accepted, what is refused, and that secrets stay secret."""

import json
import sys
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from service.kafka import DeniedError, FinalError, KafkaSettings, RetriableError, connect
from service.kafka.oauth import fetch_token

SECRET = "open-sesame"


def test_the_environment_sets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTCULLIS_KAFKA_BOOTSTRAP_SERVERS", "a:1,b:2")
    monkeypatch.setenv("PORTCULLIS_KAFKA_SASL_MECHANISM", "SCRAM-SHA-512")
    monkeypatch.setenv("PORTCULLIS_KAFKA_SASL_USERNAME", "ali")
    monkeypatch.setenv("PORTCULLIS_KAFKA_SASL_PASSWORD", SECRET)
    monkeypatch.setenv("PORTCULLIS_KAFKA_TLS", "true")
    settings = KafkaSettings()
    assert settings.bootstrap_servers == "a:1,b:2"
    assert settings.security_protocol == "SASL_SSL"
    assert settings.sasl_password == SecretStr(SECRET)


def test_a_transaction_that_nobody_ends_keeps_readers_waiting_for_ten_seconds_at_most() -> None:
    assert KafkaSettings().transaction_timeout_ms == 10_000


@pytest.mark.parametrize("own", [None, 4_096])
def test_what_is_fetched_ahead_is_bounded_unless_settings_say_otherwise(
    monkeypatch: pytest.MonkeyPatch, own: int | None
) -> None:
    opened: list[dict[str, Any]] = []
    monkeypatch.setattr("confluent_kafka.Consumer", opened.append)
    name = "queued.max.messages.kbytes"
    client = connect(KafkaSettings(client="confluent-kafka", extra={} if own is None else {name: own}))
    client.group_consumer("anyone")
    client.reader()
    for config, usual in zip(opened, (16_384, 8_192), strict=True):
        assert config[name] == (own or usual)


def test_secrets_are_never_printed() -> None:
    settings = KafkaSettings(
        sasl_mechanism="PLAIN", sasl_username="ali", sasl_password=SECRET, oauth_client_secret=SECRET
    )
    assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()


def test_a_wrong_setting_is_refused_without_telling_the_secret() -> None:
    with pytest.raises(ValidationError, match="sasl_username") as caught:
        KafkaSettings(sasl_mechanism="PLAIN", sasl_password=SECRET)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sasl_mechanism": "PLAIN"}, "sasl_username, sasl_password"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "oauth_token_url"),
        ({"sasl_mechanism": "GSSAPI"}, "SCRAM-SHA-256"),
        ({"tls_cert_file": "cert.pem"}, "tls_key_file"),
        ({"heartbeat_interval_ms": 30_000}, "a third"),
        ({"client": "librdkafka"}, "kafka-python"),
        ({"oauth_token_url": "file:///etc/passwd"}, "http"),
        ({"sesion_timeout_ms": 1}, "Extra inputs"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        KafkaSettings(**given)


def test_auto_takes_the_fast_client_and_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert connect(KafkaSettings()).name == "confluent-kafka"
    assert connect(KafkaSettings(client="kafka-python")).name == "kafka-python"
    monkeypatch.setattr(sys.modules["service.kafka.connect"], "find_spec", lambda _: None)
    assert connect(KafkaSettings()).name == "kafka-python"
    with pytest.raises(FinalError, match="not installed"):
        connect(KafkaSettings(client="confluent-kafka"))


def test_extra_settings_go_to_the_library_but_never_over_what_keeps_us_safe(world: Any) -> None:
    own_words = {
        "kafka-python": {"fetch_max_bytes": 12_345_678, "isolation_level": "read_uncommitted"},
        "confluent-kafka": {"fetch.max.bytes": 12_345_678, "isolation.level": "read_uncommitted"},
    }
    partition = world.topic()
    world.write(partition, b"aborted", commit=False)
    reader = world.reader(extra=own_words[world._client])
    assert list(reader.read(partition, 0, 2, 10)) == []


def test_a_setting_that_the_library_does_not_know_is_refused() -> None:
    settings = KafkaSettings(client="confluent-kafka", extra={"fetch.maximum": 1})
    with pytest.raises(FinalError, match=r"fetch\.maximum"):
        connect(settings).admin()


def _oauth(**more: Any) -> Any:
    return KafkaSettings(sasl_mechanism="OAUTHBEARER", **more)


def test_a_token_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    claims = urlsafe_b64encode(json.dumps({"exp": 12345}).encode()).decode().rstrip("=")
    file.write_text(f"head.{claims}.sign\n")
    assert fetch_token(_oauth(oauth_token_file=file)) == (f"head.{claims}.sign", 12345.0)
    file.write_text("opaque")
    assert fetch_token(_oauth(oauth_token_file=file)).value == "opaque"


@pytest.fixture
def endpoint() -> Iterator[Any]:
    """A token endpoint that answers with what it was asked."""
    asked = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append((self.headers["Authorization"], self.rfile.read(int(self.headers["Content-Length"]))))
            body = {"/token": b'{"access_token": "t0ken", "expires_in": 60}', "/empty": b"{}"}.get(self.path)
            self.send_response(200 if body else 401)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_a_token_endpoint_grants_to_client_credentials(endpoint: Any) -> None:
    url, asked = endpoint
    client = {"oauth_client_id": "me", "oauth_client_secret": SECRET, "oauth_scope": "kafka"}
    token = fetch_token(_oauth(oauth_token_url=f"{url}/token", **client))
    assert token.value == "t0ken"
    assert asked == [("Basic bWU6b3Blbi1zZXNhbWU=", b"grant_type=client_credentials&scope=kafka")]
    for path, error in (("/empty", DeniedError), ("/unauthorized", RetriableError)):
        with pytest.raises(error) as caught:
            fetch_token(_oauth(oauth_token_url=url + path, **client))
        assert SECRET not in str(caught.value)

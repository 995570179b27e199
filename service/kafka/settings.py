"""How to reach Kafka: one model for environment, file and flags."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


class KafkaSettings(BaseSettings):
    """Where Kafka is, who we are there, and how patient we are. Environment: `PORTCULLIS_KAFKA_…`."""

    model_config = SettingsConfigDict(
        env_prefix="PORTCULLIS_KAFKA_", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    bootstrap_servers: str = Field("127.0.0.1:9092", description="host:port, comma-separated")
    client: Literal["auto", "kafka-python", "confluent-kafka"] = Field(
        "auto", description="auto takes confluent-kafka where it is installed, otherwise kafka-python"
    )
    client_id: str = Field("portcullis", description="how we appear in the broker's logs and quotas")

    tls: bool = Field(default=False, description="encrypt; implied by any of the three files below")
    tls_ca_file: Path | None = Field(None, description="who may sign the brokers' certificates (PEM)")
    tls_cert_file: Path | None = Field(None, description="our certificate (PEM), for mutual TLS")
    tls_key_file: Path | None = Field(None, description="the private key of our certificate (PEM)")

    sasl_mechanism: SaslMechanism | None = Field(None, description="how to authenticate, if by SASL")
    sasl_username: str | None = Field(None, description="for PLAIN and SCRAM")
    sasl_password: SecretStr | None = Field(None, description="for PLAIN and SCRAM")
    oauth_token_file: Path | None = Field(None, description="OAUTHBEARER: a file that holds a fresh token")
    oauth_token_url: str | None = Field(None, description="OAUTHBEARER: endpoint for client credentials")
    oauth_client_id: str | None = Field(None, description="OAUTHBEARER with a token endpoint")
    oauth_client_secret: SecretStr | None = Field(None, description="OAUTHBEARER with a token endpoint")
    oauth_scope: str | None = Field(None, description="OAUTHBEARER with a token endpoint")

    session_timeout_ms: int = Field(
        6_000, ge=1_000, description="silence that ends a membership; the least that brokers allow unless told"
    )
    heartbeat_interval_ms: int = Field(1_000, ge=100, description="how often a member says that it is there")
    max_poll_interval_ms: int = Field(300_000, ge=1_000, description="longest time between two polls")
    metadata_max_age_ms: int = Field(30_000, ge=500, description="how soon new partitions are noticed")
    request_timeout_ms: int = Field(30_000, ge=1_000, description="how long a broker may take to answer")
    transaction_timeout_ms: int = Field(10_000, ge=1_000, description="the broker aborts a transaction of this age")
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field("none", description="of what we produce")
    max_request_bytes: int = Field(9_437_184, ge=1_024, description="largest request that we produce")
    extra: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="further settings of the client library, in its own words"
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file belong together; one of them is missing")
        if self.oauth_token_url is not None and not self.oauth_token_url.startswith(("https://", "http://")):
            raise ValueError("oauth_token_url must start with https:// (or http://, where nobody listens in)")
        if self.heartbeat_interval_ms * 3 > self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms must be at most a third of session_timeout_ms "
                f"({self.session_timeout_ms}), given {self.heartbeat_interval_ms}"
            )
        if self.sasl_mechanism in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}:
            self._require("sasl_username", "sasl_password")
        if self.sasl_mechanism == "OAUTHBEARER" and self.oauth_token_file is None:
            self._require("oauth_token_url", "oauth_client_id", "oauth_client_secret")
        return self

    def _require(self, *names: str) -> None:
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise ValueError(f"sasl_mechanism {self.sasl_mechanism} also needs: {', '.join(missing)}")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.tls or self.tls_ca_file is not None or self.tls_cert_file is not None

    @property
    def security_protocol(self) -> str:
        """Kafka's name for the combination of TLS and SASL."""
        return ("SASL_" if self.sasl_mechanism else "") + ("SSL" if self.uses_tls else "PLAINTEXT")

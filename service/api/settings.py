"""How the HTTP service runs: one model for environment, flags and tests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.api.tokens import Token

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ServiceSettings(BaseSettings):
    """What operators tune. Environment: `PORTCULLIS_…`."""

    model_config = SettingsConfigDict(env_prefix="PORTCULLIS_", extra="forbid", frozen=True)

    data: Path = Field(Path("portcullis-data"), description="directory of uploads, results and the embedded database")
    database_url: SecretStr | None = Field(
        None, description="postgresql://… for several machines, which then share `data`; SQLite in `data` if left out"
    )
    host: str = Field("127.0.0.1", description="address to listen on; without tokens only loopback is allowed")
    port: int = Field(8080, ge=0, le=65_535, description="port to listen on; 0 takes any free one")
    tls_certificate: Path | None = Field(None, description="PEM file of the certificate chain")
    tls_key: Path | None = Field(None, description="PEM file of the certificate's key")
    tokens: tuple[Token, ...] = Field((), description="as JSON, or see `tokens_file`")
    tokens_file: Path | None = Field(None, description="a line of JSON per token, as `portcullis token new` prints it")
    workers: tuple[str, ...] = Field((), description="addresses of stream workers, such as http://127.0.0.1:9400")

    job_workers: int = Field(2, ge=0, le=256, description="processes that run jobs; 0 leaves that to other machines")
    job_memory_bytes: int = Field(4 << 30, ge=1 << 28, description="address space of such a process")
    job_seconds: float = Field(3_600, gt=0, description="longest time that a job may take")
    lease_seconds: float = Field(10, ge=1, description="after so long without a sign, a runner is taken for dead")
    result_seconds: float = Field(86_400, gt=0, description="results and reports are deleted after so long")
    max_jobs_per_token: int = Field(100, ge=1, description="jobs of one token that wait or run")

    max_table_bytes: int = Field(1 << 30, ge=1, description="largest table, as sent and unpacked")
    max_policy_bytes: int = Field(1 << 20, ge=1, description="largest policy")
    max_hierarchy_bytes: int = Field(8 << 20, ge=1, description="all hierarchy files of one request together")
    policy_seconds: float = Field(10, ge=1, description="processor time that reading a policy may take")
    policy_memory_bytes: int = Field(512 << 20, ge=1 << 26, description="memory that reading a policy may take")
    max_ratio: int = Field(200, ge=2, description="how many times larger a gzipped table may become")
    max_columns: int = Field(1_000, ge=1, description="columns of a table")
    receive_seconds: float = Field(30, gt=0, description="longest wait for the next part of a request")
    max_event_streams: int = Field(200, ge=1, description="clients that follow events at the same time")
    max_event_streams_per_token: int = Field(50, ge=1, description="those of one token")
    header_seconds: float = Field(10, gt=0, description="longest wait for the whole head of a request")
    max_connections: int = Field(1_000, ge=1, description="connections at the same time, besides health checks")
    max_connections_per_address: int = Field(
        500, ge=1, description="those of one address; behind a proxy, all clients have the address of the proxy"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.all_tokens and self.host not in LOOPBACK:
            raise ValueError(
                "host: without tokens the service listens on loopback only (127.0.0.1); "
                "make one with `portcullis token new` and put it into tokens_file"
            )
        if not all(re.match(r"https?://[^/\s]", address) for address in self.workers):
            raise ValueError("workers: an address begins with http:// or https:// and a host")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together; one is missing")
        names = [token.name for token in self.all_tokens]
        if len(set(names)) < len(names):
            raise ValueError("tokens: every token needs a name of its own; jobs belong to it")
        return self

    @property
    def all_tokens(self) -> tuple[Token, ...]:
        """Tokens of the setting and of the file."""
        if self.tokens_file is None:
            return self.tokens
        lines = self.tokens_file.read_text(encoding="utf-8").splitlines()
        return (*self.tokens, *(Token.model_validate(json.loads(line)) for line in lines if line.strip()))

    @property
    def url(self) -> str:
        """URL of the database."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data.resolve() / 'portcullis.db'}"

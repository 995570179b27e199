"""How to reach a schema registry: one model for environment and file."""

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class RegistrySettings(BaseSettings):
    """Where the registry is, who we are there, and how patient we are. Environment: `PORTCULLIS_REGISTRY_…`."""

    model_config = SettingsConfigDict(
        env_prefix="PORTCULLIS_REGISTRY_", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    url: str | None = Field(
        None,
        description="where its API begins; Apicurio's is below /apis/ccompat/v7",
        pattern=r"^https?://[^/@]+(/[^@]*)?$",
    )
    username: str | None = Field(None, description="for basic authentication")
    password: SecretStr | None = Field(None, description="for basic authentication")
    token: SecretStr | None = Field(None, description="for bearer authentication")
    tls_ca_file: Path | None = Field(None, description="who may sign the registry's certificate (PEM)")
    tls_cert_file: Path | None = Field(None, description="our certificate (PEM), for mutual TLS")
    tls_key_file: Path | None = Field(None, description="the private key of our certificate (PEM)")
    timeout: float = Field(5.0, gt=0, le=60, description="seconds that a whole answer may take")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password belong together; one of them is missing")
        if self.username is not None and self.token is not None:
            raise ValueError("username and token are two ways to authenticate; one of them is enough")
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file belong together; one of them is missing")
        return self

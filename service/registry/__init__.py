"""A schema registry: Confluent's HTTP API, which Apicurio and Karapace speak too."""

from service.registry.client import ASK_AGAIN_SECONDS, Registered, Registry
from service.registry.errors import RegistryDeniedError, RegistryError, SchemaConflictError
from service.registry.settings import RegistrySettings

__all__ = [
    "ASK_AGAIN_SECONDS",
    "Registered",
    "Registry",
    "RegistryDeniedError",
    "RegistryError",
    "RegistrySettings",
    "SchemaConflictError",
]

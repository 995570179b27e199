"""A schema registry: Confluent's HTTP API, which Apicurio and Karapace speak too."""

from service.registry.client import Registered, Registry
from service.registry.errors import RegistryDeniedError, RegistryError, SchemaConflictError
from service.registry.settings import RegistrySettings

__all__ = [
    "Registered",
    "Registry",
    "RegistryDeniedError",
    "RegistryError",
    "RegistrySettings",
    "SchemaConflictError",
]

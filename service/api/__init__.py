"""The HTTP API: jobs, audits, policies, algorithms, streams; FastAPI."""

from service.api.app import create_app
from service.api.settings import ServiceSettings
from service.api.tokens import Scope, Token, new_token

__all__ = ["Scope", "ServiceSettings", "Token", "create_app", "new_token"]

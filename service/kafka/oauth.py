"""Tokens for OAUTHBEARER: from a file that somebody keeps fresh, or from a token endpoint."""

import binascii
import json
import time
from base64 import b64encode, urlsafe_b64decode
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from service.kafka.errors import DeniedError, RetriableError
from service.kafka.settings import KafkaSettings

UNKNOWN_LIFETIME_SECONDS = 60.0


class Token(NamedTuple):
    """A bearer token and the time (seconds since 1970) until which it is good."""

    value: str
    expires: float


def fetch_token(settings: KafkaSettings) -> Token:
    """A fresh token from wherever the settings say."""
    if settings.oauth_token_file is not None:
        value = settings.oauth_token_file.read_text().strip()
        return Token(value, _expiry(value))
    return _from_endpoint(settings)


def _expiry(token: str) -> float:
    """What the token itself says, if it is a JSON web token; otherwise soon, so that it is read again."""
    try:
        claims = token.split(".")[1]
        return float(json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return time.time() + UNKNOWN_LIFETIME_SECONDS


def _from_endpoint(settings: KafkaSettings) -> Token:
    """The client credentials grant of RFC 6749, section 4.4."""
    url, client_id, secret = settings.oauth_token_url, settings.oauth_client_id, settings.oauth_client_secret
    if url is None or client_id is None or secret is None:
        raise DeniedError("OAUTHBEARER needs oauth_token_file, or oauth_token_url with client id and secret")
    form = {"grant_type": "client_credentials"} | ({"scope": settings.oauth_scope} if settings.oauth_scope else {})
    login = b64encode(f"{quote(client_id)}:{quote(secret.get_secret_value())}".encode()).decode()
    request = Request(url, urlencode(form).encode(), {"Authorization": f"Basic {login}"})  # noqa: S310 - see settings
    try:
        with urlopen(request, timeout=settings.request_timeout_ms / 1000) as answer:  # noqa: S310 - see settings
            granted = json.load(answer)
        return Token(granted["access_token"], time.time() + float(granted.get("expires_in", UNKNOWN_LIFETIME_SECONDS)))
    except HTTPError as error:
        error.close()
        raise RetriableError(f"the token endpoint answered {error.code} instead of a token") from error
    except (URLError, TimeoutError) as error:
        raise RetriableError(f"the token endpoint did not answer: {type(error).__name__}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise DeniedError("the token endpoint's answer holds no access_token") from error

"""A small client: schemas by their id, the newest of a subject, and one that is registered or looked up.

What an id means never changes, so it is asked once. An id that nobody knows is asked again only after a while: a topic
full of them costs one question each.
"""

from __future__ import annotations

import json
import math
import ssl
import time
from base64 import b64encode
from collections import OrderedDict
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from service.registry.errors import RegistryDeniedError, RegistryError, SchemaConflictError
from service.registry.settings import RegistrySettings

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_MOST_BYTES = 8 << 20
"""Of an answer."""
_MOST_SCHEMAS = 4_096
"""That are remembered, known ids and unknown ones each."""
_MOST_REFERENCES = 64
ASK_AGAIN_SECONDS = 60.0
"""How long an id is not asked again that the registry does not know, or knows with a schema that cannot be read."""
_SHOWN = 300
_OK, _DENIED, _GONE, _CONFLICT = 200, {401, 403}, 404, {409, 422}
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
"""Error codes with which a registry says that it does not have something. Any other answer of 404 may be a proxy's."""


@dataclass(frozen=True)
class Registered:
    """A schema of the registry with those that it refers to, the innermost first."""

    number: int
    kind: str
    """AVRO, PROTOBUF or JSON."""
    text: str
    references: tuple[str, ...] = ()
    reference_names: tuple[str, ...] = ()
    """How the schemas that refer to them name these."""
    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Tags that the registry keeps beside the schema (`metadata.tags`), by the pattern of the fields that have them."""


class Registry:
    """Asks one registry, a question at a time."""

    def __init__(self, settings: RegistrySettings) -> None:
        if settings.url is None:
            raise RegistryDeniedError("no schema registry is named: set PORTCULLIS_REGISTRY_URL")
        self._settings = settings
        self._place = urlsplit(settings.url)
        self._headers = {"Accept": f"{_MEDIA_TYPE}, application/json", "Content-Type": _MEDIA_TYPE, **_login(settings)}
        self._tls = _context(settings) if self._place.scheme == "https" else None
        self._known: OrderedDict[int, Registered] = OrderedDict()
        self._unknown: OrderedDict[int, float] = OrderedDict()
        self._doubted: OrderedDict[int, float] = OrderedDict()

    @property
    def name(self) -> str:
        """Host and port."""
        return self._place.netloc

    def by_id(self, number: int) -> Registered | None:
        """The schema with this id; None where the registry has none."""
        if self._doubted.get(number, math.inf) <= time.monotonic():
            del self._doubted[number]
            self._known.pop(number, None)
        found = self._known.get(number)
        if found is None and self._unknown.get(number, 0.0) <= time.monotonic():
            answer = self._ask("GET", f"/schemas/ids/{number}", absent=(_NO_SCHEMA,))
            found = None if answer is None else self._registered({"id": number, **answer})
            if found is None:
                _remember(self._unknown, number, time.monotonic() + ASK_AGAIN_SECONDS)
            else:
                _remember(self._known, number, found)
        return found

    def doubt(self, number: int) -> None:
        """Ask for this id again after a while: its schema cannot be read, which may be the fault of one answer."""
        if number in self._known:
            _remember(self._doubted, number, time.monotonic() + ASK_AGAIN_SECONDS)

    def newest(self, subject: str) -> Registered | None:
        """The newest schema of a subject; None where there is no such subject."""
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return None if answer is None else self._registered(answer)

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of this schema in the subject, which gets it as a new version unless it has it."""
        answer = self._ask(
            "POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, "schemaType": kind}
        )
        return self._number(answer or {})

    def look_up(self, subject: str, kind: str, text: str) -> int | None:
        """The id of this schema in the subject; None where it does not have it."""
        answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}", {"schema": text, "schemaType": kind})
        return None if answer is None else self._number(answer)

    def _registered(self, answer: dict[str, Any]) -> Registered:
        text, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(text, str) or not isinstance(kind, str):
            raise self._strange()
        references: dict[tuple[str, int], tuple[str, str]] = {}
        self._refer(answer, references)
        names, texts = zip(*references.values(), strict=True) if references else ((), ())
        return Registered(self._number(answer), kind, text, texts, names, _metadata_tags(answer))

    def _refer(self, answer: dict[str, Any], found: dict[tuple[str, int], tuple[str, str]]) -> None:
        """Collect the name and text of what a schema refers to, what that refers to before it."""
        for reference in answer.get("references") or ():
            try:
                place = str(reference["subject"]), int(reference["version"])
            except (KeyError, TypeError, ValueError):
                raise self._strange() from None
            if place in found:
                continue
            if len(found) >= _MOST_REFERENCES:
                raise self._strange()
            found[place] = "", ""  # a circle ends here
            below = self._ask("GET", f"/subjects/{quote(place[0], safe='')}/versions/{place[1]}")
            if below is None or not isinstance(below.get("schema"), str):
                raise self._strange()
            self._refer(below, found)
            del found[place]
            found[place] = str(reference.get("name", "")), below["schema"]

    def _number(self, answer: dict[str, Any]) -> int:
        number = answer.get("id")
        if not isinstance(number, int):
            raise self._strange()
        return number

    def _strange(self) -> RegistryError:
        return RegistryError(f"{self.name} does not answer as a schema registry does", "REGISTRY_STRANGE")

    # -- HTTP --------------------------------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, str] | None = None,
        absent: tuple[int, ...] = (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA),
    ) -> dict[str, Any] | None:
        """Return the answer; None where the registry says with one of the codes `absent` that it has no such thing."""
        status, text = self._answer(method, path, None if body is None else json.dumps(body).encode())
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if status in _DENIED:
            raise RegistryDeniedError(
                f"the schema registry at {self.name} refuses us ({status}): check the credentials"
            )
        if status >= 500 or status not in {_OK, _GONE, *_CONFLICT}:
            raise RegistryError(f"the schema registry at {self.name} answers {status}", "REGISTRY_BROKEN")
        if not isinstance(answer, dict):
            raise self._strange()
        if status in _CONFLICT:
            said = "".join(each for each in str(answer.get("message", "")) if each.isprintable())[:_SHOWN]
            raise SchemaConflictError(f"the schema registry at {self.name} does not take the schema: {said}")
        if status == _GONE:
            if answer.get("error_code") not in absent:  # another server, or one that is not ready
                raise self._strange()
            return None
        return answer

    def _answer(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = self._connection()
        end = time.monotonic() + self._settings.timeout
        try:
            connection.request(method, self._place.path.rstrip("/") + path, body, self._headers)
            response = connection.getresponse()
            text = b""
            while part := response.read1(65_536):
                text += part
                if len(text) > _MOST_BYTES:
                    reason = f"the schema registry at {self.name} answers with more than {_MOST_BYTES} bytes"
                    raise RegistryError(reason, "REGISTRY_TOO_LARGE")
                if time.monotonic() > end:
                    raise TimeoutError
        except (OSError, HTTPException) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise RegistryError(f"no answer of the schema registry at {self.name} ({why})") from None
        else:
            return response.status, text
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        host, port, timeout = self._place.hostname or "", self._place.port, self._settings.timeout
        if self._tls is None:
            return HTTPConnection(host, port, timeout=timeout)
        return HTTPSConnection(host, port, timeout=timeout, context=self._tls)


def _metadata_tags(answer: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the tags of `metadata.tags`; what has another form is ignored, as older registries have none."""
    metadata = answer.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    if not isinstance(tags, dict):
        return ()
    lists = ((pattern, each) for pattern, each in tags.items() if isinstance(each, list))
    return tuple((pattern, tuple(tag for tag in each if isinstance(tag, str))) for pattern, each in lists)


def _login(settings: RegistrySettings) -> dict[str, str]:
    if settings.token is not None:
        return {"Authorization": f"Bearer {settings.token.get_secret_value()}"}
    if settings.username is None or settings.password is None:
        return {}
    login = f"{settings.username}:{settings.password.get_secret_value()}".encode()
    return {"Authorization": f"Basic {b64encode(login).decode()}"}


def _context(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file)
        if settings.tls_cert_file is not None:
            context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file)
    except (OSError, ssl.SSLError):
        raise RegistryDeniedError(
            "tls_ca_file, tls_cert_file or tls_key_file is not a PEM file that can be read"
        ) from None
    return context


def _remember(cache: OrderedDict[int, Any], number: int, what: object) -> None:
    cache[number] = what
    cache.move_to_end(number)
    if len(cache) > _MOST_SCHEMAS:
        cache.popitem(last=False)

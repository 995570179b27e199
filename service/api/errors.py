"""How requests end that go wrong: as `application/problem+json`, without an echo of what was sent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from microdata import PortcullisError
from service.api.outages import outage
from service.problems import KINDS, Place, Problem, ProblemError, problem, problem_of

log = logging.getLogger(__name__)

_BY_STATUS = {400: "bad-request", 404: "not-found", 405: "method-not-allowed", 416: "wrong-range"}
_SENTENCES = {
    "missing": "is missing",
    "int_parsing": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
}
_TO_DO = {
    "not-found": "The service has no such address; /openapi.json lists all of them.",
    "method-not-allowed": "The address is right, the method is not; the header `Allow` names those that are.",
    "wrong-range": "The range begins behind the end of the file; the header `Content-Range` says how long it is.",
}
_RETRY = {
    "too-many-jobs": "5",
    "not-ready": "2",
    "database-locked": "2",
    "database-unavailable": "5",
    "disk-full": "30",
    "files-unavailable": "30",
}


_OUTAGES = ("database-unavailable", "database-locked", "disk-full", "files-unavailable")


def install(app: FastAPI) -> None:
    """Answer every error of this application with a problem."""

    @app.exception_handler(ProblemError)
    async def _ours(_: Request, error: ProblemError) -> Response:
        return answer(error.problem)

    @app.exception_handler(PortcullisError)
    async def _library(_: Request, error: PortcullisError) -> Response:
        return answer(problem_of(error))

    @app.exception_handler(SQLAlchemyError)
    @app.exception_handler(OSError)
    async def _outage(_: Request, error: SQLAlchemyError | OSError) -> Response:
        found = outage(error)
        if found is None:
            raise error
        log.error("%s: %s", found.title, type(error).__name__)
        return answer(found)

    @app.exception_handler(RequestValidationError)
    async def _parameters(_: Request, error: RequestValidationError) -> Response:
        return answer(problem("bad-parameter", "A parameter is not allowed.", [_place(one) for one in error.errors()]))

    @app.exception_handler(HTTPException)
    async def _framework(request: Request, error: HTTPException) -> Response:
        kind = _BY_STATUS.get(error.status_code, "bad-request")
        headers = dict(error.headers or {})
        allowed = _allow(request)
        # The console's files answer for every address that no route takes with this method.
        if kind == "not-found" and allowed and request.method not in allowed["Allow"].split(", "):
            kind = "method-not-allowed"
        if kind == "method-not-allowed":
            headers |= allowed or {"Allow": "GET, HEAD"}
        return answer(problem(kind, _TO_DO.get(kind, f"{KINDS[kind].title}.")), headers)


def _allow(request: Request) -> dict[str, str]:
    """The methods of all routes at this address; the framework names those of one."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    found = {
        method for route in routes if route.matches(request.scope)[0] != Match.NONE for method in route.methods or ()
    }
    if "GET" in found:
        found.add("HEAD")
    return {"Allow": ", ".join(sorted(found))} if found else {}


def answer(given: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as a response."""
    kind = given.type.rpartition(":")[2]
    extra = dict(headers or {})
    if given.status == 401:
        extra["WWW-Authenticate"] = 'Bearer realm="portcullis"'
    if kind in _RETRY:
        extra["Retry-After"] = _RETRY[kind]
    text = given.model_dump_json(exclude_none=True)
    return Response(text, given.status, extra, media_type="application/problem+json")


def _place(error: Mapping[str, Any]) -> Place:
    """Where and why, from pydantic's type and limits; its message may quote the value."""
    sentence = _SENTENCES.get(error["type"], "is not allowed")
    _, *path = error["loc"]
    return Place(path=".".join(str(part) for part in path), reason=sentence.format_map(error.get("ctx", {})))


def documented(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of the problems that a route can answer with."""
    by_status: dict[int, list[str]] = {}
    for kind in dict.fromkeys(("unauthorized", "forbidden", "bad-parameter", *_OUTAGES, *kinds)):
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    return {
        status: {
            "description": "; ".join(KINDS[kind].title for kind in found),
            "model": Problem,
            "content": {
                "application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                    "examples": {
                        kind: {"value": problem(kind, f"{KINDS[kind].title}.").model_dump(exclude_none=True)}
                        for kind in found
                    },
                }
            },
        }
        for status, found in by_status.items()
    }

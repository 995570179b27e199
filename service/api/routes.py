"""Kinds of routes: those that refuse unknown query parameters, and those that are asked often and answer at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from pydantic import BaseModel, ValidationError, create_model

from service.problems import Place, ProblemError


class StrictRoute(APIRoute):
    """A route that refuses query parameters that it does not know, and those that are given twice.

    A request with a mistyped parameter would otherwise do something else than its sender wants.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the framework's handler behind a check of the query."""
        handle = super().get_route_handler()
        known = frozenset(one.alias for one in self.dependant.query_params)
        calls: list[Any] = [one.call for one in self.dependant.dependencies]
        guards: list[Any] = [call for call in calls if isinstance(call, SecurityBase)]

        async def handle_strictly(request: Request) -> Response:
            if request.query_params:
                for guard in guards:  # a caller without a token gets 401, as on every other route
                    await guard(request)
                check_query(request, known)
            return await handle(request)

        return handle_strictly


def check_query(request: Request, known: Collection[str]) -> None:
    """Raise unless each query parameter is known and is given once."""
    names = [name for name, _ in request.query_params.multi_items()]
    if any(name not in known for name in names):
        allowed = f"the parameters are {', '.join(sorted(known))}" if known else "there are none"
        raise ProblemError("bad-parameter", f"A query parameter is unknown; {allowed}.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        places = [Place(path=name, reason="is given more than once") for name in twice]
        raise ProblemError("bad-parameter", "A query parameter is given more than once.", places)


class LightRoute(APIRoute):
    """A route that finds its arguments itself: the framework takes longer over them than such a route to answer.

    Arguments are dependencies that need the request alone, parts of the path, and parameters of the query; the answer
    is a finished response. The framework documents the route from its signature, as it does with every other.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        if self.dependencies:
            raise TypeError(f"{self.path}: a light route asks for its dependencies in its signature, else none is run")
        endpoint: Callable[..., Coroutine[Any, Any, Response]] = self.endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        dependencies = {
            name: mark.dependency
            for name, hint in hints.items()
            for mark in getattr(hint, "__metadata__", ())
            if isinstance(mark, params.Depends) and mark.dependency is not None
        }
        parameters: dict[str, Any] = {
            name: (hints[name], ... if one.default is inspect.Parameter.empty else one.default)
            for name, one in inspect.signature(endpoint).parameters.items()
            if name not in dependencies and name not in self.param_convertors
        }
        query: type[BaseModel] = create_model("Query", **parameters)
        known = frozenset(parameters)

        async def handle(request: Request) -> Response:
            found = {name: await dependency(request) for name, dependency in dependencies.items()}
            check_query(request, known)
            try:
                asked = query.model_validate(dict(request.query_params))
            except ValidationError as error:
                wrong = error.errors(include_url=False, include_input=False)
                raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in wrong]) from None
            return await endpoint(**found, **request.path_params, **asked.__dict__)

        return handle

"""A light route is answered as the framework would answer it."""

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.testclient import TestClient

from service.api.errors import install
from service.api.jobs import looking
from service.api.routes import LightRoute, StrictRoute
from service.jobs import State


async def caller(request: Request) -> str:
    if "authorization" not in request.headers:
        raise HTTPException(404)
    return request.headers["authorization"]


async def endpoint(
    asking: Annotated[str, Depends(caller)],
    place: str,
    needed: int,
    state: State | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str | None, Query(max_length=3)] = None,
) -> Response:
    return Response(repr((asking, place, needed, state, limit, after)))


@pytest.fixture(scope="module")
def client() -> Any:
    app = FastAPI()
    install(app)
    app.router.add_api_route("/framework/{place}", endpoint, route_class_override=StrictRoute)
    app.router.add_api_route("/light/{place}", endpoint, route_class_override=LightRoute)
    return TestClient(app)


@pytest.mark.parametrize(
    "query",
    [
        "needed=1",
        "needed=1&state=queued&limit=200&after=abc",
        "needed=1&needed=2",
        "needed=1&unknown=3",
        "needed=%2B1&after=",
        "",
        "needed=",
        "needed=x&limit=0&state=odd&after=long",
        "needed=1&limit=201",
        "needed=1.0&limit=1.5",
        "needed=1&state=",
    ],
)
def test_arguments_and_refusals_are_those_of_the_framework(client: Any, query: str) -> None:
    asked = {"headers": {"authorization": "me"}}
    light, framework = (client.get(f"/{kind}/a%20b?{query}", **asked) for kind in ("light", "framework"))
    assert (light.status_code, light.text) == (framework.status_code, framework.text)


def test_dependencies_come_before_parameters(client: Any) -> None:
    assert [client.get(f"/{kind}/here?needed=x").status_code for kind in ("light", "framework")] == [404, 404]


def test_the_routes_for_jobs_are_light() -> None:
    assert {route.path: type(route) for route in looking.routes} == {  # type: ignore[attr-defined]
        "/v1/jobs": LightRoute,
        "/v1/jobs/{job_id}": LightRoute,
    }


def test_a_dependency_that_nobody_would_run_is_refused() -> None:
    """A router's or an app's: a check of who is asking could hide there."""
    guarded = APIRouter(route_class=LightRoute, dependencies=[Depends(caller)])
    with pytest.raises(TypeError, match="in its signature"):
        guarded.get("/{place}")(endpoint)

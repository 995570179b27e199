"""Policies: check one, keep one under its name. Stored policies are everybody's; only an admin changes them."""

from __future__ import annotations

import time
from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor

from service.api.answers import PolicyAnswer, PolicyCheck, PolicyList
from service.api.context import Admin, Anybody, InService, Service
from service.api.errors import documented
from service.api.given_policy import EXAMPLE, HIERARCHIES_PART, NO_POLICY, POLICY_PART
from service.api.policy_reader import GivenPolicy
from service.api.routes import StrictRoute
from service.api.tokens import Caller
from service.api.uploads import read_body, read_form
from service.jobs import StoredPolicy
from service.policy import PolicyError, PolicyProblem
from service.problems import Place, ProblemError, problem_of


class _StoredName(StringConvertor):
    """Any name but the one of the route that checks policies."""

    regex = r"(?!check$)[^/]+"


register_url_convertor("stored_name", _StoredName())
router = APIRouter(prefix="/v1/policies", tags=["policies"], route_class=StrictRoute)

Name = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", max_length=100, description="the policy's `name`; any but `check`"
    ),
]

_MULTIPART = {
    "type": "object",
    "properties": {"policy": POLICY_PART, "hierarchies": HIERARCHIES_PART},
    "required": ["policy"],
    "additionalProperties": False,
}


def _body(json: dict[str, str], text: dict[str, str]) -> dict[str, Any]:
    """The description of a request that brings a policy, with what is accepted as JSON and as YAML."""
    content = {
        "application/json": {"schema": json, "example": EXAMPLE},
        "application/yaml": {"schema": text, "example": yaml.safe_dump(EXAMPLE, sort_keys=False)},
        "multipart/form-data": {"schema": _MULTIPART},
    }
    return {"requestBody": {"required": True, "content": content}}


_BODY_PROBLEMS = ("bad-request", "timeout", "too-large", "bad-upload")


async def _given(request: Request, service: Service, caller: Caller) -> GivenPolicy:
    """The policy that a request brings: its body, or a multipart with hierarchy files."""
    limits = service.limits
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        form = await read_form(request, limits, (), None)
        if form.policy is None:
            raise ProblemError("bad-upload", "A part is missing.", [Place(path="policy", reason="is missing")])
        return await service.policies.read(caller.name, form.policy, form.hierarchies, who=caller.asks_as)
    body = await read_body(request, limits.policy_bytes, limits.seconds)
    if not body.strip():
        raise ProblemError("bad-request", "The request has no body; it must be the policy.")
    return await service.policies.read(caller.name, body, who=caller.asks_as)


@router.post(
    "/check",
    response_description="What was found",
    responses=documented(*_BODY_PROBLEMS),
    summary="Check a policy",
    openapi_extra=_body({}, {}),  # whatever it is, the answer says what is wrong with it
)
async def check_policy(request: Request, service: InService, caller: Anybody) -> PolicyCheck:
    """Say whether a policy can be used, and everything that is wrong with it."""
    try:
        policy = await _given(request, service, caller)
    except PolicyError as error:
        return PolicyCheck(usable=False, problems=problem_of(error).errors)
    return PolicyCheck(
        usable=True,
        problems=[],
        name=policy.name,
        kind=policy.kind,
        models=dict(policy.models),
        fingerprint=policy.fingerprint,
        purposes=list(policy.purposes),
    )


@router.get("", response_description="The policies", responses=documented(), summary="List stored policies")
async def list_policies(service: InService, caller: Anybody) -> PolicyList:
    """All stored policies, by name."""
    del caller
    stored = await service.read(service.store.policies)
    return PolicyList(policies=[PolicyAnswer.of(policy) for policy in stored])


@router.put(
    "/{name:stored_name}",
    response_description="The policy, which replaces an earlier one",
    responses={
        **documented(*_BODY_PROBLEMS, "bad-policy", "infeasible-guarantee", "bad-parameter"),
        201: {"description": "The name is new", "model": PolicyAnswer},
    },
    summary="Store a policy",
    openapi_extra=_body({"type": "object"}, {"type": "string"}),
)
async def put_policy(
    name: Name, request: Request, response: Response, service: InService, caller: Admin
) -> PolicyAnswer:
    """Keep a policy; jobs may then name it. It must carry the name that it is stored under."""
    policy = await _given(request, service, caller)
    if policy.name != name:
        raise PolicyError([PolicyProblem("name", "must be the name in the address")])
    stored = StoredPolicy(name, policy.text, policy.fingerprint, time.time())
    if await run_in_threadpool(service.store.put_policy, stored):
        response.status_code = 201
    return PolicyAnswer.of(stored)


@router.get(
    "/{name:stored_name}",
    response_description="The policy",
    responses=documented("not-found", "bad-parameter"),
    summary="A stored policy",
)
async def get_policy(name: Name, service: InService, caller: Anybody) -> PolicyAnswer:
    """The policy of this name."""
    del caller
    stored = await service.read(service.store.policy, name)
    if stored is None:
        raise ProblemError("not-found", NO_POLICY)
    return PolicyAnswer.of(stored)


@router.delete(
    "/{name:stored_name}",
    status_code=204,
    response_description="It is gone",
    responses=documented("not-found", "bad-parameter"),
    summary="Delete a stored policy",
)
def delete_policy(name: Name, service: InService, caller: Admin) -> Response:
    """Jobs that were submitted with it keep it."""
    del caller
    if not service.store.drop_policy(name):
        raise ProblemError("not-found", NO_POLICY)
    return Response(status_code=204)

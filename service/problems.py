"""What went wrong, as RFC 9457 problems: for HTTP answers and for jobs that failed.

A problem never repeats what was sent. It names the place (a path into the policy, a parameter, a header), what is
allowed there and, where there is one, the nearest value that would do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from microdata import DataError, DiskFullError, GuaranteeError, InfeasibleError, PortcullisError, SchemaError
from service.policy import PolicyError, data_kinds, policy_file
from service.policy import Problem as PolicyProblem
from service.policy.policy import at_parameter

PREFIX = "urn:portcullis:problem:"


class Kind(NamedTuple):
    """A kind of problem: stable name, HTTP status, title."""

    status: int
    title: str


KINDS = {
    "unauthorized": Kind(401, "A valid bearer token is needed"),
    "forbidden": Kind(403, "The token has not the scope for this"),
    "not-found": Kind(404, "There is no such thing"),
    "method-not-allowed": Kind(405, "The method is not allowed here"),
    "not-acceptable": Kind(406, "None of the accepted media types can be had"),
    "timeout": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "The state of the job does not allow this"),
    "too-large": Kind(413, "The request is larger than allowed"),
    "wrong-range": Kind(416, "The range lies outside of the file"),
    "bad-request": Kind(400, "The request cannot be understood"),
    "bad-parameter": Kind(422, "A parameter is not allowed"),
    "bad-upload": Kind(422, "The upload cannot be used"),
    "bad-policy": Kind(422, "The policy cannot be used"),
    "infeasible-guarantee": Kind(422, "No publication can satisfy the guarantee"),
    "idempotency-key-reused": Kind(422, "The idempotency key was used for another request"),
    "wrong-table": Kind(422, "The policy does not fit the table"),
    "too-many-jobs": Kind(429, "Too many jobs are waiting or running"),
    "guarantee-failed": Kind(500, "The publication failed its own audit and is not released"),
    "out-of-memory": Kind(500, "The job needed more memory than it may use"),
    "job-killed": Kind(500, "The job's process ended before the job did"),
    "job-interrupted": Kind(500, "The service ended twice while the job ran"),
    "job-too-long": Kind(500, "The job took longer than allowed"),
    "internal": Kind(500, "A fault of the service"),
    "not-ready": Kind(503, "The service is not ready"),
    "database-unavailable": Kind(503, "The database does not answer"),
    "database-locked": Kind(503, "The database is locked"),
    "disk-full": Kind(503, "There is no room left on the disk"),
    "files-unavailable": Kind(503, "The files of the service cannot be used"),
}


class Place(BaseModel):
    """One place of a request that is wrong."""

    path: str = Field(description="where: a path into the policy, or the name of a column, parameter, part or header")
    reason: str = Field(description="what is wrong and what is allowed")
    nearest: float | str | None = Field(None, description="the nearest feasible value, where there is one")


class Problem(BaseModel):
    """An RFC 9457 problem."""

    type: str = Field(description=f"stable: {PREFIX}… ", examples=[f"{PREFIX}infeasible-guarantee"])
    title: str
    status: int
    detail: str
    errors: list[Place] = Field(default_factory=list, description="each wrong place")


class ProblemError(Exception):
    """Ends a request or a job with a problem."""

    def __init__(self, kind: str, detail: str, errors: Collection[Place] = ()) -> None:
        super().__init__(kind)
        self.problem = problem(kind, detail, errors)

    @classmethod
    def of_problem(cls, found: Problem) -> ProblemError:
        """Ends a request with a problem that was found elsewhere."""
        return cls(found.type.removeprefix(PREFIX), found.detail, found.errors)

    @classmethod
    def of(cls, error: PortcullisError, names: Collection[str] = ()) -> ProblemError:
        """The same for an error of the library; `names` are the declared fields, which may be named."""
        return cls.of_problem(problem_of(error, names))


def problem(kind: str, detail: str, errors: Collection[Place] = ()) -> Problem:
    """A problem of a known kind."""
    status, title = KINDS[kind]
    return Problem(type=PREFIX + kind, title=title, status=status, detail=detail, errors=list(errors))


def problem_of(error: PortcullisError, names: Collection[str] = ()) -> Problem:
    """The problem that an error of ours stands for; `names` are the declared fields, which may be named."""
    match error:
        case PolicyError():
            return _policy_problem(error.problems, names)
        case InfeasibleError():
            return _policy_problem([at_parameter(error)], names)
        case DiskFullError():
            return problem("disk-full", "Submit the job again when there is room; the same Idempotency-Key will do.")
        case GuaranteeError():
            return problem("guarantee-failed", "This is a fault of Portcullis; nothing was published.")
        case DataError() if error.fields:
            places = [Place(path=field, reason=reason) for field, reason in error.fields]
            summary = str(error).partition("\n")[0].removesuffix(":")
            return problem("wrong-table", _sentence(without_given(summary, names)), places)
        case DataError() | SchemaError():
            return problem("wrong-table", _sentence(without_given(str(error), names)))
        case _:
            return problem("bad-policy", _sentence(without_given(str(error), names)))


def utf8_text(raw: bytes, part: str) -> str:
    """The text of a part of a request."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemError("bad-upload", f"The {part} is not UTF-8 text.") from None


def _policy_problem(problems: Collection[PolicyProblem], names: Collection[str]) -> Problem:
    infeasible = all(one.nearest is not None and one.path.startswith("guarantee") for one in problems)
    places = [Place(path=one.path, reason=without_given(one.reason, names), nearest=one.nearest) for one in problems]
    many = f"{len(places)} places are" if len(places) > 1 else "One place is"
    return problem("infeasible-guarantee" if infeasible else "bad-policy", f"{many} wrong.", places)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


# An apostrophe inside a word opens nothing.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_GOT = re.compile(r",? got [^;]*| of [-+.\w]+(?= cannot be met)")


def without_given(reason: str, names: Collection[str] = ()) -> str:
    """A reason without what somebody sent: quoted words stay only when they are our own or declared names."""

    def shown(match: re.Match[str]) -> str:
        word = match.group()[1:-1]
        return match.group() if word in names or word in _own_words() else "'…'"

    return _GOT.sub("", _QUOTED.sub(shown, reason))


@cache
def _own_words() -> frozenset[str]:
    """Keys, values and patterns of policies and parameters."""
    schemas: list[dict[str, Any]] = []
    names: list[str] = []
    for kind in data_kinds():
        names.append(kind.name)
        schemas.append(policy_file(kind).model_json_schema(by_alias=True))
        for catalogue in (kind.algorithms, kind.engines):
            schemas += [entry.parameters.model_json_schema() for entry in catalogue]
            names += catalogue.names()
    return frozenset([*names, *(word for schema in schemas for word in _schema_words(schema))])


def _schema_words(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _schema_words(one)
    elif isinstance(node, dict):
        yield from node.get("properties", ())
        own = [node.get("const"), node.get("pattern"), *node.get("enum", ())]
        yield from (word for word in own if isinstance(word, str))
        for one in node.values():
            yield from _schema_words(one)

"""What went wrong, as RFC 9457 problems: for HTTP answers and for jobs that failed.

A problem never repeats what was sent. It names the place (a path into the policy, a parameter, a header), what is
allowed there and, where there is one, the nearest value that would do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pydantic import BaseModel, Field

from microdata import DataError, DiskFullError, GuaranteeError, InfeasibleError, PortcullisError, SchemaError
from service.policy import PolicyError, PolicyProblem
from service.policy.policy import at_parameter

PREFIX = "urn:portcullis:problem:"


class Kind(NamedTuple):
    """A kind of problem: stable name, HTTP status, title."""

    status: int
    title: str


KINDS = {
    "unauthorized": Kind(401, "A valid bearer token is needed"),
    "forbidden": Kind(403, "The token does not allow this"),
    "not-found": Kind(404, "Nothing is here under this name"),
    "method-not-allowed": Kind(405, "The method is not allowed here"),
    "not-acceptable": Kind(406, "None of the media types in Accept is offered"),
    "timeout": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "The state of the job does not allow this"),
    "incomparable-release": Kind(409, "Together with an earlier release this one may tell more than either"),
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
    def of(cls, error: PortcullisError) -> ProblemError:
        """The same for an error of the library."""
        return cls.of_problem(problem_of(error))


def problem(kind: str, detail: str, errors: Collection[Place] = ()) -> Problem:
    """A problem of a known kind."""
    status, title = KINDS[kind]
    return Problem(type=PREFIX + kind, title=title, status=status, detail=detail, errors=list(errors))


def problem_of(error: PortcullisError) -> Problem:
    """The problem that an error of ours stands for, without what was given."""
    match error:
        case PolicyError():
            return _policy_problem(error.problems)
        case InfeasibleError():
            return _policy_problem([at_parameter(error)])
        case DiskFullError():
            return problem("disk-full", "Submit the job again when there is room; the same Idempotency-Key will do.")
        case GuaranteeError():
            return problem(
                "guarantee-failed", "This is a fault of Portcullis, please report it; nothing was published."
            )
        case DataError() if error.fields:
            places = [Place(path=field, reason=reason) for field, reason in error.fields]
            return problem("wrong-table", _sentence(error.reason), places)
        case SchemaError():
            return problem("wrong-table", _sentence(f"{error.at}: {error.reason}" if error.at else error.reason))
        case DataError():
            return problem("wrong-table", _sentence(error.reason))
        case _:
            return problem("bad-policy", _sentence(error.reason))


def utf8_text(raw: bytes, part: str) -> str:
    """The text of a part of a request."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemError("bad-upload", f"The {part} is not UTF-8 text.") from None


def _policy_problem(problems: Collection[PolicyProblem]) -> Problem:
    infeasible = all(one.nearest is not None and one.path.startswith("guarantee") for one in problems)
    places = [Place(path=one.path, reason=one.reason, nearest=one.nearest) for one in problems]
    many = f"{len(places)} places are" if len(places) > 1 else "One place is"
    return problem("infeasible-guarantee" if infeasible else "bad-policy", f"{many} wrong.", places)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."

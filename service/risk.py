"""What identifies in a data set, in words: with the roles of a policy, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from microdata import DataError, FieldKeys, Progress, Schema, silent
from privacy import FieldRisk, Identifying, SetRisk, alone_in, identifying

if TYPE_CHECKING:
    from service.policy import Policy

LISTED = 20
"""Sets that people are told of; programs get all."""
_UNPROTECTED = ("public", "sensitive")
"""Roles whose fields are published as they are."""


@dataclass(frozen=True)
class Roles:
    """What a policy says about fields."""

    of: dict[str, str]
    person: str | None
    quasi: tuple[str, ...]

    @classmethod
    def declared(cls, policy: Policy) -> Roles:
        """The roles of a policy for records."""
        schema = policy.schema
        if not isinstance(schema, Schema):
            # With policies come all algorithms, whose loading takes longer than most looks at a table.
            from service.policy import PolicyError, PolicyProblem  # noqa: PLC0415

            raise PolicyError([PolicyProblem("data", f"{policy.data.name} have no roles; risk knows records")])
        person = schema.person if isinstance(schema.person, str) else None
        named = {
            "quasi": [one.name for one in schema.quasi],
            "sensitive": [one.name for one in schema.sensitive],
            "public": schema.public,
        }
        of = {name: role for role, names in named.items() for name in names}
        return cls(of | ({person: "person"} if person else {}), person, tuple(named["quasi"]))


@dataclass(frozen=True)
class Rating:
    """What identifies, and what to do about it."""

    found: Identifying
    roles: dict[str, str]
    quasi: float | None
    """Share of the rows that the quasi-identifiers of the policy single out as they are; None without a policy."""
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self.found), "roles": self.roles, "quasi": self.quasi, "warnings": list(self.warnings)}


def rate(
    data: FieldKeys,
    *,
    roles: Roles | None = None,
    person: str | None = None,
    share: float,
    size: int,
    population: int | None = None,
    progress: Progress = silent,
) -> Rating:
    """Look at every field, and at the roles of a policy where there is one."""
    person = person or (roles.person if roles else None)
    _check_there(data, [*(roles.of if roles else ()), *([person] if person else ())])
    found = identifying(data, person=person, share=share, size=size, population=population, progress=progress)
    quasi = alone_in(data, roles.quasi, person) if roles else None
    warnings = tuple(_warnings(found, roles)) if roles else ()
    return Rating(found, dict(roles.of) if roles else {}, quasi, warnings)


def _check_there(data: FieldKeys, names: Sequence[str]) -> None:
    missing = [name for name in dict.fromkeys(names) if name not in data.names]
    if missing:
        raise DataError("fields are missing", fields=[(name, "is missing") for name in missing])


def _warnings(found: Identifying, roles: Roles) -> Iterator[str]:
    """Fields that leave as they are and give away what the others hide."""
    by_name = {one.name: one for one in found.fields}
    for name, role in roles.of.items():
        if role in _UNPROTECTED:
            yield from _about(by_name[name], role, found, roles)
    for one in found.sets:
        if len(one.fields) > 1 and all(roles.of.get(name) in _UNPROTECTED for name in one.fields):
            yield f"{sentence(one)}, which are all published as they are"


def _about(one: FieldRisk, role: str, found: Identifying, roles: Roles) -> Iterator[str]:
    if one.alone >= found.share:
        yield (
            f"schema.{role}: {one.name!r} singles out {one.alone:.0%} of the rows by itself and is published as it is. "
            "Declare it as a quasi-identifier or leave it out."
        )
    told = [name for name in one.determines if roles.of.get(name) == "quasi"]
    if told and role == "public":
        yield (
            f"schema.public: from {one.name!r} follows {_listed(told)}: whatever is generalized there can be read off "
            "here. Declare it as a quasi-identifier or leave it out."
        )


def sentence(one: SetRisk) -> str:
    """A set for people."""
    about = f" (± {one.error:.1%})" if one.error else ""
    return f"{one.alone:.0%}{about} of the rows are unique on {_listed(one.fields)}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last

"""Which purpose a policy is used for: it puts attribute order, trust and models into the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.policy.errors import PolicyError, PolicyProblem
from service.policy.file import PolicyFile, PurposeSection


def choose(given: Mapping[str, Any], purpose: str | None, who: str | None = None) -> dict[str, Any]:
    """A policy with the purpose that somebody asks for, or else the only one that is theirs.

    `who` is the name of a token; without one, all purposes may be chosen.
    """
    purposes = given.get("purposes")
    if not isinstance(purposes, Mapping) or not purposes:
        if purpose is not None:
            raise PolicyError([PolicyProblem("purpose", "the policy has no purposes")])
        return dict(given)
    allowed = open_to(given, who)
    wanted = purpose if purpose is not None else given.get("purpose")
    if wanted is None and who is not None and len(allowed) == 1:
        wanted = allowed[0]
    if wanted not in allowed:
        raise PolicyError([PolicyProblem("purpose", f"must be one of {', '.join(allowed) or 'none'}")])
    return {**given, "purpose": wanted}


def open_to(given: Mapping[str, Any], who: str | None) -> list[str]:
    """The purposes of a policy that somebody may ask for; `who` as above."""
    return [str(name) for name, section in (given.get("purposes") or {}).items() if _may(section, who)]


def _may(section: object, who: str | None) -> bool:
    """Whether somebody may ask for a purpose; what is no section is refused when the policy is read."""
    named = section.get("who") if isinstance(section, Mapping) else None
    return who is None or named is None or (isinstance(named, list) and who in named)


def guarantee_for(file: PolicyFile, problems: list[PolicyProblem]) -> dict[str, Any]:
    """The guarantee with what the chosen purpose puts into it."""
    if file.purposes and file.releases is None:
        reason = "two purposes make two releases: say data_set, the name of the data that tables are of"
        problems.append(PolicyProblem("releases", reason))
    if file.purpose is None:
        return file.guarantee
    if file.purpose not in file.purposes:
        known = ", ".join(file.purposes) or "none"
        problems.append(PolicyProblem("purpose", f"must be one of {known}"))
        return file.guarantee
    return completed(file.guarantee, file.purposes[file.purpose])


def completed(guarantee: Mapping[str, Any], purpose: PurposeSection) -> dict[str, Any]:
    """A guarantee for a purpose."""
    return {**guarantee, "order": purpose.order, "trust": purpose.trust, **purpose.models}

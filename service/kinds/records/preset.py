"""The rules of a policy's preset for records, checked on tables before they are written and on schemas of streams."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from microdata import DataError, Publication
from privacy.safe_harbor import check_publication, check_schema
from service.policy import Policy, PolicyProblem

_REMEDY = (
    "nothing is written, because the preset hipaa does not allow these columns to be published like this; leave them "
    "out of the policy or correct them, and list columns that are none of the 18 identifiers under preset.reviewed"
)


def wrong_preset(policy: Policy) -> Iterator[PolicyProblem]:
    """Yield what contradicts the preset in the policy itself.

    What a table publishes is checked when it is made. A stream is checked before, on all that it could publish.
    """
    if policy.preset is None:
        return
    for place, name in enumerate(policy.preset.reviewed):
        if name not in policy.fields():
            yield PolicyProblem(f"preset.reviewed[{place}]", "must be a field of the schema; leave it out")
    if policy.kind == "stream":
        roles = {name: role for role, names in policy.schema.roles().items() for name in names}
        for column in check_schema(policy.schema, policy.preset.reviewed, datetime.now(UTC).year):
            reason = f"the preset hipaa does not allow it: {column}"
            yield PolicyProblem(f"schema.{roles[column.name]}.{column.name}", reason)


def require_preset(policy: Policy, publication: Publication) -> str:
    """Check what is about to be written against the preset and say so; raises `DataError` where it is not allowed."""
    if policy.preset is None:
        return ""
    forbidden = check_publication(publication, policy.preset.reviewed, datetime.now(UTC).year)
    if forbidden:
        raise DataError(_REMEDY, fields=[(column.name, str(column)) for column in forbidden])
    reviewed = ", ".join(policy.preset.reviewed)
    by_hand = f"; reviewed by the author of the policy: {reviewed}" if reviewed else ""
    return f"preset hipaa: no published column was recognised as one of the 18 identifiers{by_hand}"

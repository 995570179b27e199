"""What is said about a publication: asked, achieved, lost, left out. No record's value is in it."""

from __future__ import annotations

from typing import Any

from service.policy import Policy
from service.tables import Anonymized


def table_report(policy: Policy, result: Anonymized, seconds: float) -> dict[str, Any]:
    """The report of one table as plain data for JSON."""
    refused = [
        {"field": field, "reason": reason.code, "rows": rows}
        for (field, reason), rows in result.refusals.counts().items()
    ]
    return {
        "policy": policy.name,
        "fingerprint": policy.fingerprint(),
        "guarantee": {"algorithm": policy.algorithm_name, **policy.parameters.model_dump(mode="json")},
        "seconds": round(seconds, 3),
        "refused": refused,
        "audit": result.audit.as_dict(),
    }

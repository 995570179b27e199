"""A job: what users see of it, and what only its runner needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
JobKind: TypeAlias = Literal["anonymize", "audit"]
ENDED = ("succeeded", "failed", "cancelled")


@dataclass(slots=True)
class JobView:
    """What users see of a job: small and made quickly, because it is read whenever somebody looks."""

    id: str
    token: str
    kind: JobKind
    state: State
    policy_name: str
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    attempts: int = 0
    phase: str | None = None
    phase_at: float | None = None
    done: int = 0
    total: int = 0
    problem: str | None = None
    """As JSON."""
    report: str | None = None
    """As JSON; left out of pages."""

    @property
    def ended(self) -> bool:
        """Whether nothing happens to it any more."""
        return self.state in ENDED


@dataclass(slots=True, kw_only=True)
class Job(JobView):
    """A whole row of the table of jobs; its policy holds every hierarchy and may be megabytes."""

    policy: str
    owner: str
    """Whose data sets it releases: `token:NAME`, or `group:NAME` for a token of a group."""
    inputs: dict[str, str]
    """File of each part of the upload."""
    runner: str | None = None
    lease_until: float | None = None
    cancel_at: float | None = None
    """When somebody asked to stop it."""
    stop_search_at: float | None = None
    """When a caller asked to publish the best that its search has found so far."""
    idempotency_key: str | None = None
    digest: str | None = None

"""What a file of evidence may contain. Anything else is refused: readers could take an added part for a checked one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model, field_validator

from service.policy import PolicyError
from service.policy.data import data_kind
from service.report import ReplayReport

FORMAT = 1
Digest: TypeAlias = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
EvidenceKind: TypeAlias = Literal["table", "replay", "topic"]

FIGURES_OF_TABLES = (
    *("rows", "counts", "results", "measured", "loss", "show", "squared_error", "sizes", "utility", "risk"),
    *("attacks", "tried", "population", "beside", "queries"),
)
"""Sections of a table's report that are filed. Distributions of sensitive values are not for every reader."""
FIGURES_OF_REPLAYS = (
    *("events", "rejected", "released", "suppressed", "suppressed_share", "clusters", "reused", "guarantees"),
    *("largest_share", "at_once", "linked", "timing", "loss", "show", "squared_error", "workload_error", "delays"),
)
"""Sections of a replay's report that are filed. Of curves over time, one point may be about a single row."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Made(_Strict):
    format: Literal[1]
    kind: EvidenceKind
    portcullis: str | None
    at: datetime = Field(strict=False)
    by: str


class _Asked(_Strict):
    algorithm: str | None
    parameters: dict[str, Any]


class _Preset(_Strict):
    name: str
    reviewed: list[str]


class _Policy(_Strict):
    name: str
    data: str
    fingerprint: Digest
    purpose: str | None
    preset: _Preset | None
    asked: _Asked
    attacks: dict[str, float]


class _Secret(_Strict):
    hmac_sha256: Digest


class _Words(_Strict):
    assumed: list[str]
    limits: list[str]


class _Files(_Strict):
    sha256: list[Digest]

    @field_validator("sha256")
    @classmethod
    def _distinct(cls, digests: list[str]) -> list[str]:
        if len(set(digests)) < len(digests):
            raise ValueError("two files are the same")
        return digests


class _Records(_Strict):
    sha256: dict[str, Digest]


class _Stretch(_Strict):
    topic: str
    topic_id: str
    partitions: dict[str, Annotated[list[int], Field(min_length=2, max_length=2)]]
    records: int
    first_ms: int | None
    last_ms: int | None


class _Before(_Strict):
    hash: Digest | None = None
    file: str | None = None


class _Finding(_Strict):
    """A model, as audits of every kind of data report it."""

    model: str
    asked: float
    achieved: float | None
    outcome: str | None = None
    failing: int
    holds: bool
    more_is_safer: bool
    ground: str | None = None
    bound: str | None = None
    not_shown: int = 0


class _Fault(_Strict):
    kind: str
    count: int
    reason: str


class _Audited(_Strict):
    """What an audit finds. Kinds of data add figures of their own; verification compares all of them."""

    model_config = ConfigDict(extra="allow")

    holds: bool
    outcome: Literal["holds", "not shown", "does not hold"]
    findings: list[_Finding] | None = None
    faults: list[_Fault] | None = None


class _Common(_Strict):
    made: _Made
    policy: _Policy
    audited: _Audited
    words: _Words


class _OfTable(_Common):
    original: _Secret
    links: _Secret | None = None
    published: _Files
    reported: dict[str, Any]


class _OfReplay(_OfTable):
    links: _Secret


class _OfTopic(_Common):
    stretch: _Stretch
    before: _Before
    published: _Records


class _Signature(_Strict):
    algorithm: Literal["Ed25519"]
    public_key: Digest
    value: Annotated[str, StringConstraints(pattern="^[0-9a-f]{128}$")]


class _Evidence(_Strict):
    parts: dict[str, dict[str, Any]]
    hashes: dict[str, Digest]
    hash: Digest
    signature: _Signature | None = None


_PARTS: Mapping[str, type[_Strict]] = {"table": _OfTable, "replay": _OfReplay, "topic": _OfTopic}


@cache
def _reported(kind: str, data: str) -> type[BaseModel]:
    """Return a model of the sections of a report that are filed."""
    report: type[BaseModel] = ReplayReport if kind == "replay" else data_kind(data).report_model
    names = FIGURES_OF_REPLAYS if kind == "replay" else FIGURES_OF_TABLES
    filed: Any = {name: (field.annotation, ...) for name, field in report.model_fields.items() if name in names}
    return create_model("Reported", __config__=ConfigDict(extra="forbid"), **filed)


def wrong_form(evidence: object) -> str | None:
    """Return where a document is not of the form of evidence; None if it is."""
    try:
        parts = _Evidence.model_validate(evidence).parts
        kind = str(parts.get("made", {}).get("kind"))
        if kind not in _PARTS:
            return "parts.made.kind"
        _PARTS[kind].model_validate(parts)
        if "reported" in parts:
            reported = _reported(kind, parts["policy"]["data"]).model_validate(parts["reported"])
            if reported.model_dump(mode="json") != parts["reported"]:
                return "parts.reported"
    except PolicyError:
        return "parts.policy.data"
    except ValidationError as error:
        return ".".join(map(str, error.errors(include_input=False, include_url=False)[0]["loc"])) or "(document)"
    return None

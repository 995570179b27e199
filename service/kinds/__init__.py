"""Kinds of data, one room each, all of them made for the protocol of `service/policy/data.py`."""

from __future__ import annotations

import orjson

from microdata import load_extensions
from service.kinds.ratings import RATINGS
from service.kinds.records import RECORDS
from service.policy.data import DataKind, Example, data_kind, data_kinds, kind_of, register
from service.policy.file import DEFAULT

__all__ = ["DataKind", "Example", "data_kind", "data_kinds", "kind_of", "register", "report_page"]


def report_page(report: str) -> str:
    """The page of a report that was kept as JSON, whatever its kind."""
    kind = data_kind(orjson.loads(report).get("data", DEFAULT))
    return kind.page(kind.report_model.model_validate_json(report))


register(RECORDS)
register(RATINGS)
load_extensions("portcullis.kinds")

"""Records: tables and events whose fields are quasi-identifiers, sensitive or public."""

from service.kinds.records.kind import RECORDS

__all__ = ["RECORDS"]

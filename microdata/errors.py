"""Everything that Portcullis raises on purpose, as one tree.

No message ever carries a record's value: labels of a hierarchy and parameters of a policy are configuration and may be
named, what came in with the data may not.
"""

from __future__ import annotations

from collections.abc import Sequence


class PortcullisError(Exception):
    """Base of every error that a caller may want to catch."""


class HierarchyError(PortcullisError):
    """A hierarchy that is not a tree with distinct labels."""


class SchemaError(PortcullisError):
    """A schema that contradicts itself."""


class DataError(PortcullisError):
    """Input that cannot be read, or rows that the schema refuses.

    `fields` are pairs of a declared field and what is wrong with it, where single fields are to blame.
    """

    def __init__(self, message: str, *, fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


class DiskFullError(DataError):
    """A file that could not be written because there is no room for it; it may work later."""


class InfeasibleError(PortcullisError):
    """A request that no publication can satisfy.

    `parameter` names what cannot be met, `reason` says why, `nearest` is the closest value that can be met (None where
    there is none).
    """

    def __init__(self, message: str, *, parameter: str, nearest: float | str | None = None) -> None:
        super().__init__(f"{parameter}: {message}{nearest_hint(nearest)}")
        self.parameter = parameter
        self.reason = message
        self.nearest = nearest


def nearest_hint(nearest: float | str | None) -> str:
    """The end of a sentence that refuses a value."""
    return "" if nearest is None else f"; the nearest feasible value is {nearest}"


class GuaranteeError(PortcullisError):
    """A publication or release that failed its check. Nothing of it may leave."""


class UnavailableError(PortcullisError):
    """Something outside that is needed is not there, or not free: nothing is wrong with what was asked."""


class Cancelled(PortcullisError):  # noqa: N818 - it is an outcome that the caller asked for, not an error
    """The caller's progress callback asked to stop."""

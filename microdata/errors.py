"""Everything that Portcullis raises on purpose, as one tree.

No message ever carries a record's value: labels of a hierarchy and parameters of a policy are configuration and may be
named, what came in with the data may not.
"""

from __future__ import annotations


class PortcullisError(Exception):
    """Base of every error that a caller may want to catch."""


class HierarchyError(PortcullisError):
    """A hierarchy that is not a tree with distinct labels."""


class SchemaError(PortcullisError):
    """A schema that contradicts itself."""


class DataError(PortcullisError):
    """Input that cannot be read, or rows that the schema refuses."""


class InfeasibleError(PortcullisError):
    """A request that no publication can satisfy.

    `parameter` names what cannot be met, `nearest` is the closest value that can (None where there is none).
    """

    def __init__(self, message: str, *, parameter: str, nearest: float | str | None = None) -> None:
        hint = "" if nearest is None else f"; the nearest feasible value is {nearest}"
        super().__init__(f"{parameter}: {message}{hint}")
        self.parameter = parameter
        self.nearest = nearest


class GuaranteeError(PortcullisError):
    """A publication or release that failed its check. Nothing of it may leave."""


class Cancelled(PortcullisError):  # noqa: N818 - it is an outcome that the caller asked for, not an error
    """The caller's progress callback asked to stop."""

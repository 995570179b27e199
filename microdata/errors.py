"""Everything that Portcullis raises on purpose, as one tree.

No message ever carries a record's value. What an error says has two parts. `reason` is what is wrong and what is
allowed: our own words and the names of declared fields, which anybody may see. `given` is what was given instead (a
label, a parameter, the columns of a file): configuration, which is told to whoever gave it and to nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence


class PortcullisError(Exception):
    """Base of every error that a caller may want to catch."""

    def __init__(self, reason: str = "", *, given: object = "") -> None:
        self.reason = reason
        self.given = str(given)
        super().__init__(f"{reason}{given_hint(self.given)}")


class HierarchyError(PortcullisError):
    """A hierarchy that is not a tree with distinct labels."""


class SchemaError(PortcullisError):
    """A schema that contradicts itself; `at` names the field or the role that is to blame, where there is one."""

    def __init__(self, reason: str, *, at: str = "", given: object = "") -> None:
        super().__init__(reason, given=given)
        self.at = at
        self.args = (f"{at}: {self}" if at else str(self),)


class DataError(PortcullisError):
    """Input that cannot be read, or rows that the schema refuses.

    `fields` are pairs of a declared field and what is wrong with it, where single fields are to blame.
    """

    def __init__(self, reason: str, *, given: object = "", fields: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(reason, given=given)
        self.fields = tuple(fields)

    def __str__(self) -> str:
        lines = "".join(f"\n{field}: {complaint}" for field, complaint in self.fields)
        return f"{super().__str__()}:{lines}" if lines else super().__str__()

    def of(self, source: str) -> DataError:
        """The same about a file of this name."""
        return DataError(f"{source}: {self.reason}", given=self.given, fields=self.fields)


class DiskFullError(DataError):
    """A file that could not be written because there is no room for it; it may work later."""


class InfeasibleError(PortcullisError):
    """A request that no publication can satisfy.

    `parameter` names what cannot be met, `nearest` is the closest value that can be met (None where there is none).
    """

    def __init__(self, reason: str, *, parameter: str, given: object = "", nearest: float | str | None = None) -> None:
        super().__init__(reason, given=given)
        self.parameter = parameter
        self.nearest = nearest
        self.args = (f"{parameter}: {self}{nearest_hint(nearest)}",)


def given_hint(given: str) -> str:
    """The part of a sentence that tells what was given."""
    return f", given {given}" if given else ""


def nearest_hint(nearest: float | str | None) -> str:
    """The end of a sentence that refuses a value."""
    return "" if nearest is None else f"; the nearest feasible value is {nearest}"


class GuaranteeError(PortcullisError):
    """A publication or release that failed its check. Nothing of it may leave."""


class UnavailableError(PortcullisError):
    """Something outside that is needed is not there, or not free: nothing is wrong with what was asked."""


class Cancelled(PortcullisError):  # noqa: N818 - it is an outcome that the caller asked for, not an error
    """The caller's progress callback asked to stop."""

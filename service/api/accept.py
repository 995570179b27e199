"""Content negotiation: the media type that a client likes best of those there are."""

from __future__ import annotations

from collections.abc import Sequence

from service.problems import ProblemError


def chosen(accept: str | None, kinds: Sequence[str]) -> str:
    """The best of these media types by an `Accept` header; the first one where the client does not mind."""
    if not accept:
        return kinds[0]
    ranges = [_weighted(part) for part in accept.split(",")]
    best = max(kinds, key=lambda kind: (_quality(kind, ranges), -kinds.index(kind)))
    if _quality(best, ranges) <= 0:
        raise ProblemError(
            "not-acceptable", f"Offered are {', '.join(kinds)}: name one of them in `Accept`, or leave it out."
        )
    return best


def _weighted(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return kind, float(value)
            except ValueError:
                return kind, 0.0
    return kind, 1.0


def _quality(kind: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight of the most specific range that covers this type."""
    for pattern in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        found = [weight for name, weight in ranges if name == pattern]
        if found:
            return max(found)
    return 0.0

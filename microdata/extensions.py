"""Parts that other installed packages bring: algorithms and privacy models, known by their entry points."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import EntryPoint, entry_points

log = logging.getLogger(__name__)

_missing: list[str] = []


@cache
def load_extensions(group: str) -> None:
    """Import every module that installed packages name for a group; what is imported registers itself.

    A package that cannot be imported is named and left out, so that it takes nothing else down: a policy that needs it
    is refused then, and says why.
    """
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            point.load()
        except Exception as error:  # noqa: BLE001 - whatever somebody's package raises
            _missing.append(_described(point, error))
            log.error("%s", _missing[-1])  # noqa: TRY400 - the package's own traceback helps its author, not who runs it


def missing_extensions() -> tuple[str, ...]:
    """What could not be loaded so far: a sentence for each, with the name of the package and the reason."""
    return tuple(_missing)


def _described(point: EntryPoint, error: Exception) -> str:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"the installed package {package} brings {point.name!r} ({point.value}), which cannot be loaded: {reason}"

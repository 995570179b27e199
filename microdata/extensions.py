"""Parts that other installed packages bring: algorithms and privacy models, known by their entry points."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import entry_points

log = logging.getLogger(__name__)


@cache
def load_extensions(group: str) -> None:
    """Import everything that installed packages declare for a group; what is imported registers itself.

    A package that cannot be imported is named and left out, so that it takes nothing else down: a policy that needs it
    is refused then, as one that names what does not exist.
    """
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            point.load()
        except Exception as error:  # noqa: BLE001 - whatever somebody's package raises
            log.warning("%s: %s (%s) cannot be loaded: %s", group, point.name, point.value, type(error).__name__)

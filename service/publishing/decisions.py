"""Decisions: clusters that are fixed but not yet published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from microdata import Schema
from stream_algos import Release


def no_release(schema: Schema) -> Release:
    """A release of nothing."""
    box = np.empty((0, len(schema.quasi)))
    nothing = np.empty(0, np.int64)
    return Release(
        ids=np.empty(0, np.uint64),
        lo=box,
        hi=box,
        starts=np.zeros(1, np.int64),
        members=nothing,
        reused=np.empty(0, bool),
        windows=np.empty((0, 2), np.int64),
        suppressed=nothing,
    )


def join(releases: Sequence[Release]) -> Release:
    """Several releases as one, in their order."""
    if len(releases) == 1:
        return releases[0]
    shifts = np.cumsum([0, *(len(release.members) for release in releases)])
    parts = {
        field.name: np.concatenate([getattr(release, field.name) for release in releases])
        for field in fields(Release)
        if field.name != "starts"
    }
    starts = np.concatenate(
        [np.zeros(1, np.int64), *(r.starts[1:] + shift for r, shift in zip(releases, shifts[:-1], strict=True))]
    )
    return Release(starts=starts, **parts)


def select(release: Release, chosen: NDArray[np.bool_]) -> Release:
    """The chosen clusters of a release; nothing of its suppressions."""
    if chosen.all() and not len(release.suppressed):
        return release
    sizes = np.diff(release.starts)
    return Release(
        ids=release.ids[chosen],
        lo=release.lo[chosen],
        hi=release.hi[chosen],
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[chosen])]),
        members=release.members[np.repeat(chosen, sizes)],
        reused=release.reused[chosen],
        windows=release.windows[chosen],
        suppressed=np.empty(0, np.int64),
    )


def cluster_of(release: Release) -> NDArray[np.int64]:
    """Cluster of each member."""
    return np.repeat(np.arange(len(release)), np.diff(release.starts))

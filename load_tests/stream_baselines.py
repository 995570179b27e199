"""What CASTLE is compared with: condensation, which has no delay bound and so is no engine of the catalogue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Boxes, Schema, class_loss, geometry


class DynamicGroup:
    """Condensation of a stream (Aggarwal and Yu, 2004): rows join the nearest group, groups of 2k rows are halved.

    The first rows make the initial groups; what is published are the groups at the end of the stream.
    """

    def __init__(self, schema: Schema, k: int, first: int) -> None:
        self.space, self.k, self.first = geometry(schema), k, first
        self.schema = schema
        self._centres = np.empty((0, len(schema.quasi)))
        self._members: list[list[int]] = []

    def publish(self, quasi: NDArray[np.float64]) -> tuple[NDArray[np.int64], Boxes]:
        """The group of each row at the end of the stream, and the boxes around the groups."""
        points = (quasi - self.space.low) * self.space.scale
        self._start(points)
        for row in range(self.first, len(points)):
            self._join(points, row)
        groups = np.empty(len(points), np.int64)
        for number, rows in enumerate(self._members):
            groups[rows] = number
        return groups, Boxes.around(self.schema, quasi, groups, len(self._members))

    def loss(self, quasi: NDArray[np.float64]) -> float:
        """Mean loss of the rows when every group is published as the box around it."""
        groups, boxes = self.publish(quasi)
        return float(class_loss(boxes)[groups].mean())

    def _start(self, points: NDArray[np.float64]) -> None:
        """Static condensation: a row and its k - 1 nearest, again and again; the last few join their nearest group."""
        left = np.arange(self.first)
        while len(left) >= self.k:
            away = ((points[left] - points[left[0]]) ** 2).sum(axis=1)
            near = np.argpartition(away, self.k - 1)[: self.k]
            self._add(points, left[near].tolist())
            left = np.delete(left, near)
        for row in left:
            self._join(points, int(row))

    def _add(self, points: NDArray[np.float64], rows: list[int]) -> None:
        self._members.append(rows)
        self._centres = np.vstack([self._centres, points[rows].mean(axis=0)])

    def _join(self, points: NDArray[np.float64], row: int) -> None:
        nearest = int(((self._centres - points[row]) ** 2).sum(axis=1).argmin())
        rows = self._members[nearest]
        rows.append(row)
        self._centres[nearest] += (points[row] - self._centres[nearest]) / len(rows)
        if len(rows) >= 2 * self.k:
            ordered = [rows[place] for place in np.argsort(points[rows] @ _longest_axis(points[rows]))]
            self._members[nearest] = ordered[: self.k]
            self._centres[nearest] = points[ordered[: self.k]].mean(axis=0)
            self._add(points, ordered[self.k :])


def _longest_axis(points: NDArray[np.float64]) -> NDArray[Any]:
    """The direction in which the points are spread most."""
    return np.linalg.eigh(np.cov(points, rowvar=False).reshape(points.shape[1], -1))[1][:, -1]

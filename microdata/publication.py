"""The result of anonymizing a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.loss import table_loss
from microdata.showing import Show, means
from microdata.table import Table


@dataclass(frozen=True, eq=False)
class Publication:
    """Classes over the rows of a table.

    `boxes` are minimal or wider; what is published is their widened form, or with `show` the mean of each class. Row
    numbers never leave: writing a publication shuffles its rows.
    """

    table: Table
    classes: NDArray[np.int32]
    """Class of each row of `table`, from 0; -1 for suppressed rows."""
    boxes: Boxes
    details: Mapping[str, object] = field(default_factory=dict)
    """What the algorithm has to say about its run, free of record values."""
    show: Show = "interval"
    """How its classes are published."""

    def __post_init__(self) -> None:
        assert len(self.classes) == len(self.table)

    @classmethod
    def of(
        cls,
        table: Table,
        classes: NDArray[np.integer],
        details: Mapping[str, object] | None = None,
        show: Show = "interval",
    ) -> Publication:
        """The publication with minimal boxes; classes are numbered anew from 0, without gaps."""
        labels = np.asarray(classes)
        present, compact = np.unique(labels[labels >= 0], return_inverse=True)
        numbered = np.full(len(labels), -1, np.int32)
        numbered[labels >= 0] = compact
        boxes = Boxes.around(table.schema, table.quasi, numbered, len(present))
        return cls(table, numbered, boxes, details or {}, show)

    def shown(self) -> Boxes:
        """What is published of each class."""
        if self.show == "mean":
            return means(self.table.schema, self.table.quasi, self.classes, len(self.boxes))
        return self.boxes.widened()

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each class."""
        return np.bincount(self.classes[self.classes >= 0], minlength=len(self.boxes))

    @property
    def suppressed(self) -> int:
        """Number of rows of the table that are not published."""
        return int((self.classes < 0).sum())

    @property
    def rejected(self) -> int:
        """Number of rows that are not published because they fail validation: they are not even in the table."""
        return self.table.rejected

    @property
    def given(self) -> int:
        """Number of rows that were read: published, suppressed and rejected ones."""
        return len(self.table) + self.rejected

    @property
    def loss(self) -> float:
        """Mean loss over the published rows, if they are shown as boxes."""
        return table_loss(self.boxes, self.sizes)

"""Published tables: what an outsider sees, in memory and as a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microdata.boxes import Boxes
from microdata.publication import Publication
from microdata.schema import Schema


@dataclass(frozen=True, eq=False)
class Published:
    """A published table as anybody can read it: no person, no row number."""

    schema: Schema
    boxes: Boxes
    """One box per class, as published."""
    classes: NDArray[np.int32]
    """Class of each row, from 0; every class has a row."""
    sensitive: NDArray[np.int32]
    """Rows × sensitive attributes: the index of the value on its grid, or of the leaf."""
    public: pa.Table | None = None
    """Public columns, in the order of the schema."""
    undeclared: tuple[str, ...] = ()
    """Columns of the file that the schema does not let out, the person's among them."""

    def __len__(self) -> int:
        return len(self.classes)


def published_of(publication: Publication) -> Published:
    """What a publication lets out."""
    own = np.flatnonzero(publication.classes >= 0)
    table = publication.table
    public = None if table.public is None else table.public.take(pa.array(own))
    return Published(table.schema, publication.boxes.widened(), publication.classes[own], table.sensitive[own], public)

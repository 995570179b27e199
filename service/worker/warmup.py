"""Compile every kernel that a stream will need before its worker joins the group: afterwards nobody waits for it."""

from __future__ import annotations

import numpy as np

from microdata import Category
from service.worker.decisions import join
from service.worker.gate import Gate
from service.worker.rows import Rows
from service.worker.stream import Stream
from stream_algos import Batch

_ROWS = 64
_MOST_ROWS = 4096


def warm_up(stream: Stream) -> None:
    """Push invented rows through a throw-away engine and the gate."""
    engine, schema = stream.engine(), stream.schema
    # Enough persons for a first cluster, so that what forms clusters is compiled too.
    count = min(_ROWS + 4 * int(getattr(engine.parameters, "k", 1)), _MOST_ROWS)
    steps = np.arange(count)
    quasi = np.empty((count, len(schema.quasi)))
    sensitive = np.empty((count, len(schema.sensitive)), np.int32)
    for column, attribute in enumerate(schema.quasi):
        if isinstance(attribute, Category):
            quasi[:, column] = steps % attribute.hierarchy.size
        else:
            quasi[:, column] = np.where(steps % 2, attribute.low, attribute.high)
    for column, attribute in enumerate(schema.sensitive):
        sensitive[:, column] = steps % (attribute.size or 1)
    batch = Batch(steps, np.zeros(count), steps.copy(), quasi, sensitive)
    releases = [engine.push(batch), engine.expire(0.0)]
    other = stream.engine()
    other.restore(engine.snapshot(), batch)
    releases.append(engine.flush())
    public = np.empty((count, len(schema.public)), object)
    rows = Rows(batch.positions, batch.times, batch.persons, batch.quasi, batch.sensitive, public)
    Gate(schema, stream.models).passes(join(releases), rows, {})

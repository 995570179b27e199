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


def warm_up(stream: Stream) -> None:
    """Push invented rows through a throw-away engine and the gate."""
    engine, schema = stream.engine(), stream.schema
    steps = np.arange(_ROWS)
    quasi = np.empty((_ROWS, len(schema.quasi)))
    for column, attribute in enumerate(schema.quasi):
        if isinstance(attribute, Category):
            quasi[:, column] = steps % attribute.hierarchy.size
        else:
            quasi[:, column] = np.where(steps % 2, attribute.low, attribute.high)
    sensitive = np.stack([steps % (a.size or 1) for a in schema.sensitive] or [steps][:0], axis=-1).astype(np.int32)
    batch = Batch(steps, np.zeros(_ROWS), steps.copy(), quasi, sensitive.reshape(_ROWS, len(schema.sensitive)))
    releases = [engine.push(batch), engine.expire(0.0)]
    other = stream.engine()
    other.restore(engine.snapshot(), batch)
    releases.append(engine.flush())
    public = np.empty((_ROWS, len(schema.public)), object)
    rows = Rows(batch.positions, batch.times, batch.persons, batch.quasi, batch.sensitive, public)
    Gate(schema, stream.models).passes(join(releases), rows, {})

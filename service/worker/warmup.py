"""Make a process ready for a stream before its worker joins the group: afterwards nobody waits for a compiler."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa

from service import codec
from service.kafka import Partition, RecordBatch
from service.publishing.boxes import PublishedBoxes
from service.publishing.gate import Gate
from service.publishing.rows import Rows
from service.worker.stream import Stream
from stream_algos import Batch, Memory, Release

_ROWS = 64
_MOST_ROWS = 4096
_COLLECT_AFTER = 100_000
"""New objects before Python looks for cycles among them; its own choice is 700."""


def warm_up(stream: Stream) -> None:
    """Compile what the stream needs by pushing invented rows through a throw-away engine, the gate and the decoder."""
    engine, schema = stream.engine(), stream.schema
    # Enough persons for a first cluster, so that what forms clusters is compiled too.
    count = min(_ROWS + 4 * max((model.least_persons for model in stream.models), default=1), _MOST_ROWS)
    steps = np.arange(count)
    quasi = np.empty((count, len(schema.quasi)))
    sensitive = np.empty((count, len(schema.sensitive)), np.int32)
    for column, attribute in enumerate(schema.quasi):
        quasi[:, column] = attribute.spread(count)
    for column, attribute in enumerate(schema.sensitive):
        sensitive[:, column] = steps % (attribute.size or 1)
    batch = Batch(steps, np.zeros(count), steps.copy(), quasi, sensitive)
    releases = [engine.push(batch), engine.expire(0.0)]
    other = stream.engine()
    if isinstance(engine, Memory) and isinstance(other, Memory):
        engine.touched()
        room = other.room(engine.sizes())
        for table, size in engine.sizes().items():
            for name, kept in engine.entries(table, np.arange(size)).items():
                room[table][name][:] = kept
        other.recall(engine.rest(), batch)
    else:
        other.restore(engine.snapshot(), batch)
    releases.append(engine.flush())
    public = tuple(pa.nulls(count) for _ in schema.public)
    rows = Rows(batch.positions, batch.times, batch.persons, batch.quasi, batch.sensitive, public)
    Gate(schema, stream.models).passes(Release.concat(releases), rows, PublishedBoxes(len(schema.quasi)))
    nothing = np.zeros(1, np.int64)
    codec.warm_up(stream.route, RecordBatch(Partition(stream.input, 0), nothing, nothing, [None], [b"{}"]))


def spare_the_collector() -> None:
    """Look for cyclic garbage rarely.

    A poll makes tens of thousands of messages, none of which is in a cycle and all of which are gone soon: looking at
    each of them several times takes a tenth of the worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)

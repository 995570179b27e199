"""How a stream is made safe."""

from stream_algos.castle import Castle
from stream_algos.engine import STREAM_ALGORITHMS, Batch, Engine, Release, Snapshot

__all__ = ["STREAM_ALGORITHMS", "Batch", "Castle", "Engine", "Release", "Snapshot"]

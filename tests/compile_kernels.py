"""Compile what most tests need before they run, on every core: `make test` begins with it.

Left to the tests the same takes longer: coverage looks on, and processes wait for the one that compiles.
"""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from service.codec import avro, avro_messages, protobuf, protobuf_messages
from service.jobs.warmup import try_example
from service.kinds import Example, data_kinds
from stream_algos import STREAM_ALGORITHMS
from stream_algos.checks import stream_cases
from tests.stream_worlds import Observer


def streams(engine: str) -> None:
    """Every case of the generic checks, through the gate."""
    for case in stream_cases(STREAM_ALGORITHMS[engine]):
        schema, batch = case.streams()[0]
        Observer(schema, case.build(schema)).run(batch)


def examples() -> Iterator[Example]:
    """Of every kind of data."""
    for kind in data_kinds():
        yield from kind.examples()


def codecs() -> None:
    """Those of binary formats."""
    for codec in (avro, avro_messages, protobuf, protobuf_messages):
        codec.warm_up()


def compile_kernels() -> None:
    """Engines first: theirs take longest."""
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        names = sorted((entry.name for entry in STREAM_ALGORITHMS), key=lambda name: (name != "castle", name))
        waiting = [pool.submit(streams, name) for name in names]
        waiting += [pool.submit(codecs)]
        waiting += [pool.submit(try_example, example) for example in examples()]
        for one in as_completed(waiting):
            one.result()


if __name__ == "__main__":
    compile_kernels()

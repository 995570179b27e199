"""`portcullis broker`."""

import asyncio
import contextlib
import signal
from typing import Annotated

import typer

from service.broker.server import DEFAULT_RETENTION_BYTES, Broker


def run_broker(
    host: str = "127.0.0.1",
    port: int = 9092,
    *,
    retention_bytes: int = DEFAULT_RETENTION_BYTES,
    auto_create_topics: bool = True,
) -> None:
    """Run the embedded broker until SIGINT or SIGTERM."""
    broker = Broker(host, port, retention_bytes=retention_bytes, auto_create_topics=auto_create_topics)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_until_stopped(broker))


async def _until_stopped(broker: Broker) -> None:
    stopped = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    await broker.start()
    typer.echo(f"Embedded development broker on {broker.bootstrap}: in memory, not for production. Ctrl-C ends it.")
    await stopped.wait()
    await broker.stop()


def broker_command(
    host: Annotated[str, typer.Option(help="Loopback address to listen on; any other is refused.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 9092,
    retention_bytes: Annotated[
        int, typer.Option(help="Bytes kept per partition where a topic sets no retention.bytes.")
    ] = DEFAULT_RETENTION_BYTES,
    auto_create_topics: Annotated[
        bool, typer.Option(help="Create a topic with one partition when a client asks for it.")
    ] = True,
) -> None:
    """Run a Kafka broker for development: one node, in memory, on loopback. Everything is gone when it ends."""
    run_broker(host, port, retention_bytes=retention_bytes, auto_create_topics=auto_create_topics)

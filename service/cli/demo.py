"""`portcullis demo`: the whole way of an event, on one machine: broker, producer, worker, consumer, and an audit."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from service.cli.output import say, say_table
from service.demo import Demo
from service.exit_status import GUARANTEE_FAILED

_HINT = """See both topics side by side, in another terminal:
  kcat -b {bootstrap} -C -t orders.raw -o -3 -c 6      kcat -b {bootstrap} -C -t orders.safe -o -3 -c 6
  {python} -c "from kafka import KafkaConsumer as C; [print(m.topic, m.value) for m in C('orders.raw', \
'orders.safe', bootstrap_servers='{bootstrap}', isolation_level='read_committed')]"
Console: {console} in a moment   Worker: {status}   Ctrl-C ends everything."""


def demo(
    events: Annotated[
        int, typer.Option(min=1_000, max=100_000_000, help="Orders to produce; without --exit it then waits.")
    ] = 1_000_000,
    exit_: Annotated[
        bool,
        typer.Option("--exit", help="End when all orders are settled, and audit everything that was published."),
    ] = False,
    rate: Annotated[int, typer.Option(min=1, help="Orders per second; without --exit only.")] = 2_000,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the embedded broker; 0 takes a free one.")] = 0,
) -> None:
    """Start an embedded broker, a producer of orders, a worker and the console: customers disappear in cohorts.

    With --exit the orders carry a number that the audit can trace through the output, and the exit status is 0 only if
    every order left once or was accounted for, and k customers are left for whoever ties all orders of one together.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # its parts end with it, as after Ctrl-C
    with TemporaryDirectory(prefix="portcullis-") as directory:
        say("Starting broker and worker; the very first time, kernels are compiled for a minute or two.")
        show = Demo(
            Path(directory), events, rate=None if exit_ else rate, traced=exit_, port=port, waiting=_ask_for_patience
        )
        with show:
            try:
                _tell(show, hint=not exit_)
                _watch(show, until_settled=exit_)
            except KeyboardInterrupt:
                say("stopping")
            if exit_:
                _report(show)


def _ask_for_patience(seconds: float) -> None:
    say(f"  {seconds:.0f} s: the worker compiles its kernels; it finds them in the cache the next time")


def _tell(show: Demo, *, hint: bool) -> None:
    say(f"Embedded broker on {show.bootstrap} (development only), worker on {show.status_url}")
    if hint:
        say(
            _HINT.format(
                bootstrap=show.bootstrap, status=show.status_url, console=show.console_url, python=sys.executable
            )
        )


def _watch(show: Demo, *, until_settled: bool) -> None:
    console = Console(file=sys.stdout)
    with Live(console=console, refresh_per_second=4, transient=until_settled) as live:
        while not (until_settled and show.settled()):
            show.check_alive()
            if console.is_terminal:
                live.update(_panel(show))
            time.sleep(0.25)


def _panel(show: Demo) -> Table:
    status = show.status()
    counts, gauges = status.get("counts", {}), status.get("gauges", {})
    table = Table(title="orders.raw → orders.safe", min_width=60)
    table.add_column("")
    table.add_column("now", justify="right")
    table.add_row("events produced", f"{show.produced:,}")
    table.add_row("events taken", f"{counts.get('taken', 0):,}")
    table.add_row("events released", f"{counts.get('released', 0):,}")
    table.add_row("of them at once", f"{counts.get('at_once', 0):,}")
    table.add_row("suppressed", f"{counts.get('suppressed', 0):,}")
    table.add_row("undecided", f"{gauges.get('pending', 0):,.0f}")
    table.add_row("customers known", f"{gauges.get('persons', 0):,.0f}")
    table.add_row("cohorts", f"{gauges.get('cohorts', 0):,.0f}")
    for each in status.get("guarantee", []):
        achieved = "–" if each["achieved"] is None else f"{each['achieved']:g}"
        table.add_row(f"least safe so far: {each['model']}, asked {each['asked']:g}", achieved)
    table.add_row("loss (recent)", f"{gauges.get('loss', 0.0):.3f}")
    table.add_row(f"delay (recent), at most {status.get('delay_limit', 0):g} s", f"{gauges.get('delay', 0.0):.1f} s")
    table.add_row("refused releases", f"{counts.get('refused_releases', 0):,}")
    return table


def _report(show: Demo) -> None:
    result = show.audit()
    say_table(("what", "found"), result.summary)
    say_table(("check", "holds"), [(name, "yes" if holds else "NO") for name, holds in result.checks])
    if not result.holds:
        raise typer.Exit(GUARANTEE_FAILED)

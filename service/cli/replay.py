"""`portcullis replay`: a stream algorithm over a file of events, no Kafka."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from service.cli.evidence import Evidence, Sign, Signing, links_of
from service.cli.findings import say_attacks, warn_of_attacks
from service.cli.options import Overwrite, Report, ReportPage, Seed, warn_of_seed
from service.cli.output import progress_bar, say, say_table, say_written, warn
from service.cli.targets import check_targets
from service.evidence import gather_replay
from service.policy import load_policy
from service.replay import Replay, replay_file
from service.report import ReplayReport, rejected_sentence, replay_html


def replay(
    events: Annotated[Path, typer.Argument(help="Events in their order: JSON lines, CSV, Parquet, Arrow or Avro.")],
    policy: Annotated[Path, typer.Option(help="Policy with an algorithm for streams.")],
    out: Annotated[Path, typer.Option(help="Where to write the clusters, as JSON lines.")],
    report: Report = None,
    html: ReportPage = None,
    rate: Annotated[
        float, typer.Option(min=1e-6, help="Events per second of the simulated clock, for bounds in seconds.")
    ] = 1000.0,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Also write which events each cluster holds, for `portcullis audit --links`. It undoes the "
            "anonymization: keep it with the events."
        ),
    ] = None,
    seed: Seed = None,
    evidence: Evidence = None,
    sign: Sign = None,
    overwrite: Overwrite = False,
) -> None:
    """Send a file of events through a stream algorithm.

    Exit status 2 if every event was refused, 3 if the gate ever refused a cluster; nothing is written then.
    """
    warn_of_seed(seed)
    filing = Signing.of(evidence, sign)
    if evidence is not None:
        links = links or links_of(evidence)
    targets = {"--out": out, "--report": report, "--html": html, "--links": links, **filing.targets()}
    check_targets({"the events": events, "the policy": policy}, targets, overwrite=overwrite)
    started = time.monotonic()
    loaded = load_policy(policy)
    if loaded.asked_of_engine.in_order:
        warn("warning: order: arrival tells which output is which input to whoever knows the order of the events")
    run = Replay(loaded, seed=seed, rate=rate, queries=bool(report or html or evidence))
    with progress_bar() as progress:
        replay_file(run, events, out, links=links, progress=progress)
    made = run.report(time.monotonic() - started)
    if evidence and links:
        filed = gather_replay(
            loaded, made, original=events, published=out, links=links, secret=filing.secret, by="command line"
        )
        filing.file(filed)
    if report:
        report.write_text(made.model_dump_json(indent=2), encoding="utf-8")
    if html:
        html.write_text(replay_html(made), encoding="utf-8")
    _say(made)
    say_written(out, made.seconds, report, html)
    filing.say(links)


def _say(made: ReplayReport) -> None:
    rows = [
        (one.model, f"{one.asked:g}", "–" if one.achieved is None else f"{one.achieved:.4g}") for one in made.guarantees
    ]
    say_table(("model", "asked", "achieved"), rows)
    if made.rejected.rows:
        reasons = [f"{one.field}: {one.reason} in {one.rows} events" for one in made.rejected.reasons]
        warn("\n".join([f"warning: {rejected_sentence(made.rejected, made.events, 'events')}", *reasons]))
    reused = f" ({made.reused} rows with boxes published before)" if made.reused else ""
    if made.loss is None:
        say(
            f"no event was released: all {made.suppressed} were suppressed, too few persons came within the delay; "
            f"{made.rejected.rows} rejected"
        )
    else:
        say(
            f"{made.released} of {made.events} events released in {made.clusters} clusters{reused}, {made.suppressed} "
            f"suppressed, {made.rejected.rows} rejected; loss {made.loss:.4f} (0 nothing lost, 1 all)"
        )
    if made.largest_share is not None:
        say(f"largest share of one person in a cluster: {made.largest_share:.1%}")
    if "cohorts" in made.engine:
        engine = made.engine
        say(
            f"{engine['persons']:.0f} persons in {engine['cohorts']:.0f} cohorts with {engine['members']:.0f} members, "
            f"{engine['pool']:.0f} without; {made.at_once or 0:.1%} of the released events left at once"
        )
    say_attacks(made.linked, made.timing)
    warn_of_attacks(made.linked, made.timing, "no model of the policy promises anything about this")
    if made.workload_error is not None:
        say(f"workload error, median of random counting queries: {made.workload_error:.1%}")
    if made.delays:
        delays = made.delays
        say(f"delay in events: median {delays.p50}, 99 % within {delays.p99}, longest {delays.max}")

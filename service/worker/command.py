"""`portcullis run`, `portcullis drain` and `portcullis forget`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from service.kafka import connect
from service.kafka.flags import Bootstrap, ClientName, SettingsFile, kafka_settings
from service.logs import log_to_stderr
from service.policy import load_policy
from service.settings import SettingsError, read_settings_file, settings_of
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.process import Duty, supervise, work
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of

_MOST_PERSON_BYTES = 64 << 20
Policies = Annotated[list[str], typer.Argument(metavar="POLICY…", help="Policy files, one stream each.")]
AcceptLoss = Annotated[
    bool,
    typer.Option("--accept-loss", help="Count undecided events that are gone from the input as suppressed and go on."),
]


def run_command(
    policies: Policies,
    workers: Annotated[int, typer.Option(min=1, help="Processes per stream, in the same consumer group.")] = 1,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    on_stop: Annotated[
        str | None, typer.Option(help="keep: undecided events stay for the next owner; flush: they are released.")
    ] = None,
    accept_loss: AcceptLoss = False,
    create_topics: Annotated[bool, typer.Option("--create-topics", help="Create topics that are missing.")] = False,
    status_port: Annotated[int | None, typer.Option(help="Port of the first process's status page.")] = None,
    settings_file: SettingsFile = None,
) -> None:
    """Anonymize streams: raw events in on one topic, clusters with the policy's guarantee out on another.

    Everything else is set by the environment or a file: PORTCULLIS_KAFKA_… (servers, TLS, SASL) and
    PORTCULLIS_WORKER_… (commit interval, sizes, status address). Stops cleanly on SIGTERM or Ctrl-C.
    """
    read_settings_file(settings_file)
    kafka = kafka_settings(bootstrap, client)
    given = {"on_stop": on_stop, "accept_loss": accept_loss or None, "create_topics": create_topics or None}
    settings = settings_of(WorkerSettings, given | {"status_port": status_port})
    duties = []
    for policy in policies:
        stream_of(load_policy(policy), settings)
        duties += [Duty(policy, kafka, settings) for _ in range(workers)]
    duties = [replace(duty, settings=settings.of_process(number, len(duties))) for number, duty in enumerate(duties)]
    if len(duties) > 1:
        raise typer.Exit(supervise(duties))
    log_to_stderr()
    work(duties[0])


def drain_command(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The policy whose stream ends here.")],
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    accept_loss: AcceptLoss = False,
    keep_cohorts: Annotated[
        bool,
        typer.Option(
            "--keep-cohorts",
            help="Keep what is remembered of persons for the new policy, which must have the same quasi-identifiers, "
            "and a k that is not raised. Without it they are forgotten, and what is promised begins anew.",
        ),
    ] = False,
    settings_file: SettingsFile = None,
) -> None:
    """End a stream: release what can be released, publish it, and record where a new policy may start.

    Stop its workers first. Events that cannot be released any more are suppressed and counted. A stream that remembers
    persons forgets them, unless it keeps its cohorts.
    """
    log_to_stderr()
    read_settings_file(settings_file)
    # Under the name of a running worker it would take that worker's place.
    settings = settings_of(WorkerSettings, {"accept_loss": accept_loss or None}).model_copy(update={"instance": None})
    stream = stream_of(load_policy(policy), settings)
    if keep_cohorts and not stream.remembers:
        raise SettingsError(f"stream {stream.name!r} remembers nobody: there are no cohorts to keep")
    worker = Worker(stream, connect(kafka_settings(bootstrap, client)), settings, Metrics(stream))
    positions = worker.drain(keep=keep_cohorts)
    for number, position in sorted(positions.items()):
        typer.echo(f"{stream.input}/{number}: drained up to offset {position}")
    if keep_cohorts:
        typer.echo("its cohorts are kept: a policy with the same quasi-identifiers and no larger k goes on with them")
    elif stream.remembers:
        typer.echo("everybody is forgotten: what is promised begins anew with the next policy")
        typer.echo(
            "what was written of them stays on the disks of the brokers until more is written to "
            f"{stream.memory_topic}: delete that topic to be rid of it"
        )


def forget_command(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The policy whose stream remembers them.")],
    person_file: Annotated[
        Path, typer.Option("--person-file", help="Whom to forget: one person per line, as in the input.")
    ],
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
) -> None:
    """Erase persons from what a stream remembers: their values, and that they were there.

    Stop its workers first. Whoever was in a cohort with them is one fewer: a cohort with fewer than k members publishes
    nothing until others join. Events of theirs in the input are not touched: who comes again is known anew.
    """
    log_to_stderr()
    read_settings_file(settings_file)
    persons = _persons_in(person_file)
    settings = settings_of(WorkerSettings, {}).model_copy(update={"instance": None})
    stream = stream_of(load_policy(policy), settings)
    if not stream.remembers:
        raise SettingsError(f"stream {stream.name!r} remembers nobody: there is nothing to forget")
    connected = connect(kafka_settings(bootstrap, client))
    forgotten = Worker(stream, connected, settings, Metrics(stream)).forget(persons)
    for number, count in sorted(forgotten.items()):
        typer.echo(f"{stream.input}/{number}: {count} of {len(persons)} persons were known, and are forgotten")
    with closing(connected.admin()) as admin:
        lag = int(admin.describe_topic(stream.memory_topic).config["max.compaction.lag.ms"])
    gone = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(time.time() + lag / 1000))
    typer.echo(
        f"what was written of them is gone from the disks of the brokers once they have compacted: by {gone}, if "
        "workers run again and events come. Brokers do not compact the segment that they write to, and close it only "
        "when more is written: where nothing happens, run this again after that time"
    )


def _persons_in(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _MOST_PERSON_BYTES:
            raise SettingsError(f"{path}: at most {_MOST_PERSON_BYTES} bytes of persons at once")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is no UTF-8 text") from None
    persons = [line for line in lines if line]
    if not persons:
        raise SettingsError(f"{path} names nobody")
    return persons

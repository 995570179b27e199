"""`portcullis policy init`: a first policy for a table or a topic, and what it would cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from microdata import (
    DataError,
    FieldKeys,
    InfeasibleError,
    PersonKey,
    PersonSource,
    Sample,
    Schema,
    read_fields,
    read_sample,
)
from microdata.field_keys import FieldGatherer
from service.cli.output import progress_bar, say, warn
from service.cli.topic_fields import TopicSample, topic_records, topic_sample
from service.codec import LARGEST_MESSAGE, MAX_EVENT_BYTES, Events, GivenRecords, decoder_of, registry_of
from service.kafka import connect
from service.kafka.flags import Bootstrap, ClientName, SettingsFile, kafka_settings
from service.kinds import data_kinds
from service.policy import Policy, load_policy, parse_policy
from service.policy.data import Proposal, TopicFacts
from service.policy.text import parse_text
from service.proposal import STREAM_YEARS, SafeHarbor, propose, read_areas
from service.replay import BATCH, Replay
from service.report import ReplayReport
from service.risk import Roles, rate, sentence
from service.settings import read_settings_file

SHARE, SIZE, SETS = 0.2, 3, 3
"""Fields that are named as a reason: what they single out together, how many they are, and how many such sets."""
TRIED = (1, 2, 5)
"""Times the proposed k."""


class Preset(StrEnum):
    """Rules of a regulation."""

    HIPAA = "hipaa"


def init(
    table: Annotated[
        Path | None, typer.Argument(help="Table to look at: CSV, Parquet, JSON lines or Arrow. Or name a --topic.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for policy.yaml and its hierarchies.")] = Path(),
    try_out: Annotated[
        bool, typer.Option("--try", help="Also anonymize the data with three choices of k, and tell what each costs.")
    ] = False,
    preset: Annotated[Preset | None, typer.Option(help="Rules that decide what may be read and published.")] = None,
    areas: Annotated[
        Path | None, typer.Option(help="With --preset hipaa: CSV of three-digit areas and their populations.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic to look at: JSON objects, or what the registry has a schema of.")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Look at this many records of a topic, the newest ones.")
    ] = 100_000,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
) -> None:
    """Propose a policy for a table or a topic: roles, domains and hierarchies, each guess with its reason."""
    if (table is None) == (topic is None):
        raise typer.BadParameter("name a table or a --topic")
    rules = _rules(preset, areas, for_topic=topic is not None)
    if table is not None:
        _for_table(table, out, rules, try_out=try_out)
        return
    read_settings_file(settings_file)
    name = topic or ""
    known = topic_records(name)
    with progress_bar() as progress:
        seen = topic_sample(connect(kafka_settings(bootstrap, client)), name, sample, progress, known.columns)
    facts = TopicFacts(name, seen.keyed, known.tags, known.format, known.key_format, known.key_fields, known.envelope)
    _for_topic(seen, facts, out, rules, try_out=try_out)


def _rules(preset: Preset | None, areas: Path | None, *, for_topic: bool) -> SafeHarbor | None:
    if areas is not None and preset is None:
        raise typer.BadParameter("populations of areas are asked for by --preset hipaa alone", param_hint="--areas")
    if preset is None:
        return None
    year = datetime.now(UTC).year + (STREAM_YEARS if for_topic else 0)
    return SafeHarbor(None if areas is None else read_areas(areas), year)


def _for_table(table: Path, out: Path, rules: SafeHarbor | None, *, try_out: bool) -> None:
    sample = read_sample(table)
    path = _written(_proposed(sample, table.name.split(".")[0], rules=rules), out)
    for reason in _identifying(lambda: read_fields(table, sample.columns.num_rows), load_policy(path)):
        say(reason)
    if not sample.whole:
        warn(f"looked at the first {sample.columns.num_rows} rows only; policy check --table looks at all of them")
    for line in _tried_table(table, path) if try_out else ():
        say(line)
    say(f"wrote {path}; read it, correct it, then run: portcullis policy check {path} --table {table}")


def _for_topic(seen: TopicSample, facts: TopicFacts, out: Path, rules: SafeHarbor | None, *, try_out: bool) -> None:
    path = _written(_proposed(seen.sample, facts.name, facts, rules), out)
    for reason in _identifying(lambda: _fields(seen.sample), load_policy(path)):
        say(reason)
    if not seen.sample.whole:
        warn(f"looked at the newest {seen.sample.columns.num_rows} records only; others are refused if they differ")
    for line in _tried_topic(seen, path) if try_out else ():
        say(line)
    say(f"wrote {path}; read it, correct it, then run: portcullis policy check {path}")


def _written(proposal: Proposal, out: Path) -> Path:
    """Write it and say why it is what it is."""
    path = proposal.write(out)
    for guess in proposal.guesses:
        say(f"{guess.name}: {guess.role} ({guess.reason})")
    for warning in proposal.warnings:
        warn(f"warning: {warning}")
    return path


def _fields(sample: Sample) -> FieldKeys:
    gathered = FieldGatherer()
    gathered.add(sample.columns)
    return gathered.fields()


def _identifying(fields: Callable[[], FieldKeys], policy: Policy) -> Iterator[str]:
    """Why the quasi-identifiers are some: how many rows they single out, and what each of them adds."""
    if not isinstance(policy.schema, Schema):
        return
    roles = Roles.declared(policy)
    try:
        rating = rate(fields(), roles=roles, share=SHARE, size=SIZE)
    except DataError:
        return  # of very many fields, or of values that are lists here and there, a proposal is made all the same
    yield f"{rating.quasi:.0%} of the rows are unique on the quasi-identifiers as they are"
    # What is left out cannot be used, and who is meant is asked for.
    own = [one for one in rating.found.sets if all(roles.of.get(name) == "quasi" for name in one.fields)]
    yield from (f"  {sentence(one)}" for one in own[:SETS])


def _with_several_k(path: Path) -> Iterator[tuple[int, Policy]]:
    """The proposal with its k, and with more."""
    given: Mapping[str, Any] = parse_text(path.read_text(encoding="utf-8"))
    for factor in TRIED if "k" in given["guarantee"] else ():
        k = factor * given["guarantee"]["k"]
        yield k, parse_policy({**given, "guarantee": {**given["guarantee"], "k": k}}, path.parent)


def _tried_table(table: Path, path: Path) -> Iterator[str]:
    """What the proposal costs with several k; it is the same audit that stands before every publication."""
    for k, policy in _with_several_k(path):
        try:
            with progress_bar() as progress:
                found = policy.data.anonymize(policy, table, progress=progress).verdict.notes[0]
        except InfeasibleError as error:
            found = f"cannot be had: {error}"
        yield f"with k {k}: {found}"


def _tried_topic(seen: TopicSample, path: Path) -> Iterator[str]:
    """What the proposal costs with several k: a rehearsal with the records of one partition, as fast as they came."""
    if load_policy(path).schema.person is PersonSource.KEY:
        yield "not tried: a rehearsal needs persons in a field, and here they are the keys of records"
        return
    yield f"tried with the {len(seen.fullest.values)} records of the fullest partition, {seen.rate:.3g} in a second:"
    with Path(os.devnull).open("wb") as nowhere:
        for k, policy in _with_several_k(path):
            run = Replay(policy, rate=seen.rate)
            try:
                run.run(_events(seen.fullest, policy), nowhere)
                found = _told(run.report(0.0), seen.rate)
            except (InfeasibleError, DataError) as error:
                found = f"cannot be had: {error}"
            yield f"with k {k}: {found}"


def _events(records: GivenRecords, policy: Policy) -> Iterator[Events]:
    """As a worker reads them."""
    registry = registry_of(policy.route())
    decoder = decoder_of(policy.route(registry), MAX_EVENT_BYTES, LARGEST_MESSAGE, PersonKey.random())
    for start in range(0, len(records.values), BATCH):
        yield decoder.decode(GivenRecords.without_keys(records.values[start : start + BATCH], start))


def _told(report: ReplayReport, rate: float) -> str:
    """Suppression, loss and delay in a line."""
    loss = "nothing released" if report.loss is None else f"loss {report.loss:.4f} (0 nothing lost, 1 all)"
    waited = ""
    if report.delays:
        median, longest = report.delays.p50, report.delays.max
        waited = (
            f"; half of the events wait for {median} others or more ({median / rate:.3g} s), none for more than "
            f"{longest} ({longest / rate:.3g} s)"
        )
    return f"{report.suppressed_share:.1%} of the events suppressed, {loss}{waited}"


def _proposed(sample: Sample, name: str, topic: TopicFacts | None = None, rules: SafeHarbor | None = None) -> Proposal:
    """The proposal of the first kind that recognises its data; the default, which takes any table, is asked last.

    Rules are about records.
    """
    if rules is not None:
        return propose(sample, name, topic, rules)
    default, *others = data_kinds()
    for kind in (*others, default):
        proposal = kind.propose(sample, name) if topic is None else kind.propose_stream(sample, name, topic)
        if proposal is not None:
            return proposal
    raise DataError("no kind of data recognises this table")

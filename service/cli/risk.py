"""`portcullis risk`: what identifies in data that nobody described yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from microdata import FieldKeys, read_fields
from microdata.field_keys import MOST_ROWS, Counted
from privacy import FieldRisk
from service.cli.output import progress_bar, say, say_json, say_table, warn
from service.kafka.flags import Bootstrap, ClientName, SettingsFile, kafka_settings
from service.risk import LISTED, Rating, Roles, rate, sentence
from service.settings import read_settings_file


def risk(
    table: Annotated[
        Path | None, typer.Argument(help="Table to look at: CSV, Parquet, JSON lines or Arrow. Or name a --topic.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Also look at the roles that this policy gives to fields.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(help="Field that names the person; without it every row is about another one.")
    ] = None,
    share: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Share of the rows that fields must single out to be told of.")
    ] = 0.2,
    size: Annotated[int, typer.Option(min=1, max=6, help="Most fields of a set.")] = 3,
    population: Annotated[
        int | None, typer.Option(min=1, max=10**12, help="People that the table could be about; adds a bound for them.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2**31 - 1,
            help=f"Look at this many rows of a table, the first ones; without, at {MOST_ROWS:,} and values are "
            "counted over all.",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Topic to look at: JSON objects, or what the registry has a schema of.")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Look at this many records of a topic, the newest ones.")
    ] = 100_000,
    read: Annotated[
        int,
        typer.Option(min=1, max=10**10, help="Count values over this many records of a topic, the newest ones."),
    ] = 1_000_000,
    bootstrap: Bootstrap = None,
    client: ClientName = None,
    settings_file: SettingsFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Find out which fields identify people: alone, and together with few others. No value is shown."""
    roles = None if policy is None else _roles(policy)
    if (table is None) == (topic is None):
        raise typer.BadParameter("name a table or a --topic")
    with progress_bar() as progress:
        if table is not None:
            data = read_fields(table, rows, progress)
        else:
            # As below: a table needs no Kafka.
            from service.cli.topic_fields import topic_fields  # noqa: PLC0415
            from service.kafka import connect  # noqa: PLC0415

            read_settings_file(settings_file)
            data = topic_fields(connect(kafka_settings(bootstrap, client)), topic or "", sample, read, progress)
        rating = rate(
            data, roles=roles, person=person, share=share, size=size, population=population, progress=progress
        )
    for warning in (*rating.warnings, *_limits(data, rating, "first" if topic is None else "newest")):
        warn(f"warning: {warning}")
    if as_json:
        say_json(rating.as_dict())
    else:
        _say(data, rating)


def _roles(policy: Path) -> Roles:
    # With policies come all algorithms, whose loading takes longer than a look at most tables.
    from service.policy import load_policy  # noqa: PLC0415

    return Roles.declared(load_policy(policy))


def _limits(data: FieldKeys, rating: Rating, which: str) -> Iterator[str]:
    """What was not looked at."""
    found = rating.found
    if not data.whole:
        yield f"only the {which} {len(data)} rows were looked at; with more of them, fewer are unique"
    if data.counted:
        yield f"values were counted over {data.counted.rows} rows{_about_counts(data.counted)}"
    if data.misshapen:
        yield f"{data.misshapen} rows could not be read and were left out"
    if data.not_read:
        yield f"fields with lists or the like were not looked at: {', '.join(data.not_read)}"
    if found.complete < found.size:
        yield f"there are too many sets: all of up to {found.complete} fields were looked at, of larger ones only some"


def _about_counts(counted: Counted) -> str:
    error = max(counted.errors, default=0.0)
    return f"; numbers with ~ are within {error:.1%} of the true ones, with 95 % confidence" if error else ""


def _say(data: FieldKeys, rating: Rating) -> None:
    found = rating.found
    columns = ("field", *(["role"] if rating.roles else []), "values", "missing", "unique", "falls by", "sets", "says")
    say_table(columns, [_line(one, rating) for one in found.fields])
    say("unique: rows that the field singles out by itself; falls by: what the unique rows of all fields together lose")
    say("without it; sets: how many of those below it is part of")
    say()
    say(f"{len(data)} rows; {sentence(found.together)}" if found.together.fields else f"{len(data)} rows")
    if rating.quasi is not None:
        say(f"on the quasi-identifiers of the policy {rating.quasi:.0%} of the rows are unique, as they are")
    _say_sets(rating)


def _line(one: FieldRisk, rating: Rating) -> tuple[str, ...]:
    role = [rating.roles.get(one.name, "left out")] if rating.roles else []
    falls = "–" if one.falls is None else f"{one.falls:.1%}"
    return (
        one.name,
        *role,
        f"{'~' if one.distinct_error else ''}{one.distinct}",
        f"{one.missing:.1%}",
        f"{one.alone:.1%}",
        falls,
        f"{one.sets}",
        _says(one),
    )


def _says(one: FieldRisk) -> str:
    if one.near_key:
        return "nearly a key"
    if one.same_as:
        return f"the same as {one.same_as}"
    return f"determines {', '.join(one.determines)}" if one.determines else ""


def _say_sets(rating: Rating) -> None:
    found = rating.found
    if not found.sets:
        say(f"no {found.complete} fields or fewer single out {found.share:.0%} of the rows; the closest:")
    else:
        say(
            f"{len(found.sets)} sets of up to {found.size} fields single out {found.share:.0%} of the rows or more, and"
        )
        say("nothing smaller inside of them does:")
    for one in (found.sets or found.closest)[:LISTED]:
        bound = "" if one.bound is None else f"; of {found.population} people at most {one.bound:.1%}"
        say(f"  {sentence(one)}{bound}")
    if len(found.sets) > LISTED:
        say(f"  and {len(found.sets) - LISTED} more, with --json")

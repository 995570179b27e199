"""`portcullis anonymize`: one table, no server."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from service.cli.evidence import Evidence, Sign, Signing
from service.cli.findings import say_verdict
from service.cli.options import Overwrite, Report, ReportPage, Seed, warn_of_seed
from service.cli.output import progress_bar, say, say_written, warn
from service.cli.targets import check_targets
from service.evidence import gather
from service.ledger import LedgerFile, Released
from service.policy import Policy, PolicyError, PolicyProblem, load_policy
from service.policy.data import Outside

MOST_PEOPLE = 10**12


def anonymize(
    table: Annotated[Path, typer.Argument(help="Table to anonymize: CSV, Parquet, JSON lines or Arrow.")],
    policy: Annotated[Path, typer.Option(help="Policy with an algorithm for tables.")],
    out: Annotated[Path, typer.Option(help="Where to write the published table; the ending says the format.")],
    report: Report = None,
    html: ReportPage = None,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Also write which row of the table each published row is, for `portcullis audit --links`. It undoes "
            "the anonymization: keep it with the table."
        ),
    ] = None,
    seed: Seed = None,
    purpose: Annotated[str | None, typer.Option(help="Which of the policy's purposes it is for.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="File with all releases of the policy's data set; this one is added to it.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(help="People that the table was drawn from, for the report: how many, or a file of them."),
    ] = None,
    counts: Annotated[
        list[str] | None,
        typer.Option(
            help="Fields (with commas between) by which you also publish counts of sensitive values: the report says "
            "what these give away. May be given several times."
        ),
    ] = None,
    counts_file: Annotated[
        list[Path] | None,
        typer.Option(
            help="Counts that you also publish, as they are to be, rounded or noisy: columns are quasi-identifiers, a "
            "sensitive attribute and `count`. The report solves for single rows. May be given several times."
        ),
    ] = None,
    evidence: Evidence = None,
    sign: Sign = None,
    overwrite: Overwrite = False,
) -> None:
    """Anonymize a table. It is audited before anything is written: exit status 3 if that ever failed."""
    warn_of_seed(seed)
    filing = Signing.of(evidence, sign)
    targets = {"--out": out, "--report": report, "--html": html, "--links": links, **filing.targets()}
    outside = replace(_outside(population, counts or []), count_files=counts_file or [])
    beside = {f"the counts {path.name}": path for path in outside.count_files}
    if isinstance(outside.population, Path):
        beside["the population"] = outside.population
    check_targets({"the table": table, "the policy": policy, **beside}, targets, overwrite=overwrite)
    loaded = load_policy(policy, purpose=purpose)
    if links and not loaded.data.keeps_links:
        raise typer.BadParameter(f"{loaded.data.name} have no links: leave it out", param_hint="--links")
    _check_outside(loaded, outside, is_reported=bool(report or html or evidence))
    _check_ledger(loaded, ledger)
    kind, started = loaded.data, time.monotonic()
    with progress_bar() as progress:
        result = kind.anonymize(loaded, table, seed=seed, progress=progress)
        seconds, seeded = time.monotonic() - started, seed is not None
        # Made before anything is written, so that a run that cannot be reported on leaves nothing behind.
        made = kind.report(loaded, result, seconds=seconds, repeatable=seeded) if report or html or evidence else None
        if made and outside:
            made = kind.against(loaded, result, made, outside, progress=progress)
        if ledger is not None:
            _enter(loaded, ledger, result)
        kind.write(loaded, result, out, links=links, seed=seed, progress=progress)
        if made and evidence:
            filing.file(
                gather(
                    loaded,
                    made,
                    original=table,
                    published=[out],
                    links=links,
                    secret=filing.secret,
                    by="command line",
                    progress=progress,
                )
            )
    if made and report:
        report.write_text(made.model_dump_json(indent=2), encoding="utf-8")
    if made and html:
        html.write_text(kind.page(made), encoding="utf-8")
    for warning in result.warnings:
        warn(f"warning: {warning}")
    say_verdict(result.verdict)
    say_written(out, seconds, report, html)
    if links:
        say(f"{links} says which row of the table each published row is: keep it with the table")
    filing.say()


def _outside(population: str | None, counts: list[str]) -> Outside:
    """What others may have, as it was said."""
    fields = [[name.strip() for name in one.split(",")] for one in counts]
    if population is None or not population.replace("_", "").isdecimal():
        return Outside(None if population is None else Path(population), fields)
    people = int(population)
    if not 1 <= people <= MOST_PEOPLE:
        raise typer.BadParameter(f"must be a file, or from 1 to {MOST_PEOPLE} people", param_hint="--population")
    return Outside(people, fields)


def _check_outside(policy: Policy, outside: Outside, *, is_reported: bool) -> None:
    """What others have is for a report, and must fit the schema."""
    if outside and not is_reported:
        raise typer.BadParameter(
            "--population, --counts and --counts-file are for a report: say where with --report or --html"
        )
    problems = list(policy.data.check_outside(outside, policy.schema))
    if problems:
        raise PolicyError(problems)


def _check_ledger(policy: Policy, ledger: Path | None) -> None:
    """A policy that names its data set needs a ledger, and the other way round."""
    if policy.releases is not None and ledger is None:
        reason = f"all releases of {policy.releases.data_set} are written down: say in which file with --ledger"
        raise PolicyError([PolicyProblem("releases", reason)])
    if policy.releases is None and ledger is not None:
        raise PolicyError([PolicyProblem("releases", "--ledger needs a data_set, whose releases are written down")])


def _enter(policy: Policy, ledger: Path, result: Any) -> None:
    """Write the release down before it leaves."""
    asked, facts = policy.releases, policy.data.facts(policy, result)
    assert asked is not None, "checked at the beginning"
    if facts is None:
        raise PolicyError([PolicyProblem("releases", "releases of this kind of data cannot be compared; leave it out")])
    release = Released.now(asked.data_set, policy.name, policy.purpose, "command line", facts)
    LedgerFile(ledger).add(release, allow=asked.incomparable == "allow")

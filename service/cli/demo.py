"""`portcullis demo`: what is there, shown on a sample."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import pyarrow.csv
import typer

from microdata import Publication, read_sample, read_table, write_published
from privacy import audit, risks, risks_before
from service.cli.findings import say_audit
from service.cli.output import progress_bar, say
from service.policy import Policy, load_policy
from service.proposal import propose
from service.sample import sample_events
from service.tables import anonymize_table

SEED = 2010


def demo(
    rows: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="Orders in the sample.")] = 20_000,
    keep: Annotated[Path | None, typer.Option(help="Directory for the sample and what is made of it.")] = None,
) -> None:
    """Make a sample of orders, show how exposed its customers are, anonymize it, and audit what would leave."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        _show(keep, rows)
        say(f"All files are kept in {keep}.")
    else:
        with TemporaryDirectory(prefix="portcullis-") as directory:
            _show(Path(directory), rows)
        say("All files were temporary; --keep DIRECTORY keeps them.")


def _show(directory: Path, rows: int) -> None:
    table = directory / "orders.csv"
    pyarrow.csv.write_csv(sample_events(rows, seed=SEED), table)
    say(f"1. A sample: {rows} orders by customers who come back ({table.name})")
    policy = _propose(table, directory)
    _expose(table, policy)
    _protect(table, policy, directory / "orders-safe.csv")


def _propose(table: Path, directory: Path) -> Policy:
    path = propose(read_sample(table), "orders").write(directory)
    policy = load_policy(path)
    say(f"2. A policy, proposed from the sample and checked ({path.name}):")
    for role, names in policy.schema.roles().items():
        say(f"   {role}: {', '.join(names) or 'none'}")
    return policy


def _expose(table: Path, policy: Policy) -> None:
    raw = read_table(table, policy.schema).table
    equal = np.unique(raw.quasi, axis=0, return_inverse=True)[1].ravel()
    risk = risks_before(raw).prosecutor
    say("3. The sample as it is, audited; rows with equal quasi-identifiers are one class:")
    say_audit(audit(raw, Publication.of(raw, equal), policy.models()))
    say(f"   a row points at one customer with a chance of {risk.average:.0%} on average, {risk.highest:.0%} at worst")


def _protect(table: Path, policy: Policy, out: Path) -> None:
    with progress_bar() as progress:
        result = anonymize_table(policy, table, progress=progress)
    write_published(result.publication, out)
    risk = risks(result.publication).prosecutor
    say(f"4. The sample anonymized by {policy.algorithm_name}, audited before it was written ({out.name}):")
    say_audit(result.audit)
    say(f"   a row points at one customer with a chance of {risk.average:.0%} on average, {risk.highest:.0%} at worst")

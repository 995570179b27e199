"""Tables like those of the world, and what a user does with one: propose, check, anonymize."""

import datetime as dt
import random
from typing import Any, NamedTuple

from microdata import read_sample
from service.kinds.records.table_check import RecordsCheck, check_table
from service.kinds.records.tables import AnonymizedTable, anonymize_table
from service.policy import Policy, load_policy
from service.proposal import Proposal, propose


class Used(NamedTuple):
    proposal: Proposal
    policy: Policy
    found: RecordsCheck
    made: AnonymizedTable


def used(table: Any, directory: Any) -> Any:
    """What a user does next: propose, check, anonymize; nothing of it may fail."""
    proposal = propose(read_sample(table), table.name.split(".")[0])
    policy = load_policy(proposal.write(directory / "proposed"))
    found = check_table(policy, table)
    assert not found.problems, found.problems
    return Used(proposal, policy, found, anonymize_table(policy, table, seed=1))


def roles(proposal: Any) -> Any:
    return {guess.name: guess.role for guess in proposal.guesses}


def made(rows: int = 400, seed: int = 7, **columns: Any) -> Any:
    """CSV text; each column is a function of the row number and a source of random numbers."""
    chance = random.Random(seed)
    lines = [",".join(columns)]
    lines += [",".join(str(cell(row, chance)) for cell in columns.values()) for row in range(rows)]
    return "\n".join(lines) + "\n"


def one_of(*labels: Any) -> Any:
    return lambda _, chance: chance.choice(labels)


def between(low: Any, high: Any) -> Any:
    return lambda _, chance: chance.randint(low, high)


def day(row: Any, chance: Any) -> Any:
    return dt.date(1950, 1, 1) + dt.timedelta(days=chance.randint(0, 20_000))


def semicolons(text: Any) -> Any:
    return text.replace(",", ";")

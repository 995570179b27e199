"""What an attacker gets who is tried with a control, who knows a population, or who has counts beside the table."""

from __future__ import annotations

from collections.abc import Sequence

from microdata import Publication, Table
from privacy import CountTable, Journalist, Reconstruction, population_risk, reconstruction, trials
from privacy import Trial as MeasuredTrial
from service.report.sections import AmongPeople, CountsBeside, Population, Trial


def tried(publication: Publication) -> list[Trial]:
    """Singling out, linkability and inference."""
    return [_tried(one) for one in trials(publication)]


def _tried(one: MeasuredTrial) -> Trial:
    low, high = one.after.interval
    risk_low, risk_high = one.risk_interval
    return Trial(
        attack=one.attack,
        attribute=one.attribute,
        gets=one.gets,
        tried=one.after.tried,
        before=one.before,
        after=one.after.share,
        low=low,
        high=high,
        control=one.control.share,
        baseline=one.baseline,
        risk=one.risk,
        risk_low=risk_low,
        risk_high=risk_high,
    )


def population_of(publication: Publication, known: Table | int) -> Population:
    """Journalist risk with a table of a population, or its number of people."""
    found = population_risk(publication, known)
    before, after = _among(found.before), _among(found.after)
    return Population(people=found.people, how=found.before.how, before=before, after=after)


def _among(found: Journalist) -> AmongPeople:
    return AmongPeople(
        k_map=found.k_map,
        highest=found.risk.highest if found.risk else None,
        average=found.risk.average if found.risk else None,
        unique=found.unique,
    )


def beside(
    publication: Publication, counts: Sequence[Sequence[str]], tables: Sequence[CountTable] = ()
) -> list[CountsBeside]:
    """What counts give away beside the table: over these fields as they are, and those of somebody's tables."""
    return [_beside(one, counts, tables) for one in reconstruction(publication, counts, tables)]


def _beside(one: Reconstruction, counts: Sequence[Sequence[str]], tables: Sequence[CountTable]) -> CountsBeside:
    own = [table.fields for table in tables if table.attribute == one.attribute]
    return CountsBeside(
        attribute=one.attribute,
        counts=[list(fields) for fields in (*counts, *own)],
        off=one.off,
        rows=one.rows,
        guessed_alone=one.guessed_alone,
        guessed=one.guessed,
        certain_alone=one.certain_alone,
        certain=one.certain,
        wrong=one.wrong,
    )

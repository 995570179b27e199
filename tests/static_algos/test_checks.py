"""The generic checks fire: each of them finds the algorithm that breaks what it looks at."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microdata import Boxes, Cancelled, InfeasibleError, Publication, silent
from static_algos import Mondrian, checks
from static_algos.checks import STATIC_CHECKS, Case


class Careless(Mondrian):
    """Publishes every row as it is."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        return Publication.of(table, np.arange(len(table)))


class Narrow(Mondrian):
    """Publishes boxes that do not cover their rows."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        made = super().anonymize(table, progress=progress)
        return replace(made, boxes=Boxes(table.schema, made.boxes.lo, made.boxes.lo))


class Hollow(Mondrian):
    """Publishes a class that has no rows."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        made = super().anonymize(table, progress=progress)
        lo, hi = (np.concatenate([side, side[:1]]) for side in (made.boxes.lo, made.boxes.hi))
        return replace(made, boxes=Boxes(table.schema, lo, hi))


class Meddling(Mondrian):
    """Sorts the caller's rows."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        table.quasi.sort(axis=0)
        return super().anonymize(table, progress=progress)


class Moody(Mondrian):
    """Never does the same twice."""

    calls = 0

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        Moody.calls += 1
        return Mondrian(k=2 + Moody.calls % 2 * 50).anonymize(table, progress=progress)


class Demanding(Mondrian):
    """Cannot do without a seed."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        np.random.default_rng(int(seed))
        return super().anonymize(table, progress=progress)


class Orderly(Mondrian):
    """Takes rows that come sorted for rows that were made safe before."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        if len(table) > 100 and (np.diff(table.quasi[:, 0]) >= 0).all():
            return Publication.of(table, np.arange(len(table)))
        return super().anonymize(table, progress=progress)


class Positional(Mondrian):
    """Trusts that neighbouring rows are about different persons."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        return Publication.of(table, np.arange(len(table)) // max(len(table) // 2, 1))


class Fixed(Mondrian):
    """Knows its columns by their place."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        if table.schema.quasi[0].name != "age":
            return Publication.of(table, np.arange(len(table)))
        return super().anonymize(table, progress=progress)


class Deaf(Mondrian):
    """Ignores its parameters: everything becomes one class."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        return Publication.of(table, np.zeros(len(table), int))


class Hasty(Mondrian):
    """Believes that its table always has two rows."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        assert table.quasi[1] is not None
        return super().anonymize(table, progress=progress)


class Proud(Mondrian):
    """Refuses an empty table."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        if not len(table):
            raise InfeasibleError("no rows", parameter="k")
        return super().anonymize(table, progress=progress)


class Silent(Mondrian):
    """Tells nobody how far it is."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        return super().anonymize(table)


class Pretending(Mondrian):
    """Says that it shows means, and shows boxes."""

    shows = "mean"


class Stubborn(Mondrian):
    """Does not stop when told to."""

    def anonymize(self, table: Any, *, seed: Any = None, progress: Any = silent) -> Any:
        try:
            return super().anonymize(table, progress=progress)
        except Cancelled:
            return super().anonymize(table)


def case_of(algorithm: Any) -> Any:
    return Case(algorithm, algorithm.__name__, {"k": 3}, {"k": 40})


@pytest.mark.parametrize("check", STATIC_CHECKS, ids=lambda check: check.__name__)
def test_a_sound_algorithm_passes(check: Any) -> None:
    check(case_of(Mondrian))


BROKEN = [
    (checks.guarantee_holds, Careless, AssertionError),
    (checks.guarantee_holds, Narrow, AssertionError),
    (checks.guarantee_holds, Hollow, (AssertionError, IndexError, ValueError)),
    (checks.input_is_not_modified, Meddling, AssertionError),
    (checks.same_seed_gives_the_same_result, Moody, AssertionError),
    (checks.works_without_a_seed, Demanding, TypeError),
    (checks.row_order_does_not_matter, Orderly, AssertionError),
    (checks.column_order_does_not_matter, Fixed, AssertionError),
    (checks.classes_can_be_shown_as_means, Pretending, AssertionError),
    (checks.stricter_has_an_effect, Deaf, AssertionError),
    (checks.k_counts_persons, Positional, AssertionError),
    (checks.degenerate_tables_are_published_or_refused, Hasty, IndexError),
    (checks.an_empty_table_gives_an_empty_publication, Proud, InfeasibleError),
    (checks.progress_is_told_and_may_cancel, Silent, AssertionError),
    (checks.progress_is_told_and_may_cancel, Stubborn, AssertionError),
]


@pytest.mark.parametrize(("check", "algorithm", "error"), BROKEN, ids=lambda one: getattr(one, "__name__", ""))
def test_a_broken_algorithm_is_found(check: Any, algorithm: Any, error: Any) -> None:
    with pytest.raises(error):
        check(case_of(algorithm))


def test_every_check_is_seen_to_fail() -> None:
    assert list(dict.fromkeys(check for check, *_ in BROKEN)) == list(STATIC_CHECKS)

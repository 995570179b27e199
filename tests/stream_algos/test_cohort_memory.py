"""What cohorts let others keep: whoever writes down only what changed has everything."""

import mmap
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microdata import Category, GuaranteeError, Hierarchy
from stream_algos import Batch, Cohorts
from stream_algos import _cohort_memory as remembering
from stream_algos import _cohort_state as columns
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE
from tests.stream_algos.cohort_streams import SCHEMA, engine, people, with_rejected
from tests.stream_algos.test_cohorts import LINE, assert_sound, rows
from tests.stream_worlds import Observer

ILL_LINE = replace(LINE, sensitive=(Category("illness", Hierarchy.flat(["flu", "ulcer"])),))
ILL = replace(SCHEMA, sensitive=(Category("illness", Hierarchy.flat(["flu", "ulcer", "gout"])),))


class Keeper:
    """Writes down entries that have changed, one by one, of those that an engine says it has touched."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, Any]] = {}
        self.written: Counter[str] = Counter()

    def keep(self, one: Cohorts) -> None:
        sizes = one.sizes()
        for table, numbers in one.touched().items():
            known = self.tables.setdefault(table, {})
            entries = one.entries(table, numbers)
            for row, number in enumerate(numbers.tolist()):
                entry = {name: column[row].copy() for name, column in entries.items()}
                old = known.get(number)
                if old is None or any(
                    old[name].tobytes() != entry[name].tobytes() for name in entry if name not in one.loose
                ):
                    known[number] = entry
                    self.written[table] += 1
            for number in [number for number in known if number >= sizes[table]]:
                del known[number]
            assert sorted(known) == list(range(sizes[table]))
        self.rest, self.pending = one.rest(), one.pending()
        one.kept()

    def recall(self, like: Cohorts, waiting: Batch) -> None:
        """Let an engine go on with what was written."""
        room = like.room({table: len(known) for table, known in self.tables.items()})
        for table, known in self.tables.items():
            for number, entry in known.items():
                for name, value in entry.items():
                    room[table][name][number : number + 1] = value[np.newaxis]
        like.recall(self.rest, waiting)


def known(one: Cohorts) -> Any:
    """Everything that matters of the state, however its lists are ordered."""
    state, meta = one._state, one._state.meta
    persons = {}
    for person in range(meta[columns.PERSONS]):
        role, node = state.persons[person, [columns.ROLE, columns.NODE]].tolist()
        if role == columns.GONE:
            continue
        place = state.hulls[:, node].tolist() if role == columns.POOLED else node
        waits = state.waits[person, [columns.WAITS, columns.HELD]].tolist()
        persons[tuple(state.tags[person, [columns.CODE, columns.MORE]].tolist())] = (
            role,
            place,
            np.nan_to_num(LastValues(state)[person : person + 1], nan=-1.0).tolist(),
            state.shown[person].tolist(),
            waits,
        )
    nodes = []
    for node in range(meta[columns.NODES]):
        row = state.nodes[node].tolist()
        row[columns.HEAD] = None
        if row[columns.LEFT] != NONE:
            row[columns.COUNT] = row[columns.READY] = None
        sizes = state.sizes[node, : columns.LOWEST]  # the rest is a bound that follows from the others
        nodes.append((row, state.boxes[node].tolist(), sizes.tolist(), state.ids[node].tolist()))
    counts = [columns.KNOWN, columns.LEAVES, columns.MEMBERS, columns.POOLED_PERSONS, columns.WAITING, columns.ROOT]
    return persons, nodes, meta[counts].tolist(), one.pending().tolist()


def twin(one: Cohorts, seed: int) -> Cohorts:
    asked = one.parameters
    more = {"company": asked.company, "l": asked.l, "memory": asked.memory, "founders": asked.founders}
    return engine(seed, asked.k, asked.delay.tuples, one.schema, **more)


CASES = list(enumerate(product((0.0, 0.1, 0.6), (1, 2), ("standing", "present"), (None, 8.0))))


@pytest.mark.parametrize(("seed", "case"), CASES)
def test_whoever_keeps_the_changes_has_everything_and_goes_on_safely(seed: int, case: Any) -> None:
    moving, l, company, memory = case  # noqa: E741 - ℓ
    one = engine(seed, tuples=40, schema=ILL, l=l, company=company, memory=memory)
    batch, keeper = people(seed, 90, moving=moving, schema=ILL), Keeper()
    if seed % 3:
        batch = with_rejected(batch, seed)
    observer = Observer(ILL, one)
    for turn, begin in enumerate(range(0, len(batch), 23)):
        observer.push(batch.take(slice(begin, begin + 23)))
        keeper.keep(one)
        if turn % (1 + seed % 4) == 0:
            other = twin(one, turn)
            waiting = observer.rows.take(np.isin(observer.rows.positions, one.pending()))
            keeper.recall(other, waiting)
            assert known(other) == known(one)
            if memory is None:
                assert_sound(other)
            observer.engine = one = other
            keeper.keep(one)
    observer.flush()
    if memory is None:  # the promise of whoever forgets is shorter
        observer.assert_complete()


def test_that_nobody_waits_any_more_takes_no_memory() -> None:
    one = engine(1, k=5, tuples=40)
    for turn in range(4):
        batch = people(turn, 400, 1, moving=0.0)
        one.push(Batch(batch.positions + 1_000 * turn, batch.times, batch.persons + 1_000 * turn, *batch.columns()[3:]))
    waits = one._state.waits
    assert resident_pages(waits) > 1
    before = waits[: one.sizes()["persons"]].copy()
    assert before.any()
    one.kept()
    assert (waits[: len(before)] == before).all()
    one.flush()
    one.kept()
    assert resident_pages(waits) == 0


def resident_pages(table: Any) -> int:
    """How many pages of an array have memory of their own."""
    begin = table.__array_interface__["data"][0]
    with Path("/proc/self/pagemap").open("rb") as entries:
        entries.seek(begin // mmap.PAGESIZE * 8)
        found = np.frombuffer(entries.read(-(-table.nbytes // mmap.PAGESIZE) * 8), np.uint64)
    return int((found >> np.uint64(63)).sum())


def test_who_comes_back_unchanged_writes_nothing_and_a_split_does_not_write_its_members() -> None:
    one, keeper = engine(1, k=5, tuples=40), Keeper()
    batch = people(3, 400, 1, moving=0.0)
    one.push(batch)
    for passed in (41, 400, 800):  # until no cohort stands in line for a split
        one.advance(int(batch.positions[-1]) + passed)
    keeper.keep(one)
    for turn in range(3):  # the last of the pool find a cohort, large cohorts are split
        keeper.written.clear()
        again = Batch(batch.positions + 10_000 * (turn + 1), batch.times, batch.persons, batch.quasi, batch.sensitive)
        assert len(one.push(again).members) > 300
        keeper.keep(one)
    assert keeper.written.total() < 40
    members = np.flatnonzero(one._state.persons[: one.sizes()["persons"], columns.ROLE] == columns.MEMBER)
    splits = 0
    for person, like in enumerate(members.tolist()):  # they join one by one, until cohorts are split
        before, values = one.sizes(), LastValues(one._state)[like : like + 1]
        one.push(
            Batch(
                np.array([50_000 + 128 * person]), np.zeros(1), np.array([10**6 + person]), values, again.sensitive[:1]
            )
        )
        keeper.written.clear()
        keeper.keep(one)
        if one.sizes()["nodes"] > before["nodes"] and one.sizes()["pool"] == before["pool"]:
            splits += 1
            assert keeper.written["persons"] <= 1, "who came, and none of the members"
    assert splits > 3


@pytest.mark.parametrize("what", ["persons", "pool", "nodes"])
def test_tables_that_lack_something_are_refused(what: str) -> None:
    one, keeper = engine(1, tuples=40), Keeper()
    one.push(people(3, 60).take(slice(0, 200)))
    keeper.keep(one)
    assert all(len(table) > 0 for table in keeper.tables.values())
    del keeper.tables[what][max(keeper.tables[what])]
    if what == "persons":  # somebody in the pool may be the last one
        keeper.tables["pool"] = {
            place: entry for place, entry in keeper.tables["pool"].items() if entry["person"] < len(keeper.tables[what])
        }
    with pytest.raises(GuaranteeError):
        keeper.recall(one, Batch.empty(SCHEMA))


def test_the_time_of_a_silent_person_is_never_told_too_early() -> None:
    """Whoever forgets early breaks the promise for the rest of that time."""
    one, keeper = engine(1, tuples=40, memory=8.0), Keeper()
    batch = people(5, 40)
    one.push(batch)
    keeper.keep(one)
    size = one.sizes()["persons"]
    there, times = one._state.persons[:size, columns.ROLE] != columns.GONE, one._state.times[:size].copy()
    told = []
    for _ in range(2):
        keeper.recall(one, Batch.empty(SCHEMA))
        told.append(one._state.times[:size])
        keeper.keep(one)
    late = (told[0] - times)[there]
    assert (late >= 0).all()
    assert (late <= 8.0 / remembering._TIMES + 1e-9).all()
    assert told[1].tolist() == told[0].tolist(), "restarts do not let them be remembered for ever"


def test_a_cohort_that_loses_members_to_erasure_publishes_nothing_below_k() -> None:
    one, keeper = engine(1, k=3, tuples=4, schema=LINE, founders=3), Keeper()
    one.push(rows((1, 10), (2, 11), (3, 12)))
    assert len(one.advance(10).members) == 3
    keeper.keep(one)
    assert not len(one.forget(np.array([[2, 0], [99, 0], [3, 1]]), Batch.empty(LINE)))
    keeper.keep(one)
    assert one.status()["persons"] == one.status()["members"] == 2
    assert 2 not in {int(entry["tag"][0]) for entry in keeper.tables["persons"].values()}
    assert not len(one.push(rows((1, 10), start=20)).members), "fewer than k"
    assert len(one.push(rows((4, 11), start=21)).members) == 1, "somebody joins"
    assert len(one.push(rows((1, 10), start=22)).members) == 1
    assert_sound(one)


def test_a_cohort_that_lost_several_is_joined_until_it_has_k_again() -> None:
    one, keeper = engine(1, k=3, tuples=4, schema=LINE, founders=3), Keeper()
    one.push(rows((1, 10), (2, 11), (3, 12)))
    one.advance(10)
    keeper.keep(one)
    one.forget(np.array([[2, 0], [3, 0]]), Batch.empty(LINE))
    assert one.push(rows((4, 11), start=20)).suppressed.tolist() == [20], "two are fewer than k"
    assert one.status()["members"] == 2
    keeper.keep(one)
    other = twin(one, 2)
    keeper.recall(other, Batch.empty(LINE))
    assert known(other) == known(one)
    both = other.push(rows((5, 12), (6, 40), (1, 10), start=21))
    assert sorted(both.members.tolist()) == [21, 23], "the third may leave, and so may the others"
    assert (both.company == 3).all()
    assert other.pending().tolist() == [22], "who is outside waits"
    assert_sound(other)


def test_who_finds_a_cohort_that_publishes_joins_no_silent_one() -> None:
    one = engine(1, k=3, tuples=4, schema=LINE, founders=3)
    one.push(rows((1, 10), (2, 11), (3, 12)))
    one.push(rows((4, 5), (5, 6), (6, 20), start=10))
    assert len(one.advance(20).members) == 3
    one.forget(np.array([[2, 0], [3, 0]]), Batch.empty(LINE))
    release = one.push(rows((7, 11), (8, 11), start=30))
    assert (release.lo.tolist(), release.hi.tolist()) == ([[5.0]] * 2, [[20.0]] * 2), "though it loses more"
    assert_sound(one)


@pytest.mark.parametrize("given_up", [False, True])
def test_who_gets_the_entry_of_somebody_erased_is_new_and_kept_or_undone(given_up: bool) -> None:
    one, keeper = engine(1, k=2, tuples=4, schema=LINE, founders=4), Keeper()
    one.push(rows((1, 10), (2, 11), (3, 12), (4, 13)))
    one.advance(10)
    keeper.keep(one)
    one.forget(np.array([[1, 0], [3, 0], [4, 0]]), Batch.empty(LINE))
    keeper.keep(one)
    for person, code in enumerate((7, 8)):
        before = known(one)
        one.push(rows((code, 10), (2, 11), (code, 10), start=20 + 10 * person))
        new = one.newcomers()
        assert new is not None
        assert new.tolist() == [code]
        assert one.sizes()["persons"] == 4, "the entry of somebody who was erased"
        other = twin(one, 2)
        if given_up:
            assert other.take_over(one)
            other.recall(keeper.rest, Batch.empty(LINE))
            assert known(other) == before
            other.push(rows((code, 10), (2, 11), (code, 10), start=20 + 10 * person))
            keeper.keep(other)
        else:
            keeper.keep(one)
            keeper.recall(other, Batch.empty(LINE))
            assert known(other) == known(one)
        one = other
        one.kept()


@pytest.mark.parametrize("seed", range(6))
def test_rejected_events_of_an_aborted_cycle_are_undone(seed: int) -> None:
    one, keeper = engine(seed, tuples=40), Keeper()
    batch = with_rejected(people(seed, 90, moving=0.3), seed, 0.4)
    for begin in range(0, len(batch), 40):
        keeper.keep(one)
        before, part = known(one), batch.take(slice(begin, begin + 40))
        one.push(part)
        other = twin(one, begin)
        assert other.take_over(one)
        other.recall(keeper.rest, batch.take(np.isin(batch.positions, keeper.pending)))
        assert known(other) == before
        other.push(part)
        one = other
    assert one.status()["dismissed"] > 0


@pytest.mark.parametrize("when", ["before", "meanwhile", "unknown", "elsewhere", "never"])
def test_a_cohort_of_which_something_decided_was_refused_is_split_no_more(when: str) -> None:
    one, keeper = engine(1, k=2, tuples=4, schema=ILL_LINE, founders=2, l=2), Keeper()
    one.push(rows((1, 30), (2, 40), values=[0, 1]))
    one.advance(10)
    one.push(rows((8, 90), (9, 95), start=11, values=[0, 1]))
    one.advance(20)
    keeper.keep(one)
    decided = one.push(rows((1, 30), start=21, values=[1]))
    grown = rows(*((person, 30 + 2 * person % 11) for person in range(20, 40)), start=22, values=[0, 1] * 10)
    again = replace(grown, positions=grown.positions + 300, sensitive=1 - grown.sensitive)
    refused = {"unknown": np.array([99], np.uint64), "elsewhere": one.reusable()[0][1:2]}.get(when, decided.ids)
    if when == "meanwhile":
        one.push(grown)
        one.push(again)
        one.advance(999)
        assert one.status()["splits"] > 0
    splits = one.status()["splits"]
    if when != "never":
        one.keep_whole(refused)
    keeper.keep(one)
    other = twin(one, 2)
    keeper.recall(other, Batch.empty(ILL_LINE))
    for turn in range(1, 5):
        for batch in (grown, again):
            persons, positions = batch.persons + 100 * turn, batch.positions + 1000 * turn
            other.push(replace(batch, persons=persons, positions=positions))
    assert other.status()["members"] > 60
    assert (other.status()["splits"] == splits) == (when in {"before", "meanwhile", "unknown"})
    assert_sound(other)


def test_rows_of_forgotten_persons_that_wait_are_given_up() -> None:
    one = engine(1, k=3, tuples=40, schema=LINE, founders=3)
    waiting = rows((1, 10), (2, 11), (1, 12))
    one.push(waiting)
    assert one.forget(np.array([[1, 0]]), waiting).tolist() == [0, 2]
    assert one.pending().tolist() == [1]
    assert one.status()["pool"] == 1
    assert_sound(one)


@pytest.mark.parametrize("erased", [1, 9])
def test_rows_that_wait_for_company_are_given_up_once_erasure_takes_their_cohort_below_k(erased: int) -> None:
    one = engine(1, k=3, tuples=9, schema=LINE, founders=3, company="present")
    one.push(rows((1, 10), (2, 11), (3, 12), (7, 80), (8, 81), (9, 82)))
    assert len(one.advance(19).members) == 6
    waiting = rows((1, 10), (2, 11), (3, 12), start=20)
    one.push(waiting)
    given_up = one.forget(np.array([[erased, 0]]), waiting).tolist()
    assert given_up == ([20, 21, 22] if erased == 1 else []), "another cohort has what it had"
    late = one.advance(40)
    assert sorted(late.members.tolist()) == ([] if erased == 1 else [20, 21, 22])
    assert not len(one.pending())
    assert_sound(one)


def test_persons_who_share_the_first_word_of_their_tags_are_two() -> None:
    """A hash of 64 bits may be two persons'; of each the other word tells whose values are remembered."""
    one, keeper = engine(1, k=2, tuples=4, schema=LINE, founders=2), Keeper()
    both = replace(rows((1, 10), (1, 11)), more=np.array([7, 8]))
    one.push(both)
    assert len(one.advance(10).members) == 2, "two persons are a cohort"
    keeper.keep(one)
    other = twin(one, 2)
    keeper.recall(other, Batch.empty(LINE))
    assert known(other) == known(one)
    assert not len(other.forget(np.array([[1, 9]]), Batch.empty(LINE)))
    assert other.status()["persons"] == 2
    other.forget(np.array([[1, 8]]), Batch.empty(LINE))
    assert other.status()["persons"] == 1
    assert other.alike((1, 8), 10) is None
    assert other.alike((1, 7), 10) is not None


def test_only_what_has_changed_is_touched() -> None:
    """However many are remembered: whoever keeps it looks at nothing else."""
    one, keeper = engine(1, k=5, tuples=40), Keeper()
    batch = people(3, 400, 1, moving=0.0)
    one.push(batch)
    for passed in (41, 400, 800, 1200):
        one.advance(int(batch.positions[-1]) + passed)
    keeper.keep(one)
    others = len(one._mark.others)
    same = batch.take(slice(0, 3))
    one.push(replace(same, positions=same.positions + 10_000))
    keeper.keep(one)
    one.push(replace(same, positions=same.positions + 20_000))
    touched = one.touched()
    assert len(touched["persons"]) <= others + 3
    assert not len(touched["nodes"]), "nothing is new to a cohort whose box was shown"
    assert not len(one.retired())
    keeper.keep(one)
    before, ids = one.sizes()["nodes"], set(one.reusable()[0].tolist())
    again = replace(batch, persons=batch.persons + 10**6, positions=batch.positions + 30_000)
    one.push(again.take(slice(0, 200)))
    assert one.sizes()["nodes"] > before, "cohorts were split"
    gone = ids - set(one.reusable()[0].tolist())
    assert set(one.retired().tolist()) & ids == gone != set()

"""What left with boxes and those before them, held against counters that are walked one by one."""

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, Schema
from privacy import DistinctDiversity, Lineages

SCHEMA = Schema(
    "who",
    (Number("age", 0, 9, integer=True),),
    (Category("ill", Hierarchy.flat([f"i{n}" for n in range(50)])), Category("cure", Hierarchy.flat(["a", "b"]))),
)


class Walked:
    """The same, slowly."""

    def __init__(self) -> None:
        self.parents: dict[int, int] = {}
        self.values: dict[int, list[Counter[int]]] = {}

    def count(self, ids: Any, boxes: Any, sensitive: Any, turn: int) -> None:
        for box, row in zip(boxes.tolist(), sensitive.tolist(), strict=True):
            own = self.values.setdefault(int(ids[box]), [Counter(), Counter()])
            for place, value in enumerate(row):
                own[place][value] += turn

    def gathered(self, number: int, place: int) -> dict[int, int]:
        found: Counter[int] = Counter()
        while number:
            found.update(self.values.get(number, [Counter(), Counter()])[place])
            number = self.parents.get(number, 0)
        return {value: count for value, count in sorted(found.items()) if count}

    def keep(self, ids: list[int]) -> None:
        kept = set()
        for own in ids:
            number = own
            while number:
                kept.add(number)
                number = self.parents.get(number, 0)
        self.values = {number: values for number, values in self.values.items() if number in kept}
        self.parents = {number: parent for number, parent in self.parents.items() if number in kept}


@given(st.integers(0, 2**32), st.integers(1, 8), st.booleans())
def test_columns_say_what_counters_say(seed: int, turns: int, huge: bool) -> None:
    random = np.random.default_rng(seed)
    lineages, walked = Lineages(SCHEMA), Walked()
    known = [0]
    for _ in range(turns):
        count = int(random.integers(1, 40))
        ids = random.integers(1, 2**63 if huge else 30, count).astype(np.uint64)
        ids = np.setdiff1d(ids, np.array(known, np.uint64))
        ids = np.concatenate([ids, random.choice(known[1:], 3).astype(np.uint64)]) if len(known) > 1 else ids
        if not len(ids):
            continue
        before = [
            walked.parents.get(int(one), int(random.choice(known)) if int(one) not in known else 0) for one in ids
        ]
        boxes = random.integers(0, len(ids), 60)
        sensitive = np.stack([random.integers(0, 50, 60), random.integers(0, 2, 60)], axis=1).astype(np.int32)
        lineages.add(ids, np.array(before, np.uint64), boxes, sensitive)
        walked.parents.update(zip(ids.tolist(), before, strict=True))
        walked.count(ids, boxes, sensitive, 1)
        known += [one for one in dict.fromkeys(ids.tolist()) if one not in known]
        if random.random() < 0.5:
            lineages.take_back(ids, boxes[:9], sensitive[:9])
            walked.count(ids, boxes[:9], sensitive[:9], -1)
        if random.random() < 0.3:
            kept = random.choice(known[1:], 5).tolist()
            lineages.keep(np.array(kept, np.uint64))
            walked.keep(kept)
            known = [0, *walked.parents]
        asked = np.array([*known[1:], 2**63 + 5], np.uint64)
        groups = lineages.groups(asked, np.ones(len(asked), np.int64), np.ones(len(asked), np.int64))
        for place, histogram in enumerate(groups.histograms):
            for number, begin, end in zip(asked.tolist(), histogram.starts, histogram.starts[1:], strict=False):
                found = dict(
                    zip(histogram.values[begin:end].tolist(), histogram.counts[begin:end].tolist(), strict=True)
                )
                assert found == walked.gathered(number, place)
                assert list(found) == sorted(found)


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_what_is_enough_stays_so_and_nothing_else_is_taken_for_it(seed: int, least: int) -> None:
    random, asked = np.random.default_rng(seed), DistinctDiversity(least)
    counted, held = Lineages(SCHEMA), Lineages(SCHEMA)
    parents: dict[int, int] = {}
    for _ in range(8):
        for box in random.integers(1, 15, random.integers(1, 6)).tolist():
            parents.setdefault(box, int(random.choice([0, *parents])))
        ids = np.unique(random.choice(list(parents), 4)).astype(np.uint64)
        before = np.array([parents[int(one)] for one in ids], np.uint64)
        boxes = random.integers(0, len(ids), random.integers(0, 12))
        sensitive = random.integers(0, [4, 2], (len(boxes), 2)).astype(np.int32)
        nine, verdicts = np.full(len(ids), 9), []
        for lineages in (counted, held):
            lineages.add(ids, before, boxes, sensitive)
            holds = asked.holds(lineages.groups(ids, nine, nine))
            refused = ~holds[boxes]
            lineages.take_back(ids, boxes[refused], sensitive[refused])
            verdicts.append(holds.tolist())
        assert verdicts[0] == verdicts[1]
        held.hold(ids[asked.holds(held.groups(ids, nine, nine))])
        if random.random() < 0.3:
            kept = random.choice(list(parents), 2).astype(np.uint64)
            counted.keep(kept)
            held.keep(kept)
    assert held._used <= counted._used

"""Streams of people who come back, an attacker who ties their rows together, and engines with a rule broken."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from microdata import GuaranteeError, Number, Schema, geometry, seeded_words
from stream_algos import Batch, Cohorts
from stream_algos import _cohort_kernels as taking
from stream_algos import _cohort_release_kernels as leaving
from stream_algos import _cohort_search_kernels as searching
from stream_algos import _cohort_split_kernels as dividing
from stream_algos import _cohort_state as columns
from stream_algos import _company_kernels as gathering
from stream_algos import cohorts as module
from tests.stream_worlds import Observer

SCHEMA = Schema("person", (Number("age", 0, 100), Number("pay", 0, 1000), Number("home", 0, 50, step=1)))


def people(seed: int, persons: int = 60, repeats: int = 6, moving: float = 0.1, schema: Schema = SCHEMA) -> Batch:
    """Rows of persons who arrive one after the other and come back; with this probability a row has a new value."""
    random = np.random.default_rng(seed)
    rows = persons * repeats
    begin = np.repeat(np.sort(random.random(persons)), repeats)
    moment = begin + random.random(rows) * (1.2 - begin)
    order = np.argsort(moment)
    whose = np.repeat(np.arange(persons), repeats)[order]
    space = geometry(schema)
    now = space.low + random.random((persons, len(schema.quasi))) * (space.high - space.low)
    quasi = np.empty((rows, len(schema.quasi)))
    for row, person in enumerate(whose):
        if random.random() < moving:
            column = random.integers(len(schema.quasi))
            reach = space.high[column] - space.low[column]
            moved = now[person, column] + reach * random.normal() * 0.2
            now[person, column] = np.clip(moved, space.low[column], space.high[column])
        quasi[row] = now[person]
    sizes = [attribute.size or 1 for attribute in schema.sensitive]
    sensitive = np.stack([random.integers(0, size, rows) for size in sizes], axis=1) if sizes else np.empty((rows, 0))
    positions = np.cumsum(random.integers(1, 3, rows))
    return Batch(positions, positions / 10, 1000 + 7 * whose, quasi, sensitive.astype(np.int32))


def with_rejected(batch: Batch, seed: int, share: float = 0.2, unreadable: float = 0.5) -> Batch:
    """Reject a share of the events; of these, a share has a quasi-identifier that cannot be read."""
    random = np.random.default_rng(seed)
    rejected = random.random(len(batch)) < share
    blank = rejected & (random.random(len(batch)) < unreadable)
    quasi = batch.quasi.copy()
    quasi[blank, random.integers(0, quasi.shape[1], int(blank.sum()))] = np.nan
    return replace(batch, quasi=quasi, rejected=rejected)


def rejected_in_pool(seed: int, value: float) -> Batch:
    """Groups of seven wait for a cohort, and an event of one of them, C, is rejected: it shows this value, or NaN.

    Later C returns to where C was, and B moves away.
    """
    random, events = np.random.default_rng(seed), list[tuple[int, float, bool]]()
    for group in range(4):
        at = 5.0 + 20 * group + random.random(7).round(2) + np.array([0, 0, 0, 0, 6, 6, 6])
        first = [(10 * group + who, float(at[who]), False) for who in range(7)]
        again = [one for one in first if one[0] % 10 != 2]
        events += [*first, (10 * group + 2, value, True), *again]
    for group in range(4):
        a, b, c, d = (one for one in events[14 * group : 14 * group + 4])
        events += [a, b, d, c, (b[0], 99.0 - 20 * group, False), a, c, d, a, c, d]
    ages = np.array([age for _, age, _ in events])
    moved = np.array([person % 10 == 1 for person, _, _ in events]) & (np.arange(len(events)) > 56) & (ages % 1 == 0)
    quasi = np.column_stack([ages, np.where(moved, 900.0, 10.0), np.where(moved, 45.0, 1.0)])
    positions = np.arange(len(events))
    return Batch(
        positions,
        positions / 10,
        np.array([person for person, _, _ in events]),
        quasi,
        np.empty((len(events), 0), np.int32),
        rejected=np.array([rejected for *_, rejected in events]),
    )


def moving_apart(seed: int, script: Sequence[tuple[str, float]]) -> Batch:
    """Groups of persons who do what a script says: who comes, and how far from where they live; None is far away.

    Two groups act at a time, in opposite corners, and there are three such pairs.
    """
    random, space = np.random.default_rng(seed), geometry(SCHEMA)
    reach = space.high - space.low
    whose, quasi = [], []
    for pair in range(3):
        corners = random.random((2, 3)) * 0.1 + random.permutation([[0.05, 0.05, 0.05], [0.8, 0.8, 0.8]])
        turns = np.repeat([0, 1], len(script))
        at = [0, 0]
        for group in random.permutation(turns):
            who, offset = script[at[group]]
            at[group] += 1
            near = corners[group] + np.array([offset, 0.0, 0.0]) / 100
            place = near if np.isfinite(offset) else 0.98 - corners[group]
            whose.append(1000 * pair + 100 * int(group) + ord(who))
            quasi.append(np.floor(space.low + place * reach))
    positions = np.arange(len(whose))
    return Batch(positions, positions / 10, np.array(whose), np.array(quasi), np.empty((len(whose), 0), np.int32))


AWAY = float("inf")
GROWING: list[tuple[str, float]] = [
    *([("A", 0), ("B", 1), ("C", 2)] * 8),
    *([("B", 10), ("A", 0), ("C", 2)] * 3),
    *([("D", 5), ("E", 6), ("F", 7), ("G", 8)] * 2),
    *([("A", 0), ("C", 2), ("D", 5), ("E", 6), ("F", 7), ("G", 8), ("B", 10)] * 10),
]
"""One of three moves a little, so that their box grows; others come who live in between."""
RETURNING: list[tuple[str, float]] = [
    *([("A", 0), ("B", 1), ("C", 2), ("M", 1)] * 8),
    ("M", AWAY),
    *([("A", 0), ("B", 1), ("C", 2)] * 2),
    ("M", 1),
    ("C", AWAY),
    *([("A", 0), ("B", 1), ("M", 1)] * 4),
]
"""One of four goes far away, the others act, the one returns, and another goes."""


def engine(seed: int, k: int = 3, tuples: int = 60, schema: Schema = SCHEMA, **given: Any) -> Cohorts:
    """Cohorts with repeatable words."""
    asked = {"company": "standing", "founders": 2 * k, **given}
    return Cohorts(schema, words=seeded_words(seed), k=k, delay={"tuples": tuples}, **asked)


def watched(one: Cohorts, batch: Batch, restarts: int = 0) -> Observer:
    """All rows through an engine, which begins anew from a snapshot every so many batches."""
    observer = Observer(one.schema, one)
    for turn, begin in enumerate(range(0, len(batch), 17)):
        observer.push(batch.take(slice(begin, begin + 17)))
        if restarts and turn % restarts == 0:
            asked = one.parameters
            observer.restarted(engine(turn, asked.k, asked.delay.tuples, one.schema, company=asked.company))
    observer.flush()
    return observer


def told_newcomers(observer: Observer) -> tuple[int, int]:
    """How many cohorts were split, and of how many of them the first row with a new box is somebody's first of all.

    Whoever sees that it always is knows who it was.
    """
    release = observer.release
    single = ~release.reused & (release.parents > 0) & (np.diff(release.starts) == 1)
    _, first = np.unique(release.parents[single], return_index=True)
    positions = release.members[release.starts[:-1][single][first]]
    rows = observer.find(positions)
    persons = observer.rows.persons
    new = [persons[row] not in persons[:row] for row in rows]
    return len(new), sum(new)


def succeeds(one: Cohorts, batch: Batch, **how: Any) -> bool:
    """Whether an attacker finds fewer than k persons for somebody, or a check stops the engine before."""
    try:
        observer = watched(one, batch, **how)
    except (AssertionError, GuaranteeError):
        return True
    _, left = observer.linked()
    splits, told = told_newcomers(observer)
    return bool((left < one.parameters.k).any()) or (splits > 4 and told == splits)


@dataclass(frozen=True)
class Break:
    """A rule that is broken: what stands in the kernels, and what is put there instead."""

    rule: str
    stream: Callable[[int], Batch]
    """Where it matters."""
    right: str
    wrong: str
    company: str = "standing"


BROKEN = (
    Break(
        "joining by the published box",
        lambda seed: moving_apart(seed, GROWING),
        "        found[row] = NONE\n",
        "        found[row], roots[lane], line = NONE, NONE, [] if first == NONE else [first]\n"
        "        for node in line:\n"
        "            line += [] if nodes[node, AFTER] == NONE else [nodes[node, AFTER]]\n"
        "            if nodes[node, LEFT] != NONE:\n"
        "                line += [nodes[node, LEFT], nodes[node, RIGHT]]\n"
        "            elif sizes[node, LOSS] < least[lane] and contains(boxes, P_LO, node, lo, hi, row):\n"
        "                found[row], least[lane] = node, sizes[node, LOSS]\n",
    ),
    Break(
        "counting somebody again who had left",
        lambda seed: moving_apart(seed, RETURNING),
        "    put_values(state.narrow, state.exact, state.lows, person, row)\n    if not inside or",
        "    if role == DISMISSED and inside:\n"
        "        persons[person, ROLE] = MEMBER\n"
        "        nodes[node, COUNT] += 1\n"
        "    put_values(state.narrow, state.exact, state.lows, person, row)\n    if not inside or",
    ),
    Break(
        "publishing a waiting row with later values",
        lambda seed: people(seed, moving=0.6),
        "                state.hulls[0, place, attribute] = min(state.hulls[0, place, attribute], row[attribute])\n"
        "                state.hulls[1, place, attribute] = max(state.hulls[1, place, attribute], row[attribute])\n",
        "                state.hulls[0, place, attribute] = row[attribute]\n"
        "                state.hulls[1, place, attribute] = row[attribute]\n",
    ),
    Break(
        "a box of one's own",
        people,
        "        suppress(out, position, position)\n        return\n    if nodes[node, OPEN]:",
        "        add(out, position, quasi, index)\n"
        "        close(state, out, node, position)\n"
        "        copy(out.boxes[0, out.meta[CLUSTERS] - 1], np.floor(row))\n"
        "        copy(out.boxes[1, out.meta[CLUSTERS] - 1], np.ceil(row))\n"
        "        out.ids[out.meta[CLUSTERS] - 1, ID] = word(out)\n"
        "        out.facts[out.meta[CLUSTERS] - 1, 0] = 0\n"
        "        out.facts[out.meta[CLUSTERS] - 1, 1] = rules.k\n"
        "        return\n    if nodes[node, OPEN]:",
    ),
    Break(
        "a split's trigger under the new box",
        lambda seed: people(seed, 150, 4, moving=0.0),
        "        ask(state, rules, node)  # behind this row, which leaves with the box that stands\n",
        "        ask(state, rules, node)\n        divide(state, out, space, rules)\n",
    ),
    Break(
        "a class of fewer than k persons",
        people,
        "        if count >= rules.k and missing == 0:",
        "        if count >= rules.k - 1 and missing == 0:",
        "present",
    ),
    Break(
        "company of oneself",
        people,
        "                worth[index] = -1.0",
        "                worth[index] = -1.0 if some[index] == chosen else worth[index]",
        "present",
    ),
    Break(
        "the hull of rows instead of their cohorts' boxes",
        lambda seed: people(seed, moving=0.0),
        "    copy(state.covers[slot, 0], state.boxes[node, P_LO])\n"
        "    copy(state.covers[slot, 1], state.boxes[node, P_HI])\n",
        "    copy(state.covers[slot, 0], state.quasi[slot])\n    copy(state.covers[slot, 1], state.quasi[slot])\n",
        "present",
    ),
    Break(
        "a member whose event was rejected still counts",
        lambda seed: with_rejected(people(seed, 60, 12, moving=0.2), seed),
        "        discount(state, rules, person)\n        persons[person, ROLE] = DISMISSED\n    put_values",
        "        return\n    put_values",
    ),
    Break(
        "a person in the pool whose values cannot be read founds a cohort",
        lambda seed: rejected_in_pool(seed, np.nan),
        "    elif role == POOLED:\n        _give_up(state, out, person, position)\n",
        "    elif role == POOLED:\n        return\n",
    ),
    Break(
        "a person in the pool has no values of rejected events",
        lambda seed: rejected_in_pool(seed, 95.0),
        "    if role == POOLED and readable:\n",
        "    if role == POOLED and readable:\n        return\n    if role == POOLED and readable:\n",
    ),
    Break(
        "an unplaced person is counted",
        lambda seed: rejected_in_pool(seed, np.nan),
        "        enlist(state, person, node, DISMISSED)\n    elif role < MEMBER:",
        "        enlist(state, person, node, MEMBER)\n    elif role < MEMBER:",
    ),
)


def uncompiled(source: Any, **names: Any) -> Any:
    """A module of kernels as plain Python, whose text is given or read, with other things under some names."""
    text = source if isinstance(source, str) else Path(source.__file__).read_text(encoding="utf-8")
    made = types.ModuleType("uncompiled")
    made.__dict__.update({**vars(columns), "word": leaving.word, "__name__": "uncompiled", "__file__": __file__})
    exec(compile(text.replace("@kernel\n", "").replace("@part\n", ""), "uncompiled", "exec"), made.__dict__)
    made.__dict__.update(names)
    return made


def break_rule(broken: Break, patch: Any) -> None:
    """Let engines run the kernels with one rule broken, as plain Python."""
    sources = (leaving, gathering, searching, dividing, taking)
    texts = [Path(str(source.__file__)).read_text(encoding="utf-8") for source in sources]
    assert sum(text.count(broken.right) for text in texts) == 1, broken.rule
    made: list[Any] = []
    functions: dict[str, Any] = {}
    for text in texts:
        made.append(uncompiled(text.replace(broken.right, broken.wrong), **functions))
        functions |= {name: one for name, one in vars(made[-1]).items() if isinstance(one, types.FunctionType)}
    _, company, _, splits, kernels = made
    for name, one in (("company", company), ("kernels", kernels), ("splits", splits)):
        patch.setattr(module, name, one)

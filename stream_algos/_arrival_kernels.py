"""CASTLE as the thesis has it: a row joins a cluster when it arrives, and its cluster is decided when it expires."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, kernel, part, range_loss
from stream_algos._held_kernels import (
    AFTER,
    CLUSTER,
    CODE,
    COUNT,
    DUE,
    HEAD,
    HELD,
    NONE,
    OPEN,
    PERSON,
    POSITION,
    SERIAL,
    TAIL,
    Conditions,
    Rows,
    Rules,
    add,
    copy,
    count_in,
    count_met,
    count_out,
    counts,
    drop,
    enough,
    exceeds,
    fresh_mark,
    lacks,
    meet,
    new_rows,
    number_persons,
    oldest,
    sort_by_age,
    take,
)
from stream_algos._leaving_kernels import may_leave
from stream_algos._release_kernels import (
    REACHED,
    TIE,
    Output,
    Published,
    draw,
    include,
    is_short,
    release,
    release_again,
    suppress,
)
from stream_algos._split_kernels import enlargement, is_plain, split

LO, HI, LOSS = range(3)
"""First index of `Clusters.boxes`: both ends of each side of each box, and the side's weighted loss."""

FIRST, LAST, SIZE, PERSONS, BORN, VALUES = range(6)
"""Columns of `Clusters.places`: oldest and newest slot, rows (0: the place is free), distinct persons, when the cluster
was opened, and from here on what it has of each condition."""


class Clusters(NamedTuple):
    """Γ: open clusters in up to η places."""

    boxes: NDArray[np.float64]
    """Minimal boxes: which end, quasi-identifier, place."""
    places: NDArray[np.int64]
    growth: NDArray[np.float64]
    """Scratch space: what taking in a row would cost each cluster."""
    group: NDArray[np.int64]
    """Scratch space: slots of the cluster that is being released."""


class State(NamedTuple):
    """Everything that the kernels of this module change."""

    rows: Rows
    clusters: Clusters
    published: Published


def new_state(width: int, conditions: Conditions, capacity: int, eta: int, published: Published) -> State:
    """An empty ring of this capacity and no clusters."""
    clusters = Clusters(
        boxes=np.zeros((3, width, eta)),
        places=np.zeros((eta, VALUES + len(conditions.needs)), np.int64),
        growth=np.zeros(eta),
        group=np.zeros(capacity, np.int64),
    )
    return State(new_rows(width, conditions, capacity, 2), clusters, published)


@kernel
def refill(
    state: State,
    space: Geometry,
    clusters: NDArray[np.int64],
    positions: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> None:
    """Put rows into the clusters that they were in before."""
    for index in range(len(positions)):
        slot = take(state.rows, positions[index], persons[index], quasi[index], codes[index])
        _push(state.rows, state.clusters, space, slot, clusters[index])


@kernel
def advance(
    state: State,
    out: Output,
    space: Geometry,
    rules: Rules,
    done: int,
    due: NDArray[np.int64],
    positions: NDArray[np.int64],
    persons: NDArray[np.int64],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> int:
    """Take rows from number `done` on, deciding each held row when it is due; how many rows are taken.

    `due` is the position up to which held rows are due once each of the rows is there; one entry more is a position
    that has passed behind the last of them.
    It stops early, before a decision, when words or room for clusters run short. NONE: everything is done.
    """
    rows = state.rows
    while True:
        # Positions that were left out have passed too, and nobody came with them.
        known = rows.meta[DUE]
        if done < len(due):
            passed = positions[done] - 1 if done < len(positions) else due[done]
            rows.meta[DUE] = max(known, passed - rules.delta)
        slot = oldest(rows)
        while slot != NONE and rows.slots[slot, POSITION] <= rows.meta[DUE]:
            if is_short(rows, out, rules):
                return done
            if rows.slots[slot, POSITION] > known:
                out.meta[REACHED] = max(out.meta[REACHED], rows.slots[slot, POSITION] + rules.delta)
            _decide(state, out, space, rules, slot)
            slot = oldest(rows)
        if done == len(positions):
            return NONE
        slot = take(rows, positions[done], persons[done], quasi[done], codes[done])
        place = _best(state.clusters, space, state.published.losses[-1], quasi[done])
        _push(rows, state.clusters, space, slot, place)
        rows.meta[DUE] = max(rows.meta[DUE], due[done])
        out.meta[REACHED] = positions[done]
        done += 1


@kernel
def flush(state: State, out: Output, space: Geometry, rules: Rules) -> bool:
    """The end of the stream: full clusters first, then reuse, then the rest as one. False: call again for more room."""
    rows = state.rows
    while rows.meta[HELD]:
        if is_short(rows, out, rules):
            return False
        place = _oldest_full(rows, state.clusters, rules)
        if place != NONE:
            expiring = state.clusters.places[place, FIRST]
            count = _collect(rows, state.clusters, space, rules, place)
        else:
            count = _collect_uncovered(state, out, rules)
            expiring = state.clusters.group[0]
        group = state.clusters.group[:count].copy()
        if number_persons(rows, group, group.copy()) >= rules.k and not lacks(rows, group):
            _release(state, out, space, rules, group, expiring)
        else:
            for slot in group:
                suppress(rows, out, slot)
    return True


@part
def _decide(state: State, out: Output, space: Geometry, rules: Rules, slot: int) -> None:
    """delayConstraint: release the expiring row's cluster, reuse a box, suppress it, or unite clusters."""
    rows, clusters = state.rows, state.clusters
    place = rows.slots[slot, CLUSTER]
    if not _is_full(rows, rules, clusters.places[place]):
        box = draw(state.published, out, rows.quasi[slot], clusters.group) if rules.reuse else NONE
        if box != NONE:
            _remove_oldest(rows, clusters, space, place)
            release_again(rows, state.published, out, slot, box)
            return
        # Persons may be in several clusters, so only the union says whether a class is possible.
        if not enough(rows, rules):
            _remove_oldest(rows, clusters, space, place)
            suppress(rows, out, slot)
            return
    count = _collect(rows, clusters, space, rules, place)
    _release(state, out, space, rules, clusters.group[:count].copy(), slot)


@part
def _is_full(rows: Rows, rules: Rules, place: NDArray[np.int64]) -> bool:
    """Whether a cluster has k persons and enough of each condition."""
    if place[PERSONS] < rules.k:
        return False
    for condition in range(len(rows.conditions.needs)):
        if place[VALUES + condition] < rows.conditions.needs[condition]:
            return False
    return True


@part
def _oldest_full(rows: Rows, clusters: Clusters, rules: Rules) -> int:
    places, found = clusters.places, NONE
    for place in range(len(places)):
        if places[place, SIZE] and _is_full(rows, rules, places[place]):  # noqa: SIM102 - two questions
            if found == NONE or places[place, BORN] < places[found, BORN]:
                found = place
    return found


@part
def _best(clusters: Clusters, space: Geometry, tau: float, row: NDArray[np.float64]) -> int:
    """bestSelection: the smallest of the clusters that the row enlarges least, or a free place for a new one."""
    places, growth = clusters.places, clusters.growth
    _enlargements(clusters, space, row)
    least, free = np.inf, NONE
    for place in range(len(places)):
        if places[place, SIZE]:
            least = min(least, growth[place])
        elif free == NONE:
            free = place
    best = fitting = NONE
    for place in range(len(places)):
        if places[place, SIZE] and growth[place] <= least + TIE:
            best = _smaller(places, place, best)
            if growth[place] + np.sum(clusters.boxes[LOSS, :, place]) <= tau + TIE:
                fitting = _smaller(places, place, fitting)
    if fitting != NONE:
        return fitting
    return free if free != NONE else best


@part
def _smaller(places: NDArray[np.int64], one: int, other: int) -> int:
    """The cluster with fewer persons; the older one of equals."""
    if other == NONE or places[one, PERSONS] < places[other, PERSONS]:
        return one
    if places[one, PERSONS] == places[other, PERSONS] and places[one, BORN] < places[other, BORN]:
        return one
    return other


@part
def _enlargements(clusters: Clusters, space: Geometry, row: NDArray[np.float64]) -> None:
    """What taking in a row would cost each cluster (of free places: anything)."""
    growth = clusters.growth
    growth[:] = 0.0
    for attribute in range(len(row)):
        lo, hi, value = clusters.boxes[LO, attribute], clusters.boxes[HI, attribute], row[attribute]
        if is_plain(space, attribute):
            scale = space.weight[attribute] * space.scale[attribute]
            for place in range(len(growth)):
                growth[place] += scale * (max(lo[place] - value, 0.0) + max(value - hi[place], 0.0))
        else:
            side = clusters.boxes[LOSS, attribute]
            for place in range(len(growth)):
                if value < lo[place] or value > hi[place]:
                    wider = range_loss(space, attribute, min(lo[place], value), max(hi[place], value))
                    growth[place] += space.weight[attribute] * wider - side[place]


@part
def _push(rows: Rows, clusters: Clusters, space: Geometry, slot: int, place: int) -> None:
    """Put a held row into the cluster at this place; it is the cluster's newest."""
    here, boxes, scope = clusters.places[place], clusters.boxes, place * (1 + rows.codes.shape[1])
    rows.slots[slot, CLUSTER] = place
    rows.slots[slot, AFTER] = NONE
    if here[SIZE] == 0:
        rows.meta[OPEN] += 1
        rows.meta[SERIAL] += 1
        here[:] = 0
        here[BORN] = rows.meta[SERIAL]
        here[FIRST] = slot
        boxes[LO, :, place] = np.inf
        boxes[HI, :, place] = -np.inf
    else:
        rows.slots[here[LAST], AFTER] = slot
    here[LAST] = slot
    here[SIZE] += 1
    here[PERSONS] += rows.tally[add(rows, rows.slots[slot, CODE], scope), COUNT] == 1
    for condition in range(rows.codes.shape[1]):
        here[VALUES + condition] += count_in(rows, condition, rows.codes[slot, condition], scope + 1 + condition)
    for attribute in range(rows.quasi.shape[1]):
        value = rows.quasi[slot, attribute]
        if value < boxes[LO, attribute, place] or value > boxes[HI, attribute, place]:
            lo, hi = min(boxes[LO, attribute, place], value), max(boxes[HI, attribute, place], value)
            _set_side(clusters, space, attribute, place, lo, hi)


@part
def _set_side(clusters: Clusters, space: Geometry, attribute: int, place: int, lo: float, hi: float) -> None:
    clusters.boxes[LO, attribute, place] = lo
    clusters.boxes[HI, attribute, place] = hi
    clusters.boxes[LOSS, attribute, place] = space.weight[attribute] * range_loss(space, attribute, lo, hi)


@part
def _forget(rows: Rows, clusters: Clusters, slot: int) -> None:
    """Take a row out of its cluster's counts; the last one frees the place."""
    place = rows.slots[slot, CLUSTER]
    here, scope = clusters.places[place], place * (1 + rows.codes.shape[1])
    here[PERSONS] -= drop(rows, rows.slots[slot, CODE], scope) == 0
    for condition in range(rows.codes.shape[1]):
        here[VALUES + condition] -= count_out(rows, condition, rows.codes[slot, condition], scope + 1 + condition)
    here[SIZE] -= 1
    rows.meta[OPEN] -= here[SIZE] == 0


@part
def _remove_oldest(rows: Rows, clusters: Clusters, space: Geometry, place: int) -> None:
    """Take the oldest row out of a cluster and shrink the sides of its box that the row was the end of."""
    gone = clusters.places[place, FIRST]
    _forget(rows, clusters, gone)
    clusters.places[place, FIRST] = rows.slots[gone, AFTER]
    if clusters.places[place, SIZE] == 0:
        return
    for attribute in range(rows.quasi.shape[1]):
        value = rows.quasi[gone, attribute]
        if value == clusters.boxes[LO, attribute, place] or value == clusters.boxes[HI, attribute, place]:
            lo, hi, slot = np.inf, -np.inf, clusters.places[place, FIRST]
            while slot != NONE:
                lo, hi = min(lo, rows.quasi[slot, attribute]), max(hi, rows.quasi[slot, attribute])
                slot = rows.slots[slot, AFTER]
            _set_side(clusters, space, attribute, place, lo, hi)


@part
def _collect(rows: Rows, clusters: Clusters, space: Geometry, rules: Rules, place: int) -> int:
    """mergeClusters: take a cluster apart into `group`, then its nearest ones until it is full; how many rows."""
    places, boxes, mark = clusters.places, clusters.boxes, fresh_mark(rows)
    lo, hi = boxes[LO, :, place].copy(), boxes[HI, :, place].copy()
    met = np.zeros(places.shape[1], np.int64)
    _empty(rows, clusters, place, met, mark)
    while not _is_full(rows, rules, met) or exceeds(rows, clusters.group[: met[SIZE]]):
        best, least = NONE, np.inf
        for other in range(len(places)):
            if places[other, SIZE]:
                growth = enlargement(space, lo, hi, boxes[LO, :, other], boxes[HI, :, other])
                older = best != NONE and places[other, BORN] < places[best, BORN]
                if growth < least - TIE or (growth <= least + TIE and older):
                    best, least = other, growth
        if best == NONE:
            break  # too many rows with one code: some of them stay
        include(lo, hi, boxes[LO, :, best])
        include(lo, hi, boxes[HI, :, best])
        _empty(rows, clusters, best, met, mark)
    return met[SIZE]


@part
def _empty(rows: Rows, clusters: Clusters, place: int, met: NDArray[np.int64], mark: int) -> None:
    """Move the rows of a cluster to `group`, behind those that are there; `met` counts as a place does."""
    slot = clusters.places[place, FIRST]
    while slot != NONE:
        clusters.group[met[SIZE]] = slot
        met[SIZE] += 1
        met[PERSONS] += meet(rows, rows.slots[slot, PERSON], mark, 0)
        for condition in range(rows.codes.shape[1]):
            met[VALUES + condition] += count_met(rows, condition, slot, mark)
        _forget(rows, clusters, slot)
        slot = rows.slots[slot, AFTER]


@part
def _collect_uncovered(state: State, out: Output, rules: Rules) -> int:
    """Take all clusters apart, release what a published box covers; how many other rows `group` has, oldest first."""
    rows, count = state.rows, 0
    covering = np.empty(len(state.published.ids), np.int64)
    for number in range(rows.meta[HEAD], rows.meta[TAIL]):
        slot = number & (len(rows.slots) - 1)
        if rows.slots[slot, CLUSTER] != NONE:
            _forget(rows, state.clusters, slot)
            box = draw(state.published, out, rows.quasi[slot], covering) if rules.reuse else NONE
            if box != NONE:
                release_again(rows, state.published, out, slot, box)
            else:
                state.clusters.group[count] = slot
                count += 1
    return count


@part
def _release(state: State, out: Output, space: Geometry, rules: Rules, group: NDArray[np.int64], expiring: int) -> None:
    """outputCluster: release these rows, split where there are persons enough for two clusters."""
    part = np.empty(len(group), np.int64)
    clusters = 1
    if number_persons(state.rows, group, part) >= 2 * rules.k:
        clusters = split(state.rows, out, space, rules, group, part)
    else:
        part[:] = 0
    sizes = counts(part, clusters)
    slots, ends = np.empty(len(group), np.int64), np.zeros(clusters, np.int64)
    for cluster in range(1, clusters):
        ends[cluster] = ends[cluster - 1] + sizes[cluster - 1]
    for index in range(len(group)):
        slots[ends[part[index]]] = group[index]
        ends[part[index]] += 1
    stay = 0
    for cluster in range(clusters):
        own = slots[ends[cluster] - sizes[cluster] : ends[cluster]]
        kept = may_leave(state.rows, rules, own, expiring)
        if kept:
            release(state.rows, state.published, out, space, rules, own[:kept])
        copy(state.clusters.group[stay:], own[kept:])
        stay += len(own) - kept
    _reopen(state, out, space, expiring, stay)


@part
def _reopen(state: State, out: Output, space: Geometry, expiring: int, stay: int) -> None:
    """Put the first rows of `group`, which could not leave with the others, into a cluster of their own."""
    if stay == 0:
        return
    place = 0
    while state.clusters.places[place, SIZE]:
        place += 1
    left = state.clusters.group[:stay].copy()
    sort_by_age(state.rows, left)
    for slot in left:
        if slot == expiring:
            suppress(state.rows, out, slot)
        else:
            _push(state.rows, state.clusters, space, slot, place)

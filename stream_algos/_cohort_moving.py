"""Cohorts move: from a snapshot, from tables that others have kept, or to where there is more room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microdata import Geometry, Schema, geometry
from stream_algos._cohort_mark_kernels import mark_all
from stream_algos._cohort_moving_kernels import fill_buckets, look_at_trees
from stream_algos._cohort_state import (
    BEGIN,
    BUCKETS,
    COMPANY,
    COUNT,
    DESERTED,
    END,
    HELD,
    KNOWN,
    LEFT,
    MASK,
    MEMBER,
    NODE,
    NODES,
    NOTED,
    NOTES,
    PERSON,
    PLACE,
    POOL,
    READY,
    ROLE,
    WAITING,
    WAITS,
    Rules,
    State,
    new_state,
)
from stream_algos._cohort_values import LastValues
from stream_algos._held_kernels import NONE


def moved_in(
    schema: Schema,
    rules: Rules,
    contents: Mapping[str, NDArray[Any]],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
    more: int = 0,
) -> State:
    """A state with these contents, in which these rows wait, with room for so many more nodes."""
    persons, pool, nodes = (len(contents[name]) for name in ("persons", "pool", "nodes"))
    state = new_state(schema, rules, persons, pool, nodes + more)
    names = ["persons", "tags", "shown", "pool", "nodes", "ids"]
    for name in [*names, "times"] if np.isfinite(rules.memory) else names:
        getattr(state, name)[: len(contents[name])] = contents[name]
    LastValues(state, persons)[:] = contents["values"]
    state.boxes[:nodes], state.sizes[:nodes], state.hulls[:, :pool] = (
        contents[name] for name in ("boxes", "sizes", "hulls")
    )
    let_wait(state, geometry(schema), rules, contents, quasi, codes)
    return state


def let_wait(
    state: State,
    space: Geometry,
    rules: Rules,
    rest: Mapping[str, NDArray[Any]],
    quasi: NDArray[np.float64],
    codes: NDArray[np.int32],
) -> None:
    """Complete a state that holds persons and nodes, and in which nobody waits, with the rows that do."""
    slots, waiting, nodes = rest["slots"], len(rest["slots"]), int(rest["meta"][NODES])
    for name in ("slots", "clock", "covers") if rules.present else ("slots", "clock"):
        getattr(state, name)[:waiting] = rest[name]
    state.meta[:] = rest["meta"]
    state.meta[[BEGIN, END, WAITING, NOTES]] = 0, waiting, waiting, 0
    cohorts = state.nodes[:nodes, LEFT] == NONE
    state.meta[DESERTED] = (cohorts & (state.nodes[:nodes, COUNT] + 1 < rules.k)).any()
    state.quasi[:waiting], state.codes[:waiting] = quasi, codes
    # Waiting rows are counted anew: those that could not be read again have been given up.
    held = slots[:, PLACE] == COMPANY
    for column, own in ((WAITS, ~held), (HELD, held)):
        who, count = np.unique(slots[own, PERSON], return_counts=True)
        state.waits[who, column] = count
    members = np.unique(slots[slots[:, PLACE] >= 0, PERSON])
    members = members[state.persons[members, ROLE] == MEMBER]
    state.nodes[:nodes, READY] = np.bincount(state.persons[members, NODE], minlength=nodes)
    pooled = codes[slots[:, PLACE] == POOL]
    for condition in range(len(state.tally)):
        state.tally[condition] = np.bincount(pooled[:, condition], minlength=state.tally.shape[1])
    known = max(int(state.meta[KNOWN]), 1)
    state.meta[BUCKETS] = min(1 << (known - 1).bit_length(), 1 << (len(state.buckets).bit_length() - 1))
    state.meta[MASK] = state.meta[BUCKETS] - 1
    look_at_trees(state)
    mark_all(state, space)
    fill_buckets(state)


def notes_moved(old: State, new: State) -> None:
    """Take what is written down of nodes from a state to one that has their contents."""
    count = int(old.meta[NOTES])
    if count:
        for name in ("nodes", "boxes", "sizes", "ids", "due"):
            getattr(new, name)[-count:] = getattr(old, name)[-count:]
        new.due[new.due[-count:, NOTED], NOTED] = 1
        new.meta[NOTES] = count

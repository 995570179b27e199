"""Random streams, and what an engine makes of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from microdata import Boxes, Category, Hierarchy, Number, Schema, seeded_words
from privacy import DistinctDiversity, Groups, KAnonymity, MaxShare, check
from stream_algos import Batch, Castle, Release

PLACES = Hierarchy.from_mapping(
    {"*": {"north": {"coast": ["a", "b", "c"], "hills": ["d", "e"]}, "south": ["f", "g"], "island": {"port": ["h"]}}}
)
NUMBERS = Schema("person", (Number("x", 0, 40), Number("y", -10, 10), Number("fixed", 3, 3)))
MIXED = Schema(
    "person",
    (Number("x", 0, 40), Category("place", PLACES), Category("flat", Hierarchy.flat("pqrstu"))),
    sensitive=(Category("illness", Hierarchy.flat("ABCDEF")), Number("income", 0, 4, integer=True)),
    weights=(3, 2, 1),
)
STEPPED = Schema("person", (Number("x", 0, 40, step=5), Category("place", PLACES)))
SCHEMAS = {"numbers": NUMBERS, "mixed": MIXED, "stepped": STEPPED}


def stream(
    schema: Any,
    seed: Any,
    rows: Any,
    *,
    persons: Any = None,
    gaps: bool = False,
    fixed_quasi: bool = False,
    grid: bool = True,
) -> Any:
    """Rows whose values lie near a few centres; about `persons` persons, each with one QI if `fixed_quasi`."""
    random = np.random.default_rng(seed)
    who = np.arange(rows) if persons is None else random.integers(0, persons, rows)
    quasi = np.empty((rows, len(schema.quasi)))
    for column, attribute in enumerate(schema.quasi):
        if isinstance(attribute, Category):
            weights = random.dirichlet(np.full(attribute.size, 0.7))
            quasi[:, column] = random.choice(attribute.size, p=weights, size=rows)
        else:
            width = attribute.high - attribute.low
            centre = attribute.low + width * random.choice([0.1, 0.5, 0.8], size=rows)
            values = np.clip(centre + width * random.normal(0, 0.08, rows), attribute.low, attribute.high)
            quasi[:, column] = np.rint(values) if grid else values
    if fixed_quasi:
        quasi = quasi[np.unique(who, return_index=True)[1][np.unique(who, return_inverse=True)[1]]]
    sensitive = np.stack(
        [
            random.choice(attribute.size, p=random.dirichlet(np.full(attribute.size, 0.8)), size=rows)
            for attribute in schema.sensitive
        ]
        or [np.empty(rows)],
        axis=1,
    )[:, : len(schema.sensitive)].astype(np.int32)
    steps = random.integers(1, 6, rows) if gaps else np.ones(rows, np.int64)
    return Batch(np.cumsum(steps), np.arange(rows) / 10.0, who * 7919 - 5, quasi, sensitive)


@dataclass
class Outcome:
    """Everything that an engine has let out, release by release, with the last position pushed before each."""

    batch: Batch
    releases: list[Release] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    def note(self, release: Any, after: Any) -> None:
        self.releases.append(release)
        self.after.append(after)

    def clusters(self) -> Iterator[Any]:
        """(id, sorted members, lo, hi, reused) of every released cluster."""
        for release in self.releases:
            for c in range(len(release)):
                members = release.members[release.starts[c] : release.starts[c + 1]]
                yield (
                    int(release.ids[c]),
                    sorted(members.tolist()),
                    list(release.lo[c]),
                    list(release.hi[c]),
                    bool(release.reused[c]),
                )

    def new_clusters(self) -> Any:
        """(members, lo, hi) of every cluster without its reuses, put together where it left row by row."""
        whole: dict[Any, Any] = {}
        for number, members, lo, hi, reused in self.clusters():
            if not reused:
                whole.setdefault(number, ([], lo, hi))[0].extend(members)
        return whole.values()

    def suppressed(self) -> Any:
        return [position for release in self.releases for position in release.suppressed.tolist()]

    def classes(self) -> Any:
        """Rows of the batch by published class: clusters with equal boxes are one class; suppressed rows are -1."""
        index = {int(position): row for row, position in enumerate(self.batch.positions)}
        classes, boxes = np.full(len(self.batch), -1), {}  # type: ignore[var-annotated]
        for _, members, lo, hi, _ in self.clusters():
            number = boxes.setdefault((*lo, *hi), len(boxes))
            for member in members:
                assert classes[index[member]] == -1, "a row was released twice"
                classes[index[member]] = number
        width = self.batch.quasi.shape[1]
        table = np.array(list(boxes), float).reshape(len(boxes), 2 * width)  # type: ignore[type-var]
        return classes, table[:, :width], table[:, width:]


def feed(engine: Any, batch: Any, cuts: Any = (), *, flush: bool = True) -> Any:
    """Push a batch in pieces, then flush."""
    outcome = Outcome(batch)
    edges = [0, *sorted(set(cuts)), len(batch)]
    for begin, end in pairwise(edges):
        if begin < end:
            piece = batch.take(slice(begin, end))
            outcome.note(engine.push(piece), int(piece.positions[-1]))
    if flush:
        outcome.note(engine.flush(), np.iinfo(np.int64).max)
    return outcome


def assert_safe(schema: Any, outcome: Any, *, k: Any, l: int = 1, max_share: Any = None) -> None:  # noqa: E741
    """The independent audit: every row once, every class with its guarantee, every box around its rows."""
    batch, (classes, lo, hi) = outcome.batch, outcome.classes()
    suppressed = outcome.suppressed()
    assert len(set(suppressed)) == len(suppressed)
    assert sorted(suppressed) == batch.positions[classes < 0].tolist()
    groups = Groups.of(schema, batch.persons, batch.sensitive, classes, len(lo))
    assert check([KAnonymity(k), *([DistinctDiversity(l)] if l > 1 else [])], groups).all()
    kept = classes >= 0
    assert Boxes(schema, lo, hi).cover(batch.quasi[kept], classes[kept]).all()
    for members, low, high in outcome.new_clusters():
        rows = np.isin(batch.positions, members)
        one = np.zeros(rows.sum(), np.int64)
        minimal = Boxes.around(schema, batch.quasi[rows], one, 1).widened()
        assert (list(minimal.lo[0]), list(minimal.hi[0])) == (low, high)
        alone = Groups.of(schema, batch.persons[rows], batch.sensitive[rows], one, 1)
        shares = [MaxShare(max_share)] if max_share is not None else []
        assert check([KAnonymity(k), *([DistinctDiversity(l)] if l > 1 else []), *shares], alone).all()


def castle(schema: Any, seed: int = 1, **parameters: Any) -> Any:
    return Castle(schema, words=seeded_words(seed), **parameters)


seeds = st.integers(0, 2**32 - 1)
formations = st.sampled_from(["arrival", "deadline"])

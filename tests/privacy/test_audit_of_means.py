"""Audits of classes that are shown as means: before they are written by their rows, afterwards by what is published."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import Publication, example_table, published_of, read_published, write_published
from privacy import DistinctDiversity, KAnonymity, MaxShare, audit
from privacy.outsider import match
from static_algos import Mondrian

MODELS = (KAnonymity(4), DistinctDiversity(2))


def made(**given: Any) -> Publication:
    return replace(Mondrian(k=4, l=2).anonymize(example_table(120, **given)), show="mean")


def test_in_memory_it_is_exact_and_rows_belong_into_their_boxes() -> None:
    publication = made()
    boxes = replace(publication, show="interval")
    found = audit(publication.table, publication, MODELS)
    assert found.holds
    assert found == audit(publication.table, boxes, MODELS)
    moved = replace(publication, classes=np.roll(publication.classes, 1))
    fault = next(fault for fault in audit(publication.table, moved, ()).faults if fault.kind == "uncovered")
    assert fault.count > 0


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_is_grouped_by_what_is_published(tmp_path: Path, ending: str) -> None:
    publication = made()
    write_published(publication, tmp_path / f"safe.{ending}")
    read = read_published(tmp_path / f"safe.{ending}", publication.table.schema, show="mean")
    found = audit(publication.table, read, MODELS)
    assert found.holds
    assert (found.persons, found.classes, found.loss) == ("exact", len(publication.boxes), None)
    assert found.fewest_persons == publication.sizes.min()
    counts = publication.table.schema.histograms(publication.table.sensitive)
    assert audit(counts, read, MODELS).holds
    small = replace(publication, classes=np.where(np.arange(120) < 2, publication.classes, -1))
    few = audit(publication.table, published_of(Publication.of(small.table, small.classes, show="mean")), MODELS)
    assert not few.holds


def test_values_that_the_original_does_not_have_are_found() -> None:
    publication = made()
    published = published_of(publication)
    wrong = replace(published, sensitive=np.zeros_like(published.sensitive))
    assert [fault.kind for fault in audit(publication.table, wrong, ()).faults] == ["surplus"]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 60))
def test_repeated_persons_are_never_counted_twice(seed: int, persons: int) -> None:
    table = example_table(60, seed, persons=persons)
    publication = Publication.of(table, np.random.default_rng(seed).integers(0, 6, 60), show="mean")
    found = match(table, published_of(publication))
    for one in range(len(publication.boxes)):
        own, rows = np.unique(table.persons[publication.classes == one], return_counts=True)
        assert found.fewest_persons[one] <= len(own)
        assert found.most_rows[one] >= rows.max()
    assert found.surplus == 0


def test_somebody_with_many_rows_makes_it_doubtful() -> None:
    table = example_table(60, persons=60)
    busy = replace(table, persons=np.where(np.arange(60) < 30, 0, np.arange(60)))
    publication = Publication.of(busy, np.arange(60) % 2, show="mean")
    found = audit(busy, published_of(publication), (KAnonymity(5), MaxShare(0.9)))
    assert (found.persons, found.fewest_persons, found.largest_share) == ("at least", 1, 1.0)
    assert not found.holds
    assert audit(busy, publication, (KAnonymity(5),)).holds

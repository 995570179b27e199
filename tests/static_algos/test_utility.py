import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import (
    Boxes,
    Category,
    InfeasibleError,
    Number,
    PersonSource,
    Publication,
    Schema,
    Table,
    average_class_size,
    discernibility,
)
from static_algos import Mondrian, utility
from static_algos._utility_kernels import count_rows, estimate
from static_algos.recoding import recodings
from static_algos.utility import (
    distortion_ratio,
    median_query_error,
    olap_divergence,
    query_errors,
)
from tests.worlds import DEBT, ILLNESS, QUASI, random_table, tables

AGE = Number("age", 0, 9, integer=True)
SCORE = Number("score", 0, 1)


def of_rows(quasi: Any, rows: Any, held: Any) -> Any:
    schema = Schema(PersonSource.ROW, quasi, (ILLNESS,))
    return Table(schema, np.arange(len(rows)), np.array(rows, float), np.array(held, np.int32)[:, None])


@st.composite
def publications(draw: Any, quasi: Any = QUASI[:5]) -> Any:
    """Any classes at all, suppressed rows and boxes wider than needed included."""
    table = draw(tables(most_rows=30, quasi=quasi))
    count = draw(st.integers(1, len(table)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    made = Publication.of(table, random.integers(-1, count, len(table)))
    wide = made.boxes.widened()
    return Publication(table, made.classes, wide) if draw(st.booleans()) else made


def share_inside(attribute: Any, lo: Any, hi: Any, first: Any, last: Any) -> Any:
    """Share of the values of a published side that a range selects."""
    if isinstance(attribute, Category) or attribute.integer:
        values = range(round(lo), round(hi) + 1)
        return sum(first <= value <= last for value in values) / len(values)
    if lo == hi:
        return float(first <= lo <= last)
    return max(0.0, min(hi, last) - max(lo, first)) / (hi - lo)


@settings(max_examples=60)
@given(publications(), st.integers(1, 3), st.sampled_from([0.05, 0.3]), st.integers(0, 99))
def test_answers_and_estimates_are_those_counted_by_hand(
    publication: Any, predicates: int, selectivity: Any, seed: int
) -> None:
    table = publication.table
    predicates = min(predicates, len(table.schema.quasi))
    histogram = utility._histograms(publication)[0]
    queries = utility._draw(table, ILLNESS.size, 10, predicates, selectivity, np.random.default_rng(seed))  # type: ignore[arg-type]
    truth = count_rows(queries, *utility._ordered(table.quasi, table.sensitive[:, 0], ILLNESS.size))  # type: ignore[arg-type]
    boxes = publication.boxes.widened()
    unit = np.array([float(utility._counted(one)) for one in table.schema.quasi])
    before = np.concatenate(([0], np.cumsum(histogram.counts)))
    guess = estimate(queries, boxes.lo, boxes.hi, unit, histogram.starts, histogram.values, before)
    for q in range(10):
        ranges = list(zip(queries.attribute[q], queries.lo[q], queries.hi[q], strict=True))
        wanted = [queries.first[q] <= value <= queries.last[q] for value in table.sensitive[:, 0]]
        inside = [all(lo <= row[a] <= hi for a, lo, hi in ranges) for row in table.quasi]
        assert truth[q] == sum(a and b for a, b in zip(inside, wanted, strict=True))
        expected = sum(
            math.prod(
                share_inside(table.schema.quasi[a], boxes.lo[one, a], boxes.hi[one, a], lo, hi) for a, lo, hi in ranges
            )
            for one, counts in zip(publication.classes, wanted, strict=True)
            if one >= 0 and counts
        )
        assert guess[q] == pytest.approx(expected)


@given(tables(most_rows=5, quasi=QUASI[:5]), st.integers(1, 3), st.sampled_from([0.01, 0.1, 0.9]))
def test_ranges_have_their_length_and_lie_in_the_domain(table: Any, predicates: int, selectivity: Any) -> None:
    predicates = min(predicates, len(table.schema.quasi))
    queries = utility._draw(table, 40, 50, predicates, selectivity, np.random.default_rng(0))
    share = selectivity ** (1 / (predicates + 1))
    assert set(queries.last - queries.first + 1) == {max(round(40 * share), 1)}
    assert queries.first.min() >= 0
    assert queries.last.max() < 40
    for q, p in np.ndindex(queries.attribute.shape):
        one, lo, hi = table.schema.quasi[queries.attribute[q, p]], queries.lo[q, p], queries.hi[q, p]
        low, high = (0, one.size - 1) if isinstance(one, Category) else (one.low, one.high)
        assert low <= lo <= hi <= high + 1e-9
        if isinstance(one, Category) or one.integer:
            assert hi - lo + 1 == max(np.rint(one.size * share), 1)
        else:
            assert hi - lo == pytest.approx((one.high - one.low) * share)
    assert all(len(set(row)) == predicates for row in queries.attribute.tolist())


def test_an_estimate_assumes_that_rows_lie_evenly() -> None:
    # One class [0, 9] with 8 rows at 0 and 2 at 9: half of the range is guessed to hold half of the rows.
    table = of_rows((AGE,), [[0]] * 8 + [[9]] * 2, [0] * 10)
    publication = Publication.of(table, np.zeros(10, int))
    errors = query_errors(publication, predicates=1, selectivity=0.25, queries=400)
    # Ranges of 5 of the 10 ages; those from 0 on answer 8, those up to 9 answer 2, all others nothing. The range of
    # illnesses always or never has the only one.
    assert {round(error, 9) for error in errors} == {round(3 / 8, 9), round(3 / 2, 9)}


def test_nothing_generalized_means_no_error_and_no_divergence() -> None:
    table = random_table(80, 1, (QUASI[0], QUASI[1]))
    publication = Publication.of(table, np.arange(80))
    assert median_query_error(publication, queries=300) == 0
    assert query_errors(publication, queries=300).max() == 0
    assert olap_divergence(publication) == pytest.approx(0, abs=1e-12)


def test_rows_that_do_lie_evenly_are_estimated_without_error() -> None:
    cells = list(itertools.product(range(10), range(10), range(ILLNESS.size)))  # type: ignore[arg-type]
    table = of_rows(
        (AGE, Number("other", 0, 9, integer=True)), [cell[:2] for cell in cells], [cell[2] for cell in cells]
    )
    publication = Publication.of(table, np.zeros(len(cells), int))
    assert query_errors(publication, queries=200).max() == pytest.approx(0, abs=1e-12)
    assert olap_divergence(publication) == pytest.approx(0, abs=1e-12)


def test_suppressed_rows_are_in_the_answer_only() -> None:
    table = of_rows((AGE,), [[5]] * 4, [0] * 4)
    publication = Publication.of(table, np.array([0, 0, 0, -1]))
    assert set(query_errors(publication, predicates=1, selectivity=0.9, queries=50)) == {0.25}


def test_without_sensitive_attributes_only_quasi_identifiers_are_asked_about() -> None:
    table = random_table(60, 2, QUASI[:3], ())
    assert query_errors(Publication.of(table, np.arange(60)), queries=50).max() < 1
    coarse = Publication.of(table, np.zeros(60, int))
    assert median_query_error(coarse, queries=200) > 0
    assert olap_divergence(coarse) > 0


def test_both_sensitive_attributes_are_asked_about() -> None:
    table = random_table(60, 3, QUASI[:2], (ILLNESS, DEBT))
    publication = Publication.of(table, np.zeros(60, int))
    assert len(query_errors(publication, selectivity=0.9, queries=101)) == 101


def test_no_answer_no_error() -> None:
    table = of_rows((AGE,), [[5]], [0]).take(np.arange(0))
    assert median_query_error(Publication.of(table, np.empty(0, int))) == 0
    assert olap_divergence(Publication.of(table, np.empty(0, int))) == 0


def test_a_coarser_publication_answers_worse() -> None:
    table = random_table(2_000, 4, QUASI[:4], (ILLNESS,))
    fine, coarse = (Mondrian(k=k).anonymize(table) for k in (3, 300))
    assert median_query_error(fine, queries=500) < median_query_error(coarse, queries=500)
    assert olap_divergence(fine) < olap_divergence(coarse)
    assert olap_divergence(coarse, level=1) < olap_divergence(coarse, level=2) < olap_divergence(coarse, level=3)


def test_divergence_of_one_cell_from_two() -> None:
    # Both rows are 0; the box says 0 or 1: ln(1 / ½).
    table = of_rows((Number("bit", 0, 1, integer=True),), [[0], [0]], [1, 1])
    boxes = Boxes(table.schema, np.array([[0.0]]), np.array([[1.0]]))
    assert olap_divergence(Publication(table, np.zeros(2, np.int32), boxes), level=1) == pytest.approx(math.log(2))


def by_hand(publication: Any, level: Any) -> Any:
    """Divergence with a dictionary per cube, every box written out cell by cell."""
    table, schema = publication.table, publication.table.schema
    boxes = publication.boxes.widened()
    total = 0.0
    for column in range(len(schema.sensitive)):
        for subset in itertools.combinations(range(len(schema.quasi)), level):
            original, published = Counter(), Counter()  # type: ignore[var-annotated]
            for row, one in enumerate(publication.classes):
                value = table.sensitive[row, column]
                original[*(int(table.quasi[row, a]) for a in subset), value] += 1
                sides = [
                    range(int(boxes.lo[one, a]), int(boxes.hi[one, a]) + 1)
                    if one >= 0
                    else range(
                        0 if isinstance(schema.quasi[a], Category) else int(schema.quasi[a].low), _end(schema.quasi[a])
                    )
                    for a in subset
                ]
                cells = list(itertools.product(*sides))
                for cell in cells:
                    published[*cell, value] += 1 / len(cells)  # type: ignore[assignment]
            total += sum(n / len(table) * math.log(n / published[cell]) for cell, n in original.items())
    return total


def _end(attribute: Any) -> Any:
    return attribute.size if isinstance(attribute, Category) else int(attribute.high) + 1


@settings(max_examples=30)
@given(publications(quasi=(QUASI[0], QUASI[1], QUASI[3])), st.integers(1, 2))
def test_divergence_is_that_counted_by_hand(publication: Any, level: int) -> None:
    level = min(level, len(publication.table.schema.quasi))
    assert olap_divergence(publication, level) == pytest.approx(by_hand(publication, level), abs=1e-9)


def test_a_continuum_is_cut_into_cells() -> None:
    table = of_rows((SCORE,), [[0.0], [1.0]], [0, 0])
    publication = Publication.of(table, np.zeros(2, int))
    assert olap_divergence(publication, level=1) == pytest.approx(math.log(32))


def test_a_cube_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utility, "MOST_CELLS", 10)
    with pytest.raises(InfeasibleError, match="level"):
        olap_divergence(Publication.of(random_table(10, 5), np.zeros(10, int)))


@settings(max_examples=40)
@given(publications())
def test_discernibility_counts_pairs_of_rows_that_look_alike(publication: Any) -> None:
    classes = publication.classes.tolist()
    alike = sum(one == other if one >= 0 else 1 for one in classes for other in classes)
    assert discernibility(publication.sizes, publication.suppressed) == alike
    sizes = publication.sizes
    assert average_class_size(publication.sizes, 2) == (sizes.mean() / 2 if len(sizes) else 0)


def raised_by_hand(attribute: Any, value: float, lo: float, hi: float) -> Any:
    """Steps from a leaf up to the first node that covers a range, and up to the root."""
    tree = attribute.hierarchy
    node, steps, reached = int(tree.leaf_nodes[int(value)]), 0, None
    while node >= 0:
        if reached is None and tree.first[node] <= lo and tree.last[node] >= hi:
            reached = steps
        node, steps = int(tree.parent[node]), steps + 1
    return reached, steps - 1


@settings(max_examples=40)
@given(publications(tuple(one for one in QUASI if isinstance(one, Category))))
def test_distortion_climbs_hierarchies_step_by_step(publication: Any) -> None:
    table = publication.table
    raised = total = 0
    for row, number in enumerate(publication.classes.tolist()):
        for a, attribute in enumerate(table.schema.quasi):
            lo, hi = (publication.boxes.lo[number, a], publication.boxes.hi[number, a]) if number >= 0 else (0, 0)
            steps, whole = raised_by_hand(attribute, table.quasi[row, a], lo, hi)
            raised, total = raised + (steps if number >= 0 else whole), total + whole
    assert distortion_ratio(publication) == pytest.approx(raised / total if total else 0)


@pytest.mark.parametrize("attribute", [AGE, SCORE, Number("age", 17, 90, integer=True), Number("pay", 0, 100, step=8)])
def test_distortion_of_numbers_is_that_of_their_levels(attribute: Any) -> None:
    table = random_table(60, 3, (attribute,), ())
    (recoded,) = recodings(table, 4, {})
    ratios = []
    for level in recoded.levels:
        groups = level.group[recoded.codes]
        boxes = Boxes(table.schema, level.lo[:, None], level.hi[:, None])
        ratios.append(distortion_ratio(Publication(table, groups, boxes)))
    assert ratios[0] == 0
    assert ratios[-1] == 1
    assert ratios == sorted(ratios)

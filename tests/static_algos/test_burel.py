import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microdata import Cancelled, Category, GuaranteeError, Hierarchy, InfeasibleError, Number, Schema, words
from privacy import BetaLikeness, Groups, KAnonymity, RangeLikeness, SemanticLikeness, audit, check
from static_algos import Burel, burel_classes, likeness_caps
from static_algos.burel import fewest_runs, partition_values, share_test
from static_algos.caps import largest_share, value_caps
from static_algos.dichotomy import dichotomize
from static_algos.limits import references_of
from tests.privacy import privacy_oracles as oracles
from tests.static_algos.bucket_tables import QUASI, attributes, one_attribute, persons_of, table_of, tables

SALARY = Number("salary", 1, 10, integer=True)
PLANTS = Category("plant", Hierarchy.from_mapping({"any": {"tree": ["oak", "elm"], "herb": ["mint", "dill", "sage"]}}))
GOODS = Category(
    "goods", Hierarchy.from_mapping({"any": {f"shelf{i}": [f"item{i}{j}" for j in range(3)] for i in range(4)}})
)
betas = st.sampled_from([0.1, 0.5, 1.0, 2.5, 7.0])
refinements = st.sampled_from(["none", "classes", "table"])
counts_lists = st.lists(st.integers(1, 30), min_size=1, max_size=10)


def plain(**given_parameters: Any) -> Any:
    """BUREL as it was published."""
    return Burel(**given_parameters, refine="none")


def table_of_rows(rows: Any, attribute: Any = SALARY, **more: Any) -> Any:
    values = np.random.default_rng(5).binomial(attribute.size - 1, 0.4, rows)
    return table_of([attribute], [values], **more)


@st.composite
def forms(draw: Any) -> Any:
    """β-likeness in any form."""
    beta = draw(betas)
    return draw(
        st.sampled_from(
            [
                beta,
                {"basic": beta},
                {"semantic": {"beta": beta, "height": 1}},
                {"range": {"beta": beta, "width": 2}},
                {"range": {"beta": beta, "width": 1.5, "relative": True}},
            ]
        )
    )


@given(tables(), forms(), st.integers(1, 8), refinements)
def test_every_class_keeps_its_caps_and_is_large_enough(table: Any, beta: Any, k: int, refine: Any) -> None:
    assume(persons_of(table) >= k)
    algorithm = Burel(beta=beta, k=k, refine=refine)
    try:
        models = algorithm.models(table.schema)
    except InfeasibleError:
        return  # No category for semantic likeness, no number for ranges, or none above 0.
    publication = algorithm.anonymize(table, seed=3)
    assert publication.suppressed == 0
    assert publication.boxes.cover(table.quasi, publication.classes).all()
    assert audit(table, publication, models).holds


@given(counts_lists, betas)
def test_buckets_are_the_fewest(counts: Any, beta: Any) -> None:
    """Against every way to cut the values, in the order of their frequency, into runs."""
    total = sum(counts)
    counts = sorted(counts)
    caps = [largest_share(count, total, Fraction(str(beta))) for count in counts]

    def fits(run: Any) -> Any:
        return len(run) == 1 or Fraction(sum(counts[i] for i in run), total) < caps[run[0]]

    indexes = range(len(counts))
    fewest = min(
        len(cuts) + 1
        for size in indexes
        for cuts in combinations(indexes[1:], size)
        if all(fits(indexes[begin:end]) for begin, end in zip([0, *cuts], [*cuts, len(counts)], strict=True))
    )
    assert fewest_runs(counts, caps)[0][-1] == fewest
    buckets = partition_values(np.array(counts), caps)
    assert len(buckets) == fewest
    assert sorted(value for values in buckets for value in values) == list(indexes)


@given(counts_lists, betas, st.integers(1, 5))
def test_leaves_keep_the_caps_whatever_is_drawn(counts: Any, beta: Any, least: int) -> None:
    assume(sum(counts) >= least)
    counts = np.array(counts)
    caps = [largest_share(int(count), int(counts.sum()), Fraction(str(beta))) for count in counts]
    buckets = partition_values(counts, caps)
    leaves = np.concatenate(list(dichotomize(share_test(counts, caps, buckets), least)))
    assert leaves.sum(axis=0).tolist() == [int(counts[values].sum()) for values in buckets]
    rows = leaves.sum(axis=1)
    assert rows.min() >= least
    for leaf, size in zip(leaves.tolist(), rows.tolist(), strict=True):
        for drawn, values in zip(leaf, buckets, strict=True):
            # A class may draw a bucket's rows from one value alone, as far as it has them.
            assert all(Fraction(min(drawn, int(counts[value])), size) <= caps[value] for value in values)


@given(attributes("s"), st.data(), betas)
def test_caps_say_what_the_models_say(attribute: Any, data: Any, beta: Any) -> None:
    """A class at random: within every cap, exactly where the definition holds (the logarithm aside: never looser)."""
    size = attribute.size
    table = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    assume(sum(table))
    drawn = [data.draw(st.integers(0, count)) for count in table]
    assume(sum(drawn))
    p, q = oracles.shares(table), oracles.shares(drawn)
    number = isinstance(attribute, Number)
    checks = {
        BetaLikeness(beta): oracles.likeness(p, q, beta),
        BetaLikeness(beta, "basic"): oracles.likeness(p, q, beta, enhanced=False),
        (RangeLikeness(beta, 2) if number else SemanticLikeness(beta, 2)): (
            oracles.ranges(attribute, p, q, beta, 2, relative=False)
            if number
            else oracles.semantic(attribute, p, q, beta, 2)
        ),
    }
    for model, expected in checks.items():
        (caps,) = likeness_caps([model], Schema("id", QUASI, (attribute,)), [np.array(table)])
        assert all(sum(q[cap.first : cap.last + 1]) <= cap.share for cap in caps) == expected


def test_the_cap_rounds_the_logarithm_down() -> None:
    for count in range(1, 1000):
        p = count / 1000
        cap = largest_share(count, 1000, Fraction(100))
        assert cap >= Fraction(count, 1000)
        assert float(cap) <= p * (1 - math.log(p)) or cap == Fraction(count, 1000)
        assert float(cap) == pytest.approx(p * (1 - math.log(p)), rel=1e-11)


@settings(max_examples=60)
@given(tables(most_attributes=1), st.integers(1, 30), betas, st.integers(1, 4), refinements)
def test_a_part_of_a_window_keeps_the_window_s_caps(table: Any, part: int, beta: Any, k: int, refine: Any) -> None:
    rest = table.take(np.arange(min(part, len(table))))
    assume(persons_of(rest) >= k)
    references = references_of(table)
    models = [KAnonymity(k), BetaLikeness(beta)]
    caps = likeness_caps(models, table.schema, references)
    whole = Groups.of(rest.schema, rest.persons, rest.sensitive, np.zeros(len(rest), int), 1, references)
    if not check(models, whole).all():
        with pytest.raises(InfeasibleError, match="exceed a cap"):
            burel_classes(rest, caps, k=k, refine=refine, draw_words=words(1))
        return
    classes, _ = burel_classes(rest, caps, k=k, refine=refine, draw_words=words(1))
    groups = Groups.of(rest.schema, rest.persons, rest.sensitive, classes, classes.max() + 1, references)
    assert check(models, groups).all()


def test_smaller_gains_make_larger_classes() -> None:
    table = table_of_rows(3000)
    counts = [len(plain(beta=beta, k=2).anonymize(table, seed=1).boxes) for beta in (0.2, 1, 4)]
    assert counts == sorted(set(counts))


def test_extended_forms_merge_what_breaks_them() -> None:
    table = table_of([GOODS], [np.random.default_rng(0).integers(0, 12, 900)])
    usual = plain(beta=3, k=3).anonymize(table, seed=2)
    semantic = plain(beta={"semantic": {"beta": 3, "height": 1}}, k=3).anonymize(table, seed=2)
    assert usual.details["merges"] == 0
    assert semantic.details["merges"] > 0
    assert len(semantic.boxes) < len(usual.boxes)
    ranged = plain(beta={"range": {"beta": 2, "width": 4}}, k=3).anonymize(table_of_rows(900), seed=2)
    assert ranged.details["merges"] > 0


def test_persons_are_counted_not_rows() -> None:
    persons = np.repeat(np.arange(60), 10)
    quasi = np.random.default_rng(1).integers(0, 5, (60, 3)).astype(float)[persons] / [1, 1, 5]
    table = table_of_rows(600, persons=persons, quasi=quasi)
    publication = plain(beta=4, k=6).anonymize(table, seed=4)
    assert publication.details["merges"] > 0
    for one in range(len(publication.boxes)):
        assert len(np.unique(table.persons[publication.classes == one])) >= 6


def test_a_value_that_only_the_rows_have_is_too_much() -> None:
    caps = likeness_caps([BetaLikeness(1)], Schema("id", QUASI, (PLANTS,)), [np.array([0, 5, 5, 5, 5])])
    assert value_caps(caps[0], 5)[0] == 0
    with pytest.raises(InfeasibleError, match="exceed a cap"):
        burel_classes(one_attribute(PLANTS, [1, 5, 5, 5, 5]), caps, k=1, draw_words=words(1))


def test_one_value_needs_no_cap() -> None:
    publication = plain(beta=0.5, k=4).anonymize(one_attribute(SALARY, [0, 64]))
    assert publication.sizes.tolist() == [4] * 16


def test_it_can_be_cancelled() -> None:
    def stop(now: Any, done: Any, total: Any) -> None:
        if now == "draw":
            raise Cancelled

    with pytest.raises(Cancelled):
        plain(beta=1, k=3).anonymize(table_of_rows(300), progress=stop)


@pytest.mark.parametrize("beta", [0, -1, {"basic": 0}])
def test_a_gain_of_nothing_is_refused(beta: Any) -> None:
    with pytest.raises(InfeasibleError, match="beta"):
        Burel(beta=beta)


def test_a_broken_split_test_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong inside, nothing leaves unproven."""
    monkeypatch.setattr("static_algos.refine.merge_until_safe", lambda table, classes, limits, progress: (classes, 0))
    monkeypatch.setattr(
        "static_algos.burel.share_test",
        lambda counts, caps, buckets: share_test(counts, [Fraction(1)] * len(caps), buckets),
    )
    with pytest.raises(GuaranteeError, match="beta-likeness"):
        plain(beta=0.5, k=2).anonymize(table_of_rows(400), seed=1)

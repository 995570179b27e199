"""Models over categories of sensitivity, held against their definitions in fractions."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from microdata import (
    Category,
    Hierarchy,
    InfeasibleError,
    Number,
    PersonSource,
    Publication,
    Schema,
    Sensitivity,
    Table,
)
from privacy import (
    CategoryValueWeight,
    CategoryWeight,
    Guarantee,
    MaxCategoryShare,
    MaxFirstShare,
    PPlusSensitivity,
    PSensitivity,
    check_able,
    check_feasible,
    disclosures,
    inference,
    observed,
    similarity,
)
from tests.privacy.privacy_worlds import World, worlds


@st.composite
def sensitivities(draw: Any, size: int, item: Any) -> Sensitivity:
    """A random partition of a domain's values, with even or given weights."""
    count = draw(st.integers(1, size))
    codes = [*range(count), *(draw(st.integers(0, count - 1)) for _ in range(size - count))]
    order = draw(st.permutations(range(size)))
    categories = tuple(
        tuple(item(order[place]) for place in range(size) if codes[place] == category) for category in range(count)
    )
    given = sorted(draw(st.integers(0, 10)) for _ in range(count))
    weights = tuple(Fraction(weight, 10) for weight in given) if given[-1] and draw(st.booleans()) else ()
    return Sensitivity(categories, weights)


@st.composite
def graded(draw: st.DrawFn, /, **given: Any) -> Any:
    """A world whose sensitive attributes have categories."""
    world = draw(worlds(**given))
    tree, number = world.schema.sensitive
    values = [float(value) for value in number.values()]
    sensitive = (
        replace(tree, sensitivity=draw(sensitivities(tree.size, lambda code: tree.hierarchy.leaves[code]))),
        replace(number, sensitivity=draw(sensitivities(number.size, lambda code: values[code]))),
    )
    return replace(world, schema=replace(world.schema, sensitive=sensitive))


def categories_of(attribute: Any) -> list[int]:
    """Category of each value, looked up as it was written."""
    texts = [str(value) for value in attribute.domain()]
    written = [[str(item) for item in items] for items in attribute.sensitivity.categories]
    named = [text if isinstance(attribute, Category) else str(float(text)) for text in texts]
    return [next(place for place, items in enumerate(written) if text in items) for text in named]


def members_of(world: World, one: int) -> Any:
    """Per sensitive attribute: the attribute, and values and categories of the rows of a class."""
    for column, attribute in enumerate(world.schema.sensitive):
        of = categories_of(attribute)
        values = world.sensitive[world.members(one), column].tolist()
        yield attribute, values, [of[value] for value in values]


def weights_of(attribute: Any, categories: Any) -> Fraction:
    return sum((attribute.sensitivity.weights[category] for category in categories), Fraction(0))


ORACLES: dict[Any, Any] = {
    PSensitivity: lambda asked, _a, values, _c: len(set(values)) >= asked,
    PPlusSensitivity: lambda asked, _a, _v, categories: len(set(categories)) >= asked,
    CategoryWeight: lambda asked, a, _v, categories: weights_of(a, categories) >= Fraction(str(asked)),
    CategoryValueWeight: lambda asked, a, values, _c: (
        weights_of(a, [categories_of(a)[value] for value in set(values)]) >= Fraction(str(asked))
    ),
    MaxCategoryShare: lambda asked, _a, _v, categories: (
        max(Fraction(categories.count(one), len(categories)) for one in categories) <= Fraction(str(asked))
    ),
    MaxFirstShare: lambda asked, _a, _v, categories: (
        Fraction(categories.count(0), len(categories)) <= Fraction(str(asked))
    ),
}
ASKED: list[Any] = [
    *(kind(p) for kind in (PSensitivity, PPlusSensitivity) for p in (1, 2, 4)),
    *(kind(alpha) for kind in (CategoryWeight, CategoryValueWeight) for alpha in (0.1, 1, 2.5)),
    *(kind(share) for kind in (MaxCategoryShare, MaxFirstShare) for share in (0.25, 0.5, 0.9)),
]


@pytest.mark.parametrize("kind", list(ORACLES), ids=lambda kind: kind.__name__)
@given(world=graded())
@settings(max_examples=40)
def test_against_the_definition(kind: Any, world: World) -> None:
    for model in (one for one in ASKED if type(one) is kind):
        for only in (None, "illness"):
            holds = replace(model, attribute=only).holds(world.groups)
            for one in range(world.count):
                expected = all(
                    ORACLES[kind](getattr(model, model.parameter), attribute, values, categories)
                    for attribute, values, categories in members_of(world, one)
                    if only in {None, attribute.name}
                )
                assert holds[one] == expected


@given(world=graded(), p=st.integers(1, 4))
@settings(max_examples=30)
def test_categories_are_stricter_than_values(world: World, p: int) -> None:
    """Enhanced (p,α)-sensitive is (p,α)-sensitive is p-sensitive; a value that counts once weighs no more."""
    groups = world.groups
    assert not (PPlusSensitivity(p).holds(groups) & ~PSensitivity(p).holds(groups)).any()
    assert not (CategoryValueWeight(p / 2).holds(groups) & ~CategoryWeight(p / 2).holds(groups)).any()
    assert not (MaxCategoryShare(p / 4).holds(groups) & ~MaxFirstShare(p / 4).holds(groups)).any()


def just_met(model: Any, groups: Any) -> Any:
    """The strictest of its kind that all classes meet."""
    achieved = model.achieved(groups)
    worst = achieved.min() if model.more_is_safer else achieved.max()
    if isinstance(model, PSensitivity):
        return replace(model, p=int(worst))
    hair = Fraction(1, 10**9) * (-1 if model.more_is_safer else 1)
    asked = Fraction(float(worst)).limit_denominator(10**7) + hair
    assume(asked > 0)
    return replace(model, **{model.parameter: min(asked, 1) if not model.more_is_safer else asked})


@pytest.mark.parametrize("kind", list(ORACLES), ids=lambda kind: kind.__name__)
@given(world=graded(most_classes=3), added=st.integers(0, 2**24 - 1))
@settings(max_examples=40)
def test_what_it_survives(kind: Any, world: World, added: int) -> None:
    """Merging: all of them. Adding: all but the shares."""
    model = just_met(kind(1), world.groups)
    assert model.holds(world.groups).all()
    assert model.survives_merging
    assert model.holds(world.regrouped(np.minimum(world.classes, 0), 1)).all()
    if model.survives_adding:
        joins = np.array([bool(added >> row & 1) for row in range(len(world.classes))])
        grown = np.where(world.classes == 0, 0, np.where(joins, 0, -1))
        assert model.holds(world.regrouped(grown, 1)).all()


DISEASE = Category("disease", Hierarchy.flat("ABCD"), sensitivity=Sensitivity((("A", "B"), ("C",), ("D",))))
AGE = Number("age", 0, 99, integer=True)


def table_of(values: Any, attribute: Any = DISEASE) -> Table:
    codes = np.array([attribute.code_of(value) for value in values], np.int32)[:, None]
    schema = Schema(PersonSource.ROW, (AGE,), (attribute,))
    return Table(schema, np.arange(len(codes)), np.arange(len(codes), dtype=float)[:, None], codes)


@pytest.mark.parametrize("share", [MaxCategoryShare, MaxFirstShare])
def test_a_share_does_not_survive_adding(share: Any) -> None:
    table = table_of("ADAA")
    assert not share.survives_adding
    for classes, expected in (([0, 0, -1, -1], True), ([0, 0, 0, 0], False)):
        groups = observed(Publication.of(table, np.array(classes)))
        assert share(0.5).holds(groups).tolist() == [expected]
    with pytest.raises(InfeasibleError, match="reuse"):
        check_able([share(0.5)], [share], adds="reuse")


@pytest.mark.parametrize(
    ("asked", "parameter", "nearest"),
    [
        ({"p": 5}, "p", 4),
        ({"p_categories": 4}, "p_categories", 3),
        ({"alpha_weight": {"every": 2, "over": "values"}}, "alpha_weight", 1.5),
        ({"max_category_share": 0.2}, "max_category_share", 0.3334),
        ({"p_categories": {"each": {"weather": 2}}}, "p_categories", None),
    ],
    ids=str,
)
def test_what_no_data_can_meet(asked: Any, parameter: str, nearest: Any) -> None:
    with pytest.raises(InfeasibleError) as refused:
        Guarantee(**asked).models(table_of("A").schema)
    assert (refused.value.parameter, refused.value.nearest) == (parameter, nearest)
    assert "weather" not in refused.value.reason, "what was given is told to whoever gave it and to nobody else"


@pytest.mark.parametrize(
    ("asked", "parameter", "nearest"),
    [
        ({"p": 4}, "p", 3),
        ({"p_categories": 3}, "p_categories", 2),
        ({"alpha_weight": 3.25}, "alpha_weight", 1.5),
        ({"alpha_weight": {"every": 1, "over": "values"}}, "alpha_weight", 0.5),
        ({"max_category_share": 0.3334}, "max_category_share", 0.5),
        ({"max_category_share": {"each": {"disease": 0.4}, "of": "first"}}, "max_category_share", 0.5),
    ],
    ids=str,
)
def test_what_a_table_cannot_meet(asked: Any, parameter: str, nearest: Any) -> None:
    """Two rows of the first category and the second, three times the only value; of the third there is none."""
    table = table_of("ABACCC")
    with pytest.raises(InfeasibleError) as refused:
        check_feasible(Guarantee(**asked).models(table.schema), table)
    assert (refused.value.parameter, refused.value.nearest) == (parameter, nearest)


def test_one_category_cannot_be_less_than_everything() -> None:
    alone = Category("disease", Hierarchy.flat("AB"), sensitivity=Sensitivity((("A", "B"),)))
    with pytest.raises(InfeasibleError) as refused:
        Guarantee(max_category_share={"every": 0.9, "of": "first"}).models(table_of("A", alone).schema)
    assert refused.value.nearest == 1


@pytest.mark.parametrize("key", ["p_categories", "alpha_weight", "max_category_share"])
def test_an_attribute_without_categories_is_not_protected_by_them(key: str) -> None:
    plain = replace(DISEASE, sensitivity=None)
    with pytest.raises(InfeasibleError, match="declare its sensitivity"):
        Guarantee(**{key: 1}).models(table_of("A", plain).schema)
    assert Guarantee(p=1).models(table_of("A", plain).schema)


@pytest.mark.parametrize("wrong", [{}, {"every": 2, "each": {"disease": 2}}, {"each": {}}, 0, {"each": {"disease": 0}}])
def test_wrong_requests(wrong: Any) -> None:
    with pytest.raises(ValueError, match="p_categories"):
        Guarantee(p_categories=wrong)


@given(world=graded(), data=st.data())
@settings(max_examples=40)
def test_disclosures_against_looking(world: World, data: Any) -> None:
    """Every known row: all rows of the classes whose box it fits, less what is excluded."""
    ages = np.array([data.draw(st.integers(0, 6)) for _ in world.classes], float)[:, None]
    table = Table(world.schema, world.persons, ages, world.sensitive)
    published = Publication.of(table, world.classes)
    known = table.take(np.arange(min(len(table), 5)))
    illness: Any = world.schema.sensitive[0]
    excluded = data.draw(st.sets(st.sampled_from(illness.domain()), max_size=2))
    found = disclosures(published, known, {0: {"illness": excluded}})
    for row, age in enumerate(known.quasi[:, 0]):
        fits = (published.boxes.lo[:, 0] <= age) & (age <= published.boxes.hi[:, 0])
        rows = np.flatnonzero((published.classes >= 0) & fits[published.classes])
        for column, one in enumerate(found):
            attribute = world.schema.sensitive[column]
            values = set(world.sensitive[rows, column].tolist())
            if row == 0 and column == 0:
                values -= {attribute.code_of(str(value)) for value in excluded}
            texts = {attribute.label(value, value) for value in values}
            groups = {attribute.sensitivity.label(categories_of(attribute)[value]) for value in values}  # type: ignore[union-attr]
            assert one.rows[row] == len(rows)
            assert one.values[row] == (texts.pop() if len(texts) == 1 else None)
            assert one.categories[row] == (groups.pop() if len(groups) == 1 else None)


@given(world=graded(), certainty=st.sampled_from([0.5, 0.75, 1]))
@settings(max_examples=40)
def test_attacks_on_categories_against_counting(world: World, certainty: Any) -> None:
    groups = world.groups
    for column, (alike, likely) in enumerate(zip(similarity(groups), inference(groups, certainty)[2:], strict=True)):
        shown, guessed = [], []
        for one in range(world.count):
            _, _, categories = list(members_of(world, one))[column]
            shown += [one] if len(set(categories)) == 1 else []
            guessed += [(one, c) for c in sorted(set(categories)) if categories.count(c) >= certainty * len(categories)]
        assert alike.classes.tolist() == shown
        assert alike.exposed(groups) == sum(len(world.members(one)) for one in shown)
        assert likely.classes.tolist() == [one for one, _ in guessed]
        label = world.schema.sensitive[column].sensitivity.label  # type: ignore[union-attr]
        assert likely.values == tuple(label(category) for _, category in guessed)


def test_two_categories_end_similarity() -> None:
    """What p⁺ is for: with two categories per class nobody's category is certain."""
    table = table_of("ABAD" * 3)
    published = Publication.of(table, np.repeat([0, 1, 2], 4))
    groups = observed(published)
    assert PPlusSensitivity(2).holds(groups).all()
    assert not len(similarity(groups)[0])
    assert set(disclosures(published, table)[0].categories) == {None}

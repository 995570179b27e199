"""Guarantees as people write them, and what is refused early."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from microdata import Category, Hierarchy, InfeasibleError, Number, PersonSource, Schema, Table
from privacy import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Guarantee,
    KAnonymity,
    MaxShare,
    RangeLikeness,
    RecursiveDiversity,
    SemanticLikeness,
    TCloseness,
    check_feasible,
)

AGE = Number("age", 0, 99, integer=True)
ILLNESS = Category("illness", Hierarchy.from_mapping({"all": {"lungs": ["flu", "cough"], "gut": ["ulcer"]}}))
PAY = Number("pay", 1, 5, integer=True)
SCHEMA = Schema(PersonSource.ROW, (AGE,), (ILLNESS, PAY))

WRITTEN = [
    ({"k": 5}, [KAnonymity(5)]),
    ({"l": 3}, [DistinctDiversity(3)]),
    ({"l": {"distinct": 3}}, [DistinctDiversity(3)]),
    ({"l": {"entropy": 2.5}}, [EntropyDiversity(2.5)]),
    ({"l": {"recursive": {"c": 2, "l": 2}}}, [RecursiveDiversity(2, 2)]),
    ({"l": {"frequency": 2}}, [FrequencyDiversity(2)]),
    ({"alpha": 0.5, "k": 4}, [KAnonymity(4), AlphaK(0.5, 4)]),
    ({"t": 0.2}, [TCloseness(0.2)]),
    ({"t": {"threshold": 0.2, "ground": "equal"}}, [TCloseness(0.2, "equal")]),
    ({"beta": 1}, [BetaLikeness(1)]),
    ({"beta": {"enhanced": 1}}, [BetaLikeness(1)]),
    ({"beta": {"basic": 1}}, [BetaLikeness(1, "basic")]),
    (
        {"beta": {"semantic": {"beta": 1, "height": 2}}},
        [BetaLikeness(1), SemanticLikeness(1, 2, attribute="illness")],
    ),
    (
        {"beta": {"range": {"beta": 1, "width": 0.5, "relative": True}}},
        [BetaLikeness(1), RangeLikeness(1, 0.5, True, attribute="pay")],  # noqa: FBT003 - as it is written
    ),
    ({"disclosure": 1.5}, [DeltaDisclosure(1.5)]),
    ({"k": 2, "max_share": 0.5}, [KAnonymity(2), MaxShare(0.5)]),
]


@pytest.mark.parametrize(("written", "models"), WRITTEN, ids=str)
def test_written_forms(written: Any, models: Any) -> None:
    guarantee = Guarantee.model_validate_json(json.dumps(written), strict=True)
    assert list(guarantee.models(SCHEMA)) == models
    assert Guarantee.model_validate(guarantee.model_dump()) == guarantee


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ({"k": 0}, "k"),
        ({"k": 2.5}, "k"),
        ({"l": 0}, "l.distinct"),
        ({"l": {"entropy": 2, "frequency": 2}}, "l"),
        ({"l": {}}, "l"),
        ({"l": {"recursive": {"c": 0, "l": 2}}}, "l.recursive.c"),
        ({"alpha": 0}, "alpha"),
        ({"t": 1.1}, "t.threshold"),
        ({"t": {"threshold": 0.1, "ground": "far"}}, "t.ground"),
        ({"beta": 0}, "beta.enhanced"),
        ({"beta": {"smantic": 1}}, "beta.smantic"),
        ({"disclosure": -1}, "disclosure"),
        ({"max_share": 2}, "max_share"),
        ({"kk": 2}, "kk"),
    ],
    ids=str,
)
def test_out_of_range(written: Any, path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Guarantee.model_validate(written)
    assert ".".join(map(str, caught.value.errors()[0]["loc"])) == path


def test_every_field_is_described() -> None:
    schema = Guarantee.model_json_schema()
    parts = [schema, *schema["$defs"].values()]
    objects = [form for part in parts for form in part.get("anyOf", [part]) if "properties" in form]
    assert len(objects) == 10
    for form in objects:
        for name, field in form["properties"].items():
            assert field.get("description"), name


@pytest.mark.parametrize(
    ("written", "parameter", "nearest"),
    [
        ({"l": 4}, "l", 3),
        ({"l": {"entropy": 3.5}}, "l", 3),
        ({"l": {"frequency": 5}}, "l", 3),
        ({"l": {"recursive": {"c": 0.25, "l": 2}}}, "l", "c above 0.5000"),
        ({"l": {"recursive": {"c": 9, "l": 6}}}, "l", None),
        ({"alpha": 0.3}, "alpha", 0.3334),
        ({"t": {"threshold": 0.2, "ground": "hierarchy"}}, "t", None),
        ({}, "guarantee", None),
    ],
    ids=str,
)
def test_what_no_data_could_meet(written: Any, parameter: str, nearest: Any) -> None:
    with pytest.raises(InfeasibleError) as caught:
        Guarantee(**written).models(SCHEMA)
    assert (caught.value.parameter, caught.value.nearest) == (parameter, nearest)


@pytest.mark.parametrize(
    "written",
    [
        {"l": 2},
        {"alpha": 0.5},
        {"t": 0.5},
        {"beta": 1},
        {"beta": {"semantic": {"beta": 1, "height": 1}}},
        {"disclosure": 1},
    ],
    ids=str,
)
def test_sensitive_models_need_a_sensitive_attribute(written: Any) -> None:
    with pytest.raises(InfeasibleError, match="sensitive"):
        Guarantee(k=2, **written).models(Schema(PersonSource.ROW, (AGE,)))


def test_extended_likeness_needs_the_right_kind_of_attribute() -> None:
    with pytest.raises(InfeasibleError, match="category"):
        Guarantee(beta={"semantic": {"beta": 1, "height": 1}}).models(Schema(PersonSource.ROW, (AGE,), (PAY,)))
    with pytest.raises(InfeasibleError, match="number"):
        Guarantee(beta={"range": {"beta": 1, "width": 1}}).models(Schema(PersonSource.ROW, (AGE,), (ILLNESS,)))
    zero = Number("pay", 0, 5, integer=True)
    with pytest.raises(InfeasibleError, match="above 0"):
        Guarantee(beta={"range": {"beta": 1, "width": 1, "relative": True}}).models(
            Schema(PersonSource.ROW, (AGE,), (zero,))
        )


def table_of(persons: Any, illnesses: Any) -> Any:
    schema = Schema(PersonSource.ROW, (AGE,), (ILLNESS,))
    values = np.array(illnesses, np.int32)[:, None]
    return Table(schema, np.array(persons), np.zeros((len(persons), 1)), values)


@pytest.mark.parametrize(
    ("written", "parameter", "nearest"),
    [
        ({"k": 4}, "k", 3),
        ({"l": 3}, "l", 2),
        ({"l": {"frequency": 2}}, "l", 1.6666),
        ({"l": {"entropy": 2}}, "l", 1.9601),
        ({"alpha": 0.5}, "alpha", 0.6),
        ({"max_share": 0.3}, "max_share", 0.4),
    ],
    ids=str,
)
def test_what_this_table_cannot_meet(written: Any, parameter: str, nearest: Any) -> None:
    table = table_of([1, 1, 2, 2, 3], [0, 0, 0, 1, 1])
    with pytest.raises(InfeasibleError, match="all 5 rows") as caught:
        check_feasible(Guarantee(**written).models(table.schema), table)
    assert (caught.value.parameter, caught.value.nearest) == (parameter, nearest)
    form = written[parameter]
    nearby = dict.fromkeys(form, nearest) if isinstance(form, dict) else nearest
    feasible = Guarantee(**{parameter: nearby})
    check_feasible(feasible.models(table.schema), table)


def test_what_can_be_met_passes() -> None:
    table = table_of([1, 1, 2, 2, 3], [0, 0, 0, 1, 1])
    models = Guarantee(k=3, l=2, t=0, beta=0.1, disclosure=0.1, max_share=0.4).models(table.schema)
    check_feasible(models, table)
    check_feasible(models, table.take(np.empty(0, np.int64)))


@pytest.mark.parametrize(
    ("build", "nearest"),
    [
        (lambda: KAnonymity(0), 1),
        (lambda: KAnonymity(2.5), 3),  # type: ignore[arg-type]
        (lambda: KAnonymity(float("inf")), 1),  # type: ignore[arg-type]
        (lambda: KAnonymity(float("nan")), 1),  # type: ignore[arg-type]
        (lambda: MaxShare(0), None),
        (lambda: MaxShare(1.5), 1),
        (lambda: DistinctDiversity(0), 1),
        (lambda: EntropyDiversity(0.5), 1),
        (lambda: RecursiveDiversity(0, 2), None),
        (lambda: FrequencyDiversity(0), 1),
        (lambda: AlphaK(1.5, 2), 1),
        (lambda: TCloseness(-0.1), 0),
        (lambda: TCloseness(1.7), 1),
        (lambda: BetaLikeness(0), None),
        (lambda: SemanticLikeness(1, 0), 1),
        (lambda: RangeLikeness(1, -1), 0),
        (lambda: DeltaDisclosure(0), None),
        (lambda: TCloseness(float("nan")), 0),
    ],
)
def test_models_refuse_parameters_out_of_range(build: Any, nearest: Any) -> None:
    with pytest.raises(InfeasibleError, match="must be") as caught:
        build()
    assert caught.value.nearest == nearest

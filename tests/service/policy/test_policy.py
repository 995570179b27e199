"""Policies: what they accept, how they answer mistakes, and what makes two of them the same."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from microdata import Category, Number, PersonSource
from service.policy import PolicyError, data_kind, load_policy, parse_policy, policy_file

POLICY = {
    "name": "orders",
    "schema": {
        "person": "customer.id",
        "quasi": {
            "age": {"type": "number", "min": 17, "max": 90, "integer": True, "weight": 2},
            "country": {"type": "category", "hierarchy": {"World": {"Europe": ["France", "NO"], "Asia": ["Japan"]}}},
        },
        "sensitive": {"item": {"type": "category", "hierarchy": {"Any": ["Lamp", "Kettle", "Novel"]}}},
        "public": ["shop"],
    },
    "guarantee": {"k": 5},
}


def changed(path: Any, value: Any) -> Any:
    """POLICY with one entry changed; a value of ... removes it."""
    policy = copy.deepcopy(POLICY)
    *parents, last = path.split("/")
    node = policy
    for parent in parents:
        node = node.setdefault(parent, {})  # type: ignore[assignment]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return policy


def problems(policy: Any, **options: Any) -> Any:
    with pytest.raises(PolicyError) as caught:
        parse_policy(policy, **options)
    return [str(problem) for problem in caught.value.problems]


def test_a_policy_becomes_a_schema() -> None:
    schema = parse_policy(POLICY).schema
    assert schema.person == "customer.id"
    age, country = schema.quasi
    assert age == Number("age", 17, 90, integer=True)
    assert isinstance(country, Category)
    assert country.hierarchy.leaves == ("France", "NO", "Japan")
    assert schema.weights == pytest.approx((2 / 3, 1 / 3))
    assert schema.public == ("shop",)


@pytest.mark.parametrize("source", list(PersonSource))
def test_the_person_may_come_from_elsewhere(source: Any) -> None:
    assert parse_policy(changed("schema/person", {source.value: True})).schema.person is source


def test_json_and_yaml_twins_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(POLICY))
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(POLICY, sort_keys=False))
    twins = [load_policy(tmp_path / name) for name in ("p.json", "p.yaml")]
    assert twins[0].fingerprint() == twins[1].fingerprint() == parse_policy(POLICY).fingerprint()


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("nmae", "x", "nmae: unknown key; did you mean 'name'?"),
        ("schema/quasi/age/mni", 1, "schema.quasi.age.mni: unknown key; did you mean 'min'?"),
        ("schema/quasi/age/zzz", 1, "known keys: capped, integer, max, min, ranks, sensitivity, step, type, weight"),
        ("schema/quasi/country/on_unknwon", "refuse", "schema.quasi.country.on_unknwon: unknown key; did you mean"),
        ("guarantee/kk", 5, "guarantee.kk: unknown key; did you mean 'k'?"),
        ("guarantee/algorithm", "sabr", "guarantee.algorithm: must be one of"),
        ("guarantee/algorithm", "mondrain", "(did you mean 'mondrian'?), given 'mondrain'"),
        ("guarantee/algorithm", 5, "guarantee.algorithm: must be one of"),
        ("schema/quasi/country/hierarchy", {"builder": "prefix"}, "did you mean 'prefixes'?"),
        ("guarantee/k", "5", "guarantee.k: must be a valid integer, given '5'"),
        ("guarantee/k", True, "guarantee.k: must be a valid integer, given true"),
        ("guarantee", [1], "guarantee: must be a mapping, given a list of 1 items"),
        ("name", ..., "name: is missing"),
        ("name", "a b", "name: String should match pattern"),
        ("schema/person", ..., "schema.person: is missing"),
        ("schema/person", {"key": False}, "schema.person: a field name, {key: true}, {key: FIELD} or"),
        ("schema/quasi", {}, "schema.quasi: "),
        ("schema/quasi/age/type", "nummer", "schema.quasi.age.type: must be 'number' or 'category', given 'nummer'"),
        ("schema/quasi/age/type", ..., "schema.quasi.age.type: is missing; must be 'number' or 'category'"),
        ("schema/quasi/age/min", "old", "schema.quasi.age.min: must be a valid number, given 'old'"),
        ("schema/quasi/age/min", 91, "schema.quasi.age: min must not exceed max"),
        ("schema/quasi/age/max", 2**53 + 1, "schema.quasi.age: min and max must lie within ±9007199254740991"),
        ("schema/quasi/age/min", -1.79e308, "schema.quasi.age: min and max must lie within ±9007199254740991"),
        ("schema/quasi/age/step", 1e-320, "schema.quasi.age: step must be at least 1.6e-13"),
        ("guarantee/k", 10**400, "guarantee.k: must be less than or equal to 1000000000000"),
        ("schema/quasi/age/min", 17.5, "schema.quasi.age: an integer domain has whole ends"),
        ("schema/quasi/age/step", 0, "schema.quasi.age.step: must be greater than 0, given 0"),
        ("schema/quasi/age/weight", -1, "schema.quasi.age.weight: must be greater than or equal to 0, given -1"),
        ("schema/quasi/age/weight", float("nan"), "schema.quasi.age.weight: must be a finite number"),
        ("schema/quasi/country/hierarchy", 5, "schema.quasi.country.hierarchy: the path of a CSV file"),
        ("schema/quasi/country/hierarchy", {"A": ["x", "x"]}, "country.hierarchy: a label appears twice, given 'x'"),
        ("schema/quasi/country/hierarchy", {"A": [1.1]}, "a label is not a text; write it in quotes, given 1.1"),
        ("schema/quasi/country/hierarchy", {"A": [True]}, "a label is not a text; write it in quotes, given True"),
        ("schema/quasi/country/hierarchy", "x.csv", "schema.quasi.country.hierarchy: a policy that is not a file"),
        ("schema/quasi/country/on_unknown", "other", "schema.quasi.country: on_unknown: other and other: LABEL belong"),
        ("schema/sensitive/item/weight", 2, "schema.sensitive.item.weight: only quasi-identifiers have a weight"),
        ("schema/sensitive/age", {"type": "category", "hierarchy": {"A": ["x"]}}, "declared as quasi, given 'age'"),
        ("schema/sensitive/income", {"type": "number", "min": 0, "max": 1}, "declare a step"),
        ("schema/public", ["item"], "schema.public: a field is already declared as sensitive, given 'item'"),
        ("schema/public", "shop", "schema.public: must be a valid array, given 'shop'"),
        ("schema/public", [1], "schema.public[0]: must be a valid string, given 1"),
        ("table", {"on_refused": "ignore"}, "table.on_refused: must be 'stop' or 'drop', given 'ignore'"),
        ("stream", {"input": "a b", "output": "c"}, "stream.input: a topic name has 1 to 249 letters"),
        ("stream", {"input": "a", "output": "a"}, "stream: input, output and dead_letters must be different"),
        ("stream", {"input": "a", "output": "b", "start": "now"}, "stream.start: must be 'earliest' or 'latest'"),
        ("stream", {"input": "a", "output": "b"}, "guarantee.algorithm: a stream needs one of"),
        ("guarantee/l", 4, "guarantee.l: distinct-l-diversity cannot be met"),
    ],
)  # fmt: skip
def test_mistakes_name_path_allowed_and_given(path: str, value: Any, expected: str) -> None:
    found = problems(changed(path, value))
    assert any(expected in problem for problem in found), found


def test_what_cannot_be_met_names_the_nearest_value() -> None:
    assert "by the 3 values of item, given 4; the nearest feasible value is 3" in problems(changed("guarantee/l", 4))[0]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("guarantee/k", 0, "must be greater than or equal to 1, given 0; the nearest feasible value is 1"),
        ("guarantee/t", 1.7, "must be less than or equal to 1, given 1.7; the nearest feasible value is 1"),
        ("guarantee/t", -0.1, "must be greater than or equal to 0, given -0.1; the nearest feasible value is 0"),
        ("guarantee/alpha", 1.7, "must be less than or equal to 1, given 1.7; the nearest feasible value is 1"),
    ],
)
def test_what_is_out_of_range_names_the_nearest_value(path: str, value: Any, expected: str) -> None:
    assert expected in problems(changed(path, value))[0]


def test_a_range_that_does_not_hold_its_end_has_no_nearest_value() -> None:
    (found,) = problems(changed("guarantee/alpha", 0))
    assert found.endswith("must be greater than 0, given 0")


BUILDERS = {
    "intervals": ({"min": 0, "max": 9, "widths": [5]}, "[5,9]"),
    "quantiles": ({"values": [1, 2, 3, 4, 10, 20, 30, 90], "levels": [4, 2]}, "[1,2]"),
    "dates": ({"start": "2023-12-31", "end": "2024-01-02"}, "2024-Q1"),
    "prefixes": ({"values": ["53711", "53712", "53903"]}, "537**"),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_builders_make_hierarchies(name: Any) -> None:
    parameters, label = BUILDERS[name]
    policy = parse_policy(changed("schema/quasi/country/hierarchy", {"builder": name, **parameters}))  # type: ignore[dict-item]
    assert label in policy.schema.quasi[1].hierarchy.labels


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"builder": "interval"}, "hierarchy.builder: must be one of intervals, quantiles, dates, prefixes (did you"),
        ({"builder": "intervals", "min": 0, "maks": 9}, "hierarchy.maks: unknown key; did you mean 'max'?"),
        ({"builder": "intervals", "min": 0, "max": 9, "widths": [5, 5]}, "widths must be positive and ascending"),
        ({"builder": "intervals", "min": 0, "max": 10**9}, "at most 200000 leaves are built"),
        ({"builder": "dates", "start": "0001-01-01", "end": "9999-12-31"}, "at most 200000 leaves are built"),
        ({"builder": "dates", "start": "today", "end": "2024-01-01"}, "hierarchy.start: must be a valid date"),
        ({"builder": "prefixes", "values": [53711]}, "hierarchy.values[0]: must be a valid string, given 53711"),
        ({"builder": "quantiles", "values": []}, "hierarchy.values: "),
    ],
)
def test_builders_answer_mistakes(source: Any, expected: str) -> None:
    found = problems(changed("schema/quasi/country/hierarchy", source))
    assert any(f"schema.quasi.country.{expected}" in problem or expected in problem for problem in found), found


def test_a_root_called_builder_is_no_builder() -> None:
    policy = parse_policy(changed("schema/quasi/country/hierarchy", {"builder": ["a", "b"]}))
    assert policy.schema.quasi[1].hierarchy.labels == ("builder", "a", "b")


def test_a_policy_cannot_ask_for_endless_counts() -> None:
    income = {"type": "number", "min": 0, "max": 10**12, "integer": True}
    assert "declare a coarser step" in problems(changed("schema/sensitive/income", income))[0]


def test_all_problems_come_at_once() -> None:
    policy = changed("schema/quasi/age/min", 99)
    policy["schema"]["quasi"]["country"]["hierarchy"] = {"A": [], "B": []}
    policy["guarantee"]["k"] = 0.5
    assert len(problems(policy)) == 3


def test_files_are_only_opened_for_a_policy_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("France;Europe;*\nJapan;Asia;*\n")
    policy = changed("schema/quasi/country/hierarchy", "c.csv")
    assert "cannot name files" in problems(policy)[0]
    assert parse_policy(policy, tmp_path).schema.quasi[1].size == 2
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    assert load_policy(tmp_path / "policy.yaml").schema.quasi[1].size == 2
    (tmp_path / "c.csv").unlink()
    with pytest.raises(PolicyError, match=r"policy\.yaml: schema\.quasi\.country\.hierarchy: .*c\.csv: cannot be read"):
        load_policy(tmp_path / "policy.yaml")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("guarantee/k", 6),
        ("schema/person", "id"),
        ("schema/person", {"row": True}),
        ("schema/quasi/age/max", 91),
        ("schema/quasi/age/step", 5),
        ("schema/quasi/age/weight", 3),
        ("schema/quasi/country/hierarchy", {"World": {"Europe": ["France"], "Asia": ["NO", "Japan"]}}),
        ("schema/sensitive/item/hierarchy", {"Any": ["Lamp", "Novel", "Kettle"]}),
        ("schema/public", []),
    ],
)
def test_the_fingerprint_changes_with_what_matters(path: str, value: Any) -> None:
    assert parse_policy(changed(path, value)).fingerprint() != parse_policy(POLICY).fingerprint()


def test_the_fingerprint_does_not_change_with_what_does_not() -> None:
    same = changed("name", "other")
    same["table"] = {"on_refused": "drop"}
    same["guarantee"] = {"k": 5}
    assert parse_policy(same).fingerprint() == parse_policy(POLICY).fingerprint()


def test_the_fingerprint_changes_with_the_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parse_policy(POLICY).fingerprint()
    monkeypatch.setattr("service.policy.fingerprint.DECODER_VERSION", 0)
    assert parse_policy(POLICY).fingerprint() != before


def test_the_fingerprint_sees_into_hierarchy_files(tmp_path: Path) -> None:
    policy = changed("schema/quasi/country/hierarchy", "c.csv")
    prints = []
    for content in ("France;Europe;*\nJapan;Asia;*\n", "France;Europe;*\nJapan;Europe;*\n"):
        (tmp_path / "c.csv").write_text(content)
        prints.append(parse_policy(policy, tmp_path).fingerprint())
    assert prints[0] != prints[1]


def test_an_unknown_value_may_have_a_leaf() -> None:
    policy = changed("schema/quasi/country/on_unknown", "other")
    policy["schema"]["quasi"]["country"]["other"] = "Japan"
    assert parse_policy(policy).schema.quasi[1].other == "Japan"
    policy["schema"]["quasi"]["country"]["other"] = "Mars"
    assert "other must be a leaf of the hierarchy, given 'Mars'" in problems(policy)[0]


@pytest.mark.parametrize("named", [{}, {"algorithm": None}], ids=["not named", "null"])
def test_an_audit_policy_runs_nothing(named: Any) -> None:
    policy = parse_policy({**POLICY, "guarantee": {**POLICY["guarantee"], **named}})  # type: ignore[dict-item]
    assert policy.kind == "audit"
    for run in (policy.algorithm, policy.engine):
        with pytest.raises(PolicyError, match=r"guarantee\.algorithm: a (table|stream) needs one of .*given nothing"):
            run()
    assert [model.name for model in policy.models()] == ["k-anonymity"]


CASTLE = {"algorithm": "castle", "k": 10, "l": 2, "delay": {"tuples": 50, "seconds": 5}}
STREAM = {"input": "orders.raw", "output": "orders.safe", "start": "earliest"}


def streaming(**changes: Any) -> Any:
    return {**POLICY, "guarantee": {**CASTLE, **changes}, "stream": STREAM}


def test_a_stream_policy_makes_engines() -> None:
    policy = parse_policy(streaming())
    assert policy.kind == "stream"
    assert policy.stream.emit == "clusters"  # type: ignore[union-attr]
    assert policy.engine() is not policy.engine()
    assert [model.name for model in policy.models()] == ["k-anonymity", "distinct-l-diversity"]
    with pytest.raises(PolicyError, match=r"a table needs one of .*given 'castle'"):
        policy.algorithm()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"delay": {"tuples": 5}}, "guarantee.delay: within δ=5 tuples there are never k=10 persons; the nearest"),
        ({"delay": {"tupels": 50}}, "guarantee.delay.tupels: unknown key; did you mean 'tuples'?"),
        ({"delay": {"tuples": 50, "seconds": 0}}, "guarantee.delay.seconds: must be greater than 0, given 0"),
        ({"l": 4}, "guarantee.l: "),
        ({"eta": 0}, "guarantee.eta: must be greater than or equal to 1, given 0"),
        ({"algorithm": ["castle"]}, "guarantee.algorithm: must be one of"),
        ({"algorithm": "mondrian"}, "guarantee.delay: unknown key"),
    ],
)
def test_stream_mistakes(changes: Any, expected: str) -> None:
    found = problems(streaming(**changes))
    assert any(expected in problem for problem in found), found


def test_a_stream_keeps_its_fingerprint_where_only_the_way_in_changes() -> None:
    original = parse_policy(streaming()).fingerprint()
    for change in ({"start": "latest"}, {"dead_letters": "dead"}, {"allow_compacted": True}):
        assert parse_policy({**streaming(), "stream": {**STREAM, **change}}).fingerprint() == original
    for change in ({"input": "other"}, {"output": "other"}, {"emit": "tuples"}):
        assert parse_policy({**streaming(), "stream": {**STREAM, **change}}).fingerprint() != original
    assert parse_policy(streaming(mu=7)).fingerprint() != original


def test_the_policy_has_a_json_schema() -> None:
    schema = policy_file(data_kind("records")).model_json_schema()
    parts = {"name", "data", "schema", "guarantee", "stream", "table", "show", "purposes", "purpose", "releases"}
    assert parts | {"attacks", "rejected", "preset"} == set(schema["properties"])
    assert schema["required"] == ["name", "schema", "guarantee"]


BALANCE = {"type": "number", "min": 0, "max": 1000, "integer": True}


def test_a_sensitive_number_may_have_declared_ranks() -> None:
    declared = changed("schema/sensitive/balance", {**BALANCE, "ranks": {"quantiles": [10, 20, 100]}})
    assert parse_policy(declared).schema.sensitive[1].ranks[[0, 10, 15, 20, 100, 1000]].tolist() == [
        0,
        250_000,
        375_000,
        500_000,
        750_000,
        1_000_000,
    ]


@pytest.mark.parametrize(
    ("path", "ranks", "said"),
    [
        ("schema/sensitive/balance", {"quantiles": [20, 10]}, "schema.sensitive.balance: quantiles must ascend"),
        ("schema/sensitive/balance", {"quantiles": [0, 10]}, "lie between min and max"),
        ("schema/sensitive/balance", {"quantiles": []}, "schema.sensitive.balance.ranks.quantiles"),
        ("schema/sensitive/balance", {"quantile": [10]}, "did you mean 'quantiles'?"),
        ("schema/quasi/balance", {"quantiles": [10]}, "schema.quasi.balance.ranks: only sensitive numbers have ranks"),
    ],
)
def test_ranks_that_cannot_be(path: str, ranks: Any, said: str) -> None:
    assert said in " ".join(problems(changed(path, {**BALANCE, "ranks": ranks})))


def test_declared_ranks_change_the_fingerprint_and_their_absence_does_not() -> None:
    plain = parse_policy(changed("schema/sensitive/balance", BALANCE))
    told = parse_policy(changed("schema/sensitive/balance", {**BALANCE, "ranks": {"quantiles": [10]}}))
    assert plain.fingerprint() != told.fingerprint()
    assert parse_policy(POLICY).fingerprint() == "0278c9d767525c99d76c89a982c2bfb6ac42d3ad7e120b1f8f96c3ff0f761db5"


ITEMS = [["Lamp"], ["Kettle"], ["Novel"]]
DEBTS = [[[500, 1000]], [[0, 499]]]


@pytest.mark.parametrize(
    ("path", "sensitivity", "categories"),
    [
        ("item", ITEMS, [0, 1, 2]),
        ("item", {"categories": [["Novel"], ["Lamp", "Kettle"]], "weights": [0.5, 1]}, [1, 1, 0]),
        ("item", [["Any"]], [0, 0, 0]),
        ("balance", DEBTS, [1] * 500 + [0] * 501),
    ],
)
def test_a_sensitive_attribute_may_have_categories(path: str, sensitivity: Any, categories: Any) -> None:
    field = {"item": POLICY["schema"]["sensitive"]["item"], "balance": BALANCE}[path]  # type: ignore[index]
    policy = parse_policy(changed(f"schema/sensitive/{path}", {**field, "sensitivity": sensitivity}))
    (attribute,) = [one for one in policy.schema.sensitive if one.name == path]
    assert attribute.category_of.tolist() == categories
    assert policy.fingerprint() != parse_policy(changed(f"schema/sensitive/{path}", field)).fingerprint()


@pytest.mark.parametrize(
    ("path", "sensitivity", "said"),
    [
        ("sensitive/balance", [[[0, 400]], [[500, 1000]]], "balance: sensitivity: a value belongs to no category"),
        ("sensitive/balance", [[[0, 400]], [[500, 1000]]], "401"),
        ("sensitive/balance", [[[0, 500]], [[500, 1000]]], "named twice, but has one category, given 500"),
        ("sensitive/balance", [["much"]], "a number or a range of two numbers is needed, given much"),
        ("sensitive/balance", [[[0, 10, 1000]]], "sensitivity.categories[0][0]: a value, a label of the hierarchy"),
        ("sensitive/balance", [[True]], "a value, a label of the hierarchy, or a range"),
        ("sensitive/balance", [[]], "schema.sensitive.balance.sensitivity.categories[0]"),
        ("sensitive/balance", [], "schema.sensitive.balance.sensitivity.categories"),
        ("sensitive/balance", {"categories": DEBTS, "weights": [1]}, "every category needs one weight"),
        ("sensitive/balance", {"categories": DEBTS, "weight": [0, 1]}, "did you mean 'weights'?"),
        ("quasi/balance", DEBTS, "schema.quasi.balance.sensitivity: only sensitive attributes have a sensitivity"),
    ],
)
def test_categories_that_cannot_be(path: str, sensitivity: Any, said: str) -> None:
    assert said in " ".join(problems(changed(f"schema/{path}", {**BALANCE, "sensitivity": sensitivity})))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("p_categories", 4, "guarantee.p_categories: p-plus-sensitivity cannot be met"),
        ("p_categories", 4, "nearest feasible value is 3"),
        ("p_categories", {"each": {"item": 2}, "every": 2}, "guarantee.p_categories: exactly one of every, each"),
        ("max_category_share", 0.2, "nearest feasible value is 0.3334"),
        ("alpha_weight", 0, "guarantee.alpha_weight"),
    ],
)
def test_guarantees_about_categories_that_cannot_be(key: str, value: Any, said: str) -> None:
    policy = changed("schema/sensitive/item/sensitivity", ITEMS)
    assert parse_policy({**policy, "guarantee": {"k": 2, "p_categories": 2}}).name == "orders"
    assert said in " ".join(problems({**policy, "guarantee": {"k": 2, key: value}}))


def keyed(person: Any, formats: Any) -> Any:
    policy: Any = copy.deepcopy(POLICY)
    policy["schema"]["person"] = person
    policy["guarantee"] = {"algorithm": "castle", "k": 2, "delay": {"tuples": 9}}
    policy["stream"] = {"input": "a", "output": "b", "start": "latest", "format": formats}
    return policy


@pytest.mark.parametrize(
    ("person", "formats", "expected"),
    [
        ({"key": True}, "avro", "stream.format.key: is missing: keys may carry the id of a schema"),
        ({"key": True}, "json-schema", "format: {input: json-schema, output: json-schema, key: raw}"),
        ({"key": True}, {"input": "protobuf"}, "stream.format.key: is missing"),
        ({"key": "id"}, "json", "schema.person: a raw key has no fields; say in stream.format.key how keys are"),
        ({"key": "id"}, {"key": "raw"}, "schema.person: a raw key has no fields"),
        ({"key": True}, {"key": "protobuf"}, "schema.person: a key of Protobuf is a message; name its field"),
        (
            "who",
            {"key": "avro"},
            "stream.format.key: the person is not in the record key (schema.person)",
        ),
        ({"key": True}, {"key": "xml"}, "must be one of raw, json, avro, protobuf, json-schema"),
        ({"key": True}, {"key": {"type": "avro", "register": False}}, "leave register out"),
        ({"key": True}, {"key": {"type": "json", "subject": "x"}}, "json has no schema"),
        ({"key": True}, {"key": {"type": "avro", "schema": "nowhere.avsc"}}, "stream.format.key.schema: no such file"),
        ({"key": "a..b"}, {"key": "json"}, "schema.person: a field name must not be empty"),
        ({"key": ""}, {"key": "json"}, "schema.person: a field name, {key: true}, {key: FIELD} or {row: true}"),
    ],
)
def test_who_is_the_person_of_a_record_key_is_said_completely(person: Any, formats: Any, expected: str) -> None:
    found = problems(keyed(person, formats))
    assert any(expected in problem for problem in found), found


@pytest.mark.parametrize(
    ("person", "formats", "key"),
    [
        ({"key": True}, "json", None),
        ({"key": True}, {"input": {"type": "avro", "schema": "order.avsc"}, "output": "json"}, None),
        ({"key": True}, {"input": "avro", "output": "avro", "key": "raw"}, "raw"),
        ({"key": "who.id"}, {"key": {"type": "protobuf", "message": "Who", "subject": "names"}}, "protobuf"),
    ],
)
def test_a_policy_says_how_record_keys_are_written(tmp_path: Path, person: Any, formats: Any, key: Any) -> None:
    (tmp_path / "order.avsc").write_text("{}")
    policy = parse_policy(keyed(person, formats), tmp_path)
    assert (policy.format.key and policy.format.key.type) == key
    assert policy.schema.key_field == (None if person == {"key": True} else "who.id")

"""Policies that are small to send and would be large to read, and what stops those that nobody has thought of."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import service.api.policy_reader
from load_tests.http_bombs import BOMBS, FILES, MOST, naming, policy
from service.api.policy_reader import PolicyReader
from service.kinds.records.schema import MAX_FIELDS, MAX_VALUES
from service.policy import PolicyError, load_policy, parse_policy
from service.policy.errors import MAX_PROBLEMS
from service.policy.hierarchies import MAX_CELLS, MAX_CELLS_OF_FILES, MAX_LEVELS
from tests.service.api.api_world import parts, policy_text
from tests.service.cli.cli_world import POLICY

USABLE = {
    "a flat tree",
    "a tree in YAML",
    "80,000 days",
    "80,000 numbers",
    "100 prefixes",
    "100 widths",
    "999 trees",
    "999 strong attributes",
    "a million values",
    "999 semantic trees",
    "half a million dots",
    "999 names of 400 dots",
    "as long as CASTLE waits",
    "emoji",
    "8 MB of long labels",
    "199,000 leaves",
    "3,900 leaves on 100 levels",
    "196 leaves, 999 times",
}
"""These are large, but within the bounds."""


LIMITED = {"as many boxes as CASTLE keeps"}
"""No bound stops these, since a stream with fewer fields may have as many; they are stopped by the limit of memory."""


@pytest.mark.parametrize("name", [*BOMBS, *FILES])
def test_a_policy_that_would_be_large_is_answered(client: Any, name: Any) -> None:
    if name in BOMBS:
        text = BOMBS[name]()
        assert len(text.encode()) <= MOST
        answer = client.post("/v1/policies/check", content=text.encode())
    else:
        times, make = FILES[name]
        files = {"policy": ("p", naming(times)), "hierarchies": ("h.csv", make())}
        answer = client.post("/v1/policies/check", files=files)
    assert answer.status_code == 200, answer.text[:200]
    found = answer.json()
    assert found["usable"] == (name in USABLE), found["problems"][:3]
    assert len(answer.content) < 100_000
    over_the_limit = any("reading it takes more than" in one["reason"] for one in found["problems"])
    assert over_the_limit == (name in LIMITED), "the bounds are enough for all others"


def problems(given: Any) -> Any:
    with pytest.raises(PolicyError) as error:
        parse_policy(given)
    return error.value.problems


def category(**tree: Any) -> Any:
    return {"type": "category", "hierarchy": tree}


def test_leaves_times_levels_are_counted_over_the_whole_policy() -> None:
    one = category(builder="intervals", min=0, max=39_999, widths=[10, 100, 1000])
    half = policy(quasi={"a": one, "b": one})
    assert parse_policy(half).name == "bomb"
    found = problems(policy(quasi={"a": one, "b": one, "c": one}))
    assert [one.path for one in found] == ["schema.quasi.c.hierarchy"]
    assert str(MAX_CELLS) in found[0].reason


def test_a_file_on_this_machine_may_be_larger_but_not_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{leaf};{leaf // 10}x;*\n" for leaf in range(MAX_CELLS // 3 + 1))
    (tmp_path / "tree.csv").write_text(rows)
    (tmp_path / "policy.json").write_text(
        json.dumps(policy(quasi={"a": {"type": "category", "hierarchy": "tree.csv"}}))
    )
    assert load_policy(tmp_path / "policy.json").schema.quasi[0].size == MAX_CELLS // 3 + 1
    monkeypatch.setattr("service.policy.hierarchies.MAX_CELLS_OF_FILES", MAX_CELLS)
    with pytest.raises(PolicyError, match=f"more than {MAX_CELLS} labels"):
        load_policy(tmp_path / "policy.json")
    assert MAX_CELLS_OF_FILES > MAX_CELLS


@pytest.mark.parametrize("fields", [MAX_FIELDS, MAX_FIELDS + 1])
def test_a_policy_declares_so_many_fields_and_no_more(fields: Any) -> None:
    given = policy(public=[f"p{number}" for number in range(fields - 1)])
    if fields > MAX_FIELDS:
        assert [one.path for one in problems(given)] == ["schema"]
    else:
        assert len(parse_policy(given).schema.public) == fields - 1


def test_values_are_counted_over_all_sensitive_attributes() -> None:
    half = {"type": "number", "min": 1, "max": MAX_VALUES // 2, "integer": True}
    assert parse_policy(policy(sensitive={"a": half, "b": half})).name == "bomb"
    found = problems(policy(sensitive={"a": half, "b": half, "c": {**half, "max": 1}}))
    assert [one.path for one in found] == ["schema.sensitive.c"]


def test_as_many_problems_are_told_as_somebody_may_read() -> None:
    found = problems({**policy(), **{f"x{number}": 1 for number in range(1_000)}})
    assert len(found) == MAX_PROBLEMS + 1
    assert "more problems" in found[-1].reason


@pytest.mark.parametrize(
    "builder", [{"builder": "intervals", "min": 0, "max": 4}, {"builder": "quantiles", "values": [1, 2]}]
)
@pytest.mark.parametrize("levels", [MAX_LEVELS, MAX_LEVELS + 1])
def test_so_many_levels_are_built_and_no_more(builder: Any, levels: Any) -> None:
    key = "widths" if builder["builder"] == "intervals" else "levels"
    numbers = [*range(1, levels + 1)] if key == "widths" else [*range(levels, 0, -1)]
    given = policy(quasi={"a": category(**builder, **{key: numbers})})
    if levels > MAX_LEVELS:
        assert [one.path for one in problems(given)] == [f"schema.quasi.a.hierarchy.{key}"]
    else:
        assert parse_policy(given).name == "bomb"


def sent(rows: Any, times: int = 1) -> Any:
    quasi = {f"f{number}": {"type": "category", "hierarchy": "h.csv"} for number in range(times)}
    return parse_policy(policy(quasi=quasi), sent={"h.csv": rows})


def test_a_row_that_was_sent_has_so_many_labels_and_no_more() -> None:
    way_up = ";".join(str(level) for level in range(MAX_LEVELS))
    assert sent(way_up).schema.quasi[0].size == 1
    with pytest.raises(PolicyError, match=f"row 1 has more than {MAX_LEVELS} labels"):
        sent(f"{way_up};*")


def test_a_file_counts_as_often_as_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "a;*\nb;*\n"
    monkeypatch.setattr("service.policy.hierarchies.MAX_SENT", 3 * len(rows))
    assert len(sent(rows, times=3).schema.quasi) == 3
    with pytest.raises(PolicyError, match="counted as often as it is named"):
        sent(rows, times=4)


def test_rows_that_hold_nothing_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.policy.hierarchies.MAX_CELLS", 10)
    assert sent("\n" * 8 + "a;*\n").schema.quasi[0].size == 1
    with pytest.raises(PolicyError, match="more than 10 labels"):
        sent("\n" * 9 + "a;*\n")


def test_what_aliases_stand_for_is_counted_in_characters() -> None:
    label = "x" * (MOST // 4)
    text = f"schema: {{a: &a {label}, b: *a, c: *a}}\nguarantee: {{k: 5}}\n"
    assert "is missing" in problems(text)[0].reason
    assert "aliases expanded" in problems(text.replace("c: *a", "c: *a, d: *a"))[0].reason


@pytest.mark.parametrize("formation", ["deadline", "arrival"])
def test_to_read_a_policy_for_a_stream_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch, formation: str) -> None:
    monkeypatch.setattr(f"stream_algos._{formation}_kernels.refill", None)
    guarantee = {"algorithm": "castle", "k": 2, "delta": 10, "formation": formation}
    assert parse_policy({**policy(), "guarantee": guarantee}).models()


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b.c", "a.b"), ("x", "a", "ab", "a.c.d")])
def test_a_field_inside_another_is_found(names: Any) -> None:
    given = policy(quasi={name: {"type": "number", "min": 0, "max": 1} for name in names})
    assert "contains another declared field" in problems(given)[0].reason


def test_a_stored_policy_with_large_hierarchies_can_be_named(client: Any) -> None:
    labels = "".join(f"label number {number};*\n" for number in range(80_000))
    given = policy_text("big").replace("{World: {North: [Oslo, Umea], South: [Rome, Bari]}}", "tree.csv")
    files = {"policy": ("p", given), "hierarchies": ("tree.csv", labels)}
    stored = client.put("/v1/policies/big", files=files)
    assert stored.status_code == 201, stored.text[:300]
    if "tree.csv" in given:
        assert len(stored.json()["text"]) > MOST
    sent = {**parts(), "policy_name": (None, "big")}
    del sent["policy"]
    assert client.post("/v1/jobs", files=sent).status_code == 202


# ---- what the bounds have missed


def slow(raw: Any, hierarchies: Any) -> None:
    until = time.process_time() + 60
    while time.process_time() < until:
        pass


def hungry(raw: Any, hierarchies: Any) -> Any:
    return [bytearray(1 << 26) for _ in range(64)]


def clumsy(raw: Any, hierarchies: Any) -> None:
    raise RuntimeError("Zq7mark must not be seen")


def serve_odd_policies(pipe: Any, seconds: Any, memory: Any) -> None:
    """Main function of a process that reads policies badly when their name says so."""
    plain = service.api.policy_reader.given_policy  # type: ignore[attr-defined]
    odd = {b"slow": slow, b"hungry": hungry, b"clumsy": clumsy}
    service.api.policy_reader.given_policy = lambda raw, hierarchies: odd.get(raw[:6].strip(), plain)(raw, hierarchies)  # type: ignore[attr-defined]
    PLAIN_SERVE(pipe, seconds, memory)


PLAIN_SERVE = service.api.policy_reader.serve_policies


def serve_policies_late(pipe: Any, seconds: Any, memory: Any) -> None:
    """Main function of a process on a machine that is busy when it starts."""
    time.sleep(4)
    PLAIN_SERVE(pipe, seconds, memory)


def test_the_start_of_a_process_is_not_held_against_a_policy(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.api.policy_reader, "serve_policies", serve_policies_late)
    monkeypatch.setattr(service.api.policy_reader, "_WAIT_SECONDS", 3.0)
    assert client.post("/v1/policies/check", content=POLICY).json()["usable"]


@pytest.fixture
def open_odd_client(open_client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(service.api.policy_reader, "serve_policies", serve_odd_policies)
    return open_client


@pytest.fixture
def odd_client(open_odd_client: Any) -> Any:
    return open_odd_client(policy_seconds=1)


# To touch 512 MB takes more than a second of a busy machine: who is hungry has time.
@pytest.mark.parametrize(
    ("text", "seconds", "reason"), [("slow", 1, "more than 1 s"), ("hungry", 30, "more than 512 MB")]
)
def test_a_policy_that_takes_too_much_is_refused_and_takes_nothing_down(
    open_odd_client: Any, text: str, seconds: int, reason: str
) -> None:
    odd_client = open_odd_client(policy_seconds=seconds)
    for _ in range(2):
        found = odd_client.post("/v1/policies/check", content=text).json()
        assert not found["usable"]
        assert reason in found["problems"][0]["reason"]
        assert odd_client.post("/v1/policies/check", content=POLICY).json()["usable"]


def test_a_fault_in_reading_shows_no_value(odd_client: Any) -> None:
    answer = odd_client.post("/v1/policies/check", content="clumsy")
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:portcullis:problem:internal")
    assert "Zq7mark" not in answer.text
    assert odd_client.post("/v1/policies/check", content=POLICY).json()["usable"]


def test_who_sends_too_much_at_once_is_told_to_come_back(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service.api.policy_reader, "_MOST_WAITING", 10)
    answer = client.post("/v1/policies/check", content=POLICY)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


def test_processes_end_with_the_service(client: Any) -> None:
    assert client.post("/v1/policies/check", content=POLICY).json()["usable"]
    reader: PolicyReader = client.app.state.service.policies
    running = [one._process for one in reader._processes if one._process is not None]
    assert [one.is_alive() for one in running] == [True]
    reader.close()
    assert all(one._process is None for one in reader._processes)

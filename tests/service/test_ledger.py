"""The ledger: which releases of a data set are comparable, and that others do not leave."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import yaml

from microdata import DataError
from service.ledger import Facts, IncomparableError, LedgerFile, Released, comparable
from tests.service.cli.cli_world import MARK, table_text
from tests.service.policy.test_purposes import PURPOSES, given


def facts(age: int, city: int, table: str = "t", ladder: str | None = "l") -> Facts:
    return Facts(table, ladder, {"age": age, "city": city})


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (facts(1, 1), True),
        (facts(0, 1), True),
        (facts(0, 0), True),
        (facts(3, 1), True),
        (facts(2, 0), False),
        (facts(0, 2), False),
        (facts(1, 1, table="u"), False),
        (facts(1, 1, ladder="m"), False),
        (facts(1, 1, ladder=None), False),
        (Facts("t", "l", None), False),
        (Facts("t", "l", {"age": 1}), False),
    ],
)
def test_comparable_is_what_can_be_computed_from_the_other(other: Facts, expected: bool) -> None:
    assert comparable(facts(1, 1), other) is comparable(other, facts(1, 1)) is expected


def test_what_has_no_levels_is_comparable_with_nothing() -> None:
    assert not comparable(Facts("t"), Facts("t"))


def release(own: Facts, data_set: str = "shops") -> Released:
    return Released.now(data_set, "shop", "maps", "alice", own)


def test_a_file_keeps_releases_and_refuses_what_may_be_joined(tmp_path: Path) -> None:
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    ledger.add(release(facts(1, 1)), allow=False)
    ledger.add(release(facts(2, 1)), allow=False)
    with pytest.raises(IncomparableError, match="1 earlier releases"):
        ledger.add(release(facts(1, 2)), allow=False)
    ledger.add(release(facts(1, 2), data_set="others"), allow=False)
    assert [one.facts.levels for one in ledger.releases()] == [
        {"age": 1, "city": 1},
        {"age": 2, "city": 1},
        {"age": 1, "city": 2},
    ]
    ledger.add(release(facts(0, 5)), allow=True)
    assert len(ledger.releases()) == 4


def test_a_damaged_ledger_refuses_everything(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text('{"data_set": "shops"}\n')
    with pytest.raises(DataError, match="line 1 is no release"):
        LedgerFile(path).add(release(facts(1, 1)), allow=False)
    with pytest.raises(DataError, match="cannot be written"):
        LedgerFile(tmp_path / "none" / "ledger").add(release(facts(1, 1)), allow=False)


def _add(path: Path, levels: tuple[int, int], results: Any) -> None:
    try:
        LedgerFile(path).add(release(facts(*levels)), allow=False)
    except IncomparableError:
        results.put("refused")
    else:
        results.put("kept")


@pytest.mark.slow
def test_of_two_at_the_same_moment_one_is_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    two = [context.Process(target=_add, args=(tmp_path / "ledger", levels, results)) for levels in ((0, 1), (1, 0))]
    for one in two:
        one.start()
    found = {results.get(timeout=60) for _ in two}
    for one in two:
        one.join()
    assert found == {"kept", "refused"}


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """A table and a policy with purposes."""
    (tmp_path / "table.csv").write_text(table_text())
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(given()))
    return tmp_path


def run(portcullis: Any, shop: Any, *more: Any, out: str = "safe.csv", ledger: str | None = "ledger.jsonl") -> Any:
    kept = () if ledger is None else ("--ledger", shop / ledger)
    arguments = ("--policy", shop / "policy.yaml", "--out", shop / out, *kept, *more)
    return portcullis("anonymize", shop / "table.csv", *arguments, "--overwrite")


def test_a_second_incomparable_release_is_refused_and_not_written(portcullis: Any, shop: Any) -> None:
    first = run(portcullis, shop, "--purpose", "research", "--report", shop / "report.json")
    assert first.exit_code == 0, first.output
    told = json.loads((shop / "report.json").read_text())["details"]
    assert told["requested_degree"] == pytest.approx(1 - 0.9**2)
    assert told["achieved_degree"] >= told["requested_degree"] - 1e-9
    assert told["priorities"]["age"] == 1
    second = run(portcullis, shop, "--purpose", "maps", out="maps.csv")
    assert second.exit_code == 2, second.output
    assert "neither finer nor coarser" in second.stderr
    assert not (shop / "maps.csv").exists()
    # The same again tells nothing new; another table of the same data does, by whatever it has more.
    assert run(portcullis, shop, "--purpose", "research", out="again.csv").exit_code == 0
    (shop / "table.csv").write_text(table_text(81))
    assert run(portcullis, shop, "--purpose", "research", out="more.csv").exit_code == 2
    assert len((shop / "ledger.jsonl").read_text().splitlines()) == 2
    assert MARK not in (shop / "ledger.jsonl").read_text() + second.output


def test_a_policy_may_allow_it_and_must_name_a_ledger(portcullis: Any, shop: Any) -> None:
    refused = run(portcullis, shop, "--purpose", "maps", ledger=None)
    assert refused.exit_code == 2
    assert "--ledger" in refused.stderr
    assert run(portcullis, shop).exit_code == 2  # no purpose
    (shop / "policy.yaml").write_text(yaml.safe_dump(given(releases={"data_set": "shops", "incomparable": "allow"})))
    for purpose in PURPOSES:
        assert run(portcullis, shop, "--purpose", purpose).exit_code == 0
    (shop / "policy.yaml").write_text(yaml.safe_dump(given(releases=None, purposes=None)))
    assert run(portcullis, shop).exit_code == 2  # a ledger without a data set

"""The demo as a user runs it: a real broker process, a real worker process, and an audit that can fail."""

import io
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from service.cli.demo import _panel
from service.demo import Demo, world
from tests.service.kafka.world import eventually


def test_the_demo_ends_by_itself_with_an_audit_of_everything() -> None:
    command = [sys.executable, "-m", "service", "demo", "--events", "3000", "--exit"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no event left twice" in result.stdout
    assert "NO" not in result.stdout


EVENTS = 6000
"""More than wait for company in both partitions, so that rows leave at once too."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with Demo(tmp_path_factory.mktemp("demo"), EVENTS, rate=None, traced=True) as show:
        world._eventually(show.settled, "not settled")
        yield show


@pytest.fixture
def found(finished: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The checks that do not hold where something else was published, or the worker says something else."""

    def look(messages: Any = None, **counts: int) -> set[str]:
        status = finished.status()
        status["counts"] |= counts
        with monkeypatch.context() as patch:
            patch.setattr(finished, "status", lambda: status)
            if messages is not None:
                patch.setattr(finished, "_published", lambda: iter(messages))
            return {name for name, holds in finished.audit().checks if not holds}

    return look


@pytest.fixture
def messages(finished: Any) -> list[Any]:
    return list(finished._published())


TWICE = "no event left twice"
LOST = "every event is accounted for"
STRANGE = "every row is an order as it was, and nothing undeclared left"
OUTSIDE = "every row lies inside its box"
LINKED = "k persons of the partition lie in all boxes of everybody"
UNIFORM = "l values left with every box or one around it"
ALL = {"age": [16, 90], "postcode": "*", "country": "World", "education": "Any"}


def test_the_audit_of_the_demo_finds_nothing_wrong(finished: Any, found: Any, messages: Any) -> None:
    assert found() == set()
    assert len({message["cluster"] for message in messages}) < len(messages), "boxes get further rows"
    summary = dict(finished.audit().summary)
    assert int(summary["fewest persons in all boxes of one of them, asked 10"]) >= 10
    tied = int(summary["persons whose rows were tied together"].replace(",", ""))
    assert tied > 0.9 * EVENTS / 5, "nearly all customers"


def test_the_audit_of_the_demo_sees_rows_that_are_there_twice_or_not_at_all(found: Any, messages: Any) -> None:
    assert found([*messages, messages[0]]) >= {TWICE, LOST}
    assert found(messages[1:]) == {LOST}
    assert found([]) >= {LOST, LINKED, UNIFORM}


def test_the_audit_of_the_demo_sees_what_was_refused(found: Any) -> None:
    assert found(**{"refused.other_partition": 1}) == {"no order was refused", LOST}
    assert found(refused_releases=1) == {"no release was refused by a check"}


@pytest.mark.parametrize(
    "change",
    [
        lambda row: {**row, "item": "Kettle" if row["item"] == "Lamp" else "Lamp"},
        lambda row: {**row, "shop": "nowhere"},
        lambda row: {**row, "customer_id": "c000001"},
        lambda row: {**row, "order": EVENTS},
        lambda row: {**row, "order": "1"},
        lambda row: {name: value for name, value in row.items() if name != "item"},
    ],
)
def test_the_audit_of_the_demo_sees_rows_that_are_not_what_was_ordered(found: Any, messages: Any, change: Any) -> None:
    first, *others = messages[0]["rows"]
    assert STRANGE in found([{**messages[0], "rows": [change(first), *others]}, *messages[1:]])


def test_the_audit_of_the_demo_sees_what_messages_say_beside_their_rows(found: Any, messages: Any) -> None:
    assert found([{**messages[0], "offset": 7}, *messages[1:]]) == {STRANGE}
    box = {**messages[0]["generalization"], "customer_id": "c000001"}
    assert found([{**messages[0], "generalization": box}, *messages[1:]]) == {STRANGE}


def test_the_audit_of_the_demo_sees_a_box_that_is_elsewhere(found: Any, messages: Any) -> None:
    moved = {**messages[0], "generalization": {**messages[0]["generalization"], "age": [90, 90]}}
    assert OUTSIDE in found([moved, *messages[1:]])


def test_the_audit_of_the_demo_ties_rows_together(found: Any, messages: Any) -> None:
    """Nearly everybody lies in each of the two boxes, and only those of one age in both."""
    orders = pa.concat_tables(world._orders(EVENTS)).to_pylist()
    ages = Counter({order["customer_id"]: order["age"] for order in orders}.values())
    bought = Counter(order["customer_id"] for order in orders)
    victim = next(order for order in orders if ages[order["age"]] < 10 and bought[order["customer_id"]] > 1)
    older, younger = {**ALL, "age": [victim["age"], 90]}, {**ALL, "age": [16, victim["age"]]}

    def published(*boxes: Any) -> Any:
        """Every order in the box of all, but those of the victim in turn in these."""
        turns = itertools.cycle(boxes)
        for message in messages:
            for row in message["rows"]:
                own = orders[row["order"]]["customer_id"] == victim["customer_id"]
                yield {"cluster": "0", "generalization": next(turns) if own else ALL, "rows": [row]}

    assert found(list(published(older))) == set()
    assert found(list(published(younger))) == set()
    assert found(list(published(older, younger))) == {LINKED}


def test_the_audit_of_the_demo_sees_boxes_with_which_one_value_left(found: Any, messages: Any) -> None:
    lamps = [{**message, "rows": [row for row in message["rows"] if row["item"] == "Lamp"]} for message in messages]
    assert found(lamps) == {LOST, UNIFORM}


def test_the_panel_shows_what_a_viewer_looks_for(finished: Any) -> None:
    with Console(record=True, file=io.StringIO()) as console:
        console.print(_panel(finished))
    shown = console.export_text()
    for words in ("events taken", "events released", "k-over-time, asked 10", "loss", "delay (recent), at most 20 s"):
        assert words in shown
    assert re.search(r"asked 10 +│ +[1-9][0-9]+ ", shown), "a cohort has at least as many persons as asked"
    for words in ("of them at once", "customers known", "cohorts"):
        assert re.search(rf"{words} +│ +[1-9][0-9,]* ", shown)


def fetched(url: Any) -> Any:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.read()
    except OSError:
        return b""


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_everything_in_order_and_without_a_word_too_many(ending: Any) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "service", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    told = ""
    while "Ctrl-C ends everything" not in told:
        line = demo.stdout.readline()  # type: ignore[union-attr]
        assert line, demo.stderr.read()  # type: ignore[union-attr]
        told += line
    assert f"{sys.executable} -c" in told
    console = re.search(r"Console: (\S+)", told)[1]  # type: ignore[index]
    eventually(lambda: b"orders" in fetched(f"{console}v1/streams"))
    os.killpg(demo.pid, ending)  # as a terminal does
    rest, said = demo.communicate(timeout=240)
    assert (rest, said, demo.returncode) == ("stopping\n", "", 0)
    worker = re.search(r"worker on http://127.0.0.1:(\d+)/", told)[1]  # type: ignore[index]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(worker)))
    assert fetched(console) == b"", "the console ended too"

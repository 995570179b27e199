"""The demo as a user runs it: a real broker process, a real worker process, and an audit that can fail."""

import io
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from service import demo
from service.cli.demo import _panel
from service.demo import Demo
from tests.service.kafka.world import eventually


def test_the_demo_ends_by_itself_with_an_audit_of_everything() -> None:
    command = [sys.executable, "-m", "service", "demo", "--events", "3000", "--exit"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no event left twice" in result.stdout
    assert "NO" not in result.stdout


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[Any]:
    with Demo(tmp_path, 2000, rate=None, traced=True) as show:
        demo._eventually(show.settled, "not settled")
        yield show


def test_the_audit_of_the_demo_sees_what_is_wrong(finished: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = list(finished._published())
    assert finished.audit().holds

    def found(changed: Any) -> Any:
        monkeypatch.setattr(finished, "_published", lambda: iter(changed))
        return {name: holds for name, holds in finished.audit().checks if not holds}

    assert "no event left twice" in found([*clusters, clusters[0]])
    assert "every event is accounted for" in found(clusters[1:])
    small = [{**clusters[0], "rows": clusters[0]["rows"][:2]}, *clusters[1:]]
    assert "k-anonymity holds for every cluster" in found(small)
    moved = [{**clusters[0], "generalization": {**clusters[0]["generalization"], "age": [16, 16]}}, *clusters[1:]]
    assert any("box" in name for name in found(moved))


def test_the_panel_shows_what_a_viewer_looks_for(finished: Any) -> None:
    with Console(record=True, file=io.StringIO()) as console:
        console.print(_panel(finished))
    shown = console.export_text()
    for words in ("events taken", "events released", "k-anonymity, asked 10", "loss", "delay (recent), at most 20 s"):
        assert words in shown
    assert re.search(r"asked 10 +│ +[1-9][0-9]+ ", shown), "a cluster has at least as many persons as asked"


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

"""Peers are judged by our audit; one that fails is told with its reason and takes nothing down."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from load_tests import peers
from load_tests.generators import PEER_QUASI, adult_like
from microdata import Hierarchy, Publication


@pytest.fixture(scope="module")
def dataset() -> Any:
    return adult_like(PEER_QUASI, (peers.SENSITIVE,))


def test_every_peer_has_a_program_of_its_own_and_a_fixed_version() -> None:
    programs = {path.stem.removeprefix("run_") for path in peers.PROGRAMS.glob("run_*.py")}
    asked = {peer for contest in peers.CONTESTS for peer in contest.peers} | {"pycanon"}
    assert programs == asked == set(peers.REQUIREMENTS)
    assert all("==" in requirements[0] for requirements in peers.REQUIREMENTS.values())


def test_environments_are_made_outside_of_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = []
    monkeypatch.setattr(peers, "CACHE", tmp_path)
    monkeypatch.setattr(peers, "run", lambda command, seconds: commands.append([str(part) for part in command]))
    (tmp_path / "anonypy-0.2.1").mkdir()
    python = peers.environment("anonypy")
    assert python == tmp_path / "anonypy-0.2.1" / "bin" / "python"
    assert [command[2] for command in commands] == ["venv", "pip"]
    peers.environment("anonypy")
    assert len(commands) == 2


@pytest.mark.parametrize(
    ("program", "seconds", "reason"),
    [
        ("import sys; sys.exit('out of memory')", 60, "status 1: out of memory"),
        ("import time; time.sleep(60)", 0.5, "not done after"),
        ("import sys; sys.exit(3)", 60, "status 3: it said nothing"),
    ],
)
def test_a_peer_that_fails_is_told_by_its_reason(program: str, seconds: Any, reason: str) -> None:
    with pytest.raises(peers.PeerFailedError, match=reason):
        peers.run([sys.executable, "-c", program], seconds)


class Fake(peers.Peers):
    """Peers that answer without an environment."""

    def answer(self, peer: Any, **asked: Any) -> Any:
        if peer != "anonypy":
            raise peers.PeerFailedError("no wheel for this machine")
        return {"seconds": 9.0, "classes": self.labels}  # type: ignore[attr-defined]


def test_what_a_peer_made_is_audited(dataset: Any, tmp_path: Path) -> None:
    table = dataset.table(300)
    fake = Fake(dataset, 300, tmp_path, 60.0)
    fake.labels = [row // 5 for row in range(300)]  # type: ignore[attr-defined]  # classes of five, where ten were asked for
    ours, anonypy, anjana = peers.compete(peers.CONTESTS[0], table, fake)
    assert ours["holds"]
    assert (anonypy["classes"], anonypy["holds"], anonypy["achieved"]) == (60, False, "k-anonymity 5")
    assert anjana["failed"] == "no wheel for this machine"
    assert all("failed" in row for row in peers.check(table, fake))
    fake.labels = [-1] * 300  # type: ignore[attr-defined]
    assert not peers.compete(peers.CONTESTS[0], table, fake)[1]["holds"]


def test_peers_are_given_the_same_rows_and_hierarchies(dataset: Any, tmp_path: Path) -> None:
    fake = peers.Peers(dataset, 50, tmp_path, 60.0)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert len(lines) == 51
    assert [name.strip('"') for name in lines[0].split(",")] == [*PEER_QUASI, peers.SENSITIVE]
    assert set(fake.description["hierarchies"]) == set(PEER_QUASI)
    assert all(len({len(path) for path in paths}) == 1 for paths in fake.description["hierarchies"].values())  # type: ignore[attr-defined]
    json.dumps(fake.description)


def test_ways_of_unequal_length_are_made_equal() -> None:
    uneven = Hierarchy.from_rows([["c", "b", "a", "all"], ["d", "all"]])
    assert peers._levels(uneven) == [["c", "b", "a", "all"], ["d", "all", "all", "all"]]


def test_labels_become_a_publication(dataset: Any) -> None:
    table = dataset.table(20)
    publication = Publication.of(table, np.array([0] * 10 + [-1] * 10))
    row = peers.judged(peers.CONTESTS[0], "somebody", 1.0, publication)
    assert (row["classes"], row["suppressed"], row["holds"]) == (1, 10, True)

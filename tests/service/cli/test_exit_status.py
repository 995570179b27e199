"""Every ending has its own exit status, in one table; what is outside of Portcullis is told in plain words."""

import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import service.kinds.records.tables
from service.cli.commands import COMMANDS
from service.exit_status import MEANINGS, UNAVAILABLE, WRONG_USE
from service.ports import free_port

ROOT = Path(__file__).parents[3]
POLICY = ROOT / "examples/orders/policy.yaml"


@contextmanager
def taken() -> Iterator[Any]:
    """A port on which somebody else listens, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@contextmanager
def command(*arguments: Any) -> Iterator[Any]:
    """A command as a process; its output is read line by line."""
    asked = [sys.executable, "-m", "service", *map(str, arguments)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as running:
        try:
            yield running
        finally:
            running.kill()


def words(text: Any) -> Any:
    return " ".join(text.split())


def test_the_help_lists_every_status(portcullis: Any) -> None:
    told = words(portcullis("--help").stdout)
    for status, meaning in MEANINGS.items():
        assert f"{status} {meaning}" in told


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # kafka-python's protocol package, on import
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in {"policy", "token", "key", "evidence"}])
def test_the_help_of_a_command_lists_its_statuses(portcullis: Any, name: Any) -> None:
    told = words(portcullis(name, "--help").stdout)
    for status in COMMANDS[name].statuses:
        assert f"{status} {MEANINGS[status]}" in told


def test_the_documentation_has_the_same_table() -> None:
    page = (ROOT / "docs/production.md").read_text()
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE))
    assert rows == {str(status): meaning for status, meaning in MEANINGS.items()}


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")
@pytest.mark.parametrize(
    "arguments",
    [
        ("broker", "--port", "{port}"),
        ("demo", "--port", "{port}"),
        ("serve", "--data", "{data}", "--port", "{port}"),
        ("run", str(POLICY), "--bootstrap", "127.0.0.1:1", "--status-port", "{port}"),
    ],
)
def test_a_port_that_is_taken_is_told_with_what_to_do(tmp_path: Path, arguments: Any) -> None:
    with taken() as port:
        given = [each.format(port=port, data=tmp_path) for each in arguments]
        with command(*given) as running:
            output, _ = running.communicate(timeout=240)
    assert f"cannot listen on 127.0.0.1:{port}: another program listens there; choose another port" in output
    assert running.returncode == UNAVAILABLE
    assert "please report" not in output
    assert "Portcullis on" not in output


def test_the_service_says_where_it_is_when_it_listens(tmp_path: Path) -> None:
    with command("serve", "--port", 0, "--data", tmp_path, "--job-workers", 0) as running:
        address = next(line for line in running.stdout if line.startswith("Portcullis on ")).split()[2].rstrip(",")
        with urllib.request.urlopen(f"{address}healthz", timeout=240) as answer:
            assert answer.status == 200


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")
def test_a_service_without_its_certificate_is_wrong_use(
    portcullis: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CERTIFICATE", "KEY"):
        monkeypatch.setenv(f"PORTCULLIS_TLS_{name}", str(tmp_path / "missing.pem"))
    result = portcullis("serve", "--port", 0, "--data", tmp_path)
    assert result.exit_code == WRONG_USE
    assert "needed are PEM files" in words(result.output)


@pytest.mark.parametrize("name", ["a b", "", "ä", "-" * 3 + "x", "x" * 101])
def test_a_name_that_no_token_can_have_is_told_with_what_is_allowed(portcullis: Any, name: Any) -> None:
    result = portcullis("token", "new", "--", name)
    assert result.exit_code == WRONG_USE
    assert "letters, digits, '.', '_' and '-' are allowed" in words(result.output)
    assert "please report" not in result.output


def test_a_full_disk_is_no_fault_of_ours(portcullis: Any, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(service.kinds.records.tables, "read_table", full)
    result = portcullis("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv")
    assert (result.exit_code, result.stderr) == (UNAVAILABLE, "error: No space left on device\n")


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
def test_a_drain_without_a_broker_says_so_and_is_not_wrong_use(client: str) -> None:
    place = f"127.0.0.1:{free_port()}"
    with command("drain", POLICY, "--bootstrap", place, "--client", client) as running:
        output, _ = running.communicate(timeout=240)
    assert running.returncode == UNAVAILABLE
    assert output.startswith(
        f"error: no broker at {place} (Connection refused): start it, or correct bootstrap_servers"
    )


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
@pytest.mark.parametrize("is_mute", [False, True])
def test_a_worker_says_at_once_what_it_waits_for_and_stops_when_told_to(client: str, is_mute: bool) -> None:
    """Before anything else that a client library may say; and its status page tells the same."""
    with (
        taken() as mute,
        command(
            *("run", POLICY, "--bootstrap", f"127.0.0.1:{mute if is_mute else free_port()}"),
            *("--client", client, "--status-port", 0),
        ) as running,
    ):
        first, second = running.stdout.readline(), running.stdout.readline()
        begun = time.monotonic()
        assert "orders: status at http://127.0.0.1:" in first
        assert ("orders waits for an answer of Kafka at" if is_mute else "orders waits: no broker at") in second
        address = first.split()[-1]
        with urllib.request.urlopen(f"{address}healthz", timeout=240) as answer:
            assert answer.read() == b"ok\n"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}readyz", timeout=240)
        with refused.value as answer:
            assert b"127.0.0.1" in answer.read()
        if not is_mute:
            running.terminate()
            assert running.wait(240) == 0
            assert time.monotonic() - begun < 45

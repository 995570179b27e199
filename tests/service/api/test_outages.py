"""What is away comes back: outages are told from faults, and nothing raw stays behind."""

import errno
import os
import select
import shutil
import socket
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from microdata import DiskFullError, Publication, read_table, write_published
from microdata.sinks import line_sink
from service.api import Scope, ServiceSettings, create_app, new_token
from service.api.outages import outage
from service.api.streams import _ask
from service.evidence import keep_secret
from service.jobs import Job, JobFiles, JobStore, new_id, open_database
from service.jobs.work import RESULTS
from service.policy import parse_policy
from service.problems import problem, problem_of
from tests.postgres_server import new_postgres
from tests.service.api.api_world import ServiceProcess, parts, submit, wait_for, wait_until
from tests.service.cli.cli_world import POLICY, table_text


def kind_of(answer: Any) -> Any:
    return answer.json()["type"].rpartition(":")[2]


@contextmanager
def locked(path: Any) -> Iterator[Any]:
    """Somebody else who writes to a database."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    yield
    holder.close()


def test_a_locked_database_is_an_outage(client: Any) -> None:
    data = client.app.state.service.settings.data
    client.delete(f"/v1/jobs/{submit(client)['id']}")  # the first request starts the process that reads policies
    client.delete(f"/v1/jobs/{client.get('/v1/jobs').json()['jobs'][0]['id']}")
    with locked(data / "portcullis.db"):
        began = time.monotonic()
        answer = client.post("/v1/jobs", files=parts())
        assert time.monotonic() - began < 5
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "does not answer")
    assert (answer.status_code, kind_of(answer)) == (503, "database-locked")
    assert client.get("/readyz").json()["checks"]["database"] == "ok"
    assert int(answer.headers["Retry-After"]) > 0
    assert not any(path.is_dir() for path in (data / "jobs").iterdir()), "nothing of the upload stays"
    submit(client)


def lost_connection(sqlstate: Any = None) -> Any:
    class AwayError(Exception):
        pass

    cause = AwayError()
    cause.sqlstate = sqlstate  # type: ignore[attr-defined]
    return OperationalError("SELECT 'Zq7mark'", {}, cause)


@pytest.mark.parametrize(
    ("state", "kind"),
    [(None, "database-unavailable"), ("57P01", "database-unavailable"), ("53100", "disk-full"), ("22021", None)],
)
def test_a_server_that_is_away_is_an_outage(
    client: Any, monkeypatch: pytest.MonkeyPatch, state: Any, kind: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise lost_connection(state)

    monkeypatch.setattr(type(client.app.state.service.store), "page", fail)
    answer = client.get("/v1/jobs")
    assert (answer.status_code, kind_of(answer)) == ((503, kind) if kind else (500, "internal"))
    assert ("Retry-After" in answer.headers) == (kind is not None)
    assert "Zq7mark" not in answer.text


@pytest.mark.needs_tool("postgres")
def test_a_server_that_does_not_answer_is_not_waited_for(postgres_url: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.jobs.postgresql.ANSWER_SECONDS", 0.5)
    engine = open_database(postgres_url)
    with pytest.raises(OperationalError) as error, engine.connect() as connection:
        connection.execute(text("SELECT pg_sleep(20)"))
    assert outage(error.value).type.endswith("database-unavailable")  # type: ignore[union-attr]
    JobStore(engine).check()
    engine.dispose()


@pytest.mark.soak
@pytest.mark.needs_tool("postgres")
def test_a_server_that_freezes_or_is_stopped_comes_back(tmp_path: Path) -> None:
    with new_postgres() as server:
        service = ServiceProcess(tmp_path / "data", job_workers=0, database_url=server.url).start()
        job = submit(service.client)
        for leave, come_back in ((server.freeze, server.thaw), (server.stop, server.start)):
            leave()
            try:
                answer = service.client.get("/v1/jobs")
                assert (answer.status_code, kind_of(answer)) == (503, "database-unavailable")
                assert int(answer.headers["Retry-After"]) > 0
                refused = service.client.post("/v1/jobs", files=parts())
                assert (refused.status_code, kind_of(refused)) == (503, "database-unavailable")
                assert service.client.get("/readyz").json()["checks"]["database"] == "does not answer"
                assert service.client.get("/healthz").status_code == 200
            finally:
                come_back()
            wait_until(lambda: service.client.get(f"/v1/jobs/{job['id']}").status_code == 200)
            submit(service.client)
        service.stop()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, "disk-full"), (errno.EDQUOT, "disk-full"), (errno.EROFS, "files-unavailable")]
)
def test_a_full_disk_is_an_outage(client: Any, monkeypatch: pytest.MonkeyPatch, number: Any, kind: str) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("service.api.uploads._Table.flush", fail)
    answer = client.post("/v1/jobs", files=parts())
    assert (answer.status_code, kind_of(answer)) == (503, kind)
    assert answer.headers["Retry-After"]
    assert outage(OSError(number, "")).type.endswith(kind)  # type: ignore[union-attr]


def test_readiness_sees_a_full_disk(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("service.jobs.files.os.fsync", full)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["files"]) == (503, "cannot be written")
    assert not list((client.app.state.service.settings.data / "jobs").glob(".probe*"))


def test_a_job_that_ran_out_of_disk_says_so_and_can_be_tried_again(client: Any, tmp_path: Path) -> None:
    with pytest.raises(DiskFullError) as error, line_sink(tmp_path / "result.csv"):
        raise OSError(errno.ENOSPC, "No space left on device")
    failed = problem_of(error.value)
    assert failed.type.endswith("disk-full")
    store = client.app.state.service.store
    key = {"Idempotency-Key": "one"}
    first = submit(client, headers=key)
    assert submit(client, headers=key)["id"] == first["id"]
    store.finish(store.claim("a", 60), "failed", failed=failed)
    second = submit(client, headers=key)
    assert second["id"] != first["id"], "it is tried again"
    store.finish(store.claim("a", 60), "failed", failed=problem("wrong-table", "no"))
    assert submit(client, headers=key)["id"] == second["id"], "what will fail again is not"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Any]:
    """A disk of 8 MB; to make one takes rights that not everybody has."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", path], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def fill(disk: Any, but: int = 0) -> Any:
    """Take all room of a disk but so many bytes."""
    filler = disk / "filler"
    with filler.open("wb") as file, suppress(OSError):
        left = shutil.disk_usage(disk).free - but
        while left > 0:
            left -= file.write(bytes(min(left, 4096)))
            file.flush()
    return filler


def test_a_disk_that_is_full_is_an_outage_and_passes(small_disk: Any) -> None:
    app = create_app(ServiceSettings(data=small_disk / "data", job_workers=0))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        filler = fill(small_disk)
        for _ in range(2):
            refused = client.post("/v1/jobs", files=parts())
            assert (refused.status_code, kind_of(refused)) == (503, "disk-full")
            assert refused.headers["Retry-After"]
        assert client.get("/readyz").json()["checks"]["files"] == "cannot be written"
        filler.unlink()
        assert client.get("/readyz").status_code == 200
        submit(client)


@pytest.mark.parametrize("ending", RESULTS)
def test_a_result_that_finds_no_room_says_so(small_disk: Any, tmp_path: Path, ending: Any) -> None:
    source = tmp_path / "table.csv"
    source.write_text(table_text(rows=5_000))
    table = read_table(source, parse_policy(POLICY).schema).table
    publication = Publication.of(table, np.arange(len(table)) // 10)
    fill(small_disk)
    with pytest.raises(DiskFullError) as error:
        write_published(publication, small_disk / f"result.{ending}")
    assert problem_of(error.value).type.endswith("disk-full")
    assert not list(small_disk.glob("*result*"))


@pytest.mark.timeout(900)
def test_a_job_that_runs_out_of_a_real_disk_says_so_and_succeeds_when_there_is_room(
    small_disk: Any, tmp_path: Path
) -> None:
    """Through the whole service: there is room for the upload and for the database, and not for the result."""
    service = ServiceProcess(small_disk / "data", job_workers=1)
    service.log = tmp_path / "service.log"
    table, key = table_text(rows=30_000), {"Idempotency-Key": "one"}
    with ExitStack() as stack:
        service.start()
        stack.callback(service.stop)
        filler = fill(small_disk, but=len(table) + 600_000)
        first = submit(service.client, table=table, headers=key)
        failed = wait_for(service.client, first, seconds=480)
        assert failed["state"] == "failed", failed
        assert failed["problem"]["type"].endswith("disk-full")
        assert "room" in failed["problem"]["detail"]
        assert not list((small_disk / "data" / "jobs").glob("*/result-*/*")), "nothing half-written stays"
        filler.unlink()
        filler = fill(small_disk)
        refused = service.client.post("/v1/jobs", files=parts(table), headers=key)
        assert (refused.status_code, kind_of(refused)) == (503, "disk-full")
        assert int(refused.headers["Retry-After"]) > 0
        assert service.client.get("/healthz").status_code == 200
        filler.unlink()
        wait_until(lambda: service.client.get("/readyz").status_code == 200)
        second = submit(service.client, table=table, headers=key)
        assert second["id"] != first["id"], "it is tried again"
        assert wait_for(service.client, second, seconds=480)["state"] == "succeeded"


def test_a_job_whose_directory_cannot_be_made_is_given_back(open_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = open_client().app.state.service
    job = Job(
        new_id(),
        "local",
        "anonymize",
        "queued",
        "shop",
        time.time(),
        policy="{}",
        owner="token:local",
        inputs={"table": "t.csv"},
    )
    service.store.add(job, most=9)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(type(service.files), "new_result", full)
    with pytest.raises(OSError, match="full"):
        service.runner._claim(None)
    assert (service.store.get(job.id).state, service.store.get(job.id).attempts) == ("queued", 0)


# ---- nothing raw stays behind


def test_an_upload_is_left_alone_however_long_it_takes(tmp_path: Path) -> None:
    files, job_id = JobFiles(tmp_path), new_id()
    with files.uploading(job_id) as path:
        (path / "table.part").write_text("raw")
        os.utime(path.parent, (1, 1))  # it began long ago
        assert list(JobFiles(tmp_path).left()) == []
    os.utime(path.parent, (1, 1))
    assert list(JobFiles(tmp_path).left()) == [job_id]


def test_raw_rows_do_not_outlive_a_service_that_is_killed(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path / "data", job_workers=0).start()
    head = "POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    begun = '--b\r\nContent-Disposition: form-data; name="table"; filename="t"\r\n\r\nid,age\n'
    with socket.create_connection(("127.0.0.1", service.port)) as client:
        client.sendall(f"{head}Content-Length: 9000000\r\n\r\n{begun}".encode() + b"Zq7mark,1\n" * 300_000)
        raw = service.data / "jobs"
        wait_until(lambda: any(path.stat().st_size for path in raw.glob("*/upload/*")))
        service.kill()
    for path in raw.iterdir():
        os.utime(path, (time.time() - 60,) * 2)  # a minute later
    service.start()
    wait_until(lambda: not list(raw.glob("*/upload")))
    service.stop()


# ---- small things


def test_the_database_is_private_whatever_the_directory(open_client: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    open_client()
    for path in (tmp_path / "data").glob("portcullis.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_tokens_file_is_private(tmp_path: Path, portcullis: Any) -> None:
    assert portcullis("token", "new", "alice", "--append", tmp_path / "tokens").exit_code == 0
    assert stat.S_IMODE((tmp_path / "tokens").stat().st_mode) == 0o600


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://host", "host:9400", "http://"])
def test_a_worker_is_asked_over_http_only(tmp_path: Path, address: str) -> None:
    with pytest.raises(ValueError, match="workers"):
        ServiceSettings(data=tmp_path, workers=(address,))


def test_no_proxy_is_asked_about_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(0.2)
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        assert _ask("http://127.0.0.1:1") is None
        with pytest.raises(TimeoutError):
            proxy.accept()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/audits", "POST"),
        ("PATCH", "/v1/jobs", "GET, HEAD, POST"),
        ("POST", "/v1/streams", "GET, HEAD"),
        ("DELETE", "/healthz", "GET, HEAD"),
        ("PUT", "/", "GET, HEAD"),
        ("PATCH", "/v1/policies/check", "POST"),
        ("PUT", "/v1/policies/check", "POST"),
        ("PATCH", "/v1/policies/checks", "DELETE, GET, HEAD, PUT"),
    ],
)
def test_a_method_that_is_not_allowed_is_told_so(client: Any, method: str, path: str, allowed: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, kind_of(answer), answer.headers["Allow"]) == (405, "method-not-allowed", allowed)


@pytest.mark.parametrize("body", [b"", b" \n"])
def test_a_check_without_a_body_is_refused(client: Any, body: bytes) -> None:
    answer = client.post("/v1/policies/check", content=body)
    assert (answer.status_code, kind_of(answer)) == (400, "bad-request")


@pytest.mark.parametrize("length", [70, 71, 5_000])
def test_a_boundary_is_as_long_as_the_standard_says(client: Any, length: int) -> None:
    kind = {"Content-Type": f"multipart/form-data; boundary={'b' * length}"}
    answer = client.post("/v1/jobs", content=b"", headers=kind)
    assert (answer.status_code, "1 to 70" in answer.text) == ((422, False) if length == 70 else (400, True))


@pytest.mark.parametrize("digits", [400, 401, 5_000])
def test_a_long_number_is_refused(client: Any, digits: int) -> None:
    policy = POLICY.replace("max: 120", f"max: {'9' * digits}")
    for sent in (policy, '{"schema": {}, "guarantee": {"k": ' + "9" * digits + "}}"):
        found = client.post("/v1/policies/check", content=sent)
        assert found.status_code == 200
        assert not found.json()["usable"]
        assert ("at most 400 characters" in found.text) == (digits > 400)


@pytest.mark.parametrize("cursor", ["bmFuIHg=", "aW5mIGE=", "MSAA", "MSBh"])
def test_a_cursor_of_somebody_else_is_refused(client: Any, cursor: str) -> None:
    assert client.get("/v1/jobs", params={"after": cursor}).status_code == 422


# ---- connections


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    service = ServiceProcess(
        tmp_path_factory.mktemp("strict") / "data", job_workers=0, header_seconds=1, max_connections=8
    ).start()
    yield service
    service.stop()


def whole_answer(client: Any) -> bytes:
    """All that a connection gets until its end."""
    found = b""
    try:
        while chunk := client.recv(65_536):
            found += chunk
    except ConnectionResetError:
        pass
    return found


def closed(client: Any) -> Any:
    try:
        return client.recv(65_536) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_who_does_not_finish_a_head_is_not_waited_for(strict: Any, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as client:
        client.sendall(sent)
        assert closed(client)


@pytest.mark.parametrize("sent", [b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_nor_who_does_not_finish_the_head_of_a_further_request(strict: Any, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += client.recv(65_536)
        client.sendall(sent)
        began = time.monotonic()
        assert closed(client)
        assert time.monotonic() - began < 20, "it is not the end of an idle connection, which comes after 30 s"


def test_there_are_so_many_connections_and_no_more(tmp_path: Path) -> None:
    """Those that are there are served; those that come are not."""
    service = ServiceProcess(tmp_path / "data", job_workers=0, header_seconds=600, max_connections=8).start()
    service.client.close()
    with ExitStack() as stack:
        stack.callback(service.kill)
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60)) for _ in range(30)
        ]
        gone: set[Any] = set()

        def look() -> Any:
            gone.update(client for client in select.select(clients, [], [], 0)[0] if closed(client))
            return len(gone) >= 22

        wait_until(look)
        left = [client for client in clients if client not in gone]
        assert len(left) == 8
        for client in left:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_files_of_a_job_are_for_the_service_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        files, job = JobFiles(tmp_path), new_id()
        files.upload(job)
        files.new_result(job, 1)
        keep_secret(b"x" * 32, files.result(job, 1) / "evidence.secret")
    finally:
        os.umask(previous)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "jobs" / job).rglob("*")}
    assert modes == {"upload": 0o700, "result-1": 0o700, "evidence.secret": 0o600}
    for directory in (tmp_path / "jobs", tmp_path / "jobs" / job):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def _with_body(request: bytes) -> bytes:
    """A request whose body begins like a health check, and one behind it."""
    further = b"GET /healthz " + request.replace(b"/healthz", b"/v1/algorithms")
    return request.replace(b"\r\n\r\n", b"\r\nContent-Length: 13\r\n\r\n") + further


@pytest.mark.parametrize("limits", [{"max_connections": 8}, {"max_connections_per_address": 8}])
def test_health_is_answered_beyond_the_limits(tmp_path: Path, limits: Any) -> None:
    """Idle connections take all places; others are still told that the service lives, and nothing else."""
    service = ServiceProcess(tmp_path / "data", job_workers=0, header_seconds=600, **limits).start()
    service.client.close()
    with ExitStack() as stack:
        stack.callback(service.kill)
        for _ in range(8):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60))
            idle.sendall(HEALTH)
            assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        for path, answered in (("/healthz", True), ("/readyz", True), ("/v1/algorithms", False)):
            with socket.create_connection(("127.0.0.1", service.port), timeout=60) as client:
                client.sendall(HEALTH.replace(b"/healthz", path.encode()))
                assert whole_answer(client).startswith(b"HTTP/1.1 ") == answered, "it is closed after the answer"
        for hidden in (HEALTH * 2, HEALTH + HEALTH.replace(b"/healthz", b"/v1/algorithms"), _with_body(HEALTH)):
            with socket.create_connection(("127.0.0.1", service.port), timeout=60) as client:
                client.sendall(hidden)
                assert not whole_answer(client), "nothing but one health check is answered"
        silent = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60))
        began = time.monotonic()
        assert closed(silent)
        assert time.monotonic() - began < 20, "a connection beyond the limits has a second to ask"


def test_idle_connection_without_a_token_ends_sooner(tmp_path: Path) -> None:
    text, token = new_token("alice", [Scope.READ_OWN])
    service = ServiceProcess(
        tmp_path / "data", job_workers=0, tokens=f"[{token.model_dump_json(exclude_none=True)}]"
    ).start()
    with ExitStack() as stack:
        stack.callback(service.kill)
        known = HEALTH.replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {text}\r\n\r\n".encode())
        guessed = known.replace(text.encode(), b"pc_" + b"x" * 43)
        clients = {}
        for name, request in (("none", HEALTH), ("guessed", guessed), ("known", known)):
            clients[name] = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60))
            clients[name].sendall(request)
        assert whole_answer(clients["none"]).startswith(b"HTTP/1.1 200 ")
        assert whole_answer(clients["guessed"]).startswith(b"HTTP/1.1 200 ")
        assert clients["known"].recv(65_536).startswith(b"HTTP/1.1 200 ")
        assert not select.select([clients["known"]], [], [], 0)[0], "this one is kept for 30 s"


def test_a_request_with_two_lengths_ends_its_connection(strict: Any) -> None:
    head = "POST /v1/policies/check HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as client:
        client.sendall(f"{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode())
        answer = b""
        while chunk := client.recv(65_536):
            answer += chunk
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b"connection: close" in answer.lower()


def test_files_of_a_job_are_not_left_by_a_refused_upload(client: Any) -> None:
    assert client.post("/v1/jobs", files=parts(policy="name: x")).status_code == 422
    assert not any(path.is_dir() for path in Path(client.app.state.service.settings.data, "jobs").iterdir())

"""TLS by settings: a certificate made for the test, a client that trusts it and nothing else."""

import ssl
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.api.api_world import ServiceProcess, submit, wait_for

pytestmark = [pytest.mark.needs_tool("openssl"), pytest.mark.xdist_group("tls")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    chain, key = folder / "chain.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(chain)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return chain, key


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certificate: Any) -> Iterator[Any]:
    """A service that speaks TLS."""
    chain, key = certificate
    trusted = ssl.create_default_context(cafile=chain)
    running = ServiceProcess(
        tmp_path_factory.mktemp("secure") / "data", trusted=trusted, tls_certificate=chain, tls_key=key, job_workers=1
    ).start()
    yield running
    running.stop()


def test_a_job_goes_over_tls(secure: Any) -> None:
    done = wait_for(secure.client, submit(secure.client))
    assert done["state"] == "succeeded"
    answer = secure.client.get(done["links"]["result"])
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_nothing_is_answered_without_tls(secure: Any) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{secure.port}/healthz")


def test_who_does_not_trust_the_certificate_gets_nothing(secure: Any) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"https://127.0.0.1:{secure.port}/healthz")

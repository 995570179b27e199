"""A real schema registry, Apicurio's, on loopback: its archive of Maven Central, run on Java 17.

`make registry` runs one until Ctrl-C. In tests:

    with RealRegistry() as registry:
        RegistrySettings(url=registry.url)
"""

import argparse
import hashlib
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from service.ports import free_port
from tests import java_server
from tests.java_server import JavaServer, run_until_interrupted

VERSION = "3.0.9"
CACHE = java_server.CACHE / f"apicurio-{VERSION}"
# Maven itself cannot fetch it: the project's parent is not published there.
ARCHIVE = (
    "https://repo.maven.apache.org/maven2/io/apicurio/apicurio-registry-app/"
    f"{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
)
DIGEST = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"


def missing_tool() -> str | None:
    """Which program stands between us and a real registry, if any."""
    return None if shutil.which("java") else "java"


def fetch() -> Path:
    """The folder of its jars; downloads them the first time."""
    if not _is_fetched():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
            archive, jars = Path(scratch, "archive.tar.gz"), Path(scratch, "jars")
            with urllib.request.urlopen(ARCHIVE, timeout=60) as answer, archive.open("wb") as file:
                shutil.copyfileobj(answer, file)
            if hashlib.sha256(archive.read_bytes()).hexdigest() != DIGEST:
                raise OSError("the archive is not the one that was tried")
            with tarfile.open(archive) as tar:
                tar.extractall(jars, filter="data")
            if not _is_fetched():
                jars.rename(CACHE)
    return CACHE


def _jar() -> Path:
    return CACHE / f"apicurio-registry-app-{VERSION}-runner.jar"


def _is_fetched() -> bool:
    return _jar().exists()


class RealRegistry(JavaServer):
    """One registry, which keeps what it knows in a file."""

    name = f"Apicurio Registry {VERSION}"

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        self.port = port or free_port()

    @property
    def url(self) -> str:
        """Where its Confluent-compatible API begins."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def command(self) -> list[str]:
        """On this port."""
        fetch()
        options = ["-Xmx256m", f"-Dquarkus.http.port={self.port}", "-Dquarkus.http.host=127.0.0.1"]
        options += [f"-Dapicurio.datasource.url=jdbc:h2:file:{self.home}/schemas"]
        return [*options, "-jar", str(_jar())]

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2):
                return True
        except (OSError, urllib.error.URLError):
            return False


def main() -> None:
    """Run one until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    registry = RealRegistry(parser.parse_args().port)
    run_until_interrupted(registry, registry.url)


if __name__ == "__main__":
    main()

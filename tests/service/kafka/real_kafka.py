"""A real Apache Kafka (KRaft, one node) on loopback, fetched by name with Maven and run on Java 17.

`make kafka` runs one until Ctrl-C. In tests and load tests:

    with RealKafka() as kafka:
        KafkaSettings(bootstrap_servers=kafka.bootstrap)

Besides the plain listener there is one with SASL and one with TLS, to try the settings on.
"""

import argparse
import copy
import shutil
import socket
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from textwrap import dedent
from typing import Self

from service.ports import free_port, free_ports
from tests import java_server
from tests.java_server import START_SECONDS, JavaServer, run_until_interrupted

VERSION = "4.3.1"
CACHE = java_server.CACHE / f"kafka-with-tools-{VERSION}"
USER, PASSWORD = "portcullis", "open-sesame"

POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>portcullis</groupId><artifactId>real-kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""


def missing_tool() -> str | None:
    """Which program stands between us and a real Kafka, if any."""
    needed = ["java", "keytool"] if _is_fetched() else ["java", "keytool", "mvn"]
    return next((tool for tool in needed if shutil.which(tool) is None), None)


def fetch() -> Path:
    """The folder of Kafka's jars; downloads them the first time."""
    if not _is_fetched():
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE.parent) as scratch:
            Path(scratch, "pom.xml").write_text(POM)
            command = "mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=jars"
            subprocess.run(command.split(), cwd=scratch, check=True, timeout=600)
            if not _is_fetched():
                Path(scratch, "jars").rename(CACHE)
    return CACHE


def _is_fetched() -> bool:
    return (CACHE / f"kafka_2.13-{VERSION}.jar").exists()


class RealKafka(JavaServer):
    """One broker, which is its own controller or joins that of a `first` one."""

    name = f"Apache Kafka {VERSION}"

    def __init__(
        self, port: int = 0, node: int = 1, first: "RealKafka | None" = None, *, lasting: bool = False
    ) -> None:
        super().__init__(lasting=lasting)
        self._node = node
        self._first = first or self
        self._cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.port, self.sasl_port, self.tls_port, self._controller_port = [port or free_port(), *free_ports(3)]
        self._said_before = 0

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def _is_controller(self) -> bool:
        return self._first is self

    @property
    def sasl_bootstrap(self) -> str:
        """Where clients connect that authenticate by SASL."""
        return f"127.0.0.1:{self.sasl_port}"

    @property
    def tls_bootstrap(self) -> str:
        """Where clients connect that encrypt; `ca_file` signed the certificate."""
        return f"localhost:{self.tls_port}"

    @property
    def ca_file(self) -> Path:
        """The broker's own certificate, which is the authority to trust."""
        return self.home / "broker.pem"

    def __enter__(self) -> Self:
        self.format()
        return super().__enter__()

    def segments(self, topic: str) -> list[Path]:
        """The files in which the broker keeps a topic's records."""
        return sorted((self.home / "data").glob(f"{topic}-[0-9]*/*.log"))

    def stored_bytes(self, topic: str) -> int:
        """What a topic takes on its disk."""
        return sum(path.stat().st_size for path in self.segments(topic))

    def compacted_until(self, topic: str) -> int:
        """Offsets before which a topic was compacted, summed over its partitions."""
        notes = self.home / "data" / "cleaner-offset-checkpoint"
        lines = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
        return sum(int(line[2]) for line in lines if line[0] == topic and len(line) == 3)

    def for_others(self) -> Self:
        """The same broker for another process, which can ask for its addresses and cannot stop it."""
        other = copy.copy(self)
        other._process, other._first = None, other
        return other

    def format(self) -> None:
        """Prepare certificate, configuration and an empty store."""
        self._make_certificate()
        (self.home / "server.properties").write_text(self._properties())
        scram = f"[name={USER},password={PASSWORD}]"
        users = ["--add-scram", f"SCRAM-SHA-256={scram}", "--add-scram", f"SCRAM-SHA-512={scram}"]
        formatting = self.java(*_kafka(
            "kafka.tools.StorageTool", "format", f"--cluster-id={self._first._cluster}",
            "--config", "server.properties", *(users if self._is_controller else []),
        ))  # fmt: skip
        if formatting.wait(START_SECONDS):
            raise RuntimeError(f"Kafka's storage could not be formatted:\n{self.log_file.read_text()[-3000:]}")

    def start(self) -> None:
        """Start the broker and wait until it takes requests."""
        self._said_before = self.log_file.stat().st_size
        super().start()

    def command(self) -> list[str]:
        """With the configuration that was prepared."""
        return _kafka("kafka.Kafka", "server.properties")

    def is_ready(self) -> bool:
        """Whether it listens, and says so."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return b"Kafka Server started" in self.log_file.read_bytes()[self._said_before :]

    def _make_certificate(self) -> None:
        store = ["-keystore", "broker.p12", "-storepass", PASSWORD, "-alias", "broker"]
        make = [
            "-genkeypair", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "SAN=dns:localhost,ip:127.0.0.1",
            "-ext", "bc:c", "-validity", "7",
        ]  # fmt: skip
        export = ["-exportcert", "-rfc", "-file", "broker.pem"]
        for arguments in (make, export):
            command = ["keytool", "-J-XX:TieredStopAtLevel=1", *arguments, *store]
            subprocess.run(command, cwd=self.home, check=True, capture_output=True)

    def _properties(self) -> str:
        login = "org.apache.kafka.common.security"
        controller = f"127.0.0.1:{self._first._controller_port}"
        return dedent(f"""\
            process.roles={"broker,controller" if self._is_controller else "broker"}
            node.id={self._node}
            controller.quorum.voters=1@{controller}
            controller.listener.names=CONTROLLER
            inter.broker.listener.name=PLAIN
            listeners=PLAIN://127.0.0.1:{self.port},SASL://127.0.0.1:{self.sasl_port},\
TLS://localhost:{self.tls_port}{f",CONTROLLER://{controller}" if self._is_controller else ""}
            listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL
            sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
            listener.name.sasl.plain.sasl.jaas.config={login}.plain.PlainLoginModule required \
user_{USER}="{PASSWORD}";
            listener.name.sasl.scram-sha-256.sasl.jaas.config={login}.scram.ScramLoginModule required;
            listener.name.sasl.scram-sha-512.sasl.jaas.config={login}.scram.ScramLoginModule required;
            listener.name.sasl.oauthbearer.sasl.jaas.config={login}.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="broker";
            ssl.keystore.location={self.home}/broker.p12
            ssl.keystore.password={PASSWORD}
            broker.heartbeat.interval.ms=500
            broker.session.timeout.ms=2000
            log.dirs={self.home}/data
            auto.create.topics.enable=false
            group.initial.rebalance.delay.ms=0
            group.min.session.timeout.ms=1000
            offsets.topic.num.partitions=1
            offsets.topic.replication.factor=1
            transaction.state.log.num.partitions=1
            transaction.state.log.replication.factor=1
            transaction.state.log.min.isr=1
            # Not shorter: a broker that aborts while it starts forgets the marker, and the partition hangs.
            transaction.abort.timed.out.transaction.cleanup.interval.ms=2000
            share.coordinator.state.topic.replication.factor=1
            share.coordinator.state.topic.min.isr=1
            # Each time it looks through all topics, and tests make thousands.
            metadata.max.idle.interval.ms=10000
            log.initial.task.delay.ms=500
            log.retention.check.interval.ms=2000
            log.cleaner.backoff.ms=500
            """)


def _kafka(main: str, *arguments: str) -> list[str]:
    """One of its programs."""
    return [
        "-Xmx512m", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
        "-cp", f"{fetch()}/*", main, *arguments,
    ]  # fmt: skip


def main() -> None:
    """Run one until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one")
    parser.add_argument("--fetch-only", action="store_true", help="only fill the cache")
    options = parser.parse_args()
    fetch()
    if not options.fetch_only:
        kafka = RealKafka(options.port, lasting=True)
        run_until_interrupted(kafka, kafka.bootstrap)


if __name__ == "__main__":
    main()

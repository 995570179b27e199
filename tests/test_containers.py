"""Containers, as far as they can be tested where no engine runs: everything but the build of the image.

Files are checked by their own tools, and the commands of the services run by hand, with the addresses and paths of this
machine in place of the containers': Kafka with the compose file's settings, topics, PostgreSQL, worker, API.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from service.api.metrics import HttpMetrics
from service.demo import POLICY
from service.jobs import JobStore, open_database
from service.kafka import KafkaSettings, Partition, connect
from service.policy import parse_policy
from service.ports import free_port
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from tests.postgres_server import postgres_server
from tests.service.kafka import real_kafka
from tests.service.registry import real_registry

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
METRIC = re.compile(r"\bportcullis_[a-z_]+")


def run(*command: Any, **more: Any) -> Any:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=ROOT, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_compose_file_follows_its_schema(tmp_path: Path) -> None:
    command = [PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    run(*command, "docker-compose.yml")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(yaml.safe_dump({**COMPOSE, "services": {"api": {"imagee": "portcullis"}}}))
    with pytest.raises(AssertionError, match="imagee"):
        run(*command, wrong)


def test_the_image_is_built_as_hadolint_likes_it() -> None:
    run(PROGRAMS / "hadolint", "Dockerfile")


def test_what_the_image_is_built_from_reaches_the_engine() -> None:
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert admitted == packages | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}


def test_references_inside_the_compose_file_hold() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], name
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        assert set(service.get("depends_on", [])) <= set(SERVICES)
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), "loopback only"


def test_our_containers_need_no_rights_and_write_to_volumes_only() -> None:
    for name in ("worker", "api"):
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["cap_drop"] == ["ALL"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", dockerfile, re.MULTILINE)
    written = json.loads(re.search(r"^VOLUME (.*)$", dockerfile, re.MULTILINE)[1])  # type: ignore[index]
    mounted = {volume.split(":")[1] for volume in SERVICES["api"]["volumes"]}
    assert mounted == set(written)
    shared = {volume.split(":")[0] for volume in SERVICES["api"]["volumes"]} & {
        volume.split(":")[0] for volume in SERVICES["worker"]["volumes"]
    }
    assert not shared, "the API cannot write to what the worker runs"


def test_each_container_is_limited_and_has_no_rights() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
    writable = {name for name, service in SERVICES.items() if not service.get("read_only")}
    assert writable == {"kafka", "topics", "registry", "grafana"}, "these write to their own file systems"


def test_the_kafka_that_is_deployed_is_the_kafka_that_is_tested() -> None:
    assert {SERVICES[name]["image"] for name in ("kafka", "topics")} == {f"apache/kafka:{real_kafka.VERSION}"}


def test_the_registry_is_the_one_that_is_tested_and_comes_only_when_it_is_asked_for() -> None:
    assert SERVICES["registry"]["image"] == f"apicurio/apicurio-registry:{real_registry.VERSION}"
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["registry"]
    assert not any("registry" in service.get("depends_on", ()) for service in SERVICES.values())


@pytest.fixture(scope="module")
def metric_names(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Every name that workers and API tell Prometheus."""
    stream = stream_of(parse_policy(json.dumps(POLICY)), WorkerSettings())
    store = JobStore(open_database(f"sqlite:///{tmp_path_factory.mktemp('metrics') / 'jobs.db'}"))
    names = set()
    for registry in (Metrics(stream).registry, HttpMetrics(store).registry):
        for family in registry.collect():
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
            names |= {family.name + suffix for suffix in suffixes}
    store.close()
    return names


def test_dashboard_and_alerts_ask_for_metrics_that_are_there(metric_names: Any) -> None:
    board = json.loads((ROOT / "deploy/grafana/dashboards/portcullis.json").read_text())
    shown = {
        name for panel in board["panels"] for target in panel["targets"] for name in METRIC.findall(target["expr"])
    }
    alerted = set(METRIC.findall((ROOT / "deploy/prometheus/alerts.yml").read_text()))
    assert alerted | shown <= metric_names
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metric_names}
    assert bases == {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}, "a metric that nobody looks at"


@pytest.mark.needs_tool("promtool")
def test_prometheus_understands_its_files() -> None:
    run("promtool", "check", "rules", "deploy/prometheus/alerts.yml")
    run("promtool", "check", "config", "--syntax-only", "deploy/prometheus/prometheus.yml")


FIRES = {
    "PortcullisReleaseRefused": {"portcullis_refused_releases_total": "0+0x5 1+0x30"},
    "PortcullisPartitionStopped": {"portcullis_stopped_partitions": "1+0x30"},
    "PortcullisWorkerDown": {'up{job="worker"}': "0+0x30"},
    "PortcullisNothingAssigned": {"portcullis_assigned_partitions": "0+0x30"},
    "PortcullisLagging": {"portcullis_lag": "100000+9000x30"},
    "PortcullisThinPartition": {"portcullis_thin_partitions": "1+0x30"},
    "PortcullisRejectingInput": {"portcullis_rejecting_partitions": "1+0x30"},
    "PortcullisSuppressing": {
        "portcullis_events_suppressed_total": "0+2x30",
        "portcullis_events_taken_total": "0+99x30",
    },
    "PortcullisRefusing": {"portcullis_events_refused_total": "0+2x30", "portcullis_events_taken_total": "0+99x30"},
    "PortcullisJobsFailing": {'portcullis_jobs_ended_total{state="failed"}': "0+1x30"},
}
CALM = {
    "portcullis_refused_releases_total": "0+0x30",
    "portcullis_stopped_partitions": "0+0x30",
    'up{job="worker"}': "1+0x30",
    "portcullis_assigned_partitions": "2+0x30",
    "portcullis_lag": "200000-100x30",
    "portcullis_thin_partitions": "0+0x30",
    "portcullis_rejecting_partitions": "0+0x30",
    "portcullis_events_suppressed_total": "0+1x30",
    "portcullis_events_refused_total": "0+1x30",
    "portcullis_events_taken_total": "0+200x30",
    'portcullis_jobs_ended_total{state="failed"}': "0+0x30",
}
"""Series by minute, as promtool writes them: start, step, how often."""


@pytest.mark.needs_tool("promtool")
@pytest.mark.parametrize("alert", FIRES)
def test_alerts_fire_when_they_should_and_only_then(alert: Any, tmp_path: Path) -> None:
    """Each alert is evaluated over half an hour of trouble, and of everyday life."""

    def firing(series: Any) -> None:
        expected = {
            "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)',
            "eval_time": "14m",
            "exp_samples": [{"labels": "{}", "value": int(series != {})}],
        }
        values = [{"series": name, "values": value} for name, value in {**CALM, **series}.items()]
        case = {"interval": "1m", "input_series": values, "promql_expr_test": [expected]}
        rules = [str(ROOT / "deploy/prometheus/alerts.yml")]
        file = tmp_path / "cases.yml"
        file.write_text(json.dumps({"rule_files": rules, "evaluation_interval": "1m", "tests": [case]}))
        run("promtool", "test", "rules", file)

    firing(FIRES[alert])
    firing({})


def test_every_alert_is_tried() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == set(FIRES)


def test_topics_are_made_for_the_policy_that_is_deployed() -> None:
    policy = yaml.safe_load((ROOT / "examples/orders/policy.yaml").read_text())
    made = re.findall(r"^create (\S+)", (ROOT / "deploy/kafka/create-topics").read_text(), re.MULTILINE)
    assert made == [policy["stream"][key] for key in ("input", "output", "dead_letters")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A copy of deploy/prepare after its one run: the folder, and the token that it told."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "deploy").mkdir()
    script = folder / "deploy" / "prepare"
    script.write_text((ROOT / "deploy/prepare").read_text())
    told = run("sh", script, env={**os.environ, "PORTCULLIS": f"{sys.executable} -m service", "PYTHONPATH": str(ROOT)})
    return folder, told.split()[-1]


def test_secrets_are_made_once(prepared: Any) -> None:
    folder, token = prepared
    names = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker-compose.yml").read_text()))
    assert names == {line.split("=")[0] for line in (folder / ".env").read_text().splitlines()}
    assert all((folder / secret["file"]).stat().st_size for secret in COMPOSE["secrets"].values())
    assert token.startswith("pc_")
    assert token not in (folder / "deploy/secrets/tokens.jsonl").read_text()
    assert (folder / "deploy/secrets").stat().st_mode & 0o077 == 0
    assert (folder / ".env").stat().st_mode & 0o077 == 0
    with pytest.raises(AssertionError, match="already"):
        run("sh", folder / "deploy/prepare")


def test_secrets_that_could_not_be_made_leave_nothing_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    script = tmp_path / "deploy" / "prepare"
    script.write_text((ROOT / "deploy/prepare").read_text())
    with pytest.raises(AssertionError):
        run("sh", script, env={**os.environ, "PORTCULLIS": "false"})
    assert [path.name for path in tmp_path.rglob("*")] == ["deploy", "prepare"]


class ComposeKafka(real_kafka.RealKafka):
    """Apache Kafka with the settings of the compose file, as its image reads them from the environment."""

    def _properties(self) -> Any:
        environment = {key: str(value) for key, value in SERVICES["kafka"]["environment"].items()}
        lines = "".join(
            f"{key.removeprefix('KAFKA_').lower().replace('_', '.')}={value}\n" for key, value in environment.items()
        )
        changes = {
            "/var/lib/kafka/data": f"{self.home}/data",
            "kafka:": "127.0.0.1:",
            "://:": "://127.0.0.1:",
            ":29092": f":{self.tls_port}",
            ":9092": f":{self.port}",
            ":9093": f":{self._controller_port}",
        }
        return replaced(lines, changes)


def replaced(text: Any, changes: Any) -> Any:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def command_of(name: Any, changes: Any) -> Any:
    """Command line and environment of a service, on this machine."""
    service = SERVICES[name]
    mounts = {
        inside: str(ROOT / outside)
        for outside, inside, *_ in (volume.split(":") for volume in service["volumes"])
        if outside.startswith(".")
    }
    entry = service.get("entrypoint", [sys.executable, "-m", "service"])
    command = [replaced(str(part), mounts | changes) for part in (*entry, *service["command"])]
    environment = {key: replaced(str(value), changes) for key, value in service["environment"].items()}
    return command, {**os.environ, **environment, "PYTHONPATH": str(ROOT)}


@contextmanager
def running(name: Any, changes: Any, log: Any) -> Iterator[Any]:
    """A service as the compose file starts it; the image's health check must come to like it."""
    command, environment = command_of(name, changes)
    dockerfile = (ROOT / "Dockerfile").read_text()
    check = json.loads(re.search(r"^HEALTHCHECK.*\n\s+CMD (\[.*\])$", dockerfile, re.MULTILINE)[1])  # type: ignore[index]
    url = re.search(r"HEALTH_URL=(\S+)", dockerfile)[1]  # type: ignore[index]
    environment = {"HEALTH_URL": replaced(url, changes), **environment}
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, cwd=log.parent, stdout=file, stderr=file)
    try:
        healthy = [sys.executable, *check[1:]]
        until(
            lambda: subprocess.run(healthy, env=environment, capture_output=True, check=False).returncode == 0, process
        )
        yield
    finally:
        process.terminate()
        assert process.wait(120) in {0, -15}, log.read_text()


def until(holds: Any, process: Any = None, seconds: int = 240) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert process is None or process.poll() is None, "it ended"
        assert time.monotonic() < deadline
        time.sleep(0.5)


def get(url: Any, token: Any) -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.needs_tool("kafka")
@pytest.mark.needs_tool("postgres")
@pytest.mark.xdist_group("kafka")
def test_every_service_runs_with_the_command_of_the_compose_file(prepared: Any, tmp_path: Path) -> None:
    folder, token = prepared
    with ExitStack() as stack:
        kafka = stack.enter_context(ComposeKafka())
        database = stack.enter_context(postgres_server())
        worker, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
        url = SERVICES["api"]["environment"]["PORTCULLIS_DATABASE_URL"]
        changes = {
            url: database,
            "/run/secrets/tokens": str(folder / "deploy/secrets/tokens.jsonl"),
            "kafka:9092": kafka.bootstrap,
            "worker:9400": worker,
            "127.0.0.1:9400": worker,
            "127.0.0.1:8080": api,
            "0.0.0.0": "127.0.0.1",
            "9400": worker.split(":")[1],
            "8080": api.split(":")[1],
        }
        create_topics(kafka, changes, tmp_path)
        kafka_tool(tmp_path, "kafka-broker-api-versions.sh", "BrokerApiVersionsCommand")
        check_health("kafka", {**changes, "/opt/kafka/bin": str(tmp_path)})
        place = urlsplit(database)
        check_health("postgres", {}, PGHOST=place.hostname, PGPORT=str(place.port))
        stack.enter_context(running("worker", changes, tmp_path / "worker.log"))
        stack.enter_context(running("api", changes, tmp_path / "api.log"))

        produce(kafka.bootstrap, (ROOT / "examples/orders/orders.jsonl").read_bytes().splitlines())

        def streams() -> Any:
            return json.loads(get(f"http://{api}/v1/streams", token))["streams"]

        until(
            lambda: streams() and streams()[0]["ready"] and '_released_total{stream="orders"} 0' not in metrics(worker)
        )
        assert "<title>" in get(f"http://{api}/", token)
        prometheus = (folder / "deploy/secrets/prometheus_token").read_text()
        assert "portcullis_http_requests_total" in get(f"http://{api}/metrics", prometheus)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"http://{api}/metrics", "pc_wrong")


def metrics(worker: Any) -> Any:
    return get(f"http://{worker}/metrics", "")


def create_topics(kafka: Any, changes: Any, folder: Any) -> None:
    """Run the init service with Kafka's own tool, and look at what it made."""
    kafka_tool(folder, "kafka-topics.sh", "TopicCommand")
    command, environment = command_of("topics", changes)
    run(*command, env={**environment, "KAFKA_BIN": str(folder)})
    admin = connect(KafkaSettings(bootstrap_servers=kafka.bootstrap)).admin()
    topic = admin.describe_topic("orders.raw")
    admin.close()
    assert topic.partitions == SERVICES["topics"]["environment"]["PARTITIONS"]
    assert topic.config["cleanup.policy"] == "delete"
    assert topic.config["retention.ms"] == "604800000"


def kafka_tool(folder: Any, name: Any, command: Any) -> None:
    """A program of Kafka's image, which is a class of its jars."""
    tool = folder / name
    java = f'exec java -XX:TieredStopAtLevel=1 -cp "{real_kafka.fetch()}/*" org.apache.kafka.tools.{command} "$@"'
    tool.write_text(f"#!/bin/sh\n{java}\n")
    tool.chmod(0o755)


def check_health(name: Any, changes: Any, **environment: Any) -> None:
    """Run the health check that the compose file gives a service of others."""
    kind, *command = SERVICES[name]["healthcheck"]["test"]
    assert kind == "CMD"
    run(*(replaced(part, changes) for part in command), env={**os.environ, **environment})


def produce(bootstrap: Any, values: Any) -> None:
    producer = connect(KafkaSettings(bootstrap_servers=bootstrap)).producer("test")
    producer.init_transactions()
    producer.begin()
    producer.produce(Partition("orders.raw", 0), values)
    producer.flush()
    producer.commit()
    producer.close()

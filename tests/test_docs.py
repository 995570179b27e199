"""Every code block of README and docs does what the text says, every link leads somewhere, and the site builds."""

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer.testing import CliRunner

from microdata import Hierarchy, Reason
from service.cli import app
from service.cli.commands import COMMANDS, load
from service.policy import parse_policy
from service.ports import free_port
from static_algos import StaticAlgorithm
from stream_algos.engine import Engine, StreamParameters
from tests.forked_programs import Programs, forked_programs

ROOT = Path(__file__).parents[1]
README, FIRST, TABLES = ROOT / "README.md", ROOT / "docs" / "first-topic.md", ROOT / "docs" / "tables.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KNOWN = {"json", "yaml", "python", "sh", "csv", "text"}
AT_ONCE = {"anonymize", "audit", "policy", "replay", "algorithms", "risk", "evidence", "key", "attack"}
"""Commands that end by themselves and need nothing but files."""
DIAGRAMS = {"how-it-works-1", "how-it-works-2", "how-it-works-3"}
"""Blocks that are drawings and no code."""
NOT_RUN = {
    "make run": "the demo of tests/service/test_demo.py, which ends by itself",
    "make quick": "a part of this suite",
    "make test": "this suite",
    "make release": "minutes; tests/test_packaging.py builds the same wheel, and looks at what gathers the changelog",
    "make soak": "hours; the marks are those of pyproject.toml",
    "make mutants": "20 minutes; tests/mutation/test_mutations.py has its parts",
    "make kafka": "runs until Ctrl-C; tests/service/kafka starts the same module",
    "make registry": "runs until Ctrl-C; tests/service/registry starts the same module",
    "make bench": "20 minutes; tests/load_tests/test_bench.py has its parts",
    "make docs": "test_the_site_builds_without_a_warning",
    "docker build": "no engine here; see tests/test_containers.py",
    "docker compose": "no engine here; tests/test_containers.py runs the commands of the services",
    "deploy/prepare": "tests/test_containers.py runs it",
    "portcullis run examples/orders/policy.yaml": "the deployed worker of tests/test_containers.py",
    "portcullis forget visits.yaml": "needs a stream with people; tests/service/worker/test_ended_streams.py",
    "portcullis evidence topic": "needs a stream that has published; tests/service/cli/test_evidence_of_topics.py",
    "portcullis evidence verify november.json": "the same",
    "portcullis drain examples/orders/policy.yaml": "the walk drains its own stream",
}
"""Commands that no test of this file runs, and why; their flags are checked all the same."""


class Block(NamedTuple):
    page: Path
    number: int
    language: str
    text: str


def name_of(block: Any) -> Any:
    return f"{block.page.stem}-{block.number}" if isinstance(block, Block) else None


BLOCKS = [
    Block(page, number, language, text)
    for page in PAGES
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text()), 1)
]
WALK = [block for block in BLOCKS if block.page == FIRST and "kafka import" in block.text]


def blocks(language: Any, *, but: Any = ()) -> Any:
    return [block for block in BLOCKS if block.language == language and block not in but]


def lines_of(block: Any) -> Any:
    text = block.text.replace("\\\n", " ")
    return [line.split("  #")[0].strip() for line in text.splitlines() if line.strip()]


def test_all_that_an_algorithm_declares_is_explained() -> None:
    page = (ROOT / "docs/contributing.md").read_text()
    declared = {*StaticAlgorithm.__annotations__, *Engine.__annotations__, *vars(StreamParameters)}
    declared = {name for name in declared if not name.startswith(("_", "model_"))}
    assert {"hold", "within", "adds", "in_order", "guarantees", "data", "merges", "example", "variants"} <= declared
    assert [name for name in sorted(declared) if f"`{name}" not in page] == []


@pytest.mark.parametrize("way", ["The way of an event", "The way of a table"])
def test_each_way_fits_on_a_screen(way: str) -> None:
    page = (ROOT / "docs/how-it-works.md").read_text()
    section = page.partition(f"## {way}\n")[2].partition("\n## ")[0]
    assert 10 < len(section.strip().splitlines()) <= 45


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert {block.language for block in BLOCKS} == KNOWN
    assert {name_of(block) for block in blocks("text")} == DIAGRAMS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_block_escapes(page: Any) -> None:
    """Indented, unnamed or unclosed fences would not be found above."""
    fences = re.findall(r"^\s*(?:```|~~~)", page.read_text(), re.MULTILINE)
    assert len(fences) == 2 * sum(block.page == page for block in BLOCKS)
    assert "<pre" not in page.read_text()


def test_every_command_is_run_or_has_a_reason() -> None:
    walked = {line for block in blocks("sh") if block.page in {FIRST, TABLES} for line in lines_of(block)}
    for block in blocks("sh"):
        for line in lines_of(block):
            at_once = line.split()[:2][-1] in AT_ONCE and line.startswith("portcullis")
            reason = any(line.startswith(known) for known in NOT_RUN)
            assert at_once or reason or line in walked, line
    told = [line for block in blocks("sh") for line in lines_of(block)]
    assert all(any(line.startswith(known) for line in told) for known in NOT_RUN)


@pytest.mark.parametrize("block", blocks("csv"), ids=name_of)
def test_hierarchies_can_be_read(block: Any) -> None:
    assert len(Hierarchy.from_csv_text(block.text).leaves) > 1


@pytest.mark.parametrize("block", blocks("json"), ids=name_of)
def test_json_can_be_read(block: Any) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("yaml"), ids=name_of)
def test_policies_can_be_used(block: Any) -> None:
    assert parse_policy(block.text).fields()


@pytest.fixture
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that looks like the repository to somebody who only reads examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    """In the group `programs` there is one for all."""
    with forked_programs(ROOT) as running:
        yield running


@pytest.mark.xdist_group("programs")
@pytest.mark.usefixtures("beside_the_examples")
@pytest.mark.parametrize("block", blocks("python", but=WALK), ids=name_of)
def test_python_runs(block: Any, programs: Programs) -> None:
    status, _, errors = programs.run(block.text, Path.cwd())
    assert (status, errors) == (0, "")


@pytest.mark.xdist_group("programs")
@pytest.mark.usefixtures("beside_the_examples")
def test_the_table_of_the_readme_prints_what_it_says(programs: Programs) -> None:
    text = next(block.text for block in blocks("python") if block.page == README and "read_published" in block.text)
    said = "".join(f"{line[2:]}\n" for line in text.splitlines() if line.startswith("# "))
    assert programs.run(text, Path.cwd()) == (0, said, "")


@pytest.mark.xdist_group("programs")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import microdata; Table", "NameError"),
        ("import nowhere", "nowhere"),
        ("import sys; print(1, file=sys.stderr)", "1"),
    ],
)
def test_python_that_does_not_run_or_complains_is_noticed(
    text: str, word: str, programs: Programs, tmp_path: Path
) -> None:
    assert word in programs.run(text, tmp_path)[2]
    ours = "{'microdata', 'privacy', 'static_algos', 'stream_algos', 'service'}"
    status, shown, _ = programs.run(f"import sys; print({ours} & sys.modules.keys())", tmp_path)
    assert (status, shown) == (0, "set()\n")


@pytest.mark.parametrize("block", blocks("sh"), ids=name_of)
def test_commands_are_there_and_understand_their_flags(block: Any) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in lines_of(block):
        program, *arguments = shlex.split(line)
        if program == "portcullis":
            understood(arguments)
        elif program == "make":
            assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE), line
        elif "/" in program:
            assert os.access(ROOT / program, os.X_OK), line
        else:
            assert shutil.which(program) or program == "docker", line


def understood(arguments: Any) -> None:
    """Parse a command line without running it."""
    name, *rest = arguments
    command = load(name)
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context(name, list(rest))


def test_a_flag_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(Exception, match="--bootstrapp"):
        understood(["run", "orders.yaml", "--bootstrapp", "127.0.0.1:9092"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_sentences_are_there(page: Any) -> None:
    prose = BLOCK.sub("", page.read_text())
    assert set(re.findall(r"`portcullis ([a-z]+)", prose)) <= set(COMMANDS)


@pytest.mark.usefixtures("beside_the_examples")
def test_commands_for_tables_and_files_do_their_work() -> None:
    Path("orders.yaml").write_text(first_policy())
    runner = CliRunner()
    for block in blocks("sh"):
        for line in lines_of(block):
            program, name, *rest = [*shlex.split(line), ""]
            if program == "portcullis" and name in AT_ONCE and not line.startswith(tuple(NOT_RUN)):
                result = runner.invoke(app, [name, *rest[:-1]])
                assert result.exit_code == 0, f"{line}\n{result.output}"
    assert Path("report.html").exists()


def with_ports(line: Any, ports: Any) -> Any:
    return re.sub("|".join(ports), lambda found: ports[found[0]], line)


def first_policy() -> Any:
    return next(block.text for block in blocks("yaml") if block.page == FIRST)


def commands_of(page: Any) -> Any:
    return [line for block in blocks("sh") if block.page == page for line in lines_of(block)]


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
def test_from_zero_to_an_anonymized_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide's walk: its broker, policy, worker, producer, consumer and drain; only the ports are others."""
    port, status = str(free_port()), str(free_port())
    monkeypatch.setenv("PORTCULLIS_WORKER_STATUS_PORT", status)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    Path("orders.yaml").write_text(first_policy())
    api = str(free_port())
    ports = {"9092": port, "9400": status, "8080": api}
    broker, _, run, serve, drain = [with_ports(line, ports) for line in commands_of(FIRST)]
    with started_process(broker, tmp_path):
        with started_process(run, tmp_path):
            wait_for(f"http://127.0.0.1:{status}/readyz", tmp_path)
            produce, consume = [block.text.replace("9092", port) for block in WALK]
            program(produce)
            counts = counts_when_all_left(f"http://127.0.0.1:{status}/status")
            told = program(consume)
            with started_process(serve, tmp_path):
                wait_for(f"http://127.0.0.1:{api}/readyz", tmp_path)
                with urllib.request.urlopen(f"http://127.0.0.1:{api}/v1/streams") as answer:
                    assert [stream["name"] for stream in json.load(answer)["streams"]] == ["orders"]
        ended = subprocess.run(
            [sys.executable, "-m", "service", *shlex.split(drain)[1:]], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    rows = [int(re.search(r"\} (\d+) rows, for example \{'item'", line)[1]) for line in told]  # type: ignore[index]
    assert sum(rows) == counts["released"] == 1000 - counts.get("suppressed", 0)
    assert sum(rows) > 900
    assert min(rows) >= 5
    assert "@example.com" not in "".join(told)


@pytest.mark.usefixtures("beside_the_examples")
def test_a_table_as_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide's server and request, and what it says of the answer; only the port is another."""
    port = str(free_port())
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    lines = commands_of(TABLES)
    serve, curl = [next(line for line in lines if line.startswith(word)) for word in ("portcullis serve", "curl")]
    with started_process(serve.replace("8080", port), tmp_path):
        wait_for(f"http://127.0.0.1:{port}/readyz", tmp_path)
        told = subprocess.run(
            [*shlex.split(curl.replace("8080", port)), "--silent", "--show-error"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        head, body = told.replace("\r", "").rsplit("\n\n", 1)
        assert head.split("\n\n")[-1].startswith("HTTP/1.1 202")
        job, place = json.loads(body), re.search(r"^location: (\S+)$", head, re.MULTILINE | re.IGNORECASE)[1]  # type: ignore[index]
        url = urllib.parse.urljoin(f"http://127.0.0.1:{port}/", place)
        deadline = time.monotonic() + 240
        while job["state"] not in {"succeeded", "failed"} and time.monotonic() < deadline:
            time.sleep(0.2)
            with urllib.request.urlopen(url) as answer:
                job = json.load(answer)
        assert job["state"] == "succeeded", job
        with urllib.request.urlopen(urllib.request.Request(f"{url}/result", headers={"Accept": "text/csv"})) as answer:
            assert answer.readline().decode().startswith("class,")


def program(text: Any) -> Any:
    """The lines that a program prints, which says nothing else."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=600)
    assert done.stderr == ""
    return done.stdout.splitlines()


def counts_when_all_left(url: Any) -> Any:
    """What a worker counted, when none of the guide's thousand events is in it any more."""
    deadline = time.monotonic() + 240
    while True:
        with urllib.request.urlopen(url) as answer:
            counts = json.load(answer)["counts"]
        if counts.get("released", 0) + counts.get("suppressed", 0) == 1000:
            return counts
        assert time.monotonic() < deadline, counts
        time.sleep(0.2)


@contextlib.contextmanager
def started_process(line: Any, folder: Any) -> Iterator[Any]:
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "service", *shlex.split(line)[1:]]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


def wait_for(url: Any, folder: Any) -> None:
    deadline = time.monotonic() + 840  # a first start compiles, beside others that do
    while True:
        with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url):
            return
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.2)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Any) -> None:
    generated = {f"reference/{name}.md" for name in ("api", "algorithms", "errors", "metrics", "settings")}
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", page.read_text())]
    dead = [
        target
        for target in targets
        if not target.startswith("http") and target not in generated and not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    build = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    algorithms = (tmp_path / "reference" / "algorithms" / "index.html").read_text()
    assert all(name in algorithms for name in ("sabre_w", "delay.tuples", "incognito"))
    errors = (tmp_path / "reference" / "errors" / "index.html").read_text()
    assert all(f"<code>{reason.code}</code>" in errors for reason in Reason)


def test_every_alert_has_an_answer() -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
    told = re.findall(r"^\| `(Portcullis\w+)` \| (\w+) \|", (ROOT / "docs/production.md").read_text(), re.MULTILINE)
    assert told == [(rule["alert"], rule["labels"]["severity"]) for rule in rules]


def test_the_threat_model_names_every_limit() -> None:
    told = re.findall(r"^\*\*(.+?)\.?\*\*", (ROOT / "docs/threat-model.md").read_text(), re.MULTILINE)
    assert set(told) >= {
        "Repeated events of one person",
        "Knowledge of arrival times",
        "Public attributes",
        "Minimality attacks",
        "Invented persons",
        "Duplicates made upstream",
        "Several streams or jobs over the same people",
        "What the state topic tells its readers",
        "What the memory topic tells its readers",
    }


def test_pictures_have_words() -> None:
    for page in PAGES:
        assert all(words for words in re.findall(r"!\[(.*?)\]", page.read_text())), page


def test_the_house_is_drawn_as_it_stands() -> None:
    drawn = next(block.text for block in BLOCKS if name_of(block) == "how-it-works-1")
    floors = {line.split("/")[0] for line in drawn.splitlines() if not line.startswith(" ")}
    rooms = {path.parent.name for path in (ROOT / "service").glob("*/__init__.py")}
    assert set(re.findall(r"(\w+)/", drawn)) == floors | rooms
    assert all((ROOT / floor).is_dir() for floor in floors)

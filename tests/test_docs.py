"""Every code block of README and docs does what the text says, every link leads somewhere, and the site builds."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from service.cli import app
from service.cli.commands import COMMANDS, load
from service.demo import free_port
from service.policy import parse_policy

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KNOWN = {"json", "yaml", "python", "sh", ""}
RUNNABLE = {"anonymize", "audit", "policy", "replay", "algorithms"}
OTHERS = {"docker", "curl"}


class Block(NamedTuple):
    page: Path
    number: int
    language: str
    text: str


def name_of(block):
    return f"{block.page.stem}-{block.number}" if isinstance(block, Block) else None


BLOCKS = [
    Block(page, number, language, text)
    for page in PAGES
    for number, (language, text) in enumerate(BLOCK.findall(page.read_text()), 1)
]
WALK = [block for block in BLOCKS if block.page == README and "kafka import" in block.text]


def blocks(language, *, but=()):
    return [block for block in BLOCKS if block.language == language and block not in but]


def lines_of(block):
    text = block.text.replace("\\\n", " ")
    return [line.split("  #")[0].strip() for line in text.splitlines() if line.strip()]


def test_every_block_is_of_a_kind_that_is_tested():
    assert {block.language for block in BLOCKS} == KNOWN


@pytest.mark.parametrize("block", blocks("json"), ids=name_of)
def test_json_can_be_read(block):
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("yaml"), ids=name_of)
def test_policies_can_be_used(block):
    assert parse_policy(block.text).schema.quasi


@pytest.fixture
def beside_the_examples(tmp_path, monkeypatch):
    """A folder that looks like the repository to somebody who only reads examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("beside_the_examples")
@pytest.mark.parametrize("block", blocks("python", but=WALK), ids=name_of)
def test_python_runs(block):
    exec(compile(block.text, str(block.page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", blocks("sh"), ids=name_of)
def test_commands_are_there_and_understand_their_flags(block):
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
            assert program in OTHERS, line


def understood(arguments):
    """Parse a command line without running it."""
    name, *rest = arguments
    command = load(name)
    while hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context(name, list(rest))


def test_a_flag_that_does_not_exist_is_noticed():
    with pytest.raises(Exception, match="--bootstrapp"):
        understood(["run", "orders.yaml", "--bootstrapp", "127.0.0.1:9092"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_sentences_are_there(page):
    prose = BLOCK.sub("", page.read_text())
    assert set(re.findall(r"`portcullis ([a-z]+)", prose)) <= set(COMMANDS)


@pytest.mark.usefixtures("beside_the_examples")
def test_commands_for_tables_and_files_do_their_work():
    runner = CliRunner()
    for block in blocks("sh"):
        for line in lines_of(block):
            program, name, *rest = [*shlex.split(line), ""]
            if program == "portcullis" and name in RUNNABLE:
                result = runner.invoke(app, [name, *rest[:-1]])
                assert result.exit_code == 0, f"{line}\n{result.output}"
    assert Path("report.html").exists()


@pytest.mark.kafka
@pytest.mark.xdist_group("kafka")
def test_from_zero_to_an_anonymized_topic(tmp_path, monkeypatch):
    """README's walk: its broker, policy, worker, producer and consumer; only the ports are others."""
    port, status = str(free_port()), str(free_port())
    monkeypatch.setenv("PORTCULLIS_WORKER_STATUS_PORT", status)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    policy = next(block for block in blocks("yaml") if block.page == README)
    Path("orders.yaml").write_text(policy.text)
    started = [line for block in blocks("sh") if block.page == README for line in lines_of(block)]
    with contextlib.ExitStack() as stack:
        for command in ("portcullis broker", "portcullis run"):
            line = next(line for line in started if line.startswith(command))
            stack.enter_context(started_process(line.replace("9092", port), tmp_path))
        wait_for(f"http://127.0.0.1:{status}/readyz", tmp_path)
        _, told = [program(block.text.replace("9092", port)) for block in WALK]
        with urllib.request.urlopen(f"http://127.0.0.1:{status}/status") as answer:
            counts = json.load(answer)["counts"]
    rows = [int(re.search(r"\} (\d+) rows, for example \{'item'", line)[1]) for line in told]
    assert sum(rows) == counts["released"] == 1000 - counts.get("suppressed", 0)
    assert sum(rows) > 900
    assert min(rows) >= 5
    assert "@example.com" not in "".join(told)


def program(text):
    """The lines that a program prints, which says nothing else."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == ""
    return done.stdout.splitlines()


@contextlib.contextmanager
def started_process(line, folder):
    with (folder / "log").open("ab") as log:
        command = [sys.executable, "-m", "service", *shlex.split(line)[1:]]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def wait_for(url, folder):
    deadline = time.monotonic() + 240
    while True:
        with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url):
            return
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.2)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    generated = {"reference/api.md", "reference/algorithms.md"}
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", page.read_text())]
    dead = [
        target
        for target in targets
        if not target.startswith("http") and target not in generated and not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_site_builds_without_a_warning(tmp_path):
    build = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    algorithms = (tmp_path / "reference" / "algorithms" / "index.html").read_text()
    assert all(name in algorithms for name in ("sabre_w", "delay.tuples", "incognito"))

"""A kind of data that is no part of Portcullis, through all of it: installed beside it, and nothing else is touched."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "console"))

from tests.service.console.console_world import PATIENCE, Console, chromium, portcullis, serving  # noqa: E402

POLICY = """\
name: chat
data: words
schema: {person: person, word: word}
guarantee: {algorithm: common_words, k: 3}
"""
TABLE = "person,word\n" + "".join(
    f"Zq7mark{person},{word}\n"
    for word, persons in {"tea": 5, "lamp": 3, "Zq7secret": 1}.items()
    for person in range(persons)
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A place for packages with one that brings the kind; the environment of processes that find it."""
    place = tmp_path_factory.mktemp("packages")
    shutil.copy(HERE / "words_kind.py", place)
    about = place / "words-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: words\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[portcullis.kinds]\nwords = words_kind\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH", "")])))
        yield


@pytest.fixture(scope="module")
def service(installed: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("service"), []) as given:
        yield given


@pytest.fixture
def chat(tmp_path: Path) -> Any:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "chat.csv").write_text(TABLE)
    return tmp_path


def run(*arguments: Any) -> Any:
    return subprocess.run(portcullis(*map(str, arguments)), capture_output=True, text=True, check=False)


def test_by_commands(installed: Any, chat: Any) -> None:
    table, policy, out = chat / "chat.csv", chat / "policy.yaml", chat / "safe.csv"
    checked = run("policy", "check", policy, "--table", table)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "chat: usable for tables; guarantees usage 3, 9 rows of the table accepted" in checked.stdout
    report, page = chat / "report.json", chat / "report.html"
    made = run("anonymize", table, "--policy", policy, "--out", out, "--report", report, "--html", page)
    assert made.returncode == 0, made.stderr
    assert out.read_text() == "word,persons\ntea,5\nlamp,3\n"
    assert json.loads(report.read_text())["left_out"] == 1
    assert "Words: chat" in page.read_text()
    assert "Zq7" not in made.stdout + made.stderr + report.read_text() + page.read_text()
    assert run("audit", table, out, "--policy", policy).returncode == 0
    out.write_text("word,persons\ntea,5\nlamp,4\n")
    wrong = run("audit", table, out, "--policy", policy)
    assert wrong.returncode == 1
    assert "fault: 1 counts are not true" in wrong.stderr
    assert "the guarantee does not hold: usage of 3 is 3, 1 counts are not true" in wrong.stderr


def test_what_is_wrong_is_said_in_its_own_words(installed: Any, chat: Any) -> None:
    policy = chat / "policy.yaml"
    for change, problem in {
        "data: word": "data: must be one of records, ratings, words (did you mean 'words'?), given 'word'",
        "data: words\nstream: {input: a, output: b}": "data: a stream of this kind of data cannot be made safe",
    }.items():
        policy.write_text(POLICY.replace("data: words", change))
        said = run("policy", "check", policy)
        assert said.returncode == 2
        assert problem in said.stderr
    policy.write_text(POLICY.replace("common_words, k: 3", "mondrian, k: 3"))
    assert "guarantee.algorithm: must be one of common_words" in run("policy", "check", policy).stderr
    policy.write_text(POLICY.replace("word: word", "word: person"))
    assert "schema.word: must be another field than the person's" in run("policy", "check", policy).stderr
    policy.write_text(POLICY.replace("k: 3", "k: 6"))
    refused = run("anonymize", chat / "chat.csv", "--policy", policy, "--out", chat / "safe.csv")
    assert refused.returncode == 2
    assert "the nearest feasible value is 5" in refused.stderr


def test_a_policy_is_proposed_and_algorithms_are_listed(installed: Any, chat: Any) -> None:
    (chat / "new").mkdir()
    said = run("policy", "init", chat / "chat.csv", "--out", chat / "new")
    assert said.returncode == 0, said.stderr
    assert "data: words" in (chat / "new" / "policy.yaml").read_text()
    listed = {entry["name"]: entry["data"] for entry in json.loads(run("algorithms", "--json").stdout)}
    assert (listed["common_words"], listed["mondrian"]) == ("words", "records")


def test_as_a_job_over_http(service: Any, chat: Any) -> None:
    url, secret = service
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        files = {"table": ("t.csv", TABLE), "policy": ("p.yaml", POLICY)}
        job = ended(client, client.post("/v1/jobs", files=files))
        assert job["state"] == "succeeded", job
        here = job["links"]["self"]
        assert client.get(f"{here}/result", headers={"Accept": "text/csv"}).text == "word,persons\ntea,5\nlamp,3\n"
        assert client.get(f"{here}/report").json()["data"] == "words"
        assert "Words: chat" in client.get(f"{here}/report", headers={"Accept": "text/html"}).text
        files = {"published": ("o.csv", "word,persons\ntea,5\nlamp,4\n"), "original": ("t.csv", TABLE)}
        audit = ended(client, client.post("/v1/audits", files={**files, "policy": ("p.yaml", POLICY)}))
        assert (audit["report"]["holds"], audit["report"]["published_words"]) == (False, 2)
        (begun,) = [kind["policy"] for kind in client.get("/v1/kinds").json()["kinds"] if kind["name"] == "words"]
        assert client.post("/v1/policies/check", content=begun).json()["usable"]
        assert client.put("/v1/policies/chat", content=POLICY).status_code == 201
        refused = client.post("/v1/policies/check", content=POLICY.replace("k: 3", "k: 0")).json()
        assert refused["problems"][0]["path"] == "guarantee.k"
        wrong = {"table": ("t.csv", TABLE.replace("word", "Zq7column", 1)), "policy": ("p.yaml", POLICY)}
        failed = ended(client, client.post("/v1/jobs", files=wrong))["problem"]
        assert failed["errors"][0]["path"] == "word"
        assert "Zq7" not in json.dumps(failed)


def ended(client: Any, answer: Any) -> Any:
    """The job once it has ended."""
    here = answer.raise_for_status().json()["links"]["self"]
    for _ in range(10 * PATIENCE):
        job = client.get(here).json()
        if job["state"] in {"succeeded", "failed"}:
            return job
        time.sleep(0.1)
    raise AssertionError("the job does not end")


@pytest.mark.browser
@pytest.mark.needs_tool("chromium")
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(600)
def test_in_the_console(service: Any, chat: Any, tmp_path: Path) -> None:
    with chromium(tmp_path / "browser") as driver:
        console = Console(driver, *service, tmp_path / "saved")  # type: ignore[call-arg]
        console.open("jobs")
        console.choose("jobs", "Table", chat / "chat.csv")
        console.choose("jobs", "Policy file", chat / "policy.yaml")
        console.pick("jobs", "Guarantee", "common_words")
        console.field("jobs", "k").send_keys("4")
        console.send()
        job = console.newest_job("succeeded")
        console.press(job, "Report")
        frame = console.until(lambda: next(iter(console.all("dialog iframe")), None))
        console.driver.switch_to.frame(frame)
        console.until_text("main", "How many leave.")
        assert console.text("tbody tr:first-child td") == "1", "the guarantee of the form is used"
        console.driver.switch_to.default_content()
        console.open("policies")
        console.until_text("#policy-verdict", "people: usable")
        console.pick("policies", "Kind of data", "words")
        console.press("#panel-policies", "New policy")
        console.until(lambda: "data: words" in console.one("#panel-policies textarea").get_property("value"))
        console.until_text("#policy-verdict", "usable")
        published = tmp_path / "published.csv"
        published.write_text("word,persons\ntea,5\nlamp,3\n")
        console.open("audit")
        console.choose("audit", "Published table", published)
        console.choose("audit", "Original table", chat / "chat.csv")
        console.choose("audit", "Policy file", chat / "policy.yaml")
        console.press("#panel-audit form", "Audit")
        console.until_text(".audit-result", "The guarantee holds", PATIENCE)
        assert "published words" in console.text(".audit-result .tiles")
        console.picture("new-kind")
        assert console.complaints() == []

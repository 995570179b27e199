"""Ratings through all of Portcullis: policies, commands, HTTP, console, audits, proposals."""

import csv
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from microdata import DataError, read_sample
from service.kinds import data_kind, report_page
from service.policy import PolicyError, load_policy, parse_policy
from service.problems import ProblemError
from tests.service.console.console_world import PATIENCE, Console, chromium, portcullis, serving

SURVEY = Path(__file__).parents[4] / "examples" / "survey"
GIVEN = yaml.safe_load((SURVEY / "policy.yaml").read_text())
KIND = data_kind("ratings")


def policy(**guarantee: Any) -> Any:
    return parse_policy({**GIVEN, "guarantee": {"algorithm": "ke_anon", "k": 3, "epsilon": 1, **guarantee}})


def small(tmp_path: Path, persons: int = 9) -> Path:
    """The first persons of the survey."""
    lines = (SURVEY / "ratings.csv").read_text().splitlines()
    chosen = list(dict.fromkeys(line.split(",")[0] for line in lines[1:]))[:persons]
    path = tmp_path / "small.csv"
    path.write_text("\n".join([lines[0], *(line for line in lines[1:] if line.split(",")[0] in chosen)]) + "\n")
    return path


def released(asked: Any, table: Path, tmp_path: Path) -> Path:
    out = tmp_path / "safe.csv"
    KIND.write(asked, KIND.anonymize(asked, table), out)
    return out


@pytest.mark.parametrize(
    "how", [{}, {"strategy": "same", "items": "most"}, {"null_policy": "majority"}, {"accept": "degree", "epsilon": 4}]
)
def test_the_audit_sees_every_single_changed_rating(tmp_path: Path, how: Any) -> None:
    """Whichever rating of a release is changed, taken away or given to another item, and in whatever run."""
    asked, table = policy(**how), small(tmp_path, 6)
    out = released(asked, table, tmp_path)
    assert KIND.audit(asked, out, {"original": table}).holds
    rows = list(csv.reader(out.read_text().splitlines()))
    for place in range(1, len(rows), 3):
        person, item, stars = rows[place]
        other = "4" if stars == "5" else str(int(stars) + 1)
        for changed in ([[person, item, other]], []):
            out.write_text("\n".join(",".join(row) for row in [*rows[:place], *changed, *rows[place + 1 :]]) + "\n")
            verdict = KIND.audit(asked, out, {"original": table})
            assert not verdict.holds
            assert verdict.faults, "it is not the guarantee alone that fails"


def test_an_audit_without_an_algorithm_checks_what_it_can(tmp_path: Path) -> None:
    asked, table = policy(), small(tmp_path)
    out = released(asked, table, tmp_path)
    foreign = parse_policy({**GIVEN, "guarantee": {"k": 3, "epsilon": 1}})
    verdict = KIND.audit(foreign, out, {"original": table})
    assert verdict.holds
    assert "names no algorithm" in verdict.notes[-1]
    harsh = parse_policy({**GIVEN, "guarantee": {"k": 9, "epsilon": 0}})
    assert not KIND.audit(harsh, out, {"original": table}).holds
    out.write_text(out.read_text().replace("q17,", "q18x,", 1))
    assert not KIND.audit(foreign, out, {"original": table}).holds
    with pytest.raises(ProblemError):
        KIND.audit(foreign, out, {"distribution": table})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": {**GIVEN["schema"], "item": None}}, "schema.item: a long table needs this column"),
        ({"schema": {**GIVEN["schema"], "layout": "wide"}}, "schema.item: a wide table has a column for each item"),
        ({"schema": {**GIVEN["schema"], "rating": {"field": "stars", "min": 5, "max": 1}}}, "min must be below max"),
        ({"guarantee": {"algorithm": "ke_anon", "k": 3, "epsilon": 9}}, "guarantee.epsilon: must be at most"),
        ({"guarantee": {"algorithm": "ke_anon", "k": 3, "epsilon": 1, "l": {"sd": 3}}}, "nearest feasible value is 2"),
        ({"guarantee": {"algorithm": "mondrian", "k": 3}}, "must be one of ke_anon"),
        ({"stream": {"input": "a", "output": "b"}}, "data: a stream of this kind of data cannot be made safe"),
    ],
)
def test_policies_that_cannot_be_used(change: Any, problem: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse_policy({**GIVEN, **change})
    assert problem in str(refused.value)


def test_a_table_is_checked_before_anything_is_done(tmp_path: Path) -> None:
    table = small(tmp_path)
    fine = KIND.check(policy(strategy="same"), table)
    assert (fine.problems, fine.warnings) == ((), ())
    assert any("strategy: same" in one for one in KIND.check(policy(), table).warnings)
    (few,) = KIND.check(policy(k=10), table).problems
    assert (few.path, few.nearest) == ("guarantee.k", 9)
    table.write_text(table.read_text() + "1,q1,7\n")
    (refused,) = KIND.check(policy(), table).problems
    assert "stars: outside the declared domain" in refused.reason
    with pytest.raises(DataError, match="outside the declared domain"):
        KIND.anonymize(policy(), table)


LONG = "userId,movieId,rating,timestamp\n" + "".join(
    f"{user},{100 + (user * movie) % 37},{1 + (user + movie) % 9 / 2},0\n"
    for user in range(1, 13)
    for movie in range(1, 6)
)
WIDE = "id,age,q1,q2,q3,q4,q5\n" + "".join(f"{i},{30 + i},{1 + i % 5},{1 + i % 4},,{1 + i % 5},5\n" for i in range(12))


@pytest.mark.parametrize(("text", "layout"), [(LONG, "long"), (WIDE, "wide")], ids=["long", "wide"])
def test_ratings_are_recognised_and_the_proposal_works(tmp_path: Path, text: str, layout: str) -> None:
    table = tmp_path / "films.csv"
    table.write_text(text)
    proposal = KIND.propose(read_sample(table), "films")
    assert proposal is not None
    path = proposal.write(tmp_path / "new")
    asked = load_policy(path)
    assert asked.schema.layout == layout
    left_out = {guess.name for guess in proposal.guesses if guess.role == "left out"}
    assert left_out == ({"timestamp"} if layout == "long" else {"age"})
    assert not KIND.check(asked, table).problems
    with pytest.raises(DataError, match="exists already"):
        proposal.write(tmp_path / "new")


@pytest.mark.parametrize(
    "text",
    [
        "person,age,rating\n1,30,5\n2,31,4\n",
        "user,item,rating\n1,a,5\n1,a,4\n2,a,1\n",
        "user,item,rating\n1,a,500\n1,b,4.25\n2,a,1\n",
        "id,q1,q2,q3\n1,1,2,3\n2,1,2,3\n",
        "id,q1,q2,q3,q4,q5\n1,1,2,3,4,Zq7\n2,1,2,3,4,5\n",
        WIDE.replace("q", "\u200bq"),
    ],
)
def test_other_tables_are_not_taken_for_ratings(tmp_path: Path, text: str) -> None:
    table = tmp_path / "other.csv"
    table.write_text(text)
    assert KIND.propose(read_sample(table), "other") is None


def test_what_a_new_policy_begins_with_can_be_used() -> None:
    assert parse_policy(KIND.beginning()).models()
    assert parse_policy(next(KIND.examples()).policy).kind == "table"


def test_the_report_says_what_was_lost_and_what_an_attacker_gets(tmp_path: Path) -> None:
    asked, table = load_policy(SURVEY / "policy.yaml"), SURVEY / "ratings.csv"
    result = KIND.anonymize(asked, table)
    report: Any = KIND.report(asked, result, seconds=1.0)
    assert report.holds
    assert report.counts.invented == 0
    assert report.counts.kept + report.counts.changed + report.counts.suppressed == report.counts.ratings
    assert sum(one.groups for one in report.groups.bins) == report.groups.groups
    exact = [one for one in report.attacks if one.tolerance == 0][-1]
    assert (exact.before.singled_out > 0.9, exact.after.singled_out) == (True, 0)
    assert all(one.after.hit <= 1 / 5 for one in report.attacks)
    text = report.model_dump_json()
    page = report_page(text)
    assert "Ratings: <bdi>survey</bdi>" in page
    persons = {line.split(",")[0] for line in table.read_text().splitlines()[1:]}
    assert not persons & set(page.replace(">", " ").replace("<", " ").split()), "nobody is named"
    assert result.warnings == ()


# -- as people use it -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_commands(tmp_path: Path) -> None:
    def run(*arguments: Any) -> Any:
        return subprocess.run(portcullis(*map(str, arguments)), capture_output=True, text=True, check=False)

    table, asked, out = SURVEY / "ratings.csv", SURVEY / "policy.yaml", tmp_path / "safe.csv"
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    made = run("anonymize", table, "--policy", asked, "--out", out, "--report", report, "--html", page)
    assert made.returncode == 0, made.stderr
    assert json.loads(report.read_text())["data"] == "ratings"
    assert "What somebody gets who knows some ratings" in page.read_text()
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["respondent", "question", "stars"]
    assert {row[0] for row in rows[1:]} == {str(number) for number in range(1, 151)}
    assert run("audit", table, out, "--policy", asked).returncode == 0
    rows[7][2] = "1" if rows[7][2] == "2" else "2"
    out.write_text("\n".join(",".join(row) for row in rows) + "\n")
    wrong = run("audit", table, out, "--policy", asked)
    assert wrong.returncode == 1
    assert "not what the policy's algorithm makes of the original" in wrong.stderr


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("service"), []) as given:
        yield given


@pytest.mark.slow
@pytest.mark.xdist_group("ratings-service")
def test_as_a_job_over_http(service: Any) -> None:
    url, secret = service
    table, asked = (SURVEY / "ratings.csv").read_text(), (SURVEY / "policy.yaml").read_text()
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        job = ended(client, client.post("/v1/jobs", files={"table": ("t.csv", table), "policy": ("p.yaml", asked)}))
        assert job["state"] == "succeeded", job
        here = job["links"]["self"]
        result = client.get(f"{here}/result", headers={"Accept": "text/csv"}).text
        assert result.startswith("respondent,question,stars\n")
        assert client.get(f"{here}/report").json()["counts"]["persons"] == 150
        assert "Which items are left" in client.get(f"{here}/report", headers={"Accept": "text/html"}).text
        for published, holds in ((result, True), (result.replace("\n1,q1,", "\n1,q2,", 1), False)):
            files = {"published": ("o.csv", published), "original": ("t.csv", table), "policy": ("p.yaml", asked)}
            audit = ended(client, client.post("/v1/audits", files=files))
            assert (audit["report"] or {}).get("holds", False) is holds, audit
        wrong = {"table": ("t.csv", table + "Zq7mark,q1,Zq7mark\n"), "policy": ("p.yaml", asked)}
        failed = ended(client, client.post("/v1/jobs", files=wrong))["problem"]
        assert failed["errors"][0]["path"] == "stars"
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
@pytest.mark.xdist_group("ratings-service")
@pytest.mark.timeout(600)
def test_in_the_console(service: Any, tmp_path: Path) -> None:
    with chromium(tmp_path / "browser") as driver:
        console = Console(driver, *service, tmp_path / "saved")  # type: ignore[call-arg]
        console.open("jobs")
        console.choose("jobs", "Table", SURVEY / "ratings.csv")
        console.choose("jobs", "Policy file", SURVEY / "policy.yaml")
        console.pick("jobs", "Guarantee", "ke_anon")
        console.field("jobs", "k").send_keys("4")
        console.field("jobs", "epsilon").send_keys("2")
        console.send()
        job = console.newest_job("succeeded")
        console.press(job, "Report")
        frame = console.until(lambda: next(iter(console.all("dialog iframe")), None))
        console.driver.switch_to.frame(frame)
        console.until_text("main", "k = 4")
        console.until_text("main", "What somebody gets who knows some ratings")
        console.driver.switch_to.default_content()
        assert console.complaints() == []

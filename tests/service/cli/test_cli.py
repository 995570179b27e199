"""The conventions of the command line: help, exit statuses, errors in one paragraph."""

import gc
import json
import os
import platform
import stat
import subprocess
import sys
from typing import Any

import pytest

import service.cli.anonymize
import service.kinds.records.tables
from microdata import Publication
from service.cli import commands
from service.exit_status import READER_GONE
from static_algos import STATIC_ALGORITHMS
from tests.service.cli.cli_world import CITIES, ITEMS, MARK

GROUPS = {"policy": ("check", "init"), "token": ("new",), "key": ("new",), "evidence": ("verify", "show")}
COMMANDS = [(name,) for name in commands.COMMANDS if name not in GROUPS]
COMMANDS += [(name, below) for name, group in GROUPS.items() for below in group]  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # kafka-python's protocol package, on import
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(portcullis: Any, command: Any) -> None:
    result = portcullis(*command, "--help")
    assert result.exit_code == 0
    assert "Example: portcullis " + " ".join(command) in " ".join(result.stdout.split())


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, service.cli; assert not {'numba', 'numpy', 'pyarrow', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_runs_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "service", "--help"], capture_output=True, text=True, check=True)
    assert "anonymize" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("anonymise",),
        ("anonymize",),
        ("anonymize", "table.csv", "--out"),
        ("audit", "a.csv", "b.csv"),
        ("policy", "check", "p.yaml", "--tabel", "t.csv"),
        ("demo", "--events", "many"),
    ],
)
def test_wrong_use_is_status_2(portcullis: Any, arguments: Any) -> None:
    result = portcullis(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output or "Error:" in result.stderr


def test_an_unexpected_error_shows_no_value(portcullis: Any, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: Any, **__: Any) -> None:
        raise ValueError(f"could not convert {MARK}")

    monkeypatch.setattr(service.kinds.records.tables, "read_table", stumble)
    arguments = ("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv")
    result = portcullis(*arguments)
    assert result.exit_code == 70
    assert "internal error: ValueError in" in result.stderr
    assert MARK not in result.output
    monkeypatch.setenv("PORTCULLIS_TRACEBACK", "1")
    assert isinstance(portcullis(*arguments).exception, ValueError)


def test_an_interrupt_is_no_failed_guarantee(portcullis: Any, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(service.kinds.records.tables, "read_table", interrupt)
    result = portcullis("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_algorithms_for_people_and_programs(portcullis: Any) -> None:
    people, programs = portcullis("algorithms"), portcullis("algorithms", "--json")
    assert people.exit_code == programs.exit_code == 0
    listed = json.loads(programs.stdout)
    assert [entry["name"] for entry in listed if entry["name"] == "mondrian"] == ["mondrian"]
    for entry in listed:
        assert f"{entry['name']} (for a {entry['runs_on']}): {entry['summary']}" in people.stdout
        assert entry["guarantees"], f"{entry['name']} says nothing about what it guarantees"
        for parameter in entry["parameters"]["properties"]:
            assert parameter in people.stdout


class TestAnonymize:
    def test_writes_what_passes_its_audit(self, portcullis: Any, shop: Any) -> None:
        out, report, page = shop / "out.csv", shop / "report.json", shop / "report.html"
        result = portcullis(
            *("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", out),
            *("--report", report, "--html", page),
        )
        assert result.exit_code == 0, result.output
        assert len(out.read_text().splitlines()) == 81
        assert json.loads(report.read_text())["holds"] is True
        assert "The guarantee holds" in page.read_text()
        assert MARK not in result.output + out.read_text() + report.read_text() + page.read_text()
        assert "not for release" not in result.output
        again = portcullis("audit", shop / "table.csv", out, "--policy", shop / "policy.yaml")
        assert again.exit_code == 0, again.output

    def test_a_run_that_cannot_be_reported_on_leaves_nothing(
        self, portcullis: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stumble(*_: Any, **__: Any) -> None:
            raise ValueError(MARK)

        monkeypatch.setattr(service.kinds.records.kind, "report_on", stumble)
        arguments = ("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv")
        result = portcullis(*arguments, "--report", shop / "report.json")
        assert result.exit_code == 70
        assert MARK not in result.output
        assert not (shop / "out.csv").exists()

    def test_a_seed_repeats_and_warns(self, portcullis: Any, shop: Any) -> None:
        texts = []
        for name in ("a.csv", "b.csv"):
            result = portcullis(
                *("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / name),
                *("--seed", 7),
            )
            assert "not for release" in result.stderr
            texts.append((shop / name).read_text())
        assert texts[0] == texts[1]

    def test_a_failed_audit_is_status_3_and_writes_nothing(
        self, portcullis: Any, shop: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An algorithm that breaks its promise: every row its own class."""

        def broken(self: Any, table: Any, **_: Any) -> Any:
            return Publication.of(table, range(len(table)))  # type: ignore[arg-type]

        monkeypatch.setattr(STATIC_ALGORITHMS["mondrian"].algorithm, "anonymize", broken)
        before = sorted(shop.iterdir())
        result = portcullis(
            *("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv"),
            *("--report", shop / "report.json"),
        )
        assert result.exit_code == 3
        assert "failed its own audit" in result.stderr
        assert "k-anonymity of 4 fails in 80 of 80 classes" in result.stderr
        assert sorted(shop.iterdir()) == before
        assert MARK not in result.output

    @pytest.mark.parametrize(("out", "report"), [("table.csv", None), ("policy.yaml", None), ("x.csv", "x.csv")])
    def test_nothing_it_needs_is_overwritten(self, portcullis: Any, shop: Any, out: str, report: Any) -> None:
        options = ("--report", shop / report) if report else ()
        before = (shop / "table.csv").read_text()
        result = portcullis(
            "anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / out, *options
        )
        assert result.exit_code == 2
        assert "is already" in result.stderr
        assert (shop / "table.csv").read_text() == before

    @pytest.mark.parametrize("there", ["out.csv", "report.json", "report.html"])
    def test_what_was_published_is_replaced_only_on_demand(self, portcullis: Any, shop: Any, there: str) -> None:
        (shop / there).write_text("published before")
        arguments = (
            *("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv"),
            *("--report", shop / "report.json", "--html", shop / "report.html"),
        )
        before = sorted(shop.iterdir())
        result = portcullis(*arguments)
        assert result.exit_code == 2
        assert "is there already" in result.stderr
        assert "--overwrite" in result.stderr
        assert (sorted(shop.iterdir()), (shop / there).read_text()) == (before, "published before")
        assert portcullis(*arguments, "--overwrite").exit_code == 0
        assert (shop / there).read_text() != "published before"

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ("k: 4", "k: 81", "k: k-anonymity cannot be met, even by all 80 rows as one class, given 81; the nearest"),
            ("l: 2", "l: 4", "guarantee.l: distinct-l-diversity cannot be met"),
            (
                "l: 2",
                "t: 1.7",
                "guarantee.t.threshold: must be less than or equal to 1, given 1.7; the nearest feasible value is 1",
            ),
            ("algorithm: mondrian, ", "", "guarantee.algorithm: a table needs one of"),
        ],
    )
    def test_infeasible_requests_name_the_nearest_value(
        self, portcullis: Any, shop: Any, old: str, new: str, expected: str
    ) -> None:
        (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text().replace(old, new))
        result = portcullis("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "o.csv")
        assert result.exit_code == 2
        assert expected in result.stderr
        assert not (shop / "o.csv").exists()


class TestAudit:
    def publish(self, portcullis: Any, shop: Any) -> None:
        arguments = ("anonymize", shop / "table.csv", "--policy", shop / "policy.yaml", "--out", shop / "out.csv")
        assert portcullis(*arguments).exit_code == 0

    def test_a_guarantee_that_fails_is_status_1(self, portcullis: Any, shop: Any) -> None:
        self.publish(portcullis, shop)
        strict = (shop / "policy.yaml").read_text().replace("k: 4", "k: 40")
        (shop / "strict.yaml").write_text(strict)
        arguments = ("audit", shop / "table.csv", shop / "out.csv", "--policy", shop / "strict.yaml")
        people, programs = portcullis(*arguments), portcullis(*arguments, "--json")
        assert people.exit_code == programs.exit_code == 1
        assert "the guarantee does not hold: k-anonymity of 40 fails" in people.stderr
        findings = {finding["model"]: finding["holds"] for finding in json.loads(programs.stdout)["findings"]}
        assert findings == {"k-anonymity": False, "distinct-l-diversity": True}

    def test_the_raw_table_fails(self, portcullis: Any, shop: Any) -> None:
        """Somebody publishes the table itself, each row as its own class."""
        lines = (shop / "table.csv").read_text().splitlines()
        rows = [line.split(",") for line in lines[1:]]
        raw = ["age,city,item,shop,class", *(f"{','.join(row[1:5])},{number}" for number, row in enumerate(rows))]
        (shop / "raw.csv").write_text("\n".join(raw))
        result = portcullis("audit", shop / "table.csv", shop / "raw.csv", "--policy", shop / "policy.yaml")
        assert result.exit_code == 1
        assert MARK not in result.output

    def test_repeated_persons_cannot_be_proven_from_outside(self, portcullis: Any, shop: Any) -> None:
        """Whoever sees only the file must reckon with one person behind several rows of a class."""
        rows = [f"{MARK}{row % 40},{20 + row % 50},{CITIES[row % 4]},{ITEMS[row % 3]},east" for row in range(400)]
        (shop / "table.csv").write_text("\n".join(["id,age,city,item,shop", *rows]))
        overlapping = (shop / "policy.yaml").read_text().replace("mondrian, k: 4, l: 2", "sabre, k: 4, t: 0.4")
        (shop / "policy.yaml").write_text(overlapping)
        self.publish(portcullis, shop)
        result = portcullis("audit", shop / "table.csv", shop / "out.csv", "--policy", shop / "policy.yaml")
        assert result.exit_code == 4
        assert "the guarantee is not shown to hold: k-anonymity of 4 cannot be shown from the published file" in (
            result.stderr
        )
        assert "not shown" in result.stdout
        assert "NO" not in result.stdout
        assert "audit with --links" in result.stderr

    def test_the_links_of_its_owner_show_it(self, portcullis: Any, shop: Any) -> None:
        """`anonymize` and `audit` say the same of persons with several rows."""
        rows = [f"{MARK}{row % 40},{20 + row % 50},{CITIES[row % 4]},{ITEMS[row % 3]},east" for row in range(400)]
        (shop / "table.csv").write_text("\n".join(["id,age,city,item,shop", *rows]))
        overlapping = (shop / "policy.yaml").read_text().replace("mondrian, k: 4, l: 2", "sabre, k: 4, t: 0.4")
        (shop / "policy.yaml").write_text(overlapping)
        for ending in ("csv", "parquet", "jsonl"):
            safe, links = shop / f"safe.{ending}", shop / f"{ending}.links"
            arguments = ("--policy", shop / "policy.yaml", "--links", links)
            made = portcullis("anonymize", shop / "table.csv", *arguments, "--out", safe)
            assert made.exit_code == 0, made.output
            assert stat.S_IMODE(links.stat().st_mode) == 0o600
            result = portcullis("audit", shop / "table.csv", safe, *arguments)
            assert result.exit_code == 0, result.output
            table, _, numbers = result.stdout.partition("smallest class")
            assert table in made.stdout
            assert "counted as distinct persons" in numbers
        kept = links.read_text().splitlines()
        for wrong, status in (([*kept[1:], kept[0]], 1), (kept[1:], 2), (["x"], 2), (["[400]", *kept[1:]], 2)):
            links.write_text("\n".join(wrong) + "\n")
            result = portcullis("audit", shop / "table.csv", safe, *arguments)
            assert (result.exit_code, MARK in result.output) == (status, False)

    def test_links_count_rows_as_they_are_in_the_file(self, portcullis: Any, shop: Any) -> None:
        """Rejected rows, which come before others, have a position too."""
        header, *rows = (shop / "table.csv").read_text().splitlines()
        rows[0] = rows[0].replace("Oslo", "Atlantis")
        (shop / "table.csv").write_text("\n".join([header, *rows]))
        (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text() + "table: {on_refused: drop}\n")
        arguments = ("--policy", shop / "policy.yaml", "--links", shop / "links")
        assert portcullis("anonymize", shop / "table.csv", *arguments, "--out", shop / "safe.csv").exit_code == 0
        positions = sorted(json.loads(line)[0] for line in (shop / "links").read_text().splitlines())
        assert positions == list(range(1, 80))
        assert portcullis("audit", shop / "table.csv", shop / "safe.csv", *arguments).exit_code == 0

    def test_ratings_have_no_links(self, portcullis: Any, tmp_path: Any) -> None:
        survey = ("examples/survey/ratings.csv", "--policy", "examples/survey/policy.yaml")
        made = portcullis("anonymize", *survey, "--out", tmp_path / "out.csv", "--links", tmp_path / "links")
        read = portcullis("audit", survey[0], tmp_path / "out.csv", *survey[1:], "--links", tmp_path / "links")
        assert (made.exit_code, read.exit_code) == (2, 2)
        assert "ratings have no links" in made.output
        assert not (tmp_path / "out.csv").exists()

    def test_a_published_person_is_a_fault(self, portcullis: Any, shop: Any) -> None:
        self.publish(portcullis, shop)
        lines = (shop / "out.csv").read_text().splitlines()
        leaky = [f"{line},{'id' if number == 0 else MARK}" for number, line in enumerate(lines)]
        (shop / "leaky.csv").write_text("\n".join(leaky))
        result = portcullis("audit", shop / "table.csv", shop / "leaky.csv", "--policy", shop / "policy.yaml")
        assert result.exit_code == 1
        assert "columns that the schema does not let out: id" in result.stderr
        assert MARK not in result.output


class TestPolicyCheck:
    def test_a_usable_policy(self, portcullis: Any, shop: Any) -> None:
        people = portcullis("policy", "check", shop / "policy.yaml", "--table", shop / "table.csv")
        assert people.exit_code == 0
        assert "shop: usable for tables; guarantees k-anonymity 4" in people.stdout
        programs = portcullis("policy", "check", shop / "policy.yaml", "--table", shop / "table.csv", "--json")
        assert json.loads(programs.stdout)["rows"] == 80

    def test_all_problems_for_programs(self, portcullis: Any, shop: Any) -> None:
        (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text().replace("person:", "persn:"))
        result = portcullis("policy", "check", shop / "policy.yaml", "--json")
        assert result.exit_code == 2
        paths = {problem["path"] for problem in json.loads(result.stdout)["problems"]}
        assert paths == {"schema.persn", "schema.person"}

    def test_a_public_field_that_points_at_persons_draws_a_warning(self, portcullis: Any, shop: Any) -> None:
        (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text().replace("[shop]", "[shop, note]"))
        lines = (shop / "table.csv").read_text().splitlines()
        unique = [line if number == 0 else f"{line}{number}" for number, line in enumerate(lines)]
        (shop / "table.csv").write_text("\n".join(unique))
        result = portcullis("policy", "check", shop / "policy.yaml", "--table", shop / "table.csv")
        assert result.exit_code == 0
        assert "'note' has 80 different values in 80 rows" in result.stderr
        assert "'shop'" not in result.stderr
        assert MARK not in result.output

    def test_a_policy_that_cannot_work_with_the_table(self, portcullis: Any, shop: Any) -> None:
        (shop / "policy.yaml").write_text((shop / "policy.yaml").read_text().replace("k: 4", "k: 200"))
        result = portcullis("policy", "check", shop / "policy.yaml", "--table", shop / "table.csv")
        assert result.exit_code == 2
        assert "guarantee.k: k-anonymity cannot be met" in result.stderr
        assert "the nearest feasible value is 80" in result.stderr


class TestPolicyInit:
    def test_proposes_a_policy_that_can_be_used(self, portcullis: Any, shop: Any) -> None:
        lines = (shop / "table.csv").read_text().splitlines()
        unique = [line if number == 0 else f"{line}{number}" for number, line in enumerate(lines)]
        (shop / "table.csv").write_text("\n".join(unique))
        result = portcullis("policy", "init", shop / "table.csv", "--out", shop / "proposed")
        assert result.exit_code == 0, result.output
        assert "id: person" in result.stdout
        assert "note: left out" in result.stdout
        written = "".join(path.read_text() for path in (shop / "proposed").rglob("*.*") if path.is_file())
        assert MARK not in result.output + written
        policy = shop / "proposed" / "policy.yaml"
        checked = portcullis("policy", "check", policy, "--table", shop / "table.csv")
        assert checked.exit_code == 0, checked.output
        made = portcullis("anonymize", shop / "table.csv", "--policy", policy, "--out", shop / "out.csv")
        assert made.exit_code == 0, made.output
        assert MARK not in made.output + (shop / "out.csv").read_text()

    def test_says_where_nobody_is_named(self, portcullis: Any, shop: Any) -> None:
        (shop / "table.csv").write_text(
            "age;sex\n" + "".join(f"{20 + row % 40};{'fm'[row % 2]}\n" for row in range(80))
        )
        result = portcullis("policy", "init", shop / "table.csv", "--out", shop / "proposed")
        assert result.exit_code == 0, result.output
        assert "NO COLUMN NAMES PERSONS" in result.stderr

    def test_replaces_nothing(self, portcullis: Any, shop: Any) -> None:
        before = (shop / "policy.yaml").read_text()
        result = portcullis("policy", "init", shop / "table.csv", "--out", shop)
        assert result.exit_code == 2
        assert "exists already" in result.stderr
        assert (shop / "policy.yaml").read_text() == before

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("", "the file is empty"),
            ("id,age\n", "no rows"),
            (f"{MARK},31\n{MARK},32\n", "does not read like a header"),
        ],
    )
    def test_bad_tables(self, portcullis: Any, shop: Any, content: str, expected: str) -> None:
        (shop / "table.csv").write_text(content)
        result = portcullis("policy", "init", shop / "table.csv", "--out", shop / "proposed")
        assert result.exit_code == 2
        assert expected in result.stderr
        assert MARK not in result.output


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_who_has_had_enough_is_no_fault_of_ours(form: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "service", "algorithms", *form]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (READER_GONE, b"")


def test_cohorts_can_be_kept_only_where_persons_are_remembered(portcullis: Any) -> None:
    result = portcullis("drain", "examples/orders/policy.yaml", "--keep-cohorts", "--bootstrap", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "remembers nobody: there are no cohorts to keep" in " ".join(result.stderr.split())


HEAPS = """
import ctypes, threading
from service.cli import serve
{shared}
met = threading.Barrier(7)

def allocate():
    held = bytes(5_000)
    met.wait()  # all at the same time: a thread that ends leaves its heap to the next
    met.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for thread in threads:
    thread.start()
met.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(out := libc.fdopen(1, b"w")))
libc.fflush(ctypes.c_void_p(out))
met.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives every thread a heap")
def test_threads_of_the_service_share_two_heaps() -> None:
    def heaps(shared: Any) -> Any:
        command = [sys.executable, "-c", HEAPS.format(shared=shared)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.count("<heap nr=")

    assert heaps("serve._share_heaps()") == 2
    assert heaps("") > 2, "the test sees the difference"


def test_garbage_is_collected_again_once_a_command_is_loaded() -> None:
    commands.load("audit")
    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        commands._imported("service.cli.nothing")
    assert gc.isenabled()

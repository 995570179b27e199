"""The package of `examples/in_line`, installed as somebody's own: policies, commands and HTTP know what it brings."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "examples" / "in_line"
POLICY = """\
name: adult
schema:
  person: {{row: true}}
  quasi:
    age: {{type: number, min: 0, max: 120, integer: true}}
guarantee: {guarantee}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the package in it, as pip installs it."""
    source, target = tmp_path_factory.mktemp("source") / "in_line", tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", target, source], check=True, timeout=300)
    return target


@pytest.fixture
def broken(tmp_path: Path) -> Any:
    """A folder with a package in it whose modules cannot be imported."""
    site = tmp_path / "site"
    about = site / "sad_package-2.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sad-package\nVersion: 2.0\n")
    (about / "entry_points.txt").write_text("[portcullis.algorithms]\nsad = sad_package\n")
    (site / "sad_package.py").write_text("raise RuntimeError('it rains')\n")
    return site


@pytest.fixture
def table(tmp_path: Path) -> Any:
    path = tmp_path / "table.csv"
    path.write_text("age\n" + "".join(f"{20 + row % 50}\n" for row in range(100)))
    return path


def run(site: Any, *command: Any, status: int = 0) -> Any:
    """What a command says, with this folder on the path."""
    path = os.pathsep.join(map(str, (site, ROOT)))
    made = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=site,
    )
    assert made.returncode == status, made.stderr
    return made.stdout + made.stderr


def policy(tmp_path: Any, **guarantee: Any) -> Any:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.format(guarantee=json.dumps(guarantee)))
    return path


def test_it_passes_the_generic_checks(installed: Any) -> None:
    assert "failed" not in run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE / "test_in_line.py")


@pytest.mark.parametrize("name", ["algorithm.py", "fewest_rows.py"])
def test_the_guide_shows_it(name: str) -> None:
    shown = (ROOT / "docs" / "contributing.md").read_text()
    assert (PACKAGE / "in_line" / name).read_text() in shown


def test_the_command_lists_it(installed: Any) -> None:
    listed = json.loads(run(installed, "-m", "service", "algorithms", "--json"))
    entry = next(one for one in listed if one["name"] == "in_line")
    assert entry["guarantees"] == ["k-anonymity"]
    assert "k" in entry["parameters"]["properties"]
    mondrian = next(one for one in listed if one["name"] == "mondrian")
    assert "fewest-rows" in mondrian["guarantees"]
    assert "rows" in mondrian["parameters"]["properties"]


@pytest.mark.parametrize("guarantee", [{"algorithm": "in_line", "k": 7}, {"algorithm": "mondrian", "rows": 9}], ids=str)
def test_a_policy_names_it(installed: Any, table: Any, tmp_path: Path, guarantee: Any) -> None:
    out = tmp_path / "out.csv"
    path = policy(tmp_path, **guarantee)
    run(installed, "-m", "service", "anonymize", table, "--policy", path, "--out", out)
    classes = [line.rsplit(",", 1)[-1] for line in out.read_text().splitlines()[1:]]
    assert len(classes) == 100
    assert min(classes.count(one) for one in set(classes)) >= 7


def test_the_service_lists_it(installed: Any, tmp_path: Path) -> None:
    ask = """
import sys
from pathlib import Path
from starlette.testclient import TestClient
from service.api import ServiceSettings, create_app
with TestClient(create_app(ServiceSettings(data=Path(sys.argv[1]), job_workers=0)), "http://127.0.0.1") as client:
    print(client.get("/v1/algorithms").text)
"""
    assert '"name":"in_line"' in run(installed, "-W", "ignore", "-c", ask, tmp_path / "data")


def test_a_model_that_comes_too_late_is_told_so(installed: Any) -> None:
    late = "import privacy; privacy.Guarantee; privacy.KEYS.add('late', int, requests=[])(print)"
    assert "the key 'late' is declared too late" in run(installed, "-c", late, status=1)


def test_a_model_may_be_imported_before_anything_else(installed: Any) -> None:
    first = "import in_line.fewest_rows; from privacy import Guarantee; print(Guarantee(rows=3).rows)"
    assert run(installed, "-c", first).strip() == "3"


def test_a_package_that_cannot_be_imported_is_named_and_takes_nothing_down(
    broken: Any, table: Any, tmp_path: Path
) -> None:
    said = (
        "the installed package sad-package 2.0 brings 'sad' (sad_package), which cannot be loaded: "
        "RuntimeError: it rains"
    )
    listed = run(broken, "-m", "service", "algorithms")
    assert said in listed
    assert "mondrian (for a table)" in listed
    path = policy(tmp_path, algorithm="sad", k=3)
    refused = run(broken, "-m", "service", "policy", "check", path, status=2)
    assert f"guarantee.algorithm: {said}" in " ".join(refused.split())

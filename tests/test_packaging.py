"""What is shipped: a wheel and an sdist that hold all that the packages need, nothing else, and work far from here."""

import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from service.cli import app

ROOT = Path(__file__).parents[1]
PACKAGES = ("microdata", "privacy", "static_algos", "stream_algos", "service")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: Any, cwd: Any) -> Any:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=cwd, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked() -> Any:
    return [Path(line) for line in run("git", "ls-files", "--cached", cwd=ROOT).splitlines() if (ROOT / line).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The wheel and the sdist, built from a copy of what is under version control."""
    source = tmp_path_factory.mktemp("source")
    for path in tracked():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes((ROOT / path).read_bytes())
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source, cwd=source)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def test_the_wheel_holds_the_packages_whole_and_nothing_else(built: Any) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == {str(path) for path in tracked() if path.parts[0] in PACKAGES}
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped
    assert {
        "service/console/static/index.html",
        "service/report/page.css",
        "service/report/parts.html.jinja",
    } <= shipped
    assert "service/jobs/migrations/versions/v0001_jobs_and_policies.py" in shipped


def test_fragments_are_gathered_into_the_section_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("not a fragment")
    (tmp_path / "changelog.d" / "10-later.md").write_text("- Ten.\n")
    (tmp_path / "changelog.d" / "9-first.md").write_text("- Nine.\n- And a half.\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    before = "## 0.1.0 (then)\n\n- Older.\n"
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## 0.2.0 (unreleased)\n\n- Old.\n\n{before}")
    program = [sys.executable, ROOT / "deploy" / "changelog.py", "--root", tmp_path]
    shown = run(*program, cwd=tmp_path)
    lines = f"\n\n- Old.\n- Nine.\n- And a half.\n- Ten.\n\n{before}"
    assert shown.startswith("# Changelog\n\n## 0.2.0 (2")
    assert shown.endswith(lines)
    run(*program, "--write", cwd=tmp_path)
    assert (tmp_path / "CHANGELOG.md").read_text() == shown
    assert [path.name for path in (tmp_path / "changelog.d").iterdir()] == ["README.md"]
    assert run(*program, cwd=tmp_path) == shown, "gathered once"


def test_the_wheel_tells_who_it_is(built: Any) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        about = {
            name.rsplit("/", 1)[1]: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/" in name
        }
    metadata = Parser().parsestr(about["METADATA"])
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra")) == {"all", "fast", "ml", "postgres"}  # type: ignore[arg-type]
    assert "portcullis = service.cli:main" in about["entry_points.txt"]


def test_the_sdist_can_be_built_from(built: Any) -> None:
    with tarfile.open(built[1]) as sdist:
        shipped = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "service/console/static/index.html"} <= shipped


def test_the_version_stands_in_one_place() -> None:
    texts = [path for path in tracked() if path.suffix == ".py" and path.parts[0] in PACKAGES]
    assert [str(path) for path in texts if "__version__" in (ROOT / path).read_text()] == []
    assert app.info.name == PROJECT["name"]


@pytest.mark.soak
def test_an_empty_environment_is_enough(built: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs, elsewhere = tmp_path / "venv" / "bin", tmp_path / "elsewhere"
    elsewhere.mkdir()
    run(programs / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", f"{built[0]}[all]", cwd=elsewhere)

    def portcullis(*arguments: Any) -> Any:
        return run(programs / "portcullis", *arguments, cwd=elsewhere)

    assert portcullis("--version").strip() == f"portcullis {PROJECT['version']}"
    assert "anonymize" in portcullis("--help")
    assert "sabre" in portcullis("algorithms")
    adult = ROOT / "examples" / "adult"
    given = ("--policy", adult / "policy.yaml")
    portcullis("anonymize", adult / "people.csv", *given, "--out", "safe.csv", "--html", "report.html")
    portcullis("audit", adult / "people.csv", "safe.csv", *given)
    portcullis("demo", "--events", "2000", "--exit")

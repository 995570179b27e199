"""The changelog with all fragments gathered into the section of the version to release.

It is printed; `--write` puts it into CHANGELOG.md and removes the fragments, for whoever commits and tags the version.
"""

import argparse
import datetime as dt
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRAGMENTS = "changelog.d"


def fragments(root: Path) -> list[Path]:
    """Files with lines for the changelog, by issue."""
    found = [path for path in (root / FRAGMENTS).glob("*.md") if path.name != "README.md"]
    return sorted(found, key=lambda path: (int(path.name.partition("-")[0]), path.name))


def gathered(root: Path, today: str) -> str:
    """The changelog of the version in pyproject.toml, dated."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    old = (root / "CHANGELOG.md").read_text()
    lines = "".join(f"{path.read_text().strip()}\n" for path in fragments(root))
    title, _, rest = old.partition("\n\n")
    head = f"## {version} (unreleased)\n"
    if rest.startswith(head):
        section, more, before = rest.removeprefix(head).partition("\n## ")
        return f"{title}\n\n## {version} ({today})\n{section.rstrip()}\n{lines}{more}{before}"
    if not lines:
        return old
    if f"\n## {version} " in old:
        raise SystemExit(f"{version} is in the changelog already: raise the version in pyproject.toml first")
    return f"{title}\n\n## {version} ({today})\n\n{lines}\n{rest}"


def main() -> None:
    """Print it, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--write", action="store_true", help="into CHANGELOG.md, and remove the fragments")
    options = parser.parse_args()
    text = gathered(options.root, dt.datetime.now(dt.UTC).date().isoformat())
    if not options.write:
        print(text, end="")  # noqa: T201 - a program
        return
    (options.root / "CHANGELOG.md").write_text(text)
    for path in fragments(options.root):
        path.unlink()


if __name__ == "__main__":
    main()

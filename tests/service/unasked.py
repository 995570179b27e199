"""What a process has loaded that nobody there has asked for (`service/lean_start.py`)."""

from pathlib import Path


def unasked(pid: int) -> set[str]:
    """Of pandas and scipy's linear algebra, those whose libraries a process has open."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "pyarrow" in maps, "too early to tell"
    return {name for name in ("pandas", "scipy/linalg") if f"/{name}/" in maps}

"""What tests of evidence share: changing a file so that all of its hashes fit again."""

import hashlib
import json
from pathlib import Path
from typing import Any

from service.evidence.filing import canonical, sealed

UNVERIFIED = {
    *("the signature", "author, time and version", "reported: queries", "reported: squared_error"),
    *("reported: tried", "reported: population", "reported: beside"),
    *("reported: loss (entropy, normalized_error, rank_error)", "reported: utility (distortion)"),
}
"""Statements about a small table that are not verified without a key and without links."""


def refiled(path: Path, **changes: Any) -> None:
    """Change parts, and every hash of the file with them; a signature stays as it is."""
    evidence = json.loads(path.read_bytes())
    for name, change in changes.items():
        evidence["parts"][name] |= change
    path.write_bytes(canonical(evidence | sealed(evidence["parts"])))


def sha256(path: Path) -> str:
    """What evidence says of a published file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()

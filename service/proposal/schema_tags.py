"""What the tags of a schema's fields mean for a proposal. Companies have their own words; these are frequent ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

_DIRECT = {
    *("direct", "identifier", "identifying", "name", "email", "phone", "ssn", "secret", "credential", "password"),
    "private",
}
_SENSITIVE = {"sensitive", "phi", "health", "medical", "special", "confidential", "financial", "pci"}
_KNOWN = {"pii", "personal", "quasi", "gdpr"}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
MOST_LETTERS = 60
Role = Literal["quasi", "sensitive", "left out"]
_ROLES: tuple[tuple[Role, set[str]], ...] = (("left out", _DIRECT), ("sensitive", _SENSITIVE), ("quasi", _KNOWN))


class Tagged(NamedTuple):
    """A role that a tag speaks for, and its word; none where no tag is known."""

    role: Role | None = None
    word: str = ""


def tagged(tags: Sequence[str]) -> Tagged:
    """The most careful of what the tags say: leave out, then protect, then generalize.

    >>> tagged(["PII", "special-category"])
    Tagged(role='sensitive', word='special-category')
    >>> tagged(["direct_identifier", "PII"]).role, tagged(["owner:sales"])
    ('left out', Tagged(role=None, word=''))
    >>> tagged(["QUASI_IDENTIFIER"]).role, tagged(["PRIVATE"]).role
    ('quasi', 'left out')
    """
    for role, words in _ROLES:
        for tag in tags:
            if words & _words_of(tag):
                # It goes into a comment of the policy, so nothing in it may end that.
                return Tagged(role, re.sub(r"[^A-Za-z0-9_.:-]+", " ", tag)[:MOST_LETTERS])
    return Tagged()


def _words_of(tag: str) -> set[str]:
    """Return the words of a tag; a quasi-identifier is no identifier, however it is written."""
    words = {word.lower() for word in _WORDS.findall(tag)}
    return {"quasi"} if any(word.startswith("quasi") for word in words) else words

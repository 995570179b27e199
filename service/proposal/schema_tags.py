"""What the tags of a schema's fields mean for a proposal. Companies have their own words; these are frequent ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

_DIRECT = {"direct", "identifier", "identifying", "name", "email", "phone", "ssn", "secret", "credential", "password"}
_SENSITIVE = {"sensitive", "phi", "health", "medical", "special", "confidential", "financial", "pci"}
_KNOWN = {"pii", "personal", "quasi", "gdpr"}


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
    """
    for role, words in _ROLES:
        for tag in tags:
            if words & set(re.split(r"[^a-z]+", tag.lower())):
                # It goes into a comment of the policy, so nothing in it may end that.
                return Tagged(role, re.sub(r"[^A-Za-z0-9_.:-]+", " ", tag)[:MOST_LETTERS])
    return Tagged()

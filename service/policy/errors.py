"""How a bad policy is answered: every problem with its path, what is allowed and what was given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from microdata import PortcullisError
from microdata.errors import given_hint, nearest_hint

MAX_PROBLEMS = 100
"""Problems of one policy that are told."""
_LONGEST_NAME = 100


class PolicyProblem(NamedTuple):
    """One thing that is wrong with a policy."""

    path: str
    """Where, dotted: `schema.quasi.age.min`; empty for the policy as a whole."""
    reason: str
    """What is wrong and what is allowed; free of the policy's own values unless they are names."""
    given: str = ""
    """What was given, shortened; empty where nothing was."""
    nearest: float | str | None = None
    """The nearest value that is feasible, where the problem is a value and there is one."""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.reason}{given_hint(self.given)}{nearest_hint(self.nearest)}"


class PolicyError(PortcullisError):
    """A policy that cannot be used. `problems` lists everything that is wrong with it."""

    def __init__(self, problems: Iterable[PolicyProblem], source: str = "") -> None:
        self.problems = _first(problems)
        self.source = source
        head = f"{source}: " if source else ""
        if len(self.problems) == 1:
            super().__init__(f"{head}{self.problems[0]}")
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            super().__init__(f"{head}{len(self.problems)} problems{lines}")


def _first(problems: Iterable[PolicyProblem]) -> tuple[PolicyProblem, ...]:
    """As many as somebody may want to read: a small text can be wrong in a hundred thousand places."""
    found = tuple(islice(problems, MAX_PROBLEMS + 1))
    if len(found) <= MAX_PROBLEMS:
        return found
    return (*found[:-1], PolicyProblem("", f"there are more problems; these are the first {MAX_PROBLEMS}"))


def dotted(path: Iterable[str | int]) -> str:
    """`("schema", "public", 0)` as `schema.public[0]`; a name that holds a dot is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            short = part if len(part) <= _LONGEST_NAME else f"{part[:_LONGEST_NAME]}…"
            name = f"'{short}'" if "." in part or not part else short
            text += f".{name}" if text else name
    return text


def shown(value: object) -> str:
    """What was given, short enough for one line."""
    if isinstance(value, dict):
        return f"a mapping of {len(value)} keys"
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The reason for refusing a key, with the nearest known one."""
    hint = _meant(key, known) or f"known keys: {', '.join(sorted(known)) or 'none'}"
    return f"unknown key; {hint}"


def unknown_name(given: object, known: Sequence[str]) -> PolicyProblem:
    """The reason for refusing a name, with all known ones and the nearest; its path is left to the caller."""
    hint = _meant(given, known) if isinstance(given, str) else ""
    return PolicyProblem("", f"must be one of {', '.join(known)}" + (f" ({hint})" if hint else ""), shown(given))


def _meant(given: str, known: Sequence[str]) -> str:
    # Comparing takes time in proportion to the product of both lengths.
    near = difflib.get_close_matches(given, known, n=1, cutoff=0.5) if len(given) <= _LONGEST_NAME else []
    return f"did you mean {near[0]!r}?" if near else ""

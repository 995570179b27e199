"""Evidence as one page for people: what matters first, in plain words; it can be printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from microdata import DataError
from service.report.figures import card, facts, number, parts, percent, tile
from service.report.page import group, page


def evidence_html(evidence: Mapping[str, Any]) -> str:
    """The page of one file of evidence; `DataError` where its parts are not those of evidence."""
    try:
        return _page(evidence)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DataError("the parts are not those of evidence") from None


def _page(evidence: Mapping[str, Any]) -> str:
    filed = evidence["parts"]
    made, policy, audited = filed["made"], filed["policy"], filed["audited"]
    title = f"Evidence: {policy.get('name')}"
    how = f"made {made.get('at')} by {made.get('by')} with Portcullis {made.get('portcullis')}"
    head = parts().header(title, bool(audited.get("holds")), how, False)  # noqa: FBT003 - not repeatable
    return page(title, str(head) + _tiles(filed) + group("cards", _cards(evidence)))


def _tiles(filed: Mapping[str, Any]) -> str:
    audited, reported = filed["audited"], filed.get("reported", {})
    worst = max((one["after"] for one in reported.get("attacks", []) if one["attack"] == "prosecutor"), default=None)
    return group(
        "tiles",
        [
            tile(number(audited.get("rows")), "rows published"),
            tile(number(audited.get("classes")), "classes"),
            *([tile(percent(worst), "highest risk of a row")] if worst is not None else []),
            *([tile(percent(audited["loss"]), "mean loss")] if audited.get("loss") is not None else []),
        ],
    )


def _cards(evidence: Mapping[str, Any]) -> list[str]:
    filed = evidence["parts"]
    words, reported = filed.get("words", {}), filed.get("reported", {})
    models = [
        (one["model"], number(one["asked"]), number(one["achieved"]), "yes" if one["holds"] else "no")
        for one in filed["audited"].get("findings", [])
    ]
    attacks = [_attack(one) for one in reported.get("attacks", [])]
    hashes = [(name, value) for name, value in sorted(evidence.get("hashes", {}).items())]
    return [
        card(
            "Asked and achieved",
            "Found by reading what was published once more and comparing it with the original.",
            facts(("model", "asked", "achieved", "holds"), models),
        ),
        *([_attacks(attacks)] if attacks else []),
        card("What is assumed", " ".join(words.get("assumed", []))),
        card("What is not said", " ".join(words.get("limits", []))),
        card(
            "How to check it",
            "portcullis evidence verify does everything again with the policy, the original and what was published. "
            f"SHA-256 of all parts together: {evidence.get('hash')}",
            facts(("part", "SHA-256"), hashes),
            wide=True,
        ),
        str(parts().details(json.dumps(filed, indent=2, ensure_ascii=False))),
    ]


def _attack(one: Mapping[str, Any]) -> tuple[str, ...]:
    name = f"{one['attack']} of {one['attribute']}" if one["attribute"] else one["attack"]
    return name, one["gets"], percent(one["before"]), percent(one["after"]), percent(one["baseline"])


def _attacks(lines: list[tuple[str, ...]]) -> str:
    head = ("attack", "share of the rows, or chance", "before", "after", "without the table")
    return card("What an attacker would get", "Of the table as it was, and of what is published.", facts(head, lines))

"""What a model can learn from a publication, where the policy asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from microdata import Publication
from service.report.sections import Learnt
from static_algos.learning import EXTRA, can_learn, learned

TOO_FEW = "too few rows, or only one value, to learn from"


def learnt_of(publication: Publication, names: Sequence[str]) -> list[Learnt]:
    """How well each of these sensitive attributes can be predicted; why not, where it cannot be known."""
    places = {one.name: place for place, one in enumerate(publication.table.schema.sensitive)}
    return [_learnt(publication, name, places[name]) for name in dict.fromkeys(names)]


def _learnt(publication: Publication, name: str, place: int) -> Learnt:
    found = learned(publication, place) if can_learn() else None
    if found is None:
        why = TOO_FEW if can_learn() else EXTRA
        return Learnt(attribute=name, rows=0, before=None, after=None, baseline=None, missing=why)
    return Learnt(attribute=name, **found._asdict())

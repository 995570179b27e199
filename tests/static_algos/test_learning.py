"""What a model can learn from a publication: by hand, at its bounds, and where the library is missing."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from microdata import Category, Hierarchy, InfeasibleError, Number, Publication, Schema, Table
from service.policy import PolicyError, parse_policy
from service.report import learnt_of
from service.report.learnt import TOO_FEW
from service.report.page import learnt_card
from static_algos import Mondrian, learning
from static_algos.learning import EXTRA, learned

ILLNESS = Category("illness", Hierarchy.flat(["flu", "ulcer"]))


def table(rows: int = 2_000, per_person: int = 1, *, noise: float = 0.1) -> Any:
    """Whoever is older than 50 has an ulcer, but for a few."""
    random = np.random.default_rng(1)
    ages = random.integers(0, 100, rows).astype(float)
    ill = (ages > 50) ^ (random.random(rows) < noise)
    schema = Schema("person", (Number("age", 0, 99, integer=True),), (ILLNESS,))
    return Table(schema, np.arange(rows) // per_person, ages[:, None], ill.astype(np.int32)[:, None])


def test_a_model_is_as_good_as_the_classes_are_fine() -> None:
    own = table()
    fine = learned(Mondrian(k=20).anonymize(own, seed=1), 0)
    coarse = learned(Publication.of(own, np.zeros(len(own), np.int32)), 0)
    assert fine is not None
    assert coarse is not None
    assert fine.rows == 1_000
    assert fine.before == pytest.approx(0.9, abs=0.03)
    assert fine.after == pytest.approx(fine.before, abs=0.03)
    # One class for all: nothing is left but the most frequent value.
    assert coarse.after == coarse.baseline == pytest.approx(0.5, abs=0.05)


def test_it_is_asked_for_persons_it_has_not_seen() -> None:
    """Twenty rows of a person, each with a value of its own: a split by rows would know the answers."""
    random = np.random.default_rng(2)
    persons = np.repeat(np.arange(200), 20)
    schema = Schema("person", (Number("key", 0, 199, integer=True),), (ILLNESS,))
    ill = random.integers(0, 2, 200)[persons].astype(np.int32)
    own = Table(schema, persons, persons.astype(float)[:, None], ill[:, None])
    found = learned(Publication.of(own, persons), 0)
    assert found is not None
    assert found.after < 0.65


def test_nothing_is_learnt_from_little() -> None:
    one = Publication.of(table(30), np.zeros(30, np.int32))
    assert learned(one, 0) is None
    assert learnt_of(one, ["illness", "illness"])[0].missing == TOO_FEW
    everybody_well = table(noise=0.0)
    everybody_well.sensitive[:] = 0
    assert learned(Publication.of(everybody_well, np.zeros(2_000, np.int32)), 0) is None


def test_too_many_values_are_refused() -> None:
    schema = Schema("person", table().schema.quasi, (Number("pay", 0, 100, integer=True),))
    own = Table(schema, np.arange(200), np.zeros((200, 1)), np.zeros((200, 1), np.int32))
    with pytest.raises(InfeasibleError, match="101 values are too many"):
        learned(Publication.of(own, np.zeros(200, np.int32)), 0)


POLICY: Any = {
    "name": "visits",
    "schema": {
        "person": "id",
        "quasi": {"age": {"type": "number", "min": 0, "max": 99}},
        "sensitive": {"illness": {"type": "category", "hierarchy": {"any": ["flu", "ulcer"]}}},
    },
    "guarantee": {"algorithm": "mondrian", "k": 2},
}


def test_a_policy_names_what_is_learnt() -> None:
    assert parse_policy({**POLICY, "table": {"learn": ["illness"]}}).table.learn == ["illness"]
    with pytest.raises(PolicyError, match=r"table.learn\[0\]: a sensitive attribute of at most 100 values"):
        parse_policy({**POLICY, "table": {"learn": ["age"]}})


def test_without_the_library_the_report_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    publication = Mondrian(k=20).anonymize(table(), seed=1)
    with_it = learnt_of(publication, ["illness"])
    assert "What a model can learn" in learnt_card(with_it)
    monkeypatch.setattr(learning, "find_spec", lambda _: None)
    without = learnt_of(publication, ["illness"])
    assert without[0].missing == EXTRA
    assert "portcullis[ml]" in learnt_card(without)


@pytest.mark.slow
def test_nobody_loads_the_library_who_does_not_ask() -> None:
    code = "import sys, service.kinds, service.report, static_algos.learning; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0

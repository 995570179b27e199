"""The generic checks of Portcullis, over what this package brings."""

import pytest
from in_line.algorithm import InLine
from in_line.fewest_rows import FewestRows

from privacy import KEYS
from privacy.checks import MODEL_CHECKS, model_cases
from static_algos import STATIC_ALGORITHMS, Mondrian
from static_algos.checks import STATIC_CHECKS, cases


@pytest.mark.parametrize("case", cases(STATIC_ALGORITHMS["in_line"]), ids=str)
@pytest.mark.parametrize("check", STATIC_CHECKS)
def test_the_algorithm(check, case):
    check(case)


@pytest.mark.parametrize("case", model_cases(KEYS["rows"]), ids=str)
@pytest.mark.parametrize("check", MODEL_CHECKS)
def test_the_model(check, case):
    check(case)


def test_what_takes_every_model_takes_this_one():
    assert FewestRows in Mondrian.guarantees
    assert FewestRows not in InLine.guarantees
    table = Mondrian.example_data()
    assert Mondrian(k=2, rows=9).anonymize(table).sizes.min() >= 9

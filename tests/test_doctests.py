"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil
from typing import Any

import pytest

PACKAGES = ["microdata", "privacy", "static_algos", "stream_algos"]


MODULES = [
    info.name for name in PACKAGES for info in pkgutil.walk_packages(importlib.import_module(name).__path__, name + ".")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: Any) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder()
    examples = [test for test in finder.find(importlib.import_module("microdata.encoding")) if test.examples]
    assert examples

"""Public names: what a package says it exports can be imported, is documented and comes from that package."""

import importlib
import types
from typing import Any

import pytest

PACKAGES = ["microdata", "privacy", "static_algos", "stream_algos", "service"]


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_exported_is_there_and_nothing_else(name: Any) -> None:
    package = importlib.import_module(name)
    exported = list(getattr(package, "__all__", []))
    assert len(exported) == len(set(exported))
    missing = [one for one in exported if not hasattr(package, one)]
    assert missing == []
    public = {
        one
        for one, value in vars(package).items()
        if not one.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public - {"annotations"} == set(exported)


@pytest.mark.parametrize("name", PACKAGES)
def test_exported_functions_and_classes_say_what_they_are(name: Any) -> None:
    package = importlib.import_module(name)
    silent = [
        one
        for one in getattr(package, "__all__", [])
        if isinstance(value := getattr(package, one), type | types.FunctionType) and not value.__doc__
    ]
    assert silent == []

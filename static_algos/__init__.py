"""How a table is made safe."""

from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Catalogue, Entry, Parameters, parse
from static_algos.incognito import Incognito
from static_algos.mondrian import Mondrian, disclosure_for

__all__ = [
    "STATIC_ALGORITHMS",
    "Catalogue",
    "Entry",
    "Incognito",
    "Mondrian",
    "Parameters",
    "StaticAlgorithm",
    "disclosure_for",
    "parse",
]

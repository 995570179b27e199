"""How a table is made safe."""

from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.catalogue import Catalogue, Entry, Parameters, parse

__all__ = ["STATIC_ALGORITHMS", "Catalogue", "Entry", "Parameters", "StaticAlgorithm", "parse"]

"""How a table is made safe."""

from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.ama import Ama
from static_algos.budget import Budget
from static_algos.burel import Burel, burel_classes
from static_algos.caps import likeness_caps
from static_algos.catalogue import Catalogue, Entry, Parameters, out_of_range, parse
from static_algos.datafly import Datafly
from static_algos.dependency import dependency_tree, key_attributes, variation_of_information
from static_algos.full_domain import Generalization
from static_algos.incognito import Incognito
from static_algos.lattice import LatticeSearch, minimal_generalizations
from static_algos.mdav import Mdav
from static_algos.mondrian import Mondrian, disclosure_for
from static_algos.ogf import Ogf
from static_algos.orders import OrderSearch
from static_algos.privacy_table import PrivacyTable
from static_algos.purpose import Purpose
from static_algos.refine import Refine
from static_algos.sabre import Sabre, sabre_classes
from static_algos.samarati import Samarati
from static_algos.strategies import Walk, along, strategies, strategy_count
from static_algos.top_down import TopDown
from static_algos.utility import (
    distortion_ratio,
    median_query_error,
    olap_divergence,
    query_errors,
)

__all__ = [
    "STATIC_ALGORITHMS",
    "Ama",
    "Budget",
    "Burel",
    "Catalogue",
    "Datafly",
    "Entry",
    "Generalization",
    "Incognito",
    "LatticeSearch",
    "Mdav",
    "Mondrian",
    "Ogf",
    "OrderSearch",
    "Parameters",
    "PrivacyTable",
    "Purpose",
    "Refine",
    "Sabre",
    "Samarati",
    "StaticAlgorithm",
    "TopDown",
    "Walk",
    "along",
    "burel_classes",
    "dependency_tree",
    "disclosure_for",
    "distortion_ratio",
    "key_attributes",
    "likeness_caps",
    "median_query_error",
    "minimal_generalizations",
    "olap_divergence",
    "out_of_range",
    "parse",
    "query_errors",
    "sabre_classes",
    "strategies",
    "strategy_count",
    "variation_of_information",
]

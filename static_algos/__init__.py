"""How a table is made safe."""

from static_algos.algorithm import STATIC_ALGORITHMS, StaticAlgorithm
from static_algos.ama import Ama
from static_algos.budget import Budget
from static_algos.burel import Burel, burel_classes
from static_algos.caps import likeness_caps
from static_algos.catalogue import Catalogue, Entry, Parameters, parse
from static_algos.datafly import Datafly
from static_algos.dependency import dependency_tree, key_attributes, variation_of_information
from static_algos.incognito import Incognito
from static_algos.mdav import Mdav
from static_algos.mondrian import Mondrian, disclosure_for
from static_algos.ogf import Ogf
from static_algos.orders import OrderSearch
from static_algos.refine import Refine
from static_algos.sabre import Sabre, sabre_classes
from static_algos.utility import median_query_error, olap_divergence, query_errors

__all__ = [
    "STATIC_ALGORITHMS",
    "Ama",
    "Budget",
    "Burel",
    "Catalogue",
    "Datafly",
    "Entry",
    "Incognito",
    "Mdav",
    "Mondrian",
    "Ogf",
    "OrderSearch",
    "Parameters",
    "Refine",
    "Sabre",
    "StaticAlgorithm",
    "burel_classes",
    "dependency_tree",
    "disclosure_for",
    "key_attributes",
    "likeness_caps",
    "median_query_error",
    "olap_divergence",
    "parse",
    "query_errors",
    "sabre_classes",
    "variation_of_information",
]

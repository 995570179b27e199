"""What must hold: privacy models, the audit, attacks and risk."""

from privacy.check import check, require
from privacy.closeness import TCloseness
from privacy.disclosure import DeltaDisclosure
from privacy.diversity import AlphaK, DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from privacy.emd import distance
from privacy.guarantee import Guarantee, check_domains, check_feasible
from privacy.k_anonymity import KAnonymity, MaxShare
from privacy.likeness import BetaLikeness, RangeLikeness, SemanticLikeness
from privacy.model import Groups, Histogram, Model, SensitiveModel

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "Groups",
    "Guarantee",
    "Histogram",
    "KAnonymity",
    "MaxShare",
    "Model",
    "RangeLikeness",
    "RecursiveDiversity",
    "SemanticLikeness",
    "SensitiveModel",
    "TCloseness",
    "check",
    "check_domains",
    "check_feasible",
    "distance",
    "require",
]

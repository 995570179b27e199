"""What must hold: privacy models, the audit, attacks and risk."""

from privacy.attacks import Inference, Linking, divergence, homogeneity, linking, similarity, skewness
from privacy.audit import Audit, Fault, Finding, audit
from privacy.check import check, require
from privacy.closeness import TCloseness
from privacy.disclosure import DeltaDisclosure
from privacy.diversity import AlphaK, DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from privacy.emd import distance
from privacy.k_anonymity import KAnonymity, MaxShare
from privacy.keys import KEYS, Form, Key, OneOf, Part
from privacy.likeness import BetaLikeness, Likeness, RangeLikeness, SemanticLikeness
from privacy.model import Groups, Histogram, Model, SensitiveModel
from privacy.risk import Risk, Risks, risks, risks_before

# isort: split
# Last: a guarantee has a field for every key that is known by then, those of installed packages included.
from privacy.guarantee import Guarantee, check_domains, check_feasible

__all__ = [
    "KEYS",
    "AlphaK",
    "Audit",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "Fault",
    "Finding",
    "Form",
    "FrequencyDiversity",
    "Groups",
    "Guarantee",
    "Histogram",
    "Inference",
    "KAnonymity",
    "Key",
    "Likeness",
    "Linking",
    "MaxShare",
    "Model",
    "OneOf",
    "Part",
    "RangeLikeness",
    "RecursiveDiversity",
    "Risk",
    "Risks",
    "SemanticLikeness",
    "SensitiveModel",
    "TCloseness",
    "audit",
    "check",
    "check_domains",
    "check_feasible",
    "distance",
    "divergence",
    "homogeneity",
    "linking",
    "require",
    "risks",
    "risks_before",
    "similarity",
    "skewness",
]

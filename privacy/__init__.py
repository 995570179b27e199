"""What must hold: privacy models, the audit, attacks and risk."""

from privacy.attacks import Inference, Linking, divergence, homogeneity, linking, similarity, skewness
from privacy.audit import Audit, Fault, Finding, audit
from privacy.check import check, require
from privacy.closeness import TCloseness
from privacy.disclosure import DeltaDisclosure
from privacy.diversity import AlphaK, DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from privacy.emd import distance
from privacy.guarantee import Guarantee, Likeness, check_domains, check_feasible
from privacy.k_anonymity import KAnonymity, MaxShare
from privacy.likeness import BetaLikeness, RangeLikeness, SemanticLikeness
from privacy.model import Groups, Histogram, Model, SensitiveModel
from privacy.risk import Risk, Risks, risks, risks_before

__all__ = [
    "AlphaK",
    "Audit",
    "BetaLikeness",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "Fault",
    "Finding",
    "FrequencyDiversity",
    "Groups",
    "Guarantee",
    "Histogram",
    "Inference",
    "KAnonymity",
    "Likeness",
    "Linking",
    "MaxShare",
    "Model",
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

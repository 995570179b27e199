"""What must hold: privacy models, the audit, attacks and risk."""

import typing

from privacy.assignment import Assignment, assign
from privacy.attacks import (
    Disclosure,
    Inference,
    Linking,
    disclosures,
    divergence,
    homogeneity,
    inference,
    linking,
    observed,
    similarity,
    skewness,
)
from privacy.audit import Audit, Fault, Finding, Outcome, audit, audit_linked
from privacy.categories import (
    CategoryValueWeight,
    CategoryWeight,
    Distinct,
    LargestShare,
    LeastWeight,
    MaxCategoryShare,
    MaxFirstShare,
    PPlusSensitivity,
    PSensitivity,
    least_parts,
)
from privacy.check import check, require
from privacy.closeness import TCloseness
from privacy.disclosure import DeltaDisclosure
from privacy.diversity import AlphaK, DistinctDiversity, EntropyDiversity, FrequencyDiversity, RecursiveDiversity
from privacy.emd import distance
from privacy.exposure import ATTACKS, Attack, Exposure, exposures
from privacy.feasible import check_able, check_domains, check_feasible
from privacy.identifying import FieldRisk, Identifying, SetRisk, alone_in, contributions, identifying
from privacy.k_anonymity import KAnonymity, MaxShare
from privacy.keys import KEYS, Form, Key, OneOf, Part
from privacy.likeness import BetaLikeness, Likeness, RangeLikeness, SemanticLikeness
from privacy.lineages import Lineages
from privacy.model import Groups, Histogram, Model, SensitiveModel
from privacy.over_time import MOST_VICTIMS, KOverTime, Record, Sightings, candidates
from privacy.passing import ChanceOfK, Edges, Passing, PassingModel, ZAnonymity
from privacy.population import (
    Journalist,
    PopulationRisk,
    pitman,
    population_risk,
    slide_negative_binomial,
    unique_people,
    zayatz,
)
from privacy.raising import Raised, Raising, raising
from privacy.reconstruction import CountTable, Reconstruction, reconstruction
from privacy.risk import Risk, Risks, risks, risks_before
from privacy.timing import Left, Watch
from privacy.trials import TRIALS, Rate, Trial, least_risk, trials

if typing.TYPE_CHECKING:
    from privacy.guarantee import Guarantee
else:

    def __getattr__(name: str) -> typing.Any:
        """`Guarantee` is made when it is first asked for: whoever declares a key for it imports this package too."""
        if name != "Guarantee":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from privacy.guarantee import Guarantee  # noqa: PLC0415 - as above

        return globals().setdefault(name, Guarantee)


__all__ = [
    "ATTACKS",
    "KEYS",
    "MOST_VICTIMS",
    "TRIALS",
    "AlphaK",
    "Assignment",
    "Attack",
    "Audit",
    "BetaLikeness",
    "CategoryValueWeight",
    "CategoryWeight",
    "ChanceOfK",
    "CountTable",
    "DeltaDisclosure",
    "Disclosure",
    "Distinct",
    "DistinctDiversity",
    "Edges",
    "EntropyDiversity",
    "Exposure",
    "Fault",
    "FieldRisk",
    "Finding",
    "Form",
    "FrequencyDiversity",
    "Groups",
    "Guarantee",
    "Histogram",
    "Identifying",
    "Inference",
    "Journalist",
    "KAnonymity",
    "KOverTime",
    "Key",
    "LargestShare",
    "LeastWeight",
    "Left",
    "Likeness",
    "Lineages",
    "Linking",
    "MaxCategoryShare",
    "MaxFirstShare",
    "MaxShare",
    "Model",
    "OneOf",
    "Outcome",
    "PPlusSensitivity",
    "PSensitivity",
    "Part",
    "Passing",
    "PassingModel",
    "PopulationRisk",
    "Raised",
    "Raising",
    "RangeLikeness",
    "Rate",
    "Reconstruction",
    "Record",
    "RecursiveDiversity",
    "Risk",
    "Risks",
    "SemanticLikeness",
    "SensitiveModel",
    "SetRisk",
    "Sightings",
    "TCloseness",
    "Trial",
    "Watch",
    "ZAnonymity",
    "alone_in",
    "assign",
    "audit",
    "audit_linked",
    "candidates",
    "check",
    "check_able",
    "check_domains",
    "check_feasible",
    "contributions",
    "disclosures",
    "distance",
    "divergence",
    "exposures",
    "homogeneity",
    "identifying",
    "inference",
    "least_parts",
    "least_risk",
    "linking",
    "observed",
    "pitman",
    "population_risk",
    "raising",
    "reconstruction",
    "require",
    "risks",
    "risks_before",
    "similarity",
    "skewness",
    "slide_negative_binomial",
    "trials",
    "unique_people",
    "zayatz",
]

"""What must hold of ratings, and what an attacker gets."""

from privacy.ratings.attack import Linked, preference_attack
from privacy.ratings.audit import RatingAudit, RatingFault, audit_ratings
from privacy.ratings.models import (
    KEpsilon,
    RatingDiversity,
    RatingFinding,
    RatingModel,
    check_persons,
    check_scale,
    measure,
    spread,
)
from privacy.ratings.neighbours import (
    Neighbourhoods,
    dissimilarity,
    equal_rows,
    hamming_groups,
    neighbour_counts,
    neighbourhoods,
    pairwise_counts,
    sensitive_dissimilarity,
)
from privacy.ratings.slices import Minimum, largest_k, least_epsilon, least_epsilon_for_spread, slices

__all__ = [
    "KEpsilon",
    "Linked",
    "Minimum",
    "Neighbourhoods",
    "RatingAudit",
    "RatingDiversity",
    "RatingFault",
    "RatingFinding",
    "RatingModel",
    "audit_ratings",
    "check_persons",
    "check_scale",
    "dissimilarity",
    "equal_rows",
    "hamming_groups",
    "largest_k",
    "least_epsilon",
    "least_epsilon_for_spread",
    "measure",
    "neighbour_counts",
    "neighbourhoods",
    "pairwise_counts",
    "preference_attack",
    "sensitive_dissimilarity",
    "slices",
    "spread",
]

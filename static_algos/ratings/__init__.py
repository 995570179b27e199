"""How ratings are made safe, and what they are still good for."""

from static_algos.ratings.ke_anon import RATING_ALGORITHMS, KeAnon, RatingGuarantee
from static_algos.ratings.publication import Changes, RatingsPublication
from static_algos.ratings.utility import Recommender, Utility, utility

__all__ = [
    "RATING_ALGORITHMS",
    "Changes",
    "KeAnon",
    "RatingGuarantee",
    "RatingsPublication",
    "Recommender",
    "Utility",
    "utility",
]

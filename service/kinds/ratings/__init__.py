"""Ratings: who gave which item how many stars."""

from service.kinds.ratings.kind import RATINGS

__all__ = ["RATINGS"]

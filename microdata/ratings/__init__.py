"""Ratings: who gave which item how many stars. A second kind of data, beside records."""

from microdata.ratings.files import RatingsReading, RefusedRatings, read_ratings, write_ratings
from microdata.ratings.matrix import Ratings, Sparse, ratings_from_rows
from microdata.ratings.schema import Layout, RatingSchema, Scale

__all__ = [
    "Layout",
    "RatingSchema",
    "Ratings",
    "RatingsReading",
    "RefusedRatings",
    "Scale",
    "Sparse",
    "ratings_from_rows",
    "read_ratings",
    "write_ratings",
]

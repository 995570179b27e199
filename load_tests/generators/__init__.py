"""Data for tests and benchmarks: any size, seeded, encoded directly and as raw values."""

from load_tests.generators.adult_like import ADULT_QUASI, PEER_QUASI, adult_like
from load_tests.generators.bursts import bursts
from load_tests.generators.census_like import BETA_QUASI, CENSUS_QUASI, census_like
from load_tests.generators.dataset import Dataset
from load_tests.generators.power_law import power_law
from load_tests.generators.real_adult import ADULT_ALL_ROWS, ADULT_MISSING, ADULT_ROWS, real_adult
from load_tests.generators.transactions import transactions

__all__ = [
    "ADULT_ALL_ROWS",
    "ADULT_MISSING",
    "ADULT_QUASI",
    "ADULT_ROWS",
    "BETA_QUASI",
    "CENSUS_QUASI",
    "PEER_QUASI",
    "Dataset",
    "adult_like",
    "bursts",
    "census_like",
    "power_law",
    "real_adult",
    "transactions",
]

"""Anonymity by counting: what the number of distinct combinations alone says about a population.

Whoever is one of n people, spread in any way over D combinations of values, is unique at most with the chance F(D, n).
With equally likely combinations, D may be so large that each of them still has k people with a chance of 1 - β. Neither
looks at a single record; both are about the population that is declared, not about a table.

Lodha and Thomas, Probabilistic Anonymity (PinKDD 2007).
"""

from __future__ import annotations

import math


def unique_share(combinations: float, people: float) -> float:
    """F(D, n): the largest expected share of people who are alone in their combination, whatever the distribution.

    >>> round(unique_share(4e9, 3e8), 4), round(unique_share(4e8, 6e9), 4)
    (0.9277, 0.0245)
    """
    if combinations <= people:
        return combinations / (math.e * people)
    return math.exp(-people / combinations)


def may_identify(combinations: float, people: float, share: float) -> bool:
    """Whether columns with so many combinations can be a quasi-identifier that leaves this share of people alone."""
    return unique_share(combinations, people) > share


def most_combinations(people: float, k: int, beta: float) -> float:
    """D′: the most equally likely combinations that each have k of the people with a chance of at least 1 - β.

    >>> round(most_combinations(3e8, 100, 0.1))
    2443425
    """
    if k <= 1:
        return math.inf
    return people / _people_for_each(k, beta)


def fewest_people(combinations: float, k: int, beta: float) -> int:
    """How many people there must be for so many equally likely combinations: the least that `most_combinations` allows.

    >>> fewest_people(2_443_425, 100, 0.1) <= 3e8 < fewest_people(2_443_426, 100, 0.1)
    True
    """
    if k <= 1:
        return 1
    people = math.ceil(combinations * _people_for_each(k, beta))
    return people if most_combinations(people, k, beta) >= combinations else people + 1


def _people_for_each(k: int, beta: float) -> float:
    x = -math.log(beta) / (k - 1)
    # The same as dividing by 1 + x - √(x² + 2x), which loses its digits where x is large.
    return (k - 1) * (1 + x + math.sqrt(x * (x + 2)))

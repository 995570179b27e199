"""The 18 identifiers of 45 CFR 164.514(b)(2)(i), the Safe Harbor rule of HIPAA."""

from __future__ import annotations

from enum import Enum


def words(text: str) -> frozenset[str]:
    """Return the words of a list that is written as one text."""
    return frozenset(text.split())


OLDEST = 89
"""The highest age that may be published. Older persons are one group, 90 or more."""
DIGITS = 3
"""Digits of a postcode that may be published."""
MOST_IN_SMALL_AREA = 20_000
"""Persons up to which the three digits of an area may not be published either."""
SMALL_AREAS_2000 = words("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893")
"""The three-digit areas of at most 20,000 persons in the census of 2000, as the guidance of HHS lists them."""
SMALL_AREA = "000"
"""What is published instead of the digits of a small area."""


class Identifier(Enum):
    """One of the 18 identifiers; its value is the letter in the rule, followed by a description."""

    NAMES = ("A", "names of the person, relatives, employers or household members")
    PLACES = ("B", "geographic subdivisions smaller than a state")
    DATES = ("C", "elements of dates below the year, and ages above 89")
    PHONES = ("D", "telephone numbers")
    FAXES = ("E", "fax numbers")
    EMAILS = ("F", "e-mail addresses")
    SOCIAL_SECURITY = ("G", "social security numbers")
    RECORDS = ("H", "medical record numbers")
    PLANS = ("I", "health plan beneficiary numbers")
    ACCOUNTS = ("J", "account numbers")
    LICENSES = ("K", "certificate and license numbers")
    VEHICLES = ("L", "vehicle identifiers, serial numbers and license plates")
    DEVICES = ("M", "device identifiers and serial numbers")
    URLS = ("N", "web addresses (URLs)")
    IPS = ("O", "IP addresses")
    BIOMETRICS = ("P", "biometric identifiers")
    PHOTOS = ("Q", "full-face photographs and comparable images")
    OTHERS = ("R", "any other unique identifying number, characteristic or code")

    @property
    def letter(self) -> str:
        """The letter in the rule."""
        return self.value[0]

    @property
    def title(self) -> str:
        """What it is, with its letter, for messages."""
        return f"{self.value[1]} ({self.letter})"

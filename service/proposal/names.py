"""What the name of a column says: whose key it is, what it identifies, what it would give away."""

from __future__ import annotations

import re

_LOWER_TO_UPPER = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+")

_PERSONS = frozenset(
    [
        "person",
        "individual",
        "indiv",
        "human",
        "user",
        "customer",
        "cust",
        "client",
        "patient",
        "subject",
        "respondent",
        "participant",
        "proband",
        "member",
        "account",
        "acct",
        "employee",
        "emp",
        "worker",
        "staff",
        "student",
        "pupil",
        "citizen",
        "resident",
        "voter",
        "subscriber",
        "insured",
        "policyholder",
        "cardholder",
        "holder",
        "borrower",
        "applicant",
        "donor",
        "buyer",
        "visitor",
        "guest",
        "player",
        "author",
        "reviewer",
        "rater",
        "driver",
        "rider",
        "tenant",
        "owner",
        "inmate",
        "defendant",
        "prisoner",
        "suspect",
        "victim",
        "beneficiary",
        "device",
        "imei",
        "imsi",
        "msisdn",
        "ssn",
        "nin",
        "mrn",
        "passport",
        "iban",
        "email",
        "kunde",
        "kunden",
        "nutzer",
        "benutzer",
        "patienten",
        "versicherte",
        "versicherter",
        "versicherten",
        "mitarbeiter",
        "teilnehmer",
        "schueler",
        "schüler",
        "utilisateur",
        "personne",
        "adherent",
        "assure",
        "usuario",
        "cliente",
        "paciente",
        "persona",
        "empleado",
        "pessoa",
        "utente",
        "paziente",
        "dipendente",
        "klant",
        "gebruiker",
        "medewerker",
        "persoon",
        "kund",
        "bruger",
        "bruker",
        "medlem",
        "pasient",
        "klient",
        "pacjent",
        "osoba",
    ]
)
_KEYS = frozenset(
    [
        "id",
        "no",
        "nr",
        "nbr",
        "num",
        "number",
        "nummer",
        "numero",
        "key",
        "uuid",
        "guid",
        "uid",
        "pid",
        "code",
        "hash",
        "ref",
        "identifier",
        "token",
    ]
)
_KEYS_ALONE = frozenset(["id", "uid", "uuid", "guid", "pid", "nr", "key", "identifier", "idcode"])
_NOISE = frozenset(
    [
        "the",
        "my",
        "main",
        "masked",
        "hashed",
        "encrypted",
        "anon",
        "anonymous",
        "anonymized",
        "unique",
        "global",
        "raw",
        "source",
    ]
)
_COMPOUND = re.compile(r"(.+?)(?:en|n)?(?:id|nr|no|num|nbr|number|nummer|key|uuid|hash)")
_THINGS = frozenset(
    [
        "item",
        "product",
        "article",
        "sku",
        "movie",
        "film",
        "show",
        "book",
        "song",
        "track",
        "artist",
        "album",
        "station",
        "zone",
        "location",
        "loc",
        "place",
        "venue",
        "store",
        "shop",
        "city",
        "country",
        "state",
        "region",
        "county",
        "school",
        "hospital",
        "provider",
        "physician",
        "doctor",
        "vendor",
        "merchant",
        "category",
        "type",
        "genre",
        "class",
        "group",
        "team",
        "race",
        "event",
        "trip",
        "ride",
        "route",
        "line",
        "flight",
        "session",
        "page",
        "post",
        "comment",
        "review",
        "transaction",
        "trans",
        "tx",
        "order",
        "invoice",
        "payment",
        "loan",
        "case",
        "visit",
        "encounter",
        "admission",
        "claim",
        "department",
        "dept",
        "company",
        "firm",
        "organization",
        "org",
        "branch",
        "airline",
        "carrier",
        "brand",
        "model",
        "campaign",
        "ad",
        "question",
        "exam",
        "course",
        "tract",
        "block",
        "district",
        "zip",
        "postal",
        "postcode",
        "area",
        "industry",
        "naics",
        "sic",
        "job",
        "occupation",
        "row",
        "record",
        "index",
        "seq",
        "rate",
    ]
)
_PLACES = re.compile(r"zip|post(al|code|leitzahl)|postnr|\bplz\b|\bcap\b", re.IGNORECASE)
_INDEX = re.compile(r"unnamed:? ?\d+|index|__index_level_\d+__|level_\d+|row_?(names?|id|num(ber)?|no)", re.IGNORECASE)
_TIMES = frozenset(
    [
        "time",
        "timestamp",
        "ts",
        "date",
        "datetime",
        "created",
        "updated",
        "modified",
        "at",
        "epoch",
        "zeit",
        "datum",
        "fecha",
        "when",
    ]
)
_MEASURES = frozenset(
    [
        "age",
        "year",
        "years",
        "month",
        "week",
        "day",
        "days",
        "hour",
        "hours",
        "minute",
        "minutes",
        "second",
        "seconds",
        "duration",
        "price",
        "cost",
        "count",
        "total",
        "length",
        "size",
        "weight",
        "height",
        "distance",
        "speed",
        "temperature",
        "number",
        "amount",
        "percent",
        "rate",
        "population",
        "latitude",
        "longitude",
        "lat",
        "lon",
    ]
)
_DIRECT = frozenset(
    [
        "email",
        "mail",
        "phone",
        "mobile",
        "cell",
        "cellphone",
        "telephone",
        "telefon",
        "tel",
        "fax",
        "ssn",
        "passport",
        "iban",
        "imei",
        "imsi",
        "msisdn",
        "ip",
        "ipaddress",
        "address",
        "addr",
        "adresse",
        "street",
        "strasse",
        "surname",
        "firstname",
        "lastname",
        "fullname",
        "username",
        "nickname",
        "login",
        "url",
        "homepage",
        "licence",
        "license",
        "plate",
    ]
)
_NAME_PARTS = frozenset(["name", "first", "last", "full", "given", "middle", "maiden", "family", "nick", "user"])
_KNOWN = frozenset(
    [
        "age",
        "sex",
        "gender",
        "race",
        "ethnic",
        "ethnicity",
        "marital",
        "civil",
        "family",
        "employment",
        "education",
        "educ",
        "country",
        "nation",
        "nationality",
        "native",
        "citizenship",
        "zip",
        "postcode",
        "postal",
        "city",
        "town",
        "state",
        "region",
        "county",
        "birth",
        "born",
        "dob",
        "height",
        "language",
        "residence",
    ]
)
_SENSITIVE = re.compile(
    r"diseas|diagnos|illness|symptom|condition|medic|drug|treat|therap|salar|income|wage|earning|religio|politic|orientation"
    r"|offen[cs]e|crime|crimin|charge|arrest|recid|decile|prison|jail|convict|sentence|fraud|churn|default|delinq|bankrupt"
    r"|balance|debt|loan|credit|amount|spend|spent|expens|fare|rating|rated|score|grade|result|poutcome|outcome"
    r"|target|response|cancer|tumou?r|diabet|pregnan|abort|smok|alcohol|drink|affair|disab|disorder|mental|depress|anxi"
    r"|suicid|death|died|mortal|surviv|readmit|readmission|procedure|dosage|glucose|cholest|health|sick|item|product"
    r"|purchase|basket|occupation|vote|approv|denied|deny|risk|status|sexual"
)
_SENSITIVE_WITHIN = re.compile(r"affair|diagnos|disease|income|salary|cancer|recid|religio|depress|earning")
_SENSITIVE_WORDS = frozenset(
    [
        "y",
        "label",
        "icd",
        "dx",
        "rx",
        "diag",
        "pulse",
        "bmi",
        "hiv",
        "drg",
        "stars",
        "rate",
        "gpa",
        "party",
        "dead",
        "tip",
        "tips",
        "dose",
        "lab",
        "deposit",
        "pay",
    ]
)


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case: `userId`, `user_id` and `User ID` are the same two."""
    return tuple(_WORD.findall(_LOWER_TO_UPPER.sub(" ", name).lower()))


def names_person(name: str) -> bool:
    """Whether a name is that of a person or of its key, and of nothing else: not `customer_age`, not `user_rating`."""
    core = [word for word in words(name) if word not in _KEYS | _NOISE]
    return bool(core) and all(word in _PERSONS or _compound(word) for word in core)


def names_key(name: str) -> bool:
    """Whether a name ends like a key: `trip_id`, `loan_nr`."""
    found = words(name)
    return bool(found) and (found[-1] in _KEYS - {"code"} or _compound(found[-1]))


def names_key_alone(name: str) -> bool:
    """Whether a name says that it is a key and not of what: `id`, `nr`."""
    return words(name) != () and all(word in _KEYS_ALONE for word in words(name))


def names_thing(name: str) -> bool:
    """Whether a name is about something that is no person."""
    return any(word in _THINGS for word in words(name))


def names_place(name: str) -> bool:
    """Whether a name is that of a postcode."""
    return _PLACES.search(name) is not None


def names_index(name: str) -> bool:
    """Whether a name is one that tools give to the numbers of rows."""
    return _INDEX.fullmatch(name.strip()) is not None


def names_time(name: str) -> bool:
    """Whether a name is that of a point in time."""
    return any(word in _TIMES or word.endswith(("time", "date")) for word in words(name))


def names_measure(name: str) -> bool:
    """Whether a name is that of something measured or counted."""
    return any(word in _MEASURES for word in words(name))


def names_direct(name: str) -> bool:
    """Whether a name is that of something that identifies by itself."""
    found = set(words(name))
    whole_name = "name" in found and found <= _NAME_PARTS | _PERSONS
    return bool(found & _DIRECT) or whole_name or found in ({"first"}, {"last"}, {"surname"})


def names_sensitive(name: str) -> bool:
    """Whether a name is that of something to protect, such as an illness, a rating, a verdict or an income."""
    found = words(name)
    if any(word in _KNOWN for word in found):
        return False
    return any(word in _SENSITIVE_WORDS or _SENSITIVE.match(word) or _SENSITIVE_WITHIN.search(word) for word in found)


def _compound(word: str) -> bool:
    """A person and a key in one word: `userid`, `kundennummer`."""
    parts = _COMPOUND.fullmatch(word)
    return parts is not None and parts[1] in _PERSONS

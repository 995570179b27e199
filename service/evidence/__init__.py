"""Evidence of a publication: gathered, filed, shown and checked."""

from service.evidence.checking import Check, Given, verify
from service.evidence.filing import new_secret, read, write
from service.evidence.gathering import gather, gather_replay
from service.evidence.page import evidence_html
from service.evidence.signing import public_key, signature, signing_key

__all__ = [
    "Check",
    "Given",
    "evidence_html",
    "gather",
    "gather_replay",
    "new_secret",
    "public_key",
    "read",
    "signature",
    "signing_key",
    "verify",
    "write",
]

"""Evidence of a publication: gathered, filed, shown and checked."""

from service.evidence.checking import Check, Given, verify
from service.evidence.filing import keep_secret, kind_of, new_secret, read, write
from service.evidence.gathering import gather, gather_replay
from service.evidence.page import evidence_html
from service.evidence.signing import public_key, signature, signing_key
from service.evidence.stretch import Bounds, gather_stretch, output_of, verify_stretch

__all__ = [
    "Bounds",
    "Check",
    "Given",
    "evidence_html",
    "gather",
    "gather_replay",
    "gather_stretch",
    "keep_secret",
    "kind_of",
    "new_secret",
    "output_of",
    "public_key",
    "read",
    "signature",
    "signing_key",
    "verify",
    "verify_stretch",
    "write",
]

"""Evidence of a publication: gathered, filed, shown and checked."""

from service.evidence.filing import Check, gather, new_secret, read, verify, write
from service.evidence.page import evidence_html
from service.evidence.signing import public_key, signature, signing_key

__all__ = [
    "Check",
    "evidence_html",
    "gather",
    "new_secret",
    "public_key",
    "read",
    "signature",
    "signing_key",
    "verify",
    "write",
]

"""How a command tells a program how it ended. One table for the commands, their help and the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

DONE = 0
GUARANTEE_FAILED = 1
WRONG_USE = 2
PUBLICATION_FAILED = 3
NOT_SHOWN = 4
UNAVAILABLE = 69
INTERNAL = 70
REFUSED = 77
INTERRUPTED = 130
READER_GONE = 141

MEANINGS = {
    DONE: "done",
    GUARANTEE_FAILED: "a guarantee does not hold",
    WRONG_USE: "wrong use or bad input",
    PUBLICATION_FAILED: "a publication failed its own audit and was not written",
    NOT_SHOWN: "a guarantee cannot be shown from what was published; it may still hold",
    UNAVAILABLE: "a broker, registry, topic, port, database or disk is away or not free: try again when it is",
    INTERNAL: "a fault of Portcullis",
    REFUSED: "the broker or registry refused the login, or a right that is needed",
    INTERRUPTED: "interrupted",
    READER_GONE: "nobody read the output any more",
}


def status_of(error: Exception) -> int:
    """The status with which a command ends after this error."""
    # Only now: the package of the error tree takes a second to load, and help needs none of it.
    ours = import_module("microdata.errors")
    if isinstance(error, ours.GuaranteeError):
        return PUBLICATION_FAILED
    if isinstance(error, ours.UnavailableError):
        kafka = import_module("service.kafka.errors")
        final = REFUSED if isinstance(error, kafka.DeniedError) else WRONG_USE
        return final if isinstance(error, kafka.FinalError) else UNAVAILABLE
    if isinstance(error, import_module("service.registry.errors").RegistryDeniedError):
        return REFUSED
    return WRONG_USE if isinstance(error, ours.PortcullisError) else INTERNAL


def told(statuses: Iterable[int]) -> str:
    """The statuses with what they mean, in one sentence."""
    return "Exit status: " + "; ".join(f"{status} {MEANINGS[status]}" for status in statuses) + "."

"""How our programs log: to stderr, one line each, and a client that cannot reach its broker does not flood it."""

from __future__ import annotations

import logging
import time
import traceback

FORMAT = "%(asctime)s %(levelname)s %(message)s"
_QUIET_SECONDS = 10.0
_CLIENTS = ("service.kafka", "kafka")


class Repeats(logging.Filter):
    """Lets a Kafka client say the same kind of thing once in a while only: they repeat themselves by the thousand."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is worth a line."""
        if not record.name.startswith(_CLIENTS):
            return True
        kind = (record.name, record.getMessage()[:12])
        now = time.monotonic()
        if now - self._last.get(kind, -_QUIET_SECONDS) < _QUIET_SECONDS:
            return False
        self._last[kind] = now
        return True


def fault(error: Exception) -> str:
    """A fault of ours, told without the error's message: that might quote a record."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error: {type(error).__name__} in {place.filename}, line {place.lineno}. This is a fault"
        " of Portcullis, please report it. PORTCULLIS_TRACEBACK=1 shows more, which may hold values of your data."
    )


def log_to_stderr(format_: str = FORMAT) -> None:
    """Set up logging for a program."""
    handler = logging.StreamHandler()
    handler.addFilter(Repeats())
    logging.basicConfig(level=logging.INFO, format=format_, handlers=[handler])
    logging.getLogger("kafka").setLevel(logging.WARNING)

"""Whether anybody listens where a broker should be, asked before a client library is opened.

The libraries only time out, after half a minute and many lines of their own.
"""

import socket

from service.kafka.errors import RetriableError

_DEFAULT_PORT = 9092
"""Where librdkafka tries when no port is given."""


def reach(servers: str, seconds: float) -> None:
    """Return when one of the servers accepts a connection; `RetriableError` when none does within this time."""
    given = [each.strip() for each in servers.split(",") if each.strip()]
    refusals = []
    for server in given:
        host, port = _place(server)
        try:
            with socket.create_connection((host, port), seconds / len(given)):
                return
        except OSError as error:
            refusals.append(f"{server} ({error.strerror or 'no answer'})")
    if refusals:
        raise RetriableError(f"no broker at {', '.join(refusals)}: start it, or correct bootstrap_servers")


def _place(server: str) -> tuple[str, int]:
    address = server.rpartition("//")[2]  # librdkafka allows a protocol in front
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or (":" in host and not host.endswith("]")):
        host, port = address, str(_DEFAULT_PORT)
    return host.strip("[]"), int(port)

"""An embedded Kafka broker for development and tests, **not for production**: one node, in memory, loopback only.

It speaks the Kafka protocol for real clients: topics, consumer groups (eager), offsets with metadata, idempotent and
transactional producers, read-committed isolation, fencing, retention by size, last value per key.

The message codecs are those of kafka-python's protocol package. It is generated from Apache Kafka's own message
schemas, encodes and decodes requests and responses alike, in every version, and it is a dependency already. (`kio`
serves both directions as well, but would be a second copy of the same schemas.) Record batches are not decoded at
all: see `batch`.

| module         | holds                                                            |
|----------------|------------------------------------------------------------------|
| `batch`        | headers of record batches, markers                               |
| `log`          | one partition: offsets, sequences, stable offset, retention      |
| `compaction`   | the last record per key                                          |
| `topics`       | topics and their settings                                        |
| `groups`       | consumer groups                                                  |
| `transactions` | the transaction coordinator                                      |
| `api_…`        | requests and responses, by subject                               |
| `apis`         | the table of requests                                            |
| `server`       | connections; `Broker`                                            |
| `command`      | the command line                                                 |
"""

from service.broker.command import broker_command, run_broker
from service.broker.server import Broker, BrokerError

__all__ = ["Broker", "BrokerError", "broker_command", "run_broker"]

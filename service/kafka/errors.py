"""What can go wrong between us and Kafka, sorted by what the caller must do about it.

| error               | what it means                                    | what to do                        |
| ------------------- | ------------------------------------------------ | --------------------------------- |
| `RetriableError`    | nothing happened yet, it may work later          | call again                        |
| `AbortableError`    | this transaction cannot commit                   | abort, discard, restore           |
| `StaleGroupError`   | not (any longer) in the group's generation       | as above; its partitions are gone |
| `FencedError`       | another producer took over this transactional id | discard, restore                  |
| `InstanceTakenError`| another member joined under this instance name   | stop; each process has its own    |
| `UnclearError`      | the commit was sent, its outcome is unknown      | discard, restore                  |
| `DeniedError`       | not authenticated, or not authorized             | stop, tell the operator           |
| `UnknownTopicError` | the topic or partition does not exist            | stop, or create it                |
| `TopicExistsError`  | a topic of that name is there already            | use it, or stop                   |
| `GoneError`         | there is no record at or behind this offset      | count the loss, seek              |
| `TooLargeError`     | a record exceeds what topic or client accept     | split it, or refuse it            |
| `FatalError`        | anything else that repeating does not cure       | discard the client, stop          |

Messages name topics, partitions, offsets and groups, never keys or values of records.
"""

from microdata.errors import PortcullisError


class KafkaError(PortcullisError):
    """Root of everything that the port raises."""


class RetriableError(KafkaError):
    """Nothing happened yet, and it may work later."""


class AbortableError(KafkaError):
    """The transaction cannot commit and has to be aborted."""


class StaleGroupError(AbortableError):
    """The consumer is not, or no longer, a member of the group's current generation."""


class FencedError(KafkaError):
    """Another producer has taken over the transactional id: this one must never be used again."""


class InstanceTakenError(KafkaError):
    """Another member has joined the group under the same instance name: this one has no part in it any more."""


class UnclearError(KafkaError):
    """A commit was sent and nobody knows whether it happened."""


class DeniedError(KafkaError):
    """The broker refused who we are, or what we want to do."""


class UnknownTopicError(KafkaError):
    """There is no such topic or partition."""


class TopicExistsError(KafkaError):
    """There is such a topic already."""


class GoneError(KafkaError):
    """A partition no longer holds the offset to read next (retention), or never did."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(f"topic {topic!r}, partition {partition}: offset {offset} is out of range")
        self.topic = topic
        self.partition = partition
        self.offset = offset


class TooLargeError(KafkaError):
    """A record is larger than the topic or the client allows."""


class FatalError(KafkaError):
    """Repeating will not help."""

"""What can go wrong between us and Kafka, sorted by what the caller must do about it.

| error               | what it means                                    | what to do                        |
| ------------------- | ------------------------------------------------ | --------------------------------- |
| `RetriableError`    | it did not work, and may work later              | call again                        |
| `AbortableError`    | this transaction cannot commit                   | abort, discard, restore           |
| `StaleGroupError`   | not (any longer) in the group's generation       | as above; its partitions are gone |
| `FencedError`       | another producer took over this transactional id | discard, restore                  |
| `UnclearError`      | the commit was sent, its outcome is unknown      | discard, restore                  |
| `FatalError`        | the client says that it can never be used again  | discard the client, open another  |
| `UnknownTopicError` | the topic or partition does not exist            | call again, or create it          |
| `TopicExistsError`  | a topic of that name is there already            | use it, or stop                   |
| `GoneError`         | there is no record at or behind this offset      | count the loss, seek              |
| `FinalError`        | repeating will never help                        | stop, tell the operator           |
| `DeniedError`       | not authenticated, or not authorized             | as above                          |
| `TooLargeError`     | a record exceeds what topic or client accept     | as above; split it, or refuse it  |

Only `FinalError` and what is below it end a worker: every other error may pass. `service.kafka.codes` says which code
of a broker is which. Messages name topics, partitions, offsets and groups, never keys or values of records.
"""

from typing import ClassVar, Self

from microdata.errors import UnavailableError


class KafkaError(UnavailableError):
    """Root of everything that the port raises.

    `code` is the name of its kind, for counting: Kafka's, the client library's or our own; one of a fixed set.
    """

    own_code: ClassVar[str] = "UNKNOWN"

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or self.own_code

    def about(self, topic: str) -> Self:
        """The same error, with the topic that it is about."""
        self.args = (f"topic {topic!r}: {self}",)
        return self


class RetriableError(KafkaError):
    """It did not work, and may work later."""

    own_code = "NO_ANSWER"


class AbortableError(KafkaError):
    """The transaction cannot commit and has to be aborted."""

    own_code = "NOT_ACKNOWLEDGED"


class StaleGroupError(AbortableError):
    """The consumer is not, or no longer, a member of the group's current generation."""

    own_code = "NOT_A_MEMBER"


class FencedError(KafkaError):
    """Another producer has taken over the transactional id: this one must never be used again."""

    own_code = "FENCED"


class UnclearError(KafkaError):
    """A commit was sent and nobody knows whether it happened."""

    own_code = "UNCLEAR_COMMIT"


class FatalError(KafkaError):
    """The client can never be used again, or never in this way; another one may work."""

    own_code = "CLIENT_BROKEN"


class UnknownTopicError(KafkaError):
    """There is no such topic or partition."""

    own_code = "UNKNOWN_TOPIC_OR_PARTITION"


class TopicExistsError(KafkaError):
    """There is such a topic already."""

    own_code = "TOPIC_ALREADY_EXISTS"


class GoneError(KafkaError):
    """A partition no longer holds the offset to read next (retention), or never did."""

    own_code = "OFFSET_OUT_OF_RANGE"

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(f"topic {topic!r}, partition {partition}: offset {offset} is out of range")
        self.topic = topic
        self.partition = partition
        self.offset = offset


class FinalError(KafkaError):
    """Repeating will never help: a version or feature that is not supported, a setting that is not allowed."""

    own_code = "NOT_SUPPORTED"


class DeniedError(FinalError):
    """The broker refused who we are, or what we want to do."""

    own_code = "DENIED"


class TooLargeError(FinalError):
    """A record is larger than the topic or the client allows."""

    own_code = "MESSAGE_TOO_LARGE"

"""What all requests share: the broker's state and the way they report refusals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from kafka import errors as kp

from service.broker.groups import Groups
from service.broker.topics import BrokerTopics
from service.broker.transactions import Transactions

NODE_ID = 1
Result = TypeVar("Result")


@dataclass(slots=True)
class Node:
    """The one broker of its cluster."""

    host: str
    port: int
    topics: BrokerTopics
    groups: Groups
    transactions: Transactions
    auto_create_topics: bool
    cluster_id: str = field(default_factory=lambda: uuid4().hex[:22])


class Call(NamedTuple):
    """A request with its circumstances."""

    node: Node
    body: Any
    version: int
    client_id: str


def outcome(action: Callable[[], Result], otherwise: Result) -> tuple[int, Result]:
    """The error code and result of an action: 0 and what it gave, or the refusal's code and `otherwise`."""
    try:
        return 0, action()
    except kp.BrokerResponseError as refusal:
        return int(refusal.errno), otherwise


def by_topic(call: Call, answer: Any, one: Callable[[str, Any], Any]) -> list[Any]:
    """The answers about the topics of a request; `one` gives that about a partition of the topic named."""
    return [
        answer(name=topic.name, partitions=[one(topic.name, each) for each in topic.partitions])
        for topic in call.body.topics
    ]


def explained(action: Callable[[], object]) -> dict[str, Any]:
    """The error fields of a response that also has room for a sentence."""
    try:
        action()
    except kp.BrokerResponseError as refusal:
        return {"error_code": refusal.errno, "error_message": str(refusal.args[0]) if refusal.args else None}
    return {"error_code": 0, "error_message": None}

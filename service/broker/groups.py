"""Consumer groups: who is a member, who leads, what is committed. Rebalancing is eager."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import uuid4

from kafka import errors as kp

State = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"]
Place = tuple[str, int]
MAX_METADATA_BYTES = 4096


class Commit(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str


class Joined(NamedTuple):
    """What a member learns when a new generation begins; only the leader gets to know the members."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: list[tuple[str, str | None, bytes]]
    """Id, instance and what each says of itself."""


@dataclass(slots=True)
class Member:
    """A client in a group."""

    member_id: str
    client_id: str
    session_seconds: float
    rebalance_seconds: float
    protocols: dict[str, bytes]
    instance: str | None = None
    """The lasting name of a static member: who joins with it takes the place of who had it."""
    expires: float = 0.0
    joining: asyncio.Future[Joined] | None = None
    syncing: asyncio.Future[bytes] | None = None
    assignment: bytes = b""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for the group rather than the group for it."""
        return any(each is not None and not each.done() for each in (self.joining, self.syncing))

    @property
    def has_joined(self) -> bool:
        """Whether it asked for the next generation."""
        return self.joining is not None and not self.joining.done()

    def is_followed_by(self, other: "Member") -> bool:
        """Whether the other one is this one, or takes its place."""
        return self.member_id == other.member_id or (self.instance is not None and self.instance == other.instance)

    def seen(self) -> None:
        """Start its session anew."""
        self.expires = time.monotonic() + self.session_seconds


@dataclass(slots=True)
class Group:
    """One consumer group."""

    group_id: str
    state: State = "Empty"
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)  # ids handed out, and until when they may be used
    rebalance_until: float = 0.0
    committed: dict[Place, Commit] = field(default_factory=dict)
    pending: dict[int, dict[Place, Commit]] = field(default_factory=dict)  # by producer: in open transactions

    # --- membership

    def enter(self, member: Member, protocol_type: str) -> "asyncio.Future[Joined]":
        """A client joins or joins again; done when the next generation begins."""
        if self.members and protocol_type != self.protocol_type:
            raise kp.InconsistentGroupProtocolError(f"the group's protocol type is {self.protocol_type!r}")
        others = [set(each.protocols) for each in self.members.values() if not each.is_followed_by(member)]
        if not member.protocols or (others and not set.intersection(set(member.protocols), *others)):
            raise kp.InconsistentGroupProtocolError("no assignment protocol is common to all members")
        self.protocol_type = protocol_type
        self.expected.pop(member.member_id, None)
        known = self.members.get(member.member_id) or self._replaced(member)
        future: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        unchanged = known is not None and known.protocols == member.protocols
        returns = known is not None and known.member_id != member.member_id
        leads = member.member_id == self.leader and not returns
        settled = (self.state == "CompletingRebalance" and not returns) or (self.state == "Stable" and not leads)
        if known is not None:
            member.assignment = known.assignment
        self.members[member.member_id] = member
        member.seen()
        if unchanged and settled:
            future.set_result(self._joined(member))
            return future
        member.joining = future
        self._rebalance()
        return future

    def _replaced(self, member: Member) -> Member | None:
        """The static member whose place this one takes, and which is shut out from now on."""
        old = self.static(member.instance)
        if old is not None:
            for waiting in (old.joining, old.syncing):
                if waiting is not None and not waiting.done():
                    waiting.set_exception(kp.FencedInstanceIdError("another member has joined with this instance id"))
            del self.members[old.member_id]
            self.leader = member.member_id if self.leader == old.member_id else self.leader
        return old

    def static(self, instance: str | None) -> Member | None:
        """The member with this instance id."""
        return next((each for each in self.members.values() if instance and each.instance == instance), None)

    def require_instance(self, member_id: str, instance: str | None) -> None:
        """Refuse who has an instance id that another member has taken over."""
        holder = self.static(instance)
        if holder is not None and holder.member_id != member_id:
            raise kp.FencedInstanceIdError("another member has joined with this instance id")

    def _rebalance(self) -> None:
        """Begin to gather the members of the next generation."""
        if self.state != "PreparingRebalance":
            self.state = "PreparingRebalance"
            patience = max((each.rebalance_seconds for each in self.members.values()), default=0.0)
            self.rebalance_until = time.monotonic() + patience
            for member in self.members.values():
                if member.syncing is not None and not member.syncing.done():
                    member.syncing.set_exception(kp.RebalanceInProgressError("the group rebalances"))
        if all(member.has_joined for member in self.members.values()):
            self._begin_generation()

    def _begin_generation(self) -> None:
        """Everyone who is going to come is here."""
        self.members = {key: member for key, member in self.members.items() if member.has_joined}
        self.generation += 1
        if not self.members:
            self.state, self.leader, self.protocol = "Empty", "", ""
            return
        self.state = "CompletingRebalance"
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        common = set.intersection(*(set(each.protocols) for each in self.members.values()))
        self.protocol = next(each for each in self.members[self.leader].protocols if each in common)
        for member in self.members.values():
            member.seen()
            if member.joining is not None:
                member.joining.set_result(self._joined(member))
            member.joining = None

    def _joined(self, member: Member) -> Joined:
        leads = member.member_id == self.leader
        members = [(each.member_id, each.instance, each.protocols[self.protocol]) for each in self.members.values()]
        return Joined(
            self.generation, self.protocol_type, self.protocol, self.leader, member.member_id, members if leads else []
        )

    def sync(
        self, member_id: str, generation: int, assignments: Mapping[str, bytes], instance: str | None = None
    ) -> "asyncio.Future[bytes]":
        """A member asks for its share; the leader brings everybody's."""
        self.require_instance(member_id, instance)
        member = self._current(member_id, generation)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        member.seen()
        if self.state == "PreparingRebalance":
            raise kp.RebalanceInProgressError("the group rebalances")
        if self.state == "Stable":
            future.set_result(member.assignment)
            return future
        member.syncing = future
        if member_id == self.leader:
            self.state = "Stable"
            for each in self.members.values():
                each.assignment = assignments.get(each.member_id, b"")
                if each.syncing is not None and not each.syncing.done():
                    each.syncing.set_result(each.assignment)
                each.syncing = None
        return future

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> None:
        """A member says that it is alive."""
        self.require_instance(member_id, instance)
        self._current(member_id, generation).seen()
        if self.state == "PreparingRebalance":
            raise kp.RebalanceInProgressError("the group rebalances")

    def leave(self, member_id: str) -> None:
        """A member goes."""
        if self.expected.pop(member_id, None) is None:
            self._member(member_id)
            self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        del self.members[member_id]
        self._rebalance()

    def expire(self, now: float) -> None:
        """Put out who has not been heard of, and do not wait for ever for who does not join again."""
        self.expected = {key: until for key, until in self.expected.items() if until > now}
        for member in list(self.members.values()):
            if not member.is_waiting and member.expires < now:
                self._remove(member.member_id)
        if self.state == "PreparingRebalance" and self.rebalance_until < now:
            self._begin_generation()

    def _member(self, member_id: str) -> Member:
        if member_id not in self.members:
            raise kp.UnknownMemberIdError("not a member of the group")
        return self.members[member_id]

    def _current(self, member_id: str, generation: int) -> Member:
        member = self._member(member_id)
        if generation != self.generation:
            raise kp.IllegalGenerationError(f"the generation is {self.generation}, given {generation}")
        return member

    # --- offsets

    def check_commit(
        self, member_id: str, generation: int, *, transactional: bool, instance: str | None = None
    ) -> None:
        """Whether this client may commit: a member of the current generation, or nobody while there is none.

        A transaction without generation and member is let through as old clients send it: that is Kafka's
        rule, and the reason why our worker never sends such a thing.
        """
        self.require_instance(member_id, instance)
        if generation < 0 and self.state == "Empty":
            return
        if generation >= 0 or member_id:
            self._current(member_id, generation)
        elif not transactional:
            raise kp.UnknownMemberIdError("only members commit while the group has some")
        if not transactional and self.state == "CompletingRebalance":
            raise kp.RebalanceInProgressError("the group rebalances")

    def hold(self, producer_id: int, commits: Mapping[Place, Commit]) -> None:
        """Offsets that count when their transaction commits."""
        self.pending.setdefault(producer_id, {}).update(commits)

    def settle(self, producer_id: int, *, commit: bool) -> None:
        """A transaction has ended."""
        held = self.pending.pop(producer_id, {})
        if commit:
            self.committed.update(held)

    def is_unstable(self, place: Place) -> bool:
        """Whether an open transaction is about to change an offset."""
        return any(place in held for held in self.pending.values())


class Groups:
    """All groups of the broker."""

    def __init__(self) -> None:
        self._by_id: dict[str, Group] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._by_id.values()))

    def get(self, group_id: str) -> Group | None:
        """The group, if there is one."""
        return self._by_id.get(group_id)

    def ensure(self, group_id: str) -> Group:
        """The group, made on the spot if need be."""
        if not group_id:
            raise kp.InvalidGroupIdError("a group needs an id")
        return self._by_id.setdefault(group_id, Group(group_id))

    def existing(self, group_id: str) -> Group:
        """The group of a client that says it is a member."""
        group = self._by_id.get(group_id)
        if group is None:
            raise kp.UnknownMemberIdError("not a member of the group")
        return group

    def expire(self, now: float) -> None:
        """Let time pass in every group."""
        for group in self:
            group.expire(now)

    def forget_topic(self, name: str) -> None:
        """Offsets of a deleted topic mean nothing to one that is created under its name later."""
        for group in self:
            group.committed = {place: commit for place, commit in group.committed.items() if place[0] != name}


def new_member_id(client_id: str) -> str:
    """An id that nobody else has."""
    return f"{client_id}-{uuid4()}"

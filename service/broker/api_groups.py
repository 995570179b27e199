"""Requests of consumer groups: membership and offsets."""

import time
from typing import Any

from kafka import errors as kp
from kafka.protocol.admin import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata import FindCoordinatorResponse

from service.broker.groups import MAX_METADATA_BYTES, Commit, Group, Member, Place, new_member_id
from service.broker.node import NODE_ID, Call, Node, by_topic, outcome

NO_OFFSET = Commit(-1, -1, "")


async def find_coordinator(call: Call) -> Any:
    """Who coordinates groups and transactions: always this broker."""
    here = {"node_id": NODE_ID, "host": call.node.host, "port": call.node.port, "error_code": 0}
    coordinators = [
        FindCoordinatorResponse.Coordinator(key=key, error_message=None, **here)
        for key in call.body.coordinator_keys or []
    ]
    return FindCoordinatorResponse(error_message=None, coordinators=coordinators, **here)


async def join_group(call: Call) -> Any:
    """Become a member, or stay one in the next generation."""
    body = call.body
    member_id, instance = body.member_id, instance_of(call)
    try:
        group = call.node.groups.ensure(body.group_id)
        if member_id:
            group.require_instance(member_id, instance)
        if not member_id:
            member_id = new_member_id(call.client_id)
            if call.version >= 4 and instance is None:
                group.expected[member_id] = time.monotonic() + body.session_timeout_ms / 1000
                raise kp.MemberIdRequiredError("join again with the id given")
        elif member_id not in group.members and member_id not in group.expected:
            raise kp.UnknownMemberIdError("not a member of the group")
        member = Member(
            member_id,
            call.client_id,
            body.session_timeout_ms / 1000,
            (body.rebalance_timeout_ms if call.version >= 1 else body.session_timeout_ms) / 1000,
            {each.name: bytes(each.metadata) for each in body.protocols},
            instance,
        )
        joined = await group.enter(member, body.protocol_type)
    except kp.BrokerResponseError as refusal:
        return JoinGroupResponse(
            error_code=refusal.errno, generation_id=-1, protocol_type=None, protocol_name="", leader="",
            member_id=member_id, members=[],
        )  # fmt: skip
    return JoinGroupResponse(
        error_code=0,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(member_id=each, group_instance_id=name, metadata=metadata)
            for each, name, metadata in joined.members
        ],
    )


def instance_of(call: Call) -> str | None:
    """The instance id of a static member; older requests have none."""
    return getattr(call.body, "group_instance_id", None)


async def sync_group(call: Call) -> Any:
    """Bring or fetch the assignment."""
    body = call.body
    try:
        group = call.node.groups.existing(body.group_id)
        given = {each.member_id: bytes(each.assignment) for each in body.assignments}
        assignment = await group.sync(body.member_id, body.generation_id, given, instance_of(call))
    except kp.BrokerResponseError as refusal:
        return SyncGroupResponse(error_code=refusal.errno, protocol_type=None, protocol_name=None, assignment=b"")
    return SyncGroupResponse(
        error_code=0, protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


async def heartbeat(call: Call) -> Any:
    """Stay a member."""
    body = call.body

    def beat() -> None:
        group = call.node.groups.existing(body.group_id)
        group.heartbeat(body.member_id, body.generation_id, instance_of(call))

    code, _ = outcome(beat, None)
    return HeartbeatResponse(error_code=code)


async def leave_group(call: Call) -> Any:
    """Stop being a member."""
    body = call.body

    def leave(member_id: str) -> int:
        code, _ = outcome(lambda: call.node.groups.existing(body.group_id).leave(member_id), None)
        return code

    if call.version < 3:
        return LeaveGroupResponse(error_code=leave(body.member_id))
    answers = [
        LeaveGroupResponse.MemberResponse(
            member_id=each.member_id, group_instance_id=None, error_code=leave(each.member_id)
        )
        for each in body.members
    ]
    return LeaveGroupResponse(error_code=0, members=answers)


async def offset_commit(call: Call) -> Any:
    """Commit outside of a transaction."""
    body = call.body

    def check() -> Group:
        group = call.node.groups.ensure(body.group_id)
        generation, instance = body.generation_id_or_member_epoch, instance_of(call)
        group.check_commit(body.member_id, generation, transactional=False, instance=instance)
        return group

    refused, group = outcome(check, None)
    answer = OffsetCommitResponse.OffsetCommitResponseTopic

    def commit(name: str, asked: Any) -> Any:
        code = refused or commit_refusal(call.node, name, asked)
        if group is not None and not code:
            group.committed[name, asked.partition_index] = as_commit(asked)
        return answer.OffsetCommitResponsePartition(partition_index=asked.partition_index, error_code=code)

    return OffsetCommitResponse(topics=by_topic(call, answer, commit))


def as_commit(asked: Any) -> Commit:
    """What a request wants to commit for a partition."""
    return Commit(asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "")


def commit_refusal(node: Node, topic: str, asked: Any) -> int:
    """Why one partition's offset cannot be committed, or 0."""
    if len((asked.committed_metadata or "").encode()) > MAX_METADATA_BYTES:
        return int(kp.OffsetMetadataTooLargeError.errno)
    code, _ = outcome(lambda: node.topics.log(topic, asked.partition_index), None)
    return code


async def offset_fetch(call: Call) -> Any:
    """What a group has committed; unstable offsets are refused to who asks for stable ones."""
    body = call.body
    stable = bool(body.require_stable)
    if call.version < 8:
        answer = OffsetFetchResponse.OffsetFetchResponseTopic
        topics = _committed(call.node, body.group_id, body.topics, answer, stable=stable)
        return OffsetFetchResponse(topics=topics, error_code=0)
    result = OffsetFetchResponse.OffsetFetchResponseGroup
    groups = [
        result(
            group_id=each.group_id,
            error_code=0,
            topics=_committed(call.node, each.group_id, each.topics, result.OffsetFetchResponseTopics, stable=stable),
        )
        for each in body.groups
    ]
    return OffsetFetchResponse(groups=groups)


def _committed(node: Node, group_id: str, asked: Any, answer: Any, *, stable: bool) -> list[Any]:
    group = node.groups.get(group_id) or Group(group_id)
    if asked is None:
        pending = {place for held in group.pending.values() for place in held}
        places = sorted(set(group.committed) | (pending if stable else set()))
    else:
        places = [(topic.name, number) for topic in asked for number in topic.partition_indexes]
    partition = getattr(answer, "OffsetFetchResponsePartitions", None) or answer.OffsetFetchResponsePartition
    topics: dict[str, list[Any]] = {}
    for place in places:
        topics.setdefault(place[0], []).append(_committed_at(group, place, partition, stable=stable))
    return [answer(name=name, partitions=answers) for name, answers in topics.items()]


def _committed_at(group: Group, place: Place, answer: Any, *, stable: bool) -> Any:
    unstable = stable and group.is_unstable(place)
    commit = NO_OFFSET if unstable else group.committed.get(place, NO_OFFSET)
    return answer(
        partition_index=place[1],
        committed_offset=commit.offset,
        committed_leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        error_code=kp.UnstableOffsetCommitError.errno if unstable else 0,
    )


async def list_groups(call: Call) -> Any:
    """All groups."""
    wanted = set(call.body.states_filter or []) if call.version >= 4 else set()
    return ListGroupsResponse(
        error_code=0,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type="classic",
            )
            for group in call.node.groups
            if not wanted or group.state in wanted
        ],
    )


async def describe_groups(call: Call) -> Any:
    """Members and their assignments."""
    return DescribeGroupsResponse(groups=[_described(call.node, each) for each in call.body.groups])


def _described(node: Node, group_id: str) -> Any:
    answer = DescribeGroupsResponse.DescribedGroup
    group = node.groups.get(group_id)
    if group is None:
        return answer(
            error_code=0, group_id=group_id, group_state="Dead", protocol_type="", protocol_data="", members=[]
        )
    members = [
        answer.DescribedGroupMember(
            member_id=each.member_id,
            group_instance_id=each.instance,
            client_id=each.client_id,
            client_host="/127.0.0.1",
            member_metadata=each.protocols.get(group.protocol, b""),
            member_assignment=each.assignment,
        )
        for each in group.members.values()
    ]
    return answer(
        error_code=0, group_id=group_id, group_state=group.state, protocol_type=group.protocol_type,
        protocol_data=group.protocol, members=members,
    )  # fmt: skip

"""Evidence of a stretch of an output topic: what it holds, and which stretch came before it.

It is made by who reads the topic, not by the workers that write it, so it says what any reader can see: the records, by
their hash, and what an audit of them finds. Persons are not among it; the workers counted those before each release.
Stretches are a chain: each names the evidence before it by its hash and goes on where that ended, so that none can be
taken out or put in between.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import orjson

from microdata import DataError, Progress, silent
from service.codec import LeftRecords, Route
from service.evidence.checking import Check, Given, same, same_audit, verify_form
from service.evidence.filing import filed, kind_of, read, sealed
from service.evidence.gathering import audited, words_of
from service.evidence.signing import is_signed
from service.kafka import Client, Partition, reach
from service.policy import Policy, PolicyError, PolicyProblem
from service.registry import Registry

MOST_RECORDS = 5_000_000
MOST_BYTES = 4 << 30
"""What one stretch may have; longer ones are cut into several."""
MOST_BEFORE = 10_000
"""Stretches that are followed back."""
_SECONDS = 30.0
"""How long a broker may take for the next records."""
_REACH_SECONDS = 10.0


@dataclass(frozen=True)
class Bounds:
    """Which part of a topic: behind earlier evidence, or from a time on; up to a time, or all that is there."""

    after: Mapping[str, Any] | None = None
    after_name: str = ""
    since: int | None = None
    """Milliseconds since 1970, as records have it."""
    until: int | None = None


@dataclass
class _Read:
    """What was read of a topic."""

    ranges: dict[str, list[int]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    records: int = 0
    size: int = 0
    first: int | None = None
    last: int | None = None
    unread: bool = False
    """Whether a record is none that the policy writes."""
    parts: dict[str, list[int]] = field(default_factory=dict)
    """Of each cluster in several parts, how many of them are missing, and behind that the numbers of their records."""

    def note(self, timestamp: int) -> None:
        self.first = timestamp if self.first is None else min(self.first, timestamp)
        self.last = timestamp if self.last is None else max(self.last, timestamp)


def gather_stretch(
    policy: Policy,
    client: Client,
    bounds: Bounds,
    *,
    by: str,
    registry: Registry | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Evidence of what the output topic of a policy holds between these bounds; the registry has its schemas."""
    topic = output_of(policy)
    reach(client.servers, _REACH_SECONDS)
    with closing(client.admin()) as admin:
        described = admin.describe_topic(topic)
    starts = _starts(bounds, topic, str(described.topic_id))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        reader = stack.enter_context(closing(client.reader()))
        ranges = {}
        for number in range(described.partitions):
            low, high = reader.watermarks(Partition(topic, number))
            start = starts.get(number, low)
            if start < low:
                raise DataError(
                    f"topic {topic!r}: records behind the evidence before are gone from partition {number}, so the "
                    "chain cannot go on; begin a new one, without --after"
                )
            ranges[number] = start, max(high, start)
        lines = folder / "left.jsonl"
        found = _read(reader, topic, ranges, bounds, policy.route(registry), lines, progress)
        checked = _audited(policy, lines, found, progress)
    before = {} if bounds.after is None else {"hash": bounds.after["hash"], "file": bounds.after_name}
    stretch = {
        "topic": topic,
        "topic_id": str(described.topic_id),
        "partitions": found.ranges,
        "records": found.records,
        "first_ms": found.first,
        "last_ms": found.last,
    }
    return filed(
        "topic",
        policy,
        by=by,
        stretch=stretch,
        before=before,
        published={"sha256": found.hashes},
        audited=checked,
        words=words_of("topic", policy),
    )


def output_of(policy: Policy) -> str:
    """The topic that a policy publishes to."""
    if policy.stream is None:
        raise PolicyError([PolicyProblem("stream", "only a policy with topics has an output topic")])
    return policy.stream.output


def _starts(bounds: Bounds, topic: str, topic_id: str) -> dict[int, int]:
    """Where the evidence before ended."""
    if bounds.after is None:
        return {}
    if kind_of(bounds.after) != "topic":
        raise DataError(f"{bounds.after_name}: is not evidence of a topic")
    stretch = bounds.after["parts"]["stretch"]
    if (stretch.get("topic"), stretch.get("topic_id")) != (topic, topic_id):
        raise DataError(f"{bounds.after_name}: is evidence of another topic, or of one that was made anew since")
    return {number: end for number, (_, end) in ranges_of(stretch, bounds.after_name).items()}


def ranges_of(stretch: Mapping[str, Any], name: str) -> dict[int, tuple[int, int]]:
    """First offset and the one behind the last, by partition."""
    try:
        found = {int(number): (int(start), int(end)) for number, (start, end) in stretch["partitions"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        found = {-1: (0, 0)}
    if any(number < 0 or not 0 <= start <= end for number, (start, end) in found.items()):
        raise DataError(f"{name}: does not say which records it is about")
    return found


def _read(
    reader: Any,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    bounds: Bounds,
    route: Route,
    lines: Path,
    progress: Progress,
) -> _Read:
    """Hash the records of each partition, and write their clusters and rows as lines."""
    found, total = _Read(), sum(end - start for start, end in ranges.values())
    left = LeftRecords(route)
    with lines.open("wb") as out:
        for number, (start, end) in sorted(ranges.items()):
            digest, begin, stop = hashlib.sha256(), None, end
            for offset, timestamp, value in _records(reader, Partition(topic, number), start, end):
                if bounds.since is not None and begin is None and timestamp < bounds.since:
                    continue
                if bounds.until is not None and timestamp >= bounds.until:
                    stop = offset
                    break
                begin = offset if begin is None else begin
                digest.update(struct.pack(">qqq", offset, timestamp, len(value)))
                digest.update(value)
                found.records, found.size = found.records + 1, found.size + len(value)
                found.note(timestamp)
                _check_size(found, topic)
                _write_line(left, value, out, found)
                progress("reading", found.records, total)
            first = start if bounds.since is None else stop if begin is None else begin
            found.ranges[str(number)], found.hashes[str(number)] = [first, stop], digest.hexdigest()
    return found


def _records(reader: Any, partition: Partition, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    for batch in reader.read(partition, start, end, _SECONDS):
        for offset, timestamp, value in zip(
            batch.offsets.tolist(), batch.timestamps.tolist(), batch.values, strict=True
        ):
            yield offset, timestamp, value or b""


def _check_size(found: _Read, topic: str) -> None:
    if found.records > MOST_RECORDS or found.size > MOST_BYTES:
        limit = f"{MOST_RECORDS:,} records or {MOST_BYTES >> 30} GB"
        raise DataError(f"topic {topic!r}: the stretch has more than {limit}; take a shorter one with --to")


def _write_line(left: LeftRecords, value: bytes, out: BinaryIO, found: _Read) -> None:
    """A record as a line. Parts are noted: a cluster of which some are missing is cut by the stretch."""
    try:
        line = left.line(value) + b"\n"
    except DataError:
        found.unread = True  # what cannot be read is filed by its hash, and nothing is claimed about it
        return
    if b'"parts"' in line and left.clusters:
        message = _message(line)
        parts = message.get("parts")
        if isinstance(parts, int):
            known = found.parts.setdefault(str(message.get("cluster")), [parts])
            known[0] -= 1
            known.append(found.records)
    out.write(line)


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        message = None
    return message if isinstance(message, dict) else {}


def _audited(policy: Policy, lines: Path, found: _Read, progress: Progress) -> dict[str, Any]:
    """What an audit of the lines finds, without clusters that the stretch cuts through."""
    if found.unread:
        return {"holds": False, "outcome": "not shown", "unread": True, "cut": 0}
    cut = [records for missing, *records in found.parts.values() if missing]
    if cut:
        left_out = {record for records in cut for record in records}
        whole = lines.with_name("whole.jsonl")
        with lines.open("rb") as given, whole.open("wb") as kept:
            kept.writelines(line for number, line in enumerate(given, start=1) if number not in left_out)
        lines = whole
    return {**audited(policy, lines, {}, progress), "cut": len(cut)}


def verify_stretch(
    evidence: Mapping[str, Any],
    path: Path,
    given: Given,
    client: Client | None,
    *,
    registry: Registry | None = None,
    progress: Progress = silent,
) -> Iterator[Check]:
    """Everything that can be done again: its form, its records as they are now, and all stretches before it."""
    yield from verify_form(evidence, given)
    yield from _topic(evidence, path.name, given.policy, client, registry, progress)
    yield from _chain(evidence, path, given)


def _topic(
    evidence: Mapping[str, Any],
    name: str,
    policy: Policy | None,
    client: Client | None,
    registry: Registry | None,
    progress: Progress,
) -> Iterator[Check]:
    parts, about = evidence["parts"], "the records of the topic"
    ranges = ranges_of(parts["stretch"], name)
    if client is None or policy is None:
        yield Check(about, "not checked", "it takes the policy and a broker: --policy, --bootstrap")
        return
    topic = output_of(policy)
    reach(client.servers, _REACH_SECONDS)
    with closing(client.admin()) as admin:
        described = admin.describe_topic(topic)
    yield same(
        "which topic",
        (parts["stretch"].get("topic"), parts["stretch"].get("topic_id")),
        (topic, str(described.topic_id)),
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        reader = stack.enter_context(closing(client.reader()))
        for number, (start, end) in ranges.items():
            known = number < described.partitions
            low, high = reader.watermarks(Partition(topic, number)) if known else (0, 0)
            if start < low and start < end:
                yield Check(about, "not checked", "some of them are gone from the topic by now")
                return
            if end > high:
                yield Check(about, "differs", "the topic is shorter than what was filed")
                return
        lines = folder / "left.jsonl"
        found = _read(reader, topic, ranges, Bounds(), policy.route(registry), lines, progress)
        yield same(about, parts["published"].get("sha256"), found.hashes)
        counted = parts["stretch"]["records"], parts["stretch"]["first_ms"], parts["stretch"]["last_ms"]
        yield same(
            "how many records there are, and when they were published",
            counted,
            (found.records, found.first, found.last),
        )
        yield from same_audit(parts["audited"], _audited(policy, lines, found, progress))


def _chain(evidence: Mapping[str, Any], path: Path, given: Given) -> Iterator[Check]:
    """Each stretch before, beside the file: it is the one that is named, and ended where the next one began."""
    for _ in range(MOST_BEFORE):
        before = evidence["parts"]["before"]
        if not before:
            yield Check("the beginning of the chain", "holds", f"{path.name} names none before it")
            return
        name = before.get("file")
        if not isinstance(name, str) or Path(name).name != name:
            yield Check("the evidence before", "differs", f"{path.name} does not say which it is")
            return
        about = f"before it: {name}"
        earlier_path = path.with_name(name)
        if not earlier_path.is_file():
            yield Check(about, "not checked", "it is not beside the evidence")
            return
        earlier = read(earlier_path)
        wrong = _not_before(earlier, earlier_path.name, evidence, path.name, given)
        yield Check(about, "differs" if wrong else "holds", wrong)
        if wrong:
            return
        evidence, path = earlier, earlier_path
    yield Check("the beginning of the chain", "not checked", f"there are more than {MOST_BEFORE:,} stretches")


def _not_before(
    earlier: Mapping[str, Any], earlier_name: str, later: Mapping[str, Any], later_name: str, given: Given
) -> str:
    """Why one stretch is not the one before another; nothing where it is."""
    own = sealed(earlier["parts"])["hash"]
    if own != later["parts"]["before"].get("hash") or own != earlier.get("hash"):
        return "it is not the one that is named: its hash is another"
    if kind_of(earlier) != "topic":
        return "it is not about a topic"
    one, two = earlier["parts"]["stretch"], later["parts"]["stretch"]
    if (one.get("topic"), one.get("topic_id")) != (two.get("topic"), two.get("topic_id")):
        return "it is about another topic"
    ended, began = ranges_of(one, earlier_name), ranges_of(two, later_name)
    if (
        any(end != began.get(number, (end, end))[0] for number, (_, end) in ended.items())
        or not ended.keys() <= began.keys()
    ):
        return "it does not end where the next one begins"
    if given.signer is not None and not is_signed(earlier, given.signer):
        return "it is not signed by this key"
    return ""

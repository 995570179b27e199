"""The same bytes through a worker, a replay and a check of the policy: taken or refused alike, for the same field and
reason, and released as the same bytes."""

import io
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.codec import read_events
from service.kafka import Partition
from service.kinds.records.table_check import check_table
from service.policy import parse_policy
from service.replay import Replay
from service.worker.loop import Worker
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.stream import stream_of
from tests.service.worker.paper_kafka import Paper

POLICY = """\
name: odd
schema:
  person: who
  quasi:
    age: {type: number, min: 0, max: 1000, integer: true}
    weight: {type: number, min: -10, max: 10}
    home.city: {type: category, hierarchy: {World: [a, b, "7", "1", "true"]}}
  sensitive:
    item: {type: category, hierarchy: {Any: [x, y, "5"]}}
    debt: {type: number, min: 0, max: 100, step: 0.5}
  public: [number, trace, home.street]
guarantee: {algorithm: castle, k: 1, delay: {tuples: 1}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead, emit: EMIT}
"""
GOOD = {"who": "p", "age": 5, "weight": 1.5, "item": "x", "debt": 2.5, "trace": 1}
HOME = {"city": "a", "street": 3}
VALUES = [
    *("null", "true", "false", "0", "-0", "-0.0", "5", "7", "7.0", "1.0", "2.5", "-1", "1e2", "1E+2", "1e-2", "1e400"),
    *("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1_000", "5 5", "", "nul", "True", "undefined"),
    *(str(2**53 + 1), str(2**63 - 1), str(2**63), str(2**64), str(-(2**63) - 1), str(2**70), "1" * 400, "9" * 5000),
    *("0.1", "0.30000000000000004", "4.9e-324", "1.7976931348623157e308", "100.000000000000001"),
    *('""', '"a"', '"b"', '"x"', '"7"', '"5"', '"7.0"', '"true"', '" a"', '"a "', '"A"', '"null"', '"NaN"', '"1e2"'),
    *(
        r'"\u0061"',
        r'"\ud800"',
        r'"\udc00\ud800"',
        r'"\ud83d\ude00"',
        r'"\u0000"',
        r'"\n\t\"\\\/"',
        r'"\x41"',
        r'"\u00"',
    ),
    *('"😀"', '"ä"', '"a\u0308"', '"\u2028"', '"\x7f"', '"\x01"', '"a', "'a'", '"' + "z" * 1000 + '"'),
    *(
        "[]",
        "[1]",
        '["a"]',
        "{}",
        '{"city":"a"}',
        '{"city":7}',
        '{"city":[]}',
        '{"city":null}',
        '{"city":"a","city":"b"}',
    ),
    *(
        '{"city":"b","street":{"deep":[1,{"x":null}]}}',
        '{"city":"a","street":"\\u00e4"}',
        '{"street":1}',
        '{"city":1.0}',
    ),
    *("[" * 50 + "]" * 50, "[" * 2000 + "]" * 2000, '{"a":' * 300 + "1" + "}" * 300, "[1,]", '{"a":1,}', "/* */ 1"),
]
BYTES = [b'"\xff"', b'"\xc3\x28"', b'"\xed\xa0\x80"', b'"\xf0\x9f\x98\x80"', b"\xef\xbb\xbf5", b'"\x00"']
FIELDS = ["who", "age", "weight", "home", "item", "debt", "trace", "other", "number"]


def record(number: Any, field: Any = None, text: bytes = b"", *, before: bytes = b"") -> Any:
    """A good record but for one field, which holds this very text and comes last."""
    fields = {"number": number, **GOOD, "home": HOME}
    fields.pop(field, None)
    more = b"" if field is None else b', "%b": %b' % (field.encode(), text)
    return before + json.dumps(fields)[:-1].encode() + more + b"}"


def whole_records() -> Iterator[Any]:
    """Records that are odd as such."""
    good = record(0)
    yield from (good, b" " + good + b"\t", b"\xef\xbb\xbf" + good, good + good, good + b",", good[:-1], good[1:], b"{}")
    yield from (b"null", b"[]", b"[" + good + b"]", b"7", b'"text"', b"true", b"{", b"}", b"{]", b"\x00", b"\xff\xfe")
    yield from (
        good.replace(b'"who"', key) for key in (b'"wh\\u006f"', b'"Who"', b"who", b"'who'", b'"who "', b'"\\who"')
    )
    yield from (json.dumps({**GOOD, "home.city": "a", "number": 1}).encode(), json.dumps(GOOD | HOME).encode())
    yield json.dumps({**GOOD, "home": HOME, "home.city": "b", "home.street": 9, "number": 2}).encode()
    yield from (record(3, field, b"1")[:-1] + b', "%b": 2}' % field.encode() for field in FIELDS)
    yield from (json.dumps({k: v for k, v in (GOOD | {"home": HOME}).items() if k != name}).encode() for name in FIELDS)
    yield record(4, "other", b'"' + b"x" * 300_000 + b'"')
    yield record(5, "trace", b'"' + b"x" * 261_000 + b'"')


def payloads() -> Any:
    texts = [*(text.encode(errors="surrogatepass") for text in VALUES), *BYTES]
    odd = [record(number, field, text) for number, text in enumerate(texts) for field in FIELDS]
    inside = [record(number, "home", b'{"city": %b, "street": %b}' % (text, text)) for number, text in enumerate(texts)]
    every = [*whole_records(), *odd, *inside]
    # A line ends where a line ends: a record with such a byte in it cannot stand in a file of lines.
    return [one for one in every if b"\n" not in one and one.strip()]


def worked(policy: Any, values: Any) -> Any:
    """What a worker lets out and what it refuses."""
    paper = Paper(1)
    stream = stream_of(policy, options := WorkerSettings(on_stop="flush"))
    worker = Worker(stream, paper, options, Metrics(stream), clock=lambda: 1000.0)
    assert worker.open(threading.Event())
    worker._owned.join()
    paper.assign(0)
    paper.logs[Partition("raw", 0)] += [(None, value) for value in values]
    once = threading.Event()
    once.set()
    try:
        for _ in range(4):
            worker._cycle(once)
        worker._finish()
    finally:
        worker.close()
    letters = [json.loads(value) for _, value in paper.logs[Partition("dead", 0)]]
    out = [value for n in range(2) for _, value in paper.logs[Partition("safe", n)]]
    return out, [(letter["offset"], letter["field"], letter["reason"]) for letter in letters]


def rehearsed(policy: Any, values: Any, folder: Any) -> Any:
    """What a replay of the same records lets out and refuses."""
    path = folder / "events.jsonl"
    path.write_bytes(b"\n".join(values) + b"\n")
    out, parts = io.BytesIO(), list(read_events(path, policy.schema))
    Replay(policy).run(parts, out)
    refused = [(one.offset, one.field, one.reason.code) for part in parts for one in part.refused]
    return out.getvalue().splitlines(), refused


def without_chance(messages: Any) -> Any:
    """Each message but for its random id and the random order of its rows, and how often."""
    return Counter(
        (re.sub(r'"cluster":"[0-9a-f]{16}"', "", head), tuple(sorted(rows))) for head, rows in map(parts_of, messages)
    )


def parts_of(message: Any) -> Any:
    """What stands before the rows of a message, and the very text of each row."""
    head, begin, rest = message.decode().partition('"rows":[')
    if not begin:
        return "", [head]
    rows, at, scan = [], 0, json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
    while rest[at] != "]":
        end = scan(rest, at)[1]
        rows.append(rest[at:end])
        at = end + (rest[end] == ",")
    return head, rows


@pytest.mark.parametrize("emit", ["clusters", "tuples"])
def test_the_same_bytes_mean_the_same_to_both(emit: str, tmp_path: Path) -> None:
    policy, values = parse_policy(POLICY.replace("EMIT", emit)), payloads()
    assert len(values) > 700
    published, letters = worked(policy, values)
    replayed, refused = rehearsed(policy, values, tmp_path)
    assert refused == letters
    assert without_chance(replayed) == without_chance(published)
    rows = sum(len(parts_of(message)[1]) for message in published)
    assert rows + len(letters) == len(values)
    assert min(rows, len(letters)) > 100, "some are taken and some refused"
    assert len({(field, reason) for _, field, reason in letters}) > 15


def test_a_check_of_the_policy_refuses_the_same(tmp_path: Path) -> None:
    policy, values = parse_policy(POLICY.replace("EMIT", "clusters")), payloads()
    _, refused = rehearsed(policy, values, tmp_path)
    found = check_table(policy, tmp_path / "events.jsonl")
    assert found.rows == len(values) - len(refused)
    counts = {(field, reason.code): rows for (field, reason), rows in found.refusals.counts().items()}
    assert counts == Counter((field, reason) for _, field, reason in refused)
    rows = [place for place, _, _ in refused]
    assert found.refusals.rows.tolist() == rows


TEXTS = st.sampled_from([*(text.encode(errors="surrogatepass") for text in VALUES), *BYTES])
RECORDS = st.builds(record, st.integers(0, 9), st.sampled_from(FIELDS), TEXTS)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(RECORDS, min_size=1, max_size=12))
def test_in_any_company(values: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    policy = parse_policy(POLICY.replace("EMIT", "tuples"))
    values = [record(0), *values]
    published, letters = worked(policy, values)
    replayed, refused = rehearsed(policy, values, tmp_path_factory.mktemp("lines"))
    assert refused == letters
    assert without_chance(replayed) == without_chance(published)

"""No policy, however strange, is answered with anything but a policy or a list of problems."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from service.policy import Policy, PolicyError, parse_policy
from tests.service.policy.test_policy import POLICY

GUARANTEES = [
    {"k": 5, "l": {"entropy": 2}, "max_share": 0.5},
    {"algorithm": "mondrian", "k": 5, "t": {"threshold": 0.2, "ground": "equal"}},
    {"algorithm": "sabre", "k": 5, "t": 0.2},
    {"algorithm": "burel", "k": 5, "beta": 1},
    {"algorithm": "castle", "k": 5, "l": 2, "delay": {"tuples": 50, "seconds": 5}},
]
BASES = [{**POLICY, "guarantee": guarantee, "table": {"on_refused": "drop"}} for guarantee in GUARANTEES]
BASES[-1]["stream"] = {"input": "a", "output": "b", "start": "latest", "dead_letters": "c"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(node: Any) -> Iterator[Any]:
    """Every (container, key) of a nested value."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        yield node, key
        if isinstance(child, dict | list):
            yield from places(child)


def outcome(source: Any) -> Any:
    try:
        return parse_policy(source)
    except PolicyError as error:
        return error


@settings(max_examples=200)
@given(st.sampled_from(BASES), st.data())
def test_any_change_is_a_policy_or_a_list_of_problems(base: Any, data: Any) -> None:
    policy = copy.deepcopy(base)
    for _ in range(data.draw(st.integers(1, 2))):
        container, key = data.draw(st.sampled_from(list(places(policy))))
        container[key] = data.draw(json_values)
    for source in (policy, json.dumps(policy)):
        result = outcome(source)
        if isinstance(result, Policy):
            assert result.models()
            assert len(result.fingerprint()) == 64
        else:
            assert result.problems
            assert all(problem.reason for problem in result.problems)

import doctest

import pyarrow as pa
import pytest
import yaml

from microdata import Sample
from service.policy.data import TopicFacts
from service.proposal import propose, schema_tags


def test_documentation() -> None:
    assert doctest.testmod(schema_tags).failed == 0


@pytest.fixture
def sample() -> Sample:
    rows = range(60)
    columns = {
        "customer_id": [f"c{row % 30:05}" for row in rows],
        "age": [20 + row % 40 for row in rows],
        "size": ["ABC"[row % 3] for row in rows],
        "nick": [["ann", "bob", "cyd", "dan"][row % 4] for row in rows],
    }
    return Sample(pa.table(columns))


def test_what_a_schema_says_goes_before_a_guess(sample: Sample) -> None:
    tags = {"size": ["SENSITIVE"], "nick": ["PII", "direct-identifier"], "age": ["PII"], "customer_id": ["owner"]}
    made = propose(sample, "orders", TopicFacts("orders", tags=tags))
    roles = {guess.name: (guess.role, guess.reason) for guess in made.guesses}
    assert roles["size"][0] == "sensitive"
    assert roles["size"][1].startswith("its schema tags it SENSITIVE; ")
    assert roles["nick"] == ("left out", "its schema tags it direct-identifier")
    assert roles["age"][0] == "quasi"
    assert roles["age"][1].startswith("its schema tags it PII; ")
    assert roles["customer_id"][0] == "person"
    without = {guess.name: guess.role for guess in propose(sample, "orders", TopicFacts("orders")).guesses}
    assert (without["size"], without["nick"]) == ("quasi", "quasi")


def test_a_tag_cannot_write_into_the_policy(sample: Sample) -> None:
    evil = "PII\nguarantee: {algorithm: mondrian, k: 1}\n#" + "x" * 5_000
    made = propose(sample, "orders", TopicFacts("orders", tags={"age": [evil], "size": [f"secret {evil}"]}))
    policy = yaml.safe_load(made.text)
    assert policy["guarantee"]["algorithm"] == "castle"
    assert all(len(line) < 400 for line in made.text.splitlines())

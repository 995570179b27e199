"""A worker under a policy with categories of sensitivity: what leaves shows no category for certain."""

import json
from typing import Any

from service.kafka import Partition
from service.policy import parse_policy
from tests.service.worker.paper_kafka import Paper
from tests.service.worker.test_formats import one_cycle, worker_of

POLICY = """\
name: visits
schema:
  person: who
  quasi: {age: {type: number, min: 0, max: 99, integer: true}}
  sensitive:
    disease:
      type: category
      hierarchy: {Any: [HIV, Cancer, Asthma, Flu]}
      sensitivity: [[HIV, Cancer], [Asthma], [Flu]]
guarantee:
  {algorithm: castle, k: 2, p_categories: 2, max_category_share: {every: 0.5, of: first}, delay: {tuples: 20}}
stream: {input: raw, output: safe, start: earliest, dead_letters: dead}
"""
CATEGORY = {"HIV": 0, "Cancer": 0, "Asthma": 1, "Flu": 2}


def test_no_cluster_is_of_one_category() -> None:
    diseases = ["HIV", "Cancer", "Flu", "HIV", "Flu", "Asthma", "Cancer", "Flu"] * 5
    paper = Paper(1)
    worker = worker_of(parse_policy(POLICY), paper)
    records: list[dict[str, Any]] = [
        {"who": f"p{number}", "age": number * 7 % 90, "disease": disease} for number, disease in enumerate(diseases)
    ]
    paper.logs[Partition("raw", 0)] += [(None, json.dumps(record).encode()) for record in records]
    try:
        for _ in range(4):
            one_cycle(worker)
        worker._finish()
    finally:
        worker.close()
    clusters = [json.loads(value) for number in range(2) for _, value in paper.logs[Partition("safe", number)]]
    shown = [[CATEGORY[row["disease"]] for row in cluster["rows"]] for cluster in clusters]
    assert sum(map(len, shown)) > 30
    for categories in shown:
        assert len(set(categories)) >= 2
        assert categories.count(0) <= len(categories) / 2

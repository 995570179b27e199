"""Anonymize a table under a policy and write what may leave. Run from anywhere: python examples/anonymize_a_table.py"""

import sys
from pathlib import Path

from microdata import write_published
from service.kinds.records.tables import anonymize_table
from service.policy import load_policy

ADULT = Path(__file__).parent / "adult"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "adult-safe.csv")

policy = load_policy(ADULT / "policy.yaml")
result = anonymize_table(policy, ADULT / "people.csv")  # audited; raises if it does not hold what it promises
write_published(result.publication, out)  # rows shuffled, classes numbered at random

for finding in result.audit.findings:
    print(f"{finding.model}: asked {finding.asked:g}, achieved {finding.achieved:.4g}")
print(f"{result.audit.rows} rows in {result.audit.classes} classes, loss {result.audit.loss:.3f}, written to {out}")

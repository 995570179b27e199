"""The demo: customers who come back, whose orders are anonymized on one machine, and an audit of all that left.

| module   | holds                                                        |
|----------|--------------------------------------------------------------|
| `policy` | what is asked of the orders                                  |
| `writer` | batches of records, each written once                        |
| `world`  | broker, worker, console and producer, while they run         |
| `audit`  | what left against what was ordered, as a stranger checks it  |
"""

from service.demo.audit import DemoAudit
from service.demo.policy import POLICY, remembering
from service.demo.world import Demo
from service.demo.writer import Writer

__all__ = ["POLICY", "Demo", "DemoAudit", "Writer", "remembering"]

"""Runs in pyCANON's own environment: check a table as it is, tell what it achieves and the seconds of each check.

python run_pycanon.py TABLE.csv ASKED.json ANSWER.json
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd
from pycanon import anonymity

table, question, answer = map(Path, sys.argv[1:])
asked = json.loads(question.read_text())
rows = pd.read_csv(table)
quasi, sensitive = asked["quasi"], [asked["sensitive"]]
checks = {
    "k": lambda: anonymity.k_anonymity(rows, quasi),
    "t": lambda: anonymity.t_closeness(rows, quasi, sensitive),
    "beta": lambda: anonymity.basic_beta_likeness(rows, quasi, sensitive),
}
started = time.perf_counter()
achieved = float(checks[asked["check"]]())
seconds = time.perf_counter() - started
answer.write_text(json.dumps({"seconds": seconds, "achieved": achieved}))

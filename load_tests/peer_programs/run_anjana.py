"""Runs in anjana's own environment: anonymize a table, tell the class of each row and the seconds it took.

python run_anjana.py TABLE.csv ASKED.json ANSWER.json
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd
from anjana import anonymity

table, question, answer = map(Path, sys.argv[1:])
asked = json.loads(question.read_text())
rows = pd.read_csv(table)
rows["row"] = range(len(rows))  # neither identifier nor quasi-identifier, so that rows are known again
quasi, sensitive = asked["quasi"], asked["sensitive"]
hierarchies = {}
for name, paths in asked["hierarchies"].items():
    leaves, *above = zip(*paths, strict=True)
    known = rows[name].dtype.type
    hierarchies[name] = dict(enumerate([[known(leaf) for leaf in leaves], *map(list, above)]))

started = time.perf_counter()
if "t" in asked:
    safe = anonymity.t_closeness(rows, [], quasi, sensitive, asked["k"], asked["t"], 0, hierarchies)
elif "beta" in asked:
    safe = anonymity.enhanced_beta_likeness(rows, [], quasi, sensitive, asked["k"], asked["beta"], 0, hierarchies)
else:
    safe = anonymity.k_anonymity(rows, [], quasi, asked["k"], 0, hierarchies)
seconds = time.perf_counter() - started

labels = [-1] * len(rows)
if len(safe):
    for row, number in zip(safe["row"], safe.groupby(quasi, sort=False).ngroup(), strict=True):
        labels[row] = int(number)
answer.write_text(json.dumps({"seconds": seconds, "classes": labels}))

"""Runs in anonypy's own environment: anonymize a table, tell the class of each row and the seconds it took.

python run_anonypy.py TABLE.csv ASKED.json ANSWER.json
"""

import json
import sys
import time
from pathlib import Path

import pandas as pd
from anonypy import Mondrian
from anonypy.anonypy import anonymize

table, question, answer = map(Path, sys.argv[1:])
asked = json.loads(question.read_text())
rows = pd.read_csv(table)
for name in asked["quasi"]:
    if rows[name].dtype == object:
        rows[name] = rows[name].astype("category")

started = time.perf_counter()
# What `Preserver` does, in two steps, so that the rows of each class can be told.
classes = Mondrian(rows, asked["quasi"], asked["sensitive"]).partition(asked["k"], 0, asked.get("t", 0.0))
anonymize(rows, classes, asked["quasi"], asked["sensitive"])
seconds = time.perf_counter() - started

labels = [-1] * len(rows)
for number, members in enumerate(classes):
    for row in members:
        labels[row] = number
answer.write_text(json.dumps({"seconds": seconds, "classes": labels}))

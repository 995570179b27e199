"""The library alone: a pandas frame in, a frame that may leave out. No policy file, no service."""

import pandas as pd

from microdata import Category, Hierarchy, Number, PersonSource, Schema, published_columns, table_from_frame
from privacy import KAnonymity, TCloseness, audit
from static_algos import STATIC_ALGORITHMS

frame = pd.DataFrame(
    {
        "age": [23, 25, 28, 31, 34, 38, 41, 45, 52, 56, 61, 67],
        "city": ["Oslo", "Rome", "Bari", "Umea"] * 3,
        "illness": ["flu", "ulcer", "asthma"] * 4,
    }
)
cities = Hierarchy.from_mapping({"Europe": {"North": ["Oslo", "Umea"], "South": ["Rome", "Bari"]}})
schema = Schema(
    person=PersonSource.ROW,
    quasi=(Number("age", 0, 120, integer=True), Category("city", cities)),
    sensitive=(Category("illness", Hierarchy.flat(["flu", "ulcer", "asthma"])),),
)

table = table_from_frame(frame, schema).table
sabre = STATIC_ALGORITHMS["sabre"].algorithm(k=3, t=0.3)
publication = sabre.anonymize(table)
assert audit(table, publication, (KAnonymity(3), TCloseness(0.3))).holds
print(published_columns(publication).to_pandas().to_string(index=False))

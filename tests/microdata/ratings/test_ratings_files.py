"""Ratings from files and back: what is missing stays missing, what is wrong is refused by field and reason."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microdata import DataError, SchemaError, seeded_words
from microdata.ratings import Ratings, RatingSchema, Scale, Sparse, read_ratings, write_ratings

LONG = RatingSchema("who", Scale(1, 5), item="what", rating="stars", sensitive=("secret*",))
WIDE = RatingSchema("who", Scale(0.5, 5, 0.5), "wide", items=("q*",), sensitive=("secret",))
CSV = "who,what,stars,when\nann,q1,5,x\nann,secret1,1,x\nbob,q1,,x\nbob,q2,3,x\n"


def rows(ratings: Ratings) -> Counter[tuple[Any, ...]]:
    """Everybody's ratings, without the persons."""
    made = Counter[tuple[Any, ...]]()
    for person in range(len(ratings)):
        own = []
        for part in (ratings.open, ratings.sensitive):
            place = slice(part.starts[person], part.starts[person + 1])
            values = ratings.scale.values(part.values[place]).tolist()
            own += [(ratings.names[item], value) for item, value in zip(part.items[place], values, strict=True)]
        made[tuple(sorted(own))] += 1
    return made


def written(tmp_path: Path, text: str, name: str = "ratings.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_long_table(tmp_path: Path) -> None:
    reading = read_ratings(written(tmp_path, CSV), LONG)
    assert rows(reading.ratings) == {(("q1", 5), ("secret1", 1)): 1, (("q2", 3),): 1}
    assert reading.ratings.names == ("q1", "q2", "secret1")
    assert (len(reading.ratings.open.values), len(reading.ratings.sensitive.values)) == (2, 1)
    assert reading.unrated == 1, "a row without a rating is no rating"
    lines = '{"who": 1, "what": "q1", "stars": 5}\n{"who": 1, "what": 7, "stars": 4.0}\n{"who": 2, "what": "q1"}\n'
    assert rows(read_ratings(written(tmp_path, lines, "a.jsonl"), LONG).ratings) == {(("7", 4), ("q1", 5)): 1}


def test_a_wide_table(tmp_path: Path) -> None:
    reading = read_ratings(written(tmp_path, "who,q1,q2,age,secret\nann,5,,33,1\nbob,,,44,\ncat,0.5,2.5,55,4\n"), WIDE)
    assert rows(reading.ratings) == {(("q1", 5), ("secret", 1)): 1, (("q1", 0.5), ("q2", 2.5), ("secret", 4)): 1}
    assert reading.unrated == 1, "bob rated nothing"
    assert "age" not in reading.ratings.names, "what is not declared is not read"
    lines = '{"who": "ann", "q1": 5, "secret": "1"}\n{"who": "cat", "q1": 0.5, "q2": 2.5, "secret": null}\n'
    found = read_ratings(written(tmp_path, lines, "a.jsonl"), WIDE).ratings
    assert rows(found) == {(("q1", 5), ("secret", 1)): 1, (("q1", 0.5), ("q2", 2.5)): 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann,q9,6,", "stars: outside the declared domain in 1 row (5)"),
        ("ann,q9,Zq7mark,", "stars: not a number in 1 row (5)"),
        ("ann,q9,2.5,", "stars: not on the declared step in 1 row (5)"),
        ("ann,,2,", "what: missing value in 1 row (5)"),
        (",q9,2,", "who: missing value in 1 row (5)"),
        ("ann,q1,4,", "what: rated twice by one person in 2 rows (1, 5)"),
        ("ann,q9", "(record): another number of cells than the header in 1 row (5)"),
    ],
)
def test_what_is_wrong_in_a_long_table(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, f"{CSV}{line}\n")
    with pytest.raises(DataError) as refused:
        read_ratings(path, LONG)
    assert said in str(refused.value)
    assert "Zq7" not in str(refused.value)
    reading = read_ratings(path, LONG, on_refused="drop")
    assert said in reading.describe()
    twice = "twice" in said
    assert reading.ratings.count == 3 - twice, "nobody knows which of two ratings is true"


def test_an_item_that_nobody_declared(tmp_path: Path) -> None:
    schema = RatingSchema("who", Scale(1, 5), item="what", rating="stars", items=("q1",), sensitive=("secret*",))
    with pytest.raises(DataError, match=r"what: not one of the declared items in 1 row \(4\)"):
        read_ratings(written(tmp_path, CSV), schema)


def test_everything_may_not_be_sensitive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microdata.ratings.files.MOST_SENSITIVE", 2)
    schema = RatingSchema("who", Scale(1, 5), item="what", rating="stars", sensitive=("*",))
    with pytest.raises(DataError, match="at most 2 items may be sensitive"):
        read_ratings(written(tmp_path, CSV), schema)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dan,7,1,3,2", "q1: outside the declared domain in 1 row (2)"),
        (",5,1,3,2", "who: missing value in 1 row (2)"),
        ("ann,5,1,3,2", "who: in several rows in 2 rows (1, 2)"),
    ],
)
def test_what_is_wrong_in_a_wide_table(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, f"who,q1,q2,age,secret\nann,5,,33,1\n{line}\ncat,1,1,1,1\n")
    with pytest.raises(DataError) as refused:
        read_ratings(path, WIDE)
    assert said in str(refused.value)
    reading = read_ratings(path, WIDE, on_refused="drop")
    assert reading.ratings.count == (3 if "several" in said else 5), "a refused row is left out as a whole"


def test_a_json_line_that_is_no_object(tmp_path: Path) -> None:
    path = written(tmp_path, '{"who": "ann", "q1": 5}\n[1]\n{"who": "bob", "q1": true}\n', "a.jsonl")
    reading = read_ratings(path, WIDE, on_refused="drop")
    assert reading.describe() == "(record): not JSON in 1 row (2)\nq1: not a number in 1 row (3)"


def test_files_without_ratings(tmp_path: Path) -> None:
    for text, schema in (("who,what,stars\n", LONG), ("who,what,stars\nann,q1,\n", LONG), ("who,q1\nann,\n", WIDE)):
        with pytest.raises(DataError, match=r"ratings.csv: "):
            read_ratings(written(tmp_path, text), schema)
    with pytest.raises(DataError, match="stars: is missing"):
        read_ratings(written(tmp_path, "who,what\nann,q1\n"), LONG)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"scale": (5, 1)}, "min must be below max"),
        ({"scale": (1, 5, 0)}, "step must be a positive number"),
        ({"scale": (1, 5, 3)}, "whole number of steps"),
        ({"scale": (1, 5000)}, "2 to 1000 values"),
        ({"layout": "wide"}, "needs the names or patterns"),
        ({"layout": "wide", "items": ("w*",)}, "must not be an item"),
        ({"item": "who"}, "three fields"),
        ({"items": tuple(f"q{number}*" for number in range(101))}, "at most 100 patterns"),
    ],
)
def test_schemas_that_contradict_themselves(given_: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        RatingSchema("who", Scale(*given_.pop("scale", (1, 5))), **given_)


@settings(max_examples=15)
@given(data=st.data(), ending=st.sampled_from(["csv", "jsonl", "parquet", "csv.gz"]), wide=st.booleans())
def test_what_is_written_reads_the_same(tmp_path_factory: Any, data: Any, ending: str, wide: bool) -> None:
    names = ["=q1+2", "q 2", "q,3"] if not wide else ["q1", "q2", "q3"]
    scale = data.draw(st.sampled_from([Scale(1, 5), Scale(0.5, 5, 0.5), Scale(-2, 2)]))
    layout: Any = "wide" if wide else "long"
    schema = RatingSchema("who", scale, layout, items=("q*", "=q*"), sensitive=(names[2],))
    cells = data.draw(st.lists(st.lists(st.integers(0, scale.size), min_size=3, max_size=3), min_size=1, max_size=6))
    dense = np.array([row for row in cells if any(row)] or [[1, 0, 0]])
    at, items = np.nonzero(dense)
    order = sorted(range(3), key=names.__getitem__)
    rank = np.argsort(order)
    sort = np.lexsort((rank[items], at))
    ratings = Ratings.of(
        schema, sorted(names), np.arange(len(dense)), at[sort], rank[items][sort], dense[at, items][sort]
    )
    path = tmp_path_factory.mktemp("files") / f"out.{ending}"
    write_ratings(ratings, path, formulas="escape")
    assert rows(read_ratings(path, schema, formulas="escape").ratings) == rows(ratings)
    if ending == "csv" and not wide:
        assert "\n=" not in path.read_text().replace(",=", "\n=")


def test_persons_leave_under_random_numbers_in_random_order(tmp_path: Path) -> None:
    text = "who,what,stars\n" + "".join(f"person{number},q{number},{1 + number % 5}\n" for number in range(50))
    ratings = read_ratings(written(tmp_path, text), LONG).ratings
    texts = []
    for words in (None, None, seeded_words(1), seeded_words(1)):
        out = tmp_path / "out.csv"
        chosen: Any = {} if words is None else {"words": words}
        write_ratings(ratings, out, **chosen)
        texts.append(out.read_text())
        lines = texts[-1].splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == [str(number) for number in range(1, 51)]
        assert "person" not in texts[-1]
    assert texts[0] != texts[1]
    assert texts[2] == texts[3]


def test_rows_are_taken_in_any_order() -> None:
    sparse = Sparse.of(np.array([0, 0, 2]), np.array([1, 4, 0], np.int32), np.array([5, 1, 2], np.int16), 3)
    taken = sparse.take(np.array([2, 0, 1, 0]))
    assert taken.rated.tolist() == [1, 2, 0, 2]
    assert taken.items.tolist() == [0, 1, 4, 1, 4]
    assert taken.dense(np.array([4, 0]), 5).tolist() == [[0, 2], [1, 0], [0, 0], [1, 0]]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
@pytest.mark.parametrize(
    ("schema", "text"), [(LONG, CSV), (WIDE, "who,q1,q2,secret\nann,5,,1\n")], ids=["long", "wide"]
)
def test_a_file_in_which_nobody_is_published(tmp_path: Path, schema: RatingSchema, text: str, name: str) -> None:
    """Where all persons are suppressed there is still a file, with the names of its columns if it has any."""
    nobody = read_ratings(written(tmp_path, text), schema).ratings.take(np.empty(0, np.int64))
    write_ratings(nobody, tmp_path / name)
    with pytest.raises(DataError, match=r"no (rows|ratings)|empty"):
        read_ratings(tmp_path / name, schema)

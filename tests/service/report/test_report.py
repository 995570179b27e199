import doctest
import json
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microdata import Category, Hierarchy, Number, PersonSource, Publication, Schema, Table
from privacy import Groups, KAnonymity, TCloseness
from service.report import Asked, Rejected, Rejection, TableReport, figures, measure, report_html, table_report
from static_algos import Incognito, Mondrian
from tests.worlds import CITIES, DEBT, ILLNESS, QUASI, random_table

ASKED = Asked(algorithm="mondrian", parameters={"k": 3, "t": {"threshold": 0.3}, "l": None})


def made(publication: Any, *models: Any, **given: Any) -> Any:
    return table_report(publication, models or (KAnonymity(3),), **{"asked": ASKED, "seconds": 1.23456, **given})


def anonymized(rows: int = 200, **given: Any) -> Any:
    return Mondrian(**{"k": 3, **given}).anonymize(random_table(rows, 1, QUASI[:4], (ILLNESS, DEBT), persons=rows // 2))


def of_rows(ages: Any, held: Any, classes: Any) -> Any:
    schema = Schema(PersonSource.ROW, (Number("age", 0, 100),), (ILLNESS,))
    quasi, values = np.array(ages, float)[:, None], np.array(held, np.int32)[:, None]
    return Publication.of(Table(schema, np.arange(len(ages)), quasi, values), np.array(classes))


def test_every_number_is_the_one_counted_by_hand() -> None:
    publication = of_rows([0, 10, 20, 30, 40, 50], [0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, -1])
    report = made(publication, KAnonymity(2), TCloseness(0.9))
    assert report.holds
    assert report.seconds == 1.235
    assert (report.rows.given, report.rows.published, report.rows.suppressed) == (6, 5, 1)
    assert report.rows.suppressed_share == pytest.approx(1 / 6)
    assert (report.results[0].model, report.results[0].achieved) == ("k-anonymity", 2)
    assert report.loss.attributes[0].loss == report.loss.mean == pytest.approx((2 * 0.1 + 3 * 0.2) / 5)
    assert report.loss.weighted_discernibility == pytest.approx((4 * 0.1 + 9 * 0.2 + 6) / 36)
    age = report.loss.attributes[0]
    # Taken for 5, 5, 30, 30, 30: squares of 250 in 1,000, and two rows are wrong by one rank of five.
    assert (age.normalized_error, age.rank_error) == (pytest.approx(0.25), pytest.approx(2 / 25))
    assert (age.lm, age.unsuppressed) == (pytest.approx(0.16), 1)
    assert (report.sizes.classes, report.sizes.smallest, report.sizes.largest) == (2, 2, 3)
    assert report.sizes.largest_person_share == 0.5
    # Ages of 100 have widths of 12.5, 25 and 50 below the whole domain: 10 is on the first level, 20 on the second.
    assert report.utility.distortion == pytest.approx((2 * 1 + 3 * 2 + 1 * 4) / (6 * 4))
    assert (report.utility.discernibility, report.utility.average_to_k) == (2 * 2 + 3 * 3 + 6, 2.5 / 2)
    assert "classes are 1.25 times k on average; discernibility 19" in report_html(report)
    assert made(publication, TCloseness(0.9)).utility.average_to_k is None
    assert [(one.first, one.last, one.classes, one.rows) for one in report.sizes.bins] == [(2, 2, 1, 2), (3, 3, 1, 3)]
    assert report.risk.before.highest == 1
    assert (report.risk.after.highest, report.risk.after.average) == (0.5, pytest.approx(2 / 5))
    measured = {one.model: one for one in report.measured}
    assert measured["k-anonymity"].worst == 2
    assert measured["k-anonymity"].typical == 3
    assert measured["distinct-l-diversity of illness"].worst == 1
    # All of the first class has flu, which a third of the table has.
    assert measured["beta-likeness of illness"].worst == pytest.approx(2)
    flu = report.sensitive[0].values[0]
    assert (flu.label, flu.table) == ("flu", pytest.approx(1 / 3))
    assert report.sensitive[0].rows == 2
    assert flu.worst == 1


def test_it_is_plain_data() -> None:
    rejected = Rejected.of(3, 203, [Rejection(field="age", reason="out_of_domain", rows=3)], 0.01)
    report = made(anonymized(), name="orders", rejected=rejected)
    text = report.model_dump_json()
    assert TableReport.model_validate_json(text) == report
    assert "NaN" not in text
    assert "Infinity" not in text
    rows = json.loads(text)["rows"]
    assert rows["rejected"]["reasons"] == [{"field": "age", "reason": "out_of_domain", "rows": 3}]
    assert rows["given"] == rows["published"] + rows["suppressed"] + rows["rejected"]["rows"] == 203


def test_no_quasi_identifier_and_no_person_is_in_it() -> None:
    schema = Schema("person", (Category("city", CITIES), Number("age", 0, 99_999)), (ILLNESS,))
    random = np.random.default_rng(3)
    quasi = np.stack([random.integers(0, CITIES.size, 60), np.repeat([41_234.5, 71_234.5], 30)], axis=1)
    table = Table(schema, 987_654_000 + np.arange(60) // 2, quasi, random.integers(0, 5, (60, 1)).astype(np.int32))
    report = made(Mondrian(k=3).anonymize(table))
    for text in (report.model_dump_json(), report_html(report)):
        assert not any(label in text for label in CITIES.labels)
        assert "1234" not in text
        assert "1,234" not in text
        assert "98765" not in text


def test_a_broken_guarantee_is_said() -> None:
    table = random_table(50, 2, QUASI[:2], (ILLNESS,))
    report = made(Publication.of(table, np.arange(50)), KAnonymity(3), TCloseness(0.2))
    assert not report.holds
    assert [one.failing for one in report.results] == [50, 50]
    page = report_html(report)
    assert "does not hold" in page
    assert "✗" in page


def test_closeness_and_likeness_are_measured_whatever_was_asked() -> None:
    report = made(anonymized())
    names = [one.model for one in report.measured]
    for attribute in ("illness", "debt"):
        assert f"t-closeness of {attribute}" in names
        assert f"beta-likeness of {attribute}" in names


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=200))
def test_bins_hold_every_class_once(sizes: Any) -> None:
    rows = np.array(sizes)
    bins = measure._bins(rows)
    assert len(bins) <= measure.MOST_BINS
    assert sum(one.classes for one in bins) == len(rows)
    assert sum(one.rows for one in bins) == rows.sum()
    assert all(one.last + 1 == other.first for one, other in pairwise(bins))


@pytest.mark.parametrize(
    "attribute", [Category("many", Hierarchy.flat([f"v{one}" for one in range(90)])), Number("wide", 10, 509, step=0.5)]
)
def test_large_domains_are_drawn_together(attribute: Any) -> None:
    table = random_table(300, 4, QUASI[:1], (attribute,))
    values = made(Mondrian(k=3).anonymize(table)).sensitive[0].values
    assert len(values) <= measure.MOST_VALUES
    assert sum(one.table for one in values) == pytest.approx(1)
    assert sum(one.worst for one in values) == pytest.approx(1)


def test_small_number_domains_are_named_by_value() -> None:
    values = made(anonymized()).sensitive[1].values
    assert [one.label for one in values] == ["0", "1", "2", "3", "4", "5", "6"]


class Outline(HTMLParser):
    """What is in a page: open tags, and everything that could reach out of it."""

    def __init__(self, text: Any) -> None:
        super().__init__()
        self.open, self.seen, self.words = [], [], []  # type: ignore[var-annotated]
        self.feed(text)

    def handle_starttag(self, tag: Any, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: Any, attrs: Any) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: Any) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: Any) -> None:
        self.words.append(data)


@pytest.mark.parametrize(
    "publish",
    [
        anonymized,
        lambda: Incognito(k=3, suppression=0.1).anonymize(random_table(100, 5)),
        lambda: Mondrian(k=3).anonymize(random_table(100, 6, QUASI[:1], ())),
        lambda: Mondrian(k=3).anonymize(random_table(0, 7)),
        lambda: Publication.of(random_table(10, 8), np.full(10, -1)),
    ],
    ids=["two sensitive", "suppressed", "none sensitive", "empty", "all suppressed"],
)
def test_the_page_stands_alone(publish: Any) -> None:
    page = report_html(made(publish(), name="orders", repeatable=True))
    outline = Outline(page)
    assert outline.open == []
    assert not {tag for tag, _ in outline.seen} & {"script", "link", "img", "iframe", "object"}
    assert not any(name in attributes for _, attributes in outline.seen for name in ("src", "href", "onload", "style"))
    assert "http" not in page
    assert "url(" not in page
    assert "not for release" in page
    assert len(page) < 60_000
    assert "nan" not in " ".join(outline.words).lower().split()


def test_names_are_text_and_never_markup() -> None:
    evil = "<script>alert(1)</script>"
    tree = Hierarchy.flat([evil, "b"])
    schema = Schema(
        PersonSource.ROW, (Number(evil.replace(".", ""), 0, 9, integer=True),), (Category("x" + evil, tree),)
    )
    table = Table(schema, np.arange(4), np.arange(4.0)[:, None], np.zeros((4, 1), np.int32))
    given = Asked(algorithm=evil, parameters={evil: evil})
    publication = Mondrian(k=2).anonymize(table)
    rejected = Rejected.of(1, 5, [Rejection(field=evil, reason=evil, rows=1)], 0.01)
    page = report_html(made(publication, asked=given, name=evil, rejected=rejected))
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_parts_are_measured_alone_for_other_reports() -> None:
    groups = Groups.of(
        Schema(PersonSource.ROW, (QUASI[0],), (ILLNESS,)),
        np.arange(6),
        np.array([[0], [1], [2], [0], [0], [0]], np.int32),
        np.array([0, 0, 0, 1, 1, 1]),
        2,
    )
    assert measure.sizes_of(groups).classes == 2  # type: ignore[union-attr]
    assert measure.distributions(groups)[0].rows == 3


def test_documentation() -> None:
    assert doctest.testmod(figures).failed == 0


def test_a_report_without_a_sensitive_attribute_does_not_speak_of_one() -> None:
    report = made(Mondrian(k=3).anonymize(random_table(100, 6, QUASI[:1], ())))
    words = " ".join(Outline(report_html(report)).words).lower()
    assert report.queries.sensitive is False
    for word in ("a sensitive one", "closeness says", "likeness"):
        assert word not in words
    assert "and a sensitive one" in report_html(made(anonymized()))


def test_the_query_error_says_how_sure_it_is() -> None:
    report = made(anonymized())
    assert report.queries.queries > 5_000
    assert report.queries.low <= report.queries.median <= report.queries.high
    assert "The median error lies between" in report_html(report)


@given(st.integers(1, 400), st.integers(0, 100))
def test_the_interval_of_a_median_covers_it(count: int, seed: int) -> None:
    errors = np.random.default_rng(seed).random(count)
    low, high = measure.median_interval(errors)
    assert low <= np.median(errors) <= high  # type: ignore[operator]
    assert measure.median_interval(np.empty(0)) == (None, None)


def test_the_interval_of_a_median_holds_in_95_of_100_samples() -> None:
    samples = np.random.default_rng(1).random((400, 1000))
    inside = [low <= 0.5 <= high for low, high in map(measure.median_interval, samples)]  # type: ignore[operator]
    assert 0.92 < np.mean(inside) < 0.99

import doctest
from typing import Any

import pytest

from service.report import ReplayReport, TableReport, replay_html, report_html, verdict
from service.report.sections import AttributeLoss, CountsBeside, Exposed, Higher, Loss, Rejected, Rejection, Trial
from service.report.verdict import gain, replay_verdict, table_verdict, worst_attack
from tests.service.pages import text_without_isolation
from tests.service.report.test_report import anonymized, made


@pytest.fixture(scope="module")
def report() -> TableReport:
    whole: TableReport = made(anonymized(400), name="orders")
    return whole.model_copy(update={"attacks": [exposed("prosecutor", 0.1, 0.01)]})


def exposed(name: str, after: float, baseline: float, attribute: str | None = None) -> Exposed:
    return Exposed(attack=name, attribute=attribute, gets="something", before=1.0, after=after, baseline=baseline)


def lines(found: Any) -> dict[str, Any]:
    return {line.question: line for line in found.lines}


def test_documentation() -> None:
    assert doctest.testmod(verdict).failed == 0


def test_all_is_well(report: Any) -> None:
    found = table_verdict(report)
    assert (found.mark, found.says) == ("good", "Nothing here speaks against publishing")
    assert list(lines(found)) == ["Guarantee", "Worst attack", "Lost", "To change"]
    assert found.says in report_html(report)


def test_a_broken_guarantee_is_never_for_publishing(report: Any) -> None:
    broken = [one.model_copy(update={"holds": False, "failing": 3}) for one in report.results]
    found = table_verdict(report.model_copy(update={"holds": False, "results": broken}))
    assert (found.mark, found.says) == ("bad", "Do not publish this")
    assert "k-anonymity fails in 3 classes" in lines(found)["Guarantee"].answer
    # Also where every model holds and the file does not fit its table.
    assert table_verdict(report.model_copy(update={"holds": False})).mark == "bad"


def test_what_was_made_with_a_seed_is_not_for_release(report: Any) -> None:
    found = table_verdict(report.model_copy(update={"repeatable": True}))
    assert found.mark == "bad"
    assert "not for release" in found.says


def test_the_worst_attack_is_the_one_that_gains_most(report: Any) -> None:
    attacks = [
        exposed("inference", 0.9, 0.88, "illness"),
        exposed("homogeneity", 0.3, 0.0, "illness"),
        exposed("skewness", 1.0, 0.0, "illness"),
    ]
    worst = worst_attack(attacks)
    assert worst is attacks[1]
    assert gain(attacks[0]) == pytest.approx(0.02 / 0.12)
    found = table_verdict(report.model_copy(update={"attacks": attacks}))
    assert found.mark == "look"
    assert "homogeneity of illness: 30 %" in text_without_isolation(lines(found)["Worst attack"].answer)
    assert "ask for several values in each class" in lines(found)["To change"].answer
    assert worst_attack([]) is None


def test_an_attack_with_a_control_counts_where_it_is_sure(report: Any) -> None:
    rates = {"tried": 500, "before": 0.9, "after": 0.6, "low": 0.5, "high": 0.7, "control": 0.1, "baseline": 0.1}
    tried = Trial(attack="inference", attribute="illness", gets="x", risk=0.5, risk_low=0.4, risk_high=0.6, **rates)
    found = table_verdict(report.model_copy(update={"tried": [tried]}))
    assert (found.mark, lines(found)["With a control"].mark) == ("look", "look")
    unsure = tried.model_copy(update={"risk_low": 0.0})
    assert "With a control" not in lines(table_verdict(report.model_copy(update={"tried": [unsure]})))


def test_counts_that_tell_rows_are_worth_a_look(report: Any) -> None:
    shares = {"guessed_alone": 0.2, "guessed": 0.6, "certain_alone": 0.0}
    told = CountsBeside(attribute="illness", counts=[["age"]], rows=400, certain=0.3, **shares)
    found = table_verdict(report.model_copy(update={"beside": [told]}))
    assert lines(found)["Counts beside it"].mark == "look"
    assert "Publish those counts by fewer" in lines(found)["To change"].answer
    harmless = told.model_copy(update={"certain": 0.0})
    assert table_verdict(report.model_copy(update={"beside": [harmless]})).mark == "good"


def test_much_loss_or_suppression_is_worth_a_look(report: Any) -> None:
    lossy = report.model_copy(update={"loss": report.loss.model_copy(update={"mean": 0.6})})
    assert lines(table_verdict(lossy))["Lost"].mark == "look"
    rows = report.rows.model_copy(update={"suppressed": 60, "suppressed_share": 0.15})
    found = table_verdict(report.model_copy(update={"rows": rows}))
    assert lines(found)["Lost"].mark == "look"
    assert "Suppressed rows would stay" in lines(found)["To change"].answer


def column(name: str, higher: Higher | None, loss: float = 0.3) -> AttributeLoss:
    measured = {"entropy": 0.1, "lm": 0.1, "unsuppressed": 1, "normalized_error": None, "rank_error": None}
    return AttributeLoss(name=name, loss=loss, higher=higher, weight=0.5, **measured)


def test_the_column_that_lowers_the_risk_most_for_its_cost_is_named(report: Any) -> None:
    columns = [
        column("age", Higher(risk=0.02, cost=0.1)),
        column("postcode", Higher(risk=0.05, cost=0.02)),
        column("sex", Higher(risk=0.09, cost=0.001)),
        column("city", None, loss=0.95),
    ]
    loss = Loss(mean=0.3, risk=0.1, weighted_discernibility=0.1, attributes=columns)
    changed = text_without_isolation(lines(table_verdict(report.model_copy(update={"loss": loss})))["To change"].answer)
    assert "Generalizing postcode one level more would halve the risk and cost 0.02." in changed
    assert "city tells hardly anything any more" in changed
    assert "Generalizing <bdi>postcode</bdi>" in report_html(report.model_copy(update={"loss": loss}))


def test_reports_of_earlier_versions_have_one(report: Any) -> None:
    given = report.model_dump(mode="json")
    for name in ("attacks", "columns", "utility"):
        del given[name]
    del given["loss"]["risk"]
    for one in given["loss"]["attributes"]:
        del one["risk"], one["higher"]
    earlier = TableReport.model_validate(given)
    assert table_verdict(earlier).mark == "good"
    assert "Which column causes it" in report_html(earlier)


def with_rejected(report: TableReport, rows: int, warn_above: float = 0.01) -> TableReport:
    reasons = [
        Rejection(field="age", reason="out_of_domain", rows=rows // 4),
        Rejection(field="city", reason="unknown_category", rows=rows - 1),
        Rejection(field="city", reason="missing", rows=1),
    ]
    given = report.rows.given + rows
    rejected = Rejected.of(rows, given, reasons, warn_above)
    return report.model_copy(update={"rows": report.rows.model_copy(update={"given": given, "rejected": rejected})})


def test_rejected_rows_turn_it_amber_above_the_share_of_the_policy(report: Any) -> None:
    for rows, warn_above, mark in ((4, 0.01, "good"), (5, 0.01, "look"), (400, 0.5, "good"), (401, 0.5, "look")):
        assert table_verdict(with_rejected(report, rows, warn_above)).mark == mark
    assert table_verdict(with_rejected(report, 1, 0.0)).mark == "look"


def test_rejected_rows_are_told_with_the_columns_that_cost_them(report: Any) -> None:
    whole = with_rejected(report, 400)
    answer = text_without_isolation(lines(table_verdict(whole))["Rejected"].answer)
    assert answer == (
        "400 of 800 rows (50 %) were rejected and are not published; by field: city 400, age 100. "
        "The policy warns above 1 %."
    )
    assert "in the policy: city, age" in lines(table_verdict(whole))["To change"].answer
    page = report_html(whole)
    assert answer in text_without_isolation(page)
    assert "of 800" in page
    assert "no row is left out" not in page
    assert "no row is suppressed" in page
    assert "Rejected rows" in page


def test_rejected_events_turn_a_replay_amber() -> None:
    reasons = [{"field": "age", "reason": "out_of_domain", "rows": 50}]
    some = {"rows": 50, "share": 0.333, "warn_above": 0.01, "reasons": reasons}
    found = replay_verdict(replayed(events=150, rejected=some))
    assert found.mark == "look"
    assert lines(found)["Rejected"].answer.startswith("50 of 150 events (33.3 %) were rejected")
    page = replay_html(replayed(events=150, rejected=some))
    assert "of 150" in page
    assert "Rejected rows" in page


def replayed(**given: Any) -> ReplayReport:
    whole = {
        "name": "orders",
        "fingerprint": "f",
        "asked": {"algorithm": "castle", "parameters": {}},
        "holds": True,
        "repeatable": False,
        "seconds": 1.0,
        "events": 100,
        "rejected": {"rows": 0, "share": 0.0, "warn_above": 0.01, "reasons": []},
        "released": 100,
        "suppressed": 0,
        "suppressed_share": 0.0,
        "clusters": 9,
        "reused": 0,
        "guarantees": [],
        "largest_share": 0.1,
        "at_once": 0.0,
        "linked": None,
        "loss": 0.2,
        "workload_error": 0.1,
        "loss_over_time": [],
        "delays": None,
        "engine": {},
        **given,
    }
    return ReplayReport.model_validate(whole)


def test_streams_have_one_too() -> None:
    assert replay_verdict(replayed()).mark == "good"
    assert "Nothing here speaks against publishing" in replay_html(replayed())
    linked = {"persons": 50, "fewest": 1, "median": 9.0, "asked": 10, "below": 0.1, "identified": 0.02}
    found = replay_verdict(replayed(linked=linked))
    assert found.mark == "look"
    assert "cohorts" in lines(found)["To change"].answer
    timing = {"rows": 50, "seconds": 1, "fewest": 0, "median": 0.0, "asked": 10, "below": 0.9, "nobody": 0.5}
    found = replay_verdict(replayed(timing=timing))
    assert lines(found)["Timing"].mark == "look"
    assert "Let no row leave alone" in lines(found)["To change"].answer
    assert replay_verdict(replayed(timing={**timing, "nobody": 0.0})).mark == "good"
    found = replay_verdict(replayed(suppressed=20, suppressed_share=0.2, loss=0.7))
    assert lines(found)["Lost"].mark == "look"
    assert "longer delay" in lines(found)["To change"].answer
    assert replay_verdict(replayed(released=0, loss=None)).mark == "look"
    wide = {"name": "city", "loss": 0.95, "risk": 0.1, "parts": [{"width": 1, "before": 1, "after": 1}]}
    assert "none adds anything by itself" in replay_html(replayed(columns=[{**wide, "risk": 0.0}]))
    page = replay_html(replayed(columns=[wide]))
    assert "none adds anything by itself" not in page
    assert "<bdi>city</bdi> tells hardly anything any more" in page
    assert "Columns before and after" in page


def test_names_of_another_direction_are_isolated_and_markup_is_escaped(report: Any) -> None:
    """Between a name in Hebrew and a number nothing else keeps the digits in their order."""
    named = report.model_copy(update={"name": "a<script>"})
    attribute = report.loss.attributes[0].model_copy(update={"name": "גיל", "loss": 0.95})
    loss = report.loss.model_copy(update={"attributes": [attribute, *report.loss.attributes[1:]]})
    page = report_html(named.model_copy(update={"loss": loss}))
    assert "most in <bdi>גיל</bdi> (95 %)" in page
    assert "<bdi>גיל</bdi></th>" in page
    assert "Report: <bdi>a&lt;script&gt;</bdi></h1>" in page

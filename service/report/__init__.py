"""Reports: what was asked, what was achieved, what it cost. As data for JSON, and as one page with plots.

No quasi-identifier's value and no person is in them; sensitive values appear as distributions only.
"""

from service.report.columns import Spreads
from service.report.conditions import Condition, conditions, needs_control
from service.report.learnt import learnt_of
from service.report.measure import (
    determined_figures,
    distributions,
    exposed,
    loss_of,
    measures,
    rows_of,
    sizes_of,
    squared_loss,
    table_report,
)
from service.report.outside import beside, population_of, tried
from service.report.page import report_html
from service.report.replay_page import replay_html
from service.report.replay_sections import DelayBin, Delays, Point, ReplayReport
from service.report.sections import Asked, Rejected, Rejection, Result, TableReport
from service.report.stream_attacks import (
    Attacked,
    Linked,
    Timing,
    linked_of,
    linked_sentence,
    timing_of,
    timing_sentence,
)
from service.report.verdict import rejected_sentence

__all__ = [
    "Asked",
    "Attacked",
    "Condition",
    "DelayBin",
    "Delays",
    "Linked",
    "Point",
    "Rejected",
    "Rejection",
    "ReplayReport",
    "Result",
    "Spreads",
    "TableReport",
    "Timing",
    "beside",
    "conditions",
    "determined_figures",
    "distributions",
    "exposed",
    "learnt_of",
    "linked_of",
    "linked_sentence",
    "loss_of",
    "measures",
    "needs_control",
    "population_of",
    "rejected_sentence",
    "replay_html",
    "report_html",
    "rows_of",
    "sizes_of",
    "squared_loss",
    "table_report",
    "timing_of",
    "timing_sentence",
    "tried",
]

"""Reports: what was asked, what was achieved, what it cost. As data for JSON, and as one page with plots.

No quasi-identifier's value and no person is in them; sensitive values appear as distributions only.
"""

from service.report.measure import distributions, loss_of, measures, sizes_of, table_report
from service.report.page import report_html
from service.report.sections import Asked, Refused, TableReport

__all__ = [
    "Asked",
    "Refused",
    "TableReport",
    "distributions",
    "loss_of",
    "measures",
    "report_html",
    "sizes_of",
    "table_report",
]

// The result of an audit.

import { bullet } from "./charts.js";
import { h, table } from "./dom.js";
import { number, percent } from "./numbers.js";

const COUNTED = {
  exact: "distinct persons",
  "at least": "the fewest that the original allows: a published table does not show whose rows it has",
  rows: "rows, for want of persons",
};

export function auditView(report) {
  return h(
    "div",
    { className: "audit-result" },
    h(
      "p",
      { className: report.holds ? "verdict good" : "verdict bad" },
      report.holds ? "✓ The guarantee holds in every class." : "✗ The guarantee is not shown to hold.",
    ),
    table(
      "Findings",
      ["model", "", "achieved", "asked", "holds"],
      report.findings.map((finding) => [
        finding.model,
        bullet(finding),
        number(finding.achieved),
        `${finding.more_is_safer ? "at least" : "at most"} ${number(finding.asked)}`,
        finding.holds ? "✓ yes" : `✗ fails in ${number(finding.failing)} of ${number(report.classes)} classes`,
      ]),
    ),
    report.faults.map((fault) => h("p", { className: "problem" }, `${number(fault.count)} × ${fault.reason}`)),
    h(
      "div",
      { className: "tiles" },
      facts(report).map(([value, label, note]) =>
        h("div", { className: "tile" }, h("b", {}, value), h("span", {}, label), h("small", {}, note)),
      ),
    ),
  );
}

const facts = (report) => [
  [number(report.rows), "rows published", report.suppressed === null ? "" : `${number(report.suppressed)} suppressed`],
  [number(report.classes), "classes", ""],
  [percent(report.loss), "mean loss", ""],
  [
    number(report.fewest_persons),
    "persons in the smallest class",
    `counted as ${COUNTED[report.persons] ?? report.persons}`,
  ],
  [percent(report.largest_share), "largest share of a person", "of the rows of one class"],
];

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
        finding.holds ? "✓ yes" : `✗ fails${where(finding, report)}`,
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

const where = ({ failing }, { classes }) =>
  classes === undefined ? "" : ` in ${number(failing)} of ${number(classes)} classes`;

/** Numbers that have a sentence of their own. */
const TOLD = {
  rows: ({ rows, suppressed }) => [
    number(rows),
    "rows published",
    (suppressed ?? null) === null ? "" : `${number(suppressed)} suppressed`,
  ],
  classes: ({ classes }) => [number(classes), "classes", ""],
  loss: ({ loss }) => [percent(loss), "mean loss", ""],
  fewest_persons: ({ fewest_persons: fewest, persons }) => [
    number(fewest),
    "persons in the smallest class",
    `counted as ${COUNTED[persons] ?? persons}`,
  ],
  largest_share: ({ largest_share: share }) => [
    percent(share),
    "largest share of a person",
    "of the rows of one class",
  ],
};
const TOLD_ELSEWHERE = new Set(["suppressed"]);

/** What else an audit measures, whatever kind of data it is about: every other number under its own name. */
const facts = (report) => [
  ...Object.keys(TOLD)
    .filter((name) => name in report)
    .map((name) => TOLD[name](report)),
  ...Object.entries(report)
    .filter(([name, value]) => typeof value === "number" && !(name in TOLD) && !TOLD_ELSEWHERE.has(name))
    .map(([name, value]) => [number(value), name.replaceAll("_", " "), ""]),
];

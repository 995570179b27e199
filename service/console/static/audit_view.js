// The result of an audit.

import { bullet } from "./charts.js";
import { h, table } from "./dom.js";
import { number, percent } from "./numbers.js";

const COUNTED = {
  exact: "distinct persons",
  "at least": "the fewest that the original allows: a published table does not show whose rows it has",
  rows: "rows, for want of persons",
};

const MARKS = { holds: "good", "not shown": "look", "does not hold": "bad" };
export const SENTENCES = {
  holds: "✓ The guarantee holds in every class.",
  "not shown": "? The guarantee cannot be shown from the published file; it may still hold.",
  "does not hold": "✗ The guarantee does not hold.",
};

export function auditView(report) {
  return h(
    "div",
    { className: "audit-result" },
    h(
      "p",
      { className: `verdict ${MARKS[report.outcome]}` },
      SENTENCES[report.outcome],
    ),
    table(
      "Findings",
      ["model", "", "achieved", "asked", "holds"],
      report.findings.map((finding) => [
        finding.model,
        bullet(finding),
        `${finding.bound ? `${finding.bound} ` : ""}${number(finding.achieved)}`,
        `${finding.more_is_safer ? "at least" : "at most"} ${number(finding.asked)}`,
        holds(finding, report),
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

function holds(finding, report) {
  if (finding.holds) return "✓ yes";
  if (finding.outcome === "not shown") return `? not shown${where(finding.not_shown, report)}`;
  return `✗ fails${where(finding.failing, report)}`;
}

const where = (number_, { classes }) =>
  classes === undefined ? "" : ` in ${number(number_)} of ${number(classes)} classes`;

/** Numbers that have a sentence of their own. */
const TOLD = {
  rows: ({ rows, suppressed, rejected }) => [
    number(rows),
    "rows published",
    (suppressed ?? null) === null ? "" : `${number(suppressed)} suppressed, ${number(rejected)} rejected`,
  ],
  classes: ({ classes }) => [number(classes), "classes", ""],
  loss: ({ loss }) => [percent(loss), "mean loss", ""],
  fewest_persons: ({ fewest_persons: fewest, persons }) => [
    number(fewest),
    "persons in the smallest class",
    `counted as ${COUNTED[persons] ?? persons}`,
  ],
  largest_share: ({ largest_share: share, persons }) => [
    `${persons === "at least" ? "at most " : ""}${percent(share)}`,
    "largest share of a person",
    "of the rows of one class",
  ],
};
const TOLD_ELSEWHERE = new Set(["suppressed", "rejected"]);

/** What else an audit measures, whatever kind of data it is about: every other number under its own name. */
const facts = (report) => [
  ...Object.keys(TOLD)
    .filter((name) => name in report)
    .map((name) => TOLD[name](report)),
  ...Object.entries(report)
    .filter(([name, value]) => typeof value === "number" && !(name in TOLD) && !TOLD_ELSEWHERE.has(name))
    .map(([name, value]) => [number(value), name.replaceAll("_", " "), ""]),
];

// Releases: what left of each data set, for whom and for what. Two of one data set may be joined by whoever has both.

import { get, ProblemError } from "./api.js";
import { field, h, table } from "./dom.js";
import { moment } from "./numbers.js";
import { announce } from "./problems.js";

const HEAD = ["Released", "Data set", "Policy", "Purpose", "For", "Levels"];

export function startReleases(panel) {
  const dataSet = h("select", {}, h("option", { value: "" }, "all"));
  const empty = h(
    "p",
    { className: "empty", hidden: true },
    "Nothing is written down: no job had a policy that names a data set.",
  );
  const body = h("div", { id: "releases" });

  async function refresh() {
    const query = dataSet.value ? `?data_set=${encodeURIComponent(dataSet.value)}` : "";
    try {
      const { releases } = await get(`/v1/releases${query}`);
      if (!query) offer(releases);
      body.replaceChildren(...(releases.length ? [table("Releases, newest first", HEAD, releases.map(row))] : []));
      empty.hidden = releases.length > 0;
      announce("releases", null);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      announce("releases", error.problem);
    }
  }

  function offer(releases) {
    const names = [...new Set(releases.map((one) => one.data_set))].sort();
    dataSet.replaceChildren(dataSet.options[0], ...names.map((name) => h("option", { value: name }, name)));
  }

  dataSet.addEventListener("change", refresh);
  panel.append(
    h("h2", { className: "hidden" }, "Releases"),
    h(
      "div",
      { className: "card" },
      h("div", { className: "head" }, h("h3", {}, "Releases"), field("Data set", dataSet)),
      h(
        "p",
        { className: "note" },
        "A second release of a data set is refused if it is neither finer nor coarser than each before it, unless its policy allows that.",
      ),
      empty,
      body,
    ),
  );
  panel.addEventListener("shown", refresh);
  addEventListener("token", () => !panel.hidden && refresh());
}

function row({ at, data_set: dataSet, policy, purpose, who, levels }) {
  const shown = levels ? Object.entries(levels).map(([name, level]) => `${name} ${level}`) : [];
  return [moment(at), dataSet, policy, purpose ?? "–", who, shown.join(", ") || "comparable with none"];
}

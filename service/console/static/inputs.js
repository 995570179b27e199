// Files and policies as people give them: chosen, dropped, or kept by the service.

import { get, ProblemError } from "./api.js";
import { field, h } from "./dom.js";

/** A field for one file, or for several. */
export function fileField(label, { hint, multiple = false, required = true, accept = "" }) {
  const input = h("input", { type: "file", multiple, required, accept });
  return { element: field(label, input, hint), input };
}

/** Let files be dropped anywhere on `area`; `sort` tells which input each file goes into. */
export function acceptDrops(area, sort) {
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("dropping");
  });
  area.addEventListener("dragleave", () => area.classList.remove("dropping"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    area.classList.remove("dropping");
    const sorted = new Map();
    for (const file of event.dataTransfer.files) {
      const input = sort(file);
      if (!sorted.has(input)) sorted.set(input, new DataTransfer());
      sorted.get(input).items.add(file);
    }
    for (const [input, { files }] of sorted) {
      input.files = files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
}

export const looksLikePolicy = (file) => /\.(ya?ml|json)$/i.test(file.name);

/** A policy: from a file, with the hierarchies that it names, or one that the service keeps. */
export function policyField() {
  const source = h("select", {}, h("option", { value: "" }, "from a file"));
  const policy = fileField("Policy file", { hint: "YAML or JSON", accept: ".yaml,.yml,.json" });
  const hierarchies = fileField("Hierarchy files", { hint: "CSV files that the policy names, if any", multiple: true, required: false, accept: ".csv" });
  const fromFile = h("div", { className: "row" }, policy.element, hierarchies.element);
  const show = () => {
    fromFile.hidden = source.value !== "";
    policy.input.required = !fromFile.hidden;
  };
  source.addEventListener("change", show);

  async function refresh() {
    try {
      const { policies } = await get("/v1/policies");
      const chosen = source.value;
      const stored = policies.map(({ name }) => h("option", { value: name }, name));
      source.replaceChildren(source.options[0], ...(stored.length ? [h("optgroup", { label: "stored" }, stored)] : []));
      source.value = policies.some(({ name }) => name === chosen) ? chosen : "";
      show();
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
    }
  }

  return {
    element: h("div", {}, field("Policy", source), fromFile),
    input: policy.input,
    hierarchies: hierarchies.input,
    refresh,
    /** Where somebody has dropped a policy, that is the one they mean. */
    useFile() {
      source.value = "";
      show();
    },
    name: () => source.value,
    text: async () => (source.value ? (await get(`/v1/policies/${encodeURIComponent(source.value)}`)).text : policy.input.files[0].text()),
    files: () => (source.value ? [] : [...hierarchies.input.files]),
  };
}

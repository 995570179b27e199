// Files and policies as people give them: chosen, dropped, or kept by the service.

import { get, ProblemError } from "./api.js";
import { field, h } from "./dom.js";
import { namedFiles } from "./policy_text.js";

/** A field for one file, or for several. */
export function fileField(label, { hint, multiple = false, required = true, accept = "" }) {
  const input = h("input", { type: "file", multiple, required, accept });
  return { element: field(label, input, hint), input };
}

/** Let files be dropped anywhere on `area`; `sort` makes pairs of an input and the files that go into it. */
export function acceptDrops(area, sort) {
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("dropping");
  });
  area.addEventListener("dragleave", () => area.classList.remove("dropping"));
  area.addEventListener("drop", async (event) => {
    event.preventDefault();
    area.classList.remove("dropping");
    for (const [input, files] of await sort([...event.dataTransfer.files])) {
      if (!files.length) continue;
      const content = new DataTransfer();
      for (const file of files) content.items.add(file);
      input.files = content.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
}

const looksLikePolicy = (file) => /\.(ya?ml|json)$/i.test(file.name);

/** A policy: from a file, with the hierarchies that it names, or one that the service keeps. */
export function policyField() {
  const source = h("select", {}, h("option", { value: "" }, "from a file"));
  const policy = fileField("Policy file", { hint: "YAML or JSON", accept: ".yaml,.yml,.json" });
  const hierarchies = fileField("Hierarchy files", {
    hint: "CSV files that the policy names, if any",
    multiple: true,
    required: false,
    accept: ".csv",
  });
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
    refresh,
    /** Take from dropped files what is the policy's: itself, and the hierarchies that it names; tells what is left. */
    async sort(files) {
      const dropped = files.find(looksLikePolicy);
      if (dropped) {
        source.value = "";
        show();
      }
      const named = namedFiles((await (dropped ?? policy.input.files[0])?.text()) ?? "");
      const trees = files.filter((file) => named.has(file.name));
      return {
        own: [
          [policy.input, dropped ? [dropped] : []],
          [hierarchies.input, trees],
        ],
        rest: files.filter((file) => file !== dropped && !trees.includes(file)),
      };
    },
    name: () => source.value,
    given: () => source.value !== "" || policy.input.files.length > 0,
    text: async () =>
      source.value
        ? (await get(`/v1/policies/${encodeURIComponent(source.value)}`)).text
        : policy.input.files[0].text(),
    files: () => (source.value ? [] : [...hierarchies.input.files]),
  };
}

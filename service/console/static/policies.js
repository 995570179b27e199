// Policies: those that the service keeps, and an editor that checks while somebody writes.

import { get, ProblemError, remove, send } from "./api.js";
import { button, field, h, say, twice } from "./dom.js";
import { fileField } from "./inputs.js";
import { moment } from "./numbers.js";
import { locate, pretty } from "./policy_text.js";
import { announce, attempt, problemView } from "./problems.js";

const PAUSE = 500;

export function startPolicies(panel) {
  const editor = policyEditor(() => list.refresh());
  const list = policyList(
    (name) => editor.load(name),
    () => editor.begin(),
    editor.files,
    editor.kinds,
  );
  panel.append(
    h("h2", { className: "hidden" }, "Policies"),
    h("div", { className: "two" }, list.element, editor.element),
  );
  panel.addEventListener("shown", () => {
    list.refresh();
    editor.begin({ unlessFilled: true });
  });
  addEventListener("token", () => {
    if (panel.hidden) return;
    list.refresh();
    editor.begin({ unlessFilled: true });
  });
}

function policyList(onchosen, onnew, files, kinds) {
  const body = h("ul", { className: "policies", "aria-label": "Stored policies" });
  const empty = h("p", { className: "empty", hidden: true }, "No policy is stored.");

  async function refresh() {
    try {
      const { policies } = await get("/v1/policies");
      body.replaceChildren(
        ...policies.map(({ name, updated_at: updated }) =>
          h(
            "li",
            {},
            button(name, () => onchosen(name), "link"),
            h("small", {}, moment(updated)),
          ),
        ),
      );
      empty.hidden = policies.length > 0;
      announce("policies", null);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      announce("policies", error.problem);
    }
  }
  return {
    element: h(
      "div",
      { className: "card" },
      h("h3", {}, "Stored"),
      empty,
      body,
      kinds,
      h("div", { className: "actions" }, button("New policy", onnew)),
      files,
    ),
    refresh,
  };
}

function policyEditor(onchanged) {
  const text = h("textarea", {
    spellcheck: false,
    wrap: "off",
    rows: 22,
    "aria-label": "Policy",
    "aria-describedby": "policy-verdict",
  });
  const lines = h("pre", { className: "lines", "aria-hidden": "true" });
  const verdict = h("div", { id: "policy-verdict", role: "status", className: "verdicts" });
  const problem = h("div", { role: "alert" });
  const opened = fileField("Open a file", { required: false, accept: ".yaml,.yml,.json" });
  const hierarchies = fileField("Hierarchy files", {
    required: false,
    multiple: true,
    accept: ".csv",
    hint: "CSV files that the policy names, if any",
  });
  const save = h("button", { type: "button", className: "main", onclick: () => store() }, "Save");
  const erase = twice(button("Delete"), "Press again to delete the policy.", () => drop());
  const kind = h("select", {});
  const kinds = field("Kind of data", kind, "of a new policy");
  kinds.hidden = true;
  let timer;
  let checked = null;

  const parts = () => ({ policy: new File([text.value], "policy.yaml"), hierarchies: [...hierarchies.input.files] });

  function fill(content, name = null) {
    text.value = content;
    erase.hidden = name === null;
    erase.dataset.name = name ?? "";
    number([]);
    return check();
  }

  /** Write what a policy of the chosen kind may begin with. */
  async function begin({ unlessFilled = false } = {}) {
    if (unlessFilled && text.value) return;
    await attempt(problem, async () => {
      const found = (await get("/v1/kinds")).kinds;
      const chosen = found.find(({ name }) => name === kind.value) ?? found[0];
      kind.replaceChildren(...found.map(({ name }) => h("option", { value: name }, name)));
      kind.value = chosen.name;
      kinds.hidden = found.length < 2;
      await fill(chosen.policy);
    });
  }

  /** Select the place that a problem is about. */
  function go(path) {
    const place = locate(text.value, path);
    if (!place) return;
    text.focus();
    text.setSelectionRange(place.start, place.end);
    const line = text.value.slice(0, place.start).split("\n").length;
    text.scrollTop = Math.max(0, (line - 5) * (text.scrollHeight / text.value.split("\n").length));
  }

  function number(problems) {
    const marked = new Set(
      problems
        .map(({ path }) => locate(text.value, path))
        .filter(Boolean)
        .map(({ start }) => text.value.slice(0, start).split("\n").length),
    );
    const all = text.value.split("\n").map((_, place) => place + 1);
    lines.replaceChildren(
      ...all.map((line) =>
        h("span", { className: marked.has(line) ? "wrong" : "" }, marked.has(line) ? `✗ ${line}\n` : `${line}\n`),
      ),
    );
    lines.scrollTop = text.scrollTop;
  }

  async function check() {
    clearTimeout(timer);
    checked = null;
    save.disabled = true;
    const asked = text.value;
    let problems = [];
    try {
      const found = await (await send("POST", "/v1/policies/check", parts())).json();
      if (asked !== text.value) return;
      problems = found.problems;
      checked = found.usable ? found : null;
      verdict.replaceChildren(
        found.usable
          ? usable(found)
          : problemView(
              { title: `${problems.length === 1 ? "One problem" : `${problems.length} problems`}`, errors: problems },
              go,
            ),
      );
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      problems = error.problem.errors ?? [];
      verdict.replaceChildren(problemView(error.problem, go));
    }
    number(problems);
    save.disabled = checked === null;
  }

  async function store() {
    const { name } = checked;
    await attempt(
      problem,
      async () => {
        await send("PUT", `/v1/policies/${encodeURIComponent(name)}`, parts());
        say(`Policy ${name} is saved.`);
        erase.hidden = false;
        erase.dataset.name = name;
        onchanged();
      },
      go,
    );
  }

  async function drop() {
    await attempt(problem, async () => {
      await remove(`/v1/policies/${encodeURIComponent(erase.dataset.name)}`);
      say(`Policy ${erase.dataset.name} is deleted.`);
      erase.hidden = true;
      onchanged();
    });
  }

  text.addEventListener("input", () => {
    clearTimeout(timer);
    save.disabled = true;
    number([]);
    timer = setTimeout(check, PAUSE);
  });
  text.addEventListener("scroll", () => (lines.scrollTop = text.scrollTop));
  hierarchies.input.addEventListener("change", check);
  opened.input.addEventListener(
    "change",
    async () => opened.input.files.length && fill(await opened.input.files[0].text()),
  );

  return {
    element: h(
      "div",
      { className: "card" },
      h("h3", {}, "Policy"),
      h("div", { className: "editor" }, lines, text),
      verdict,
      problem,
      h("div", { className: "actions" }, save, erase),
    ),
    files: [opened.element, hierarchies.element],
    kinds,
    begin,
    load: (name) =>
      attempt(problem, async () => {
        const stored = await get(`/v1/policies/${encodeURIComponent(name)}`);
        await fill(`${pretty(JSON.parse(stored.text))}\n`, name);
        text.focus();
      }),
  };
}

function usable({ name, kind, models, fingerprint }) {
  const use = { table: "for tables", stream: "for streams", audit: "for audits only: it names no algorithm" };
  const asked = Object.entries(models)
    .map(([model, value]) => `${model} ${value}`)
    .join(", ");
  return h(
    "p",
    { className: "verdict good" },
    `✓ ${name}: usable ${use[kind]}; guarantees ${asked}.`,
    h("small", {}, ` Fingerprint ${fingerprint.slice(0, 16)}…`),
  );
}

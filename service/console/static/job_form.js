// Submitting a job: a table, a policy, what it is for, and another guarantee than the policy's if somebody wants one.

import { get, ProblemError, send, upload } from "./api.js";
import { field, h, say } from "./dom.js";
import { acceptDrops, fileField, policyField } from "./inputs.js";
import { percent } from "./numbers.js";
import { withGuarantee } from "./policy_text.js";
import { attempt } from "./problems.js";
import { schemaForm } from "./schema_form.js";

/** The form; `onsubmitted` is called with each new job. */
export function jobForm(onsubmitted) {
  const tableFile = fileField("Table", { hint: "CSV or JSON lines (may be gzipped), or Parquet" });
  const policy = policyField();
  const purpose = purposeField(policy);
  const guarantee = guaranteeField();
  const problem = h("div", { role: "alert" });
  const sending = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Upload" });
  const submit = h("button", { className: "main" }, "Submit job");
  const form = h(
    "form",
    { className: "card drop", "aria-label": "New job" },
    h("h3", {}, "New job"),
    h(
      "p",
      { className: "note" },
      "Drop a table and a policy here, or choose them. The upload is deleted when the job ends.",
    ),
    tableFile.element,
    policy.element,
    purpose.element,
    guarantee.element,
    problem,
    h("div", { className: "actions" }, submit, sending),
  );
  acceptDrops(form, async (files) => {
    const { own, rest } = await policy.sort(files);
    return [...own, [tableFile.input, rest.slice(0, 1)]];
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    sending.hidden = false;
    await attempt(problem, async () => {
      const parts = { ...(await jobParts(tableFile.input.files[0], policy, guarantee.read())), ...purpose.read() };
      const job = await upload("/v1/jobs", parts, { "Idempotency-Key": randomKey() }, (share) => {
        sending.value = share;
        sending.textContent = percent(share);
      });
      say("The job is submitted.");
      onsubmitted(job);
    });
    submit.disabled = false;
    sending.hidden = true;
  });
  return {
    element: form,
    async refresh() {
      await Promise.all([policy.refresh(), guarantee.refresh()]);
      await purpose.refresh();
    },
  };
}

async function jobParts(tableFile, policy, guarantee) {
  const parts = { table: tableFile, hierarchies: policy.files() };
  if (!guarantee && policy.name()) return { ...parts, policy_name: policy.name() };
  const text = await policy.text();
  const changed = guarantee ? withGuarantee(text, guarantee) : text;
  if (changed === null)
    throw new ProblemError({
      title: "The guarantee of this policy cannot be replaced",
      detail: "Its text is neither JSON nor YAML in block style.",
    });
  return { ...parts, policy: new File([changed], "policy.yaml", { type: "application/yaml" }) };
}

function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Which of the policy's purposes the job is for; hidden where there is none to choose. */
function purposeField(policy) {
  const choice = h("select", {});
  const element = field("Purpose", choice, "what the result is for; every purpose is a release of its own");
  element.hidden = true;
  let asked = 0;

  async function refresh() {
    const turn = ++asked;
    const names = await purposesOf(policy);
    if (turn !== asked) return;
    const chosen = choice.value;
    choice.replaceChildren(...names.map((name) => h("option", { value: name }, name)));
    if (names.includes(chosen)) choice.value = chosen;
    element.hidden = names.length === 0;
  }
  policy.element.addEventListener("change", refresh);
  return { element, refresh, read: () => (element.hidden ? {} : { purpose: choice.value }) };
}

/** The purposes that may be asked for; none of a policy that is not there yet or has problems, which submitting tells. */
async function purposesOf(policy) {
  if (!policy.given()) return [];
  try {
    const parts = { policy: new File([await policy.text()], "policy.yaml"), hierarchies: policy.files() };
    return (await (await send("POST", "/v1/policies/check", parts)).json()).purposes;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return [];
  }
}

/** The policy's own guarantee, or an algorithm with a form for its parameters. */
function guaranteeField() {
  const own = h("option", { value: "" }, "as the policy says");
  const algorithm = h("select", {}, own);
  const summary = h("p", { className: "note" });
  const body = h("div", { className: "parameters" });
  let algorithms = [];
  let form = null;

  function show() {
    const chosen = algorithms.find(({ name }) => name === algorithm.value);
    form = chosen ? schemaForm(chosen.parameters) : null;
    summary.textContent = chosen ? chosen.summary : "";
    body.replaceChildren(...(form ? form.elements : []));
  }
  algorithm.addEventListener("change", show);
  return {
    element: h("div", {}, field("Guarantee", algorithm), summary, body),
    read: () => (form ? { algorithm: algorithm.value, ...form.read() } : null),
    async refresh() {
      if (algorithms.length) return;
      const answer = await get("/v1/algorithms").catch(() => ({ algorithms: [] }));
      algorithms = answer.algorithms.filter((one) => one.runs_on === "table");
      algorithm.replaceChildren(own, ...choices(algorithms));
    },
  };
}

/** Names to choose from, by the kind of data that they are for where there are several. */
function choices(algorithms) {
  const named = (some) => some.map(({ name }) => h("option", { value: name }, name));
  const kinds = [...new Set(algorithms.map(({ data }) => data))];
  if (kinds.length < 2) return named(algorithms);
  return kinds.map((kind) => h("optgroup", { label: kind }, named(algorithms.filter(({ data }) => data === kind))));
}

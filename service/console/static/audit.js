// Auditing something published, by Portcullis or by others.

import { events, get, ProblemError, upload } from "./api.js";
import { auditView, SENTENCES } from "./audit_view.js";
import { field, h, say } from "./dom.js";
import { acceptDrops, fileField, policyField } from "./inputs.js";
import { attempt, problemView } from "./problems.js";

export function startAudit(panel) {
  const basis = basisField();
  const published = fileField("Published table", { hint: "what leaves, or has left, the house" });
  const policy = policyField();
  const problem = h("div", { role: "alert" });
  const submit = h("button", { className: "main" }, "Audit");
  const result = h(
    "div",
    { className: "card", role: "status", "aria-label": "Result of the audit" },
    h("p", { className: "empty" }, "Nothing audited yet."),
  );
  const form = h(
    "form",
    { className: "card drop", "aria-label": "Audit" },
    h("h3", {}, "Audit a publication"),
    h(
      "p",
      { className: "note" },
      "Checks a published table against its original, or against how often each sensitive value was in it, with no trust in what made it. The policy's algorithm is not run.",
    ),
    published.element,
    basis.element,
    policy.element,
    problem,
    h("div", { className: "actions" }, submit),
  );
  acceptDrops(form, async (files) => {
    const { own, rest } = await policy.sort(files);
    const free = [published.input, basis.input()].filter((input) => !input.files.length);
    return [...own, ...rest.map((file, place) => [free[place] ?? published.input, [file]])];
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    result.replaceChildren(h("p", { className: "empty" }, "At work…"));
    const went = await attempt(problem, async () => {
      const named = policy.name()
        ? { policy_name: policy.name() }
        : { policy: new File([await policy.text()], "policy.yaml"), hierarchies: policy.files() };
      const job = await finished(
        await upload("/v1/audits", {
          published: published.input.files[0],
          [basis.part()]: basis.input().files[0],
          ...named,
        }),
      );
      result.replaceChildren(
        job.report ? auditView(job.report) : problemView(job.problem ?? { title: `The audit was ${job.state}` }),
      );
      say(job.report ? SENTENCES[job.report.outcome] : "The audit failed.");
    });
    if (!went) result.replaceChildren(h("p", { className: "empty" }, "Nothing audited yet."));
    submit.disabled = false;
  });
  panel.append(h("h2", { className: "hidden" }, "Audit"), h("div", { className: "two" }, form, result));
  panel.addEventListener("shown", () => policy.refresh());
}

/** What a publication is held against: the table itself, or only its sensitive values where nobody may have the table. */
function basisField() {
  const fields = {
    original: fileField("Original table", { hint: "what was anonymized" }),
    distribution: fileField("Distribution", {
      hint: 'JSON: how often each sensitive value was in the original, as {"item": {"tea": 26, "lamp": 27}}',
      accept: ".json",
    }),
  };
  const source = h(
    "select",
    {},
    h("option", { value: "original" }, "its original table"),
    h("option", { value: "distribution" }, "the original's distribution of sensitive values"),
  );
  const show = () => {
    for (const [part, { element, input }] of Object.entries(fields)) {
      element.hidden = part !== source.value;
      input.required = !element.hidden;
    }
  };
  source.addEventListener("change", show);
  show();
  return {
    element: h("div", {}, field("Held against", source), fields.original.element, fields.distribution.element),
    part: () => source.value,
    input: () => fields[source.value].input,
  };
}

/** The job when it has ended: by its events, or by asking again and again where these cannot be had. */
async function finished({ links }) {
  try {
    for await (const _ of events(links.events)) {
      /* The last event ends the stream. */
    }
  } catch (error) {
    if (!(error instanceof ProblemError || error instanceof TypeError)) throw error;
  }
  for (;;) {
    const job = await get(links.self);
    if (!["queued", "running"].includes(job.state)) return job;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

// Auditing something published, by Portcullis or by others.

import { events, get, ProblemError, upload } from "./api.js";
import { auditView } from "./audit_view.js";
import { h, say } from "./dom.js";
import { acceptDrops, fileField, policyField } from "./inputs.js";
import { attempt, problemView } from "./problems.js";

export function startAudit(panel) {
  const original = fileField("Original table", { hint: "what was anonymized" });
  const published = fileField("Published table", { hint: "what was made of it" });
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
      "Checks a published table against its original and a policy, with no trust in what made it. The policy's algorithm is not run.",
    ),
    original.element,
    published.element,
    policy.element,
    problem,
    h("div", { className: "actions" }, submit),
  );
  acceptDrops(form, async (files) => {
    const { own, rest } = await policy.sort(files);
    const free = [original.input, published.input].filter((input) => !input.files.length);
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
          original: original.input.files[0],
          published: published.input.files[0],
          ...named,
        }),
      );
      result.replaceChildren(
        job.report ? auditView(job.report) : problemView(job.problem ?? { title: `The audit was ${job.state}` }),
      );
      say(job.report ? `The guarantee ${job.report.holds ? "holds" : "is not shown to hold"}.` : "The audit failed.");
    });
    if (!went) result.replaceChildren(h("p", { className: "empty" }, "Nothing audited yet."));
    submit.disabled = false;
  });
  panel.append(h("h2", { className: "hidden" }, "Audit"), h("div", { className: "two" }, form, result));
  panel.addEventListener("shown", () => policy.refresh());
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

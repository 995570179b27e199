// A job's report or evidence over the page.

import { download, get, getText } from "./api.js";
import { auditView } from "./audit_view.js";
import { button, h } from "./dom.js";

export async function openReport(job) {
  const path = `/v1/jobs/${job.id}/report`;
  const isAudit = job.kind === "audit";
  const body = isAudit ? auditView(await get(path)) : await pageFrame(path, "Report");
  open(job, "Report", isAudit ? null : savePage(path, job, "report"), saveData(path, job, "report"), body);
}

/** What to file about a job: its page, and the files that somebody needs who checks it. */
export async function openEvidence(job) {
  const path = job.links.evidence;
  const secret = button("Save the secret", () =>
    download(`${path}/secret`, "text/plain", `${job.policy}-evidence.json.secret`),
  );
  secret.title = "Keep it with the table: it proves which one the evidence is about.";
  const actions = [savePage(path, job, "evidence"), saveData(path, job, "evidence"), secret];
  open(job, "Evidence", ...actions, await pageFrame(path, "Evidence"));
}

const savePage = (path, job, what) =>
  button("Save as page", () => download(path, "text/html", `${job.policy}-${what}.html`));

const saveData = (path, job, what) =>
  button("Save as JSON", () => download(path, "application/json", `${job.policy}-${what}.json`));

function open(job, what, ...rest) {
  const body = rest.pop();
  const close = () => dialog.close();
  const dialog = h(
    "dialog",
    { className: "report", "aria-label": `${what} of ${job.policy}`, onclose: () => dialog.remove() },
    h(
      "div",
      { className: "actions" },
      h("h2", {}, job.policy),
      ...rest,
      h("button", { type: "button", className: "main", autofocus: true, onclick: close }, "Close"),
    ),
    body,
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** The page as the service made it, in a frame that may run nothing. It inherits the console's own policy. */
async function pageFrame(path, title) {
  return h("iframe", { title, sandbox: "", srcdoc: await getText(path, "text/html") });
}

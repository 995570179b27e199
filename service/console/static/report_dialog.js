// A job's report over the page.

import { download, get, getText } from "./api.js";
import { auditView } from "./audit_view.js";
import { button, h } from "./dom.js";

export async function openReport(job) {
  const path = `/v1/jobs/${job.id}/report`;
  const body = job.kind === "audit" ? auditView(await get(path)) : await reportFrame(path);
  const close = () => dialog.close();
  const dialog = h(
    "dialog",
    { className: "report", "aria-label": `Report of ${job.policy}`, onclose: () => dialog.remove() },
    h(
      "div",
      { className: "actions" },
      h("h2", {}, job.policy),
      job.kind === "audit"
        ? null
        : button("Save as page", () => download(path, "text/html", `${job.policy}-report.html`)),
      button("Save as JSON", () => download(path, "application/json", `${job.policy}-report.json`)),
      h("button", { type: "button", className: "main", autofocus: true, onclick: close }, "Close"),
    ),
    body,
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** The page as the service made it, in a frame that may run nothing. It inherits the console's own policy. */
async function reportFrame(path) {
  return h("iframe", { title: "Report", sandbox: "", srcdoc: await getText(path, "text/html") });
}

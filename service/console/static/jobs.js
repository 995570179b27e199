// Jobs: submit, watch, read, save, cancel, delete.

import { download, events, get, post, ProblemError, remove } from "./api.js";
import { button, field, h, say, twice, write } from "./dom.js";
import { jobForm } from "./job_form.js";
import { moment, number, seconds } from "./numbers.js";
import { attempt, announce, problemView } from "./problems.js";
import { openEvidence, openReport } from "./report_dialog.js";

const EVERY = 2_000;
const STATES = ["queued", "running", "succeeded", "failed", "cancelled"];
const FORMATS = [
  ["CSV", "text/csv", "csv"],
  ["Parquet", "application/vnd.apache.parquet", "parquet"],
  ["JSON lines", "application/x-ndjson", "jsonl"],
];
/** A browser opens six connections to a service at most; jobs beyond these are followed by polling. */
const MOST_FOLLOWED = 2;

const ended = (job) => !["queued", "running"].includes(job.state);
/** Whether it searches, and may end at any time with what it has found. */
const hasBest = (job) => Boolean(job.progress?.phase.includes("best so far"));

export function startJobs(panel) {
  const list = jobList();
  const form = jobForm((job) => list.add(job));
  panel.append(
    h("h2", { className: "hidden" }, "Jobs"),
    h(
      "nav",
      { className: "jump", "aria-label": "On this page" },
      button("New job", () => goTo(form.element)),
      button("List of jobs", () => goTo(list.element)),
    ),
    h("div", { className: "two" }, form.element, list.element),
  );
  const shown = () => {
    form.refresh();
    list.refresh();
  };
  panel.addEventListener("shown", shown);
  addEventListener("token", () => !panel.hidden && shown());
  setInterval(() => !panel.hidden && !document.hidden && list.refresh(), EVERY);
}

/** Where there is one column, the list is far below the form. */
function goTo(card) {
  const heading = card.querySelector("h3");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  card.scrollIntoView();
}

function jobList() {
  const rows = new Map();
  const followed = new Set();
  const state = h(
    "select",
    {},
    h("option", { value: "" }, "all"),
    STATES.map((name) => h("option", {}, name)),
  );
  const body = h("ol", { className: "jobs", "aria-label": "Jobs, newest first" });
  const empty = h("p", { className: "empty", hidden: true }, "No job yet.");
  const more = button("Older jobs", () => older());
  const pages = { after: null };

  function show(job) {
    if (!rows.has(job.id))
      rows.set(
        job.id,
        jobRow(job.id, (id) => drop(id)),
      );
    rows.get(job.id).update(job);
    if (!ended(job)) follow(job.id);
  }

  function drop(id) {
    rows.get(id)?.element.remove();
    rows.delete(id);
  }

  /** Follow a job by its events; when they cannot be had, the list's polling is enough. */
  async function follow(id) {
    if (followed.has(id) || followed.size >= MOST_FOLLOWED) return;
    followed.add(id);
    try {
      for await (const job of events(`/v1/jobs/${id}/events`)) {
        if (rows.has(id)) show(job);
      }
    } catch (error) {
      if (!(error instanceof ProblemError || error instanceof TypeError)) throw error;
    } finally {
      followed.delete(id);
    }
  }

  const query = (after) =>
    `/v1/jobs?limit=25${state.value ? `&state=${state.value}` : ""}${after ? `&after=${encodeURIComponent(after)}` : ""}`;

  async function load(after) {
    try {
      const page = await get(query(after));
      announce("jobs", null);
      return page;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      announce("jobs", error.problem);
      return null;
    }
  }

  async function refresh() {
    const page = await load(null);
    if (!page) return;
    page.jobs.forEach(show);
    const newest = page.jobs.map(({ id }) => id);
    if (!pages.more) for (const id of [...rows.keys()]) if (!newest.includes(id)) drop(id);
    order(newest);
    if (!pages.more) pages.after = page.next;
    more.hidden = !pages.after;
    empty.hidden = rows.size > 0;
  }

  /** Newest first, and nothing is moved that stands right: a button that has the focus keeps it. */
  function order(newest) {
    newest.forEach((id, place) => {
      const { element } = rows.get(id);
      if (body.children[place] !== element) body.insertBefore(element, body.children[place] ?? null);
    });
  }

  async function older() {
    const page = await load(pages.after);
    if (!page) return;
    Object.assign(pages, { after: page.next, more: true });
    page.jobs.forEach((job) => {
      show(job);
      body.append(rows.get(job.id).element);
    });
    more.hidden = !page.next;
  }

  function restart() {
    for (const id of [...rows.keys()]) drop(id);
    Object.assign(pages, { after: null, more: false });
    return refresh();
  }
  state.addEventListener("change", restart);
  addEventListener("token", restart);

  return {
    element: h(
      "div",
      { className: "card" },
      h("div", { className: "head" }, h("h3", {}, "Jobs"), field("State", state)),
      empty,
      body,
      more,
    ),
    refresh,
    add(job) {
      show(job);
      body.prepend(rows.get(job.id).element);
      rows.get(job.id).element.scrollIntoView({ block: "center" });
      empty.hidden = true;
    },
  };
}

function jobRow(id, ondeleted) {
  const [name, badge, words, times] = [
    h("b"),
    h("span", { className: "badge" }),
    h("span", { className: "words" }),
    h("small"),
  ];
  const bar = h("progress", { "aria-label": "Progress" });
  const actions = h("div", { className: "actions" });
  const problem = h("div", { role: "alert" });
  const failure = h("div");
  const element = h(
    "li",
    { id: `job-${id}` },
    h("div", { className: "head" }, name, badge, times),
    h("div", { className: "progress" }, bar, words),
    failure,
    actions,
    problem,
  );
  let known = {};

  const act = (action) => attempt(problem, action);

  function offered(job) {
    const label = (text, onclick, kind) => {
      const made = button(text, onclick, kind);
      made.setAttribute("aria-label", `${text}: job ${job.policy} of ${moment(job.created_at)}`);
      return made;
    };
    const report = job.links.report && label("Report", () => act(() => openReport(job)), "main");
    const evidence = job.links.evidence && label("Evidence", () => act(() => openEvidence(job)));
    const results = job.links.result
      ? FORMATS.map(([text, type, ending]) =>
          label(text, () => act(() => download(job.links.result, type, `${job.policy}.${ending}`))),
        )
      : [];
    const best =
      hasBest(job) &&
      twice(label("Stop the search"), "Press again to publish the best result so far.", () =>
        act(async () => {
          await post(`${job.links.self}/stop-search`);
          say("The search ends, and the job publishes its best result.");
        }),
      );
    const end = ended(job)
      ? twice(label("Delete"), "Press again to delete the job with its result.", () =>
          act(async () => {
            await remove(job.links.self);
            say("The job is deleted.");
            ondeleted(id);
          }),
        )
      : twice(label("Cancel"), "Press again to cancel the job; nothing of it is published.", () =>
          act(async () => {
            await remove(job.links.self);
            say("The job is being cancelled.");
          }),
        );
    return [report, evidence, ...results, best, end].filter(Boolean);
  }

  return {
    element,
    update(job) {
      if (known.state && ended(known)) return; // An answer that was late.
      write(name, job.kind === "audit" ? `${job.policy} (audit)` : job.policy);
      write(badge, job.state);
      badge.className = `badge ${job.state}`;
      write(times, `${moment(job.created_at)} · ${id.slice(0, 8)}`);
      showProgress(job, bar, words);
      if (known.state !== job.state || hasBest(known) !== hasBest(job)) {
        const focused = actions.contains(document.activeElement);
        actions.replaceChildren(...offered(job));
        if (focused) actions.firstChild.focus();
        failure.replaceChildren(...(job.problem ? [problemView(job.problem)] : []));
        if (known.state && ended(job)) say(`Job ${job.policy}: ${job.state}.`);
      }
      known = job;
    },
  };
}

function showProgress(job, bar, words) {
  bar.hidden = ended(job);
  if (ended(job)) {
    const took =
      job.started_at && job.finished_at
        ? `took ${seconds((new Date(job.finished_at) - new Date(job.started_at)) / 1000)}`
        : "";
    const kept = job.state === "succeeded" && job.expires_at ? `kept until ${moment(job.expires_at)}` : "";
    return write(words, [took, kept].filter(Boolean).join(", "));
  }
  const { progress } = job;
  if (progress?.rows_total) Object.assign(bar, { max: progress.rows_total, value: progress.rows_done });
  else bar.removeAttribute("value");
  if (!progress) return write(words, "waits for a worker");
  const left = progress.seconds_left ? `, about ${seconds(progress.seconds_left)} left` : "";
  const done = progress.rows_total ? ` ${number(progress.rows_done)} of ${number(progress.rows_total)} rows` : "";
  return write(words, `${progress.phase}:${done}${left}`);
}

// Live view of the streams: what the workers say of themselves, and how it went over the last minutes.

import { get, ProblemError } from "./api.js";
import { bullet, lineChart } from "./charts.js";
import { h, say, table, write } from "./dom.js";
import { compactNumber, moment, number, percent, seconds } from "./numbers.js";
import { announce } from "./problems.js";

const EVERY = 2_000;
const SPAN = 300;
/** Seconds over which a rate is measured: events arrive and leave in batches. */
const RATE_SPAN = 12;

/** What persons are gathered in: clusters that leave, or cohorts that stay where people are remembered. */
const CLUSTERS = {
  key: "clusters",
  gauge: "open_clusters",
  name: "open clusters",
  title: "Open clusters",
  note: (now) => `${compactNumber(now.pending)} events wait ${now.clusters ? "in them" : "for their deadline"}`,
};
const COHORTS = {
  key: "cohorts",
  gauge: "cohorts",
  name: "cohorts",
  title: "Cohorts",
  note: (now) => `${compactNumber(now.persons)} persons are known, ${compactNumber(now.pool)} without one`,
};

const charts = (groups) => [
  {
    title: "Events per second",
    lines: [
      { key: "in", name: "in" },
      { key: "out", name: "out" },
    ],
    format: compactNumber,
  },
  { title: "Delay", lines: [{ key: "delay", name: "delay" }], format: seconds },
  { title: "Loss", lines: [{ key: "loss", name: "loss" }], format: percent },
  { title: groups.title, lines: [{ key: groups.key, name: groups.name }], format: compactNumber },
  { title: "Suppressed per second", lines: [{ key: "suppressed", name: "suppressed" }], format: compactNumber },
  {
    title: "Events not yet out",
    lines: [
      { key: "waiting", name: "waiting" },
      { key: "lag", name: "lag" },
    ],
    format: compactNumber,
  },
];

export function startStreams(panel) {
  const cards = new Map();
  const empty = h(
    "p",
    { className: "empty", hidden: true },
    "No stream is known. Start one with ",
    h("code", {}, "portcullis run POLICY"),
    " and name its status address in the service's settings.",
  );
  const list = h("div", { className: "streams" });
  panel.append(h("h2", { className: "hidden" }, "Streams"), empty, list);
  let timer;

  async function poll() {
    clearTimeout(timer);
    if (!document.hidden) await look();
    timer = setTimeout(poll, EVERY);
  }

  async function look() {
    try {
      const { streams, silent } = await allStreams();
      for (const stream of streams) {
        const known = cards.get(stream.name);
        if (!known || (stream.remembers && !known.remembers)) cards.set(stream.name, streamCard(stream));
        cards.get(stream.name).update(stream);
      }
      const names = new Set(streams.map((stream) => stream.name));
      for (const name of cards.keys()) if (!names.has(name)) cards.delete(name);
      const shown = [...cards.values()].map((card) => card.element);
      if (shown.length !== list.children.length || shown.some((one, place) => one !== list.children[place]))
        list.replaceChildren(...shown);
      empty.hidden = shown.length > 0;
      announce("streams", silent.length ? { title: "Workers do not answer", detail: silent.join(", ") } : null);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      announce("streams", error.problem);
    }
  }

  addEventListener("token", poll);
  document.addEventListener("visibilitychange", poll);
  poll();
}

/** The streams as the API lists them, each with what its workers say together. */
async function allStreams() {
  const { streams, silent } = await get("/v1/streams");
  return { streams: streams.map(together), silent };
}

/** One stream out of its workers. */
function together({ name, input, output, workers }) {
  const total = (part, key) => workers.reduce((sum, worker) => sum + (worker[part][key] ?? 0), 0);
  const mean = (key) => {
    const publishing = workers.filter((worker) => worker.gauges.assigned > 0 && worker.counts.released > 0);
    const partitions = publishing.reduce((sum, worker) => sum + worker.gauges.assigned, 0);
    return partitions
      ? publishing.reduce((sum, worker) => sum + worker.gauges[key] * worker.gauges.assigned, 0) / partitions
      : NaN;
  };
  const refused = workers
    .flatMap((worker) => Object.entries(worker.counts))
    .filter(([key]) => key.startsWith("refused."));
  return {
    name,
    route: `${input} → ${output}`,
    workers,
    unready: workers.filter((worker) => !worker.ready).map((worker) => worker.reason),
    stopped: workers.flatMap((worker) => Object.entries(worker.stopped)),
    partitions: workers.flatMap((worker) => Object.entries(worker.partitions)).sort(([one], [other]) => one - other),
    guarantee: leastSafe(workers),
    limit: workers[0]?.delay_limit,
    time: Date.now(),
    taken: total("counts", "taken"),
    released: total("counts", "released"),
    suppressed: total("counts", "suppressed"),
    refused: refused.reduce((sum, [, count]) => sum + count, 0),
    refusedReleases: total("counts", "refused_releases"),
    loss: mean("loss"),
    delay: mean("delay"),
    remembers: workers.some((worker) => Object.values(worker.partitions).some((one) => "persons" in (one.engine ?? {}))),
    clusters: total("gauges", "open_clusters"),
    cohorts: total("gauges", "cohorts"),
    persons: total("gauges", "persons"),
    pool: total("gauges", "pool"),
    pending: total("gauges", "pending"),
    lag: total("gauges", "lag"),
    thin: total("gauges", "thin"),
    rejecting: workers.flatMap((worker) =>
      Object.entries(worker.partitions)
        .filter(([, one]) => one.rejecting)
        .map(([number, one]) => `Partition ${number}: ${one.rejecting.text}`),
    ),
  };
}

/** What the least safe cluster of all workers achieved, by model. */
function leastSafe(workers) {
  const found = new Map();
  for (const one of workers.flatMap((worker) => worker.guarantee)) {
    const known = found.get(one.model);
    const safer =
      known &&
      (one.achieved === null ||
        (known.achieved !== null &&
          (one.more_is_safer ? one.achieved >= known.achieved : one.achieved <= known.achieved)));
    if (!safer) found.set(one.model, one);
  }
  return [...found.values()].map((one) => ({
    ...one,
    holds: one.achieved === null || (one.more_is_safer ? one.achieved >= one.asked : one.achieved <= one.asked),
  }));
}

const tiles = (groups) => [
  ["in", (now) => compactNumber(now.taken), () => "events taken"],
  ["out", (now) => compactNumber(now.released), () => "rows published"],
  [
    "suppressed",
    (now) => percent(now.taken ? now.suppressed / now.taken : 0),
    (now) => `${number(now.suppressed)} events`,
  ],
  ["refused", (now) => compactNumber(now.refused), () => "records that do not fit"],
  ["delay", (now) => seconds(now.delay), (now) => (now.limit ? `at most ${seconds(now.limit)}` : "recent mean")],
  ["loss", (now) => percent(now.loss), () => "recent mean"],
  [groups.name, (now) => compactNumber(now[groups.key]), groups.note],
  ["lag", (now) => compactNumber(now.lag), () => "events behind the input"],
];

function streamCard({ name, remembers }) {
  const groups = remembers ? COHORTS : CLUSTERS;
  const route = h("p", { className: "route" });
  const badge = h("span", { className: "badge" });
  const alerts = h("div", { role: "alert", className: "alerts" });
  const figures = tiles(groups).map(([label, value, note]) => {
    const [shown, below] = [h("b"), h("small")];
    return {
      element: h("div", { className: "tile", "data-tile": label }, shown, h("span", {}, label), below),
      update: (now) => (write(shown, value(now)), write(below, note(now))),
    };
  });
  const curves = charts(groups).map((chart) => lineChart(chart.title, chart.lines, chart.format, SPAN));
  const guarantee = h("div", { className: "guarantee" });
  const partitions = h("div");
  const details = h("details", {}, h("summary", {}, "Partitions and workers"), partitions);
  const element = h(
    "article",
    { className: "card stream", "aria-label": `Stream ${name}` },
    h("div", { className: "head" }, h("h3", {}, name), badge, route),
    alerts,
    h(
      "div",
      { className: "tiles" },
      figures.map((tile) => tile.element),
    ),
    h(
      "div",
      { className: "charts" },
      curves.map((chart) => chart.element),
    ),
    guarantee,
    details,
  );
  const samples = [];
  let recent = [];

  function sample(now) {
    const restarted = recent.length > 0 && recent.at(-1).taken > now.taken;
    recent = restarted ? [] : recent.filter((one) => one.time > now.time - 1000 * RATE_SPAN);
    const [first] = recent;
    const rate = (key) => (first ? (1000 * (now[key] - first[key])) / (now.time - first.time) : NaN);
    samples.push({
      time: now.time,
      in: rate("taken"),
      out: rate("released"),
      suppressed: rate("suppressed"),
      delay: now.delay,
      loss: now.loss,
      [groups.key]: now[groups.key],
      waiting: now.pending,
      lag: now.lag,
    });
    while (samples[0].time < now.time - 1000 * SPAN) samples.shift();
    recent.push(now);
  }

  return {
    element,
    remembers,
    update(now) {
      sample(now);
      const word = now.unready.length ? `not ready: ${[...new Set(now.unready)].join("; ")}` : "ready";
      if (badge.textContent && badge.textContent !== word) say(`Stream ${name} is ${word}.`);
      write(badge, word);
      badge.classList.toggle("bad", now.unready.length > 0);
      write(route, now.route);
      for (const tile of figures) tile.update(now);
      for (const chart of curves) chart.update(samples);
      showAlerts(alerts, now);
      guarantee.replaceChildren(...guaranteeRows(now.guarantee));
      if (details.open) partitions.replaceChildren(...partitionTables(now, groups));
    },
  };
}

function showAlerts(place, now) {
  const lines = now.stopped.map(([partition, why]) => `Partition ${partition} is stopped: ${why}`);
  if (now.refusedReleases)
    lines.push(
      `${number(now.refusedReleases)} clusters were kept from leaving by the last check. This is a fault: report it.`,
    );
  if (now.thin)
    lines.push(
      `Partitions with too few persons within the delay: ${number(now.thin)}. Events that find no company are suppressed.`,
    );
  for (const line of now.rejecting) lines.push(`${line}. See the dead letters, and whether the topic's schema has changed.`);
  const key = lines.join("\n");
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.replaceChildren(...lines.map((line) => h("p", { className: "problem" }, line)));
}

function guaranteeRows(guarantee) {
  if (!guarantee.length) return [];
  return [
    table(
      "Guarantee",
      ["guarantee", "", "achieved", "asked"],
      guarantee.map((one) => [
        one.model,
        bullet(one),
        one.achieved === null ? "nothing published yet" : `${one.holds ? "✓" : "✗"} ${number(one.achieved)}`,
        `${one.more_is_safer ? "at least" : "at most"} ${number(one.asked)}`,
      ]),
    ),
  ];
}

function partitionTables(now, groups) {
  const rows = now.partitions.map(([place, one]) => [
    place,
    number(one.position),
    number(one.lag),
    number(one.pending),
    number(one.engine?.[groups.gauge]),
    percent(one.loss),
    seconds(one.delay),
    [one.thin && "too few persons", one.rejecting && "rejects most records"].filter(Boolean).join(", "),
  ]);
  const workers = now.workers.map((worker) => [
    worker.address,
    worker.ready ? "ready" : worker.reason,
    moment(worker.started),
  ]);
  const people = now.partitions
    .filter(([, one]) => one.engine?.persons !== undefined)
    .map(([place, { engine, followed, totals }]) => [
      place,
      number(engine.since),
      number(engine.persons),
      number(engine.members),
      number(engine.pool),
      number(engine.dismissed),
      number(engine.cohorts),
      `${number(engine.fewest_members)} / ${number(engine.median_members)} / ${number(engine.most_members)}`,
      number(engine.founded),
      number(engine.splits),
      number(engine.silent_cohorts),
      number(totals?.at_once),
      number(totals?.suppressed),
      followed?.least == null ? "nobody was followed yet" : number(followed.least),
      number(engine.last_seen_median),
    ]);
  const known = ["partition", "since offset", "persons", "in cohorts", "in the pool", "dismissed", "cohorts"];
  known.push("members: fewest / median / most", "founded", "split", "below k", "left at once", "suppressed");
  return [
    table("Partitions", ["partition", "position", "lag", "waiting", groups.name, "loss", "delay", ""], rows),
    ...(people.length ? [table("Persons who are remembered", [...known, "fewest candidates", "seen, offsets ago"], people)] : []),
    table("Workers", ["worker", "state", "started"], workers),
  ];
}

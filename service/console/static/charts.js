// Small live charts, drawn as SVG by hand: a plotting library would weigh megabytes for what is one path per line.

import { h, svg, write } from "./dom.js";
import { seconds } from "./numbers.js";

const WIDTH = 300;
const HEIGHT = 64;
const SHORTEST = 60;

/**
 * A chart of the last minutes, up to `longest` seconds of them. `lines` name what is drawn, each {key, name};
 * samples are {time, [key]: value}. Shows the newest values, or those under the pointer.
 */
export function lineChart(title, lines, format, longest) {
  const paths = lines.map((_, place) => svg("path", { class: `line line-${place + 1}` }));
  const areas = lines.length === 1 ? [svg("path", { class: "area" })] : [];
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
  const drawing = svg(
    "svg",
    { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    ...areas,
    ...paths,
    cursor,
  );
  const values = lines.map(() => h("b"));
  const top = h("span");
  const when = h("span");
  const legend = lines.map((line, place) =>
    h(
      "span",
      { className: lines.length > 1 ? `key key-${place + 1}` : "" },
      lines.length > 1 ? `${line.name} ` : "",
      values[place],
    ),
  );
  const element = h(
    "figure",
    {},
    h("figcaption", {}, h("span", {}, title), h("span", { className: "now" }, legend)),
    drawing,
    h("div", { className: "scale", "aria-hidden": "true" }, top, when),
  );
  let samples = [];
  let span = SHORTEST;
  let pointed = null;

  function draw() {
    const last = samples.at(-1);
    if (!last) return;
    span = Math.min(longest, Math.max(SHORTEST, (last.time - samples[0].time) / 1000));
    const known = lines.map((line) => samples.filter((sample) => Number.isFinite(sample[line.key])));
    const highest = Math.max(...known.flatMap((own, place) => own.map((sample) => sample[lines[place].key])), 0) || 1;
    const x = (sample) => (WIDTH * (1 - (last.time - sample.time) / 1000 / span)).toFixed(1);
    const y = (value) => (HEIGHT - 1 - (HEIGHT - 6) * (value / highest)).toFixed(1);
    known.forEach((own, place) => {
      const points = own.map((sample) => `${x(sample)} ${y(sample[lines[place].key])}`);
      paths[place].setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
      if (areas.length) {
        const closed =
          points.length > 1 ? `M${x(own[0])} ${HEIGHT}L${points.join("L")}L${x(own.at(-1))} ${HEIGHT}Z` : "";
        areas[0].setAttribute("d", closed);
      }
    });
    const shown = pointed === null ? last : nearest(pointed);
    lines.forEach((line, place) => write(values[place], format(shown[line.key])));
    write(top, `top ${format(highest)}`);
    const ago = Math.round((last.time - shown.time) / 1000);
    write(when, pointed === null ? `last ${seconds(Math.round(span))}` : `${ago} s ago`);
    cursor.setAttribute("visibility", pointed === null ? "hidden" : "visible");
    cursor.setAttribute("x1", x(shown));
    cursor.setAttribute("x2", x(shown));
    const words = lines.map((line) => `${line.name} ${format(last[line.key])}`);
    drawing.setAttribute("aria-label", `${title}: ${words.join(", ")}`);
  }

  function nearest(share) {
    const time = samples.at(-1).time - (1 - share) * span * 1000;
    return samples.reduce((best, one) => (Math.abs(one.time - time) < Math.abs(best.time - time) ? one : best));
  }

  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    pointed = (event.clientX - box.left) / box.width;
    draw();
  });
  drawing.addEventListener("pointerleave", () => {
    pointed = null;
    draw();
  });
  return {
    element,
    update(newest) {
      samples = newest;
      draw();
    },
  };
}

/** What was achieved, on a line whose allowed part is shaded and ends at what was asked: as in reports. */
export function bullet({ asked, achieved, more_is_safer: moreIsSafer, holds }) {
  const top = 1.25 * Math.max(asked, achieved ?? 0) || 1;
  const at = (value) => `${((100 * Math.min(value, top)) / top).toFixed(2)}%`;
  const start = moreIsSafer ? at(asked) : "0%";
  const width = moreIsSafer ? `${(100 - (100 * asked) / top).toFixed(2)}%` : at(asked);
  return svg(
    "svg",
    { class: "bullet", width: "100%", height: 18, "aria-hidden": "true" },
    svg("rect", { class: "track", width: "100%", height: 18 }),
    svg("rect", { class: "allowed", x: start, width, height: 18 }),
    achieved === null || achieved === undefined
      ? null
      : svg("rect", { class: holds ? "good" : "bad", y: 6, width: at(achieved), height: 6 }),
    svg("line", { class: "limit", x1: at(asked), x2: at(asked), y1: 1, y2: 17 }),
  );
}

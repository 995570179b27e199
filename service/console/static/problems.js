// Shows what went wrong: title, detail, and each wrong place with its reason.

import { ProblemError } from "./api.js";
import { byId, h } from "./dom.js";

/** A problem as an element; `onplace` is called with the path of a place that somebody chooses. */
export function problemView(problem, onplace) {
  const places = (problem.errors ?? []).map((place) => {
    const path = place.path ? h("code", {}, place.path) : h("span", {}, "the whole");
    const named =
      onplace && place.path
        ? h("button", { type: "button", className: "link", onclick: () => onplace(place.path) }, path)
        : path;
    const nearest =
      place.nearest === null || place.nearest === undefined
        ? null
        : h("span", {}, `; nearest that works: ${place.nearest}`);
    return h("li", {}, named, ": ", place.reason, nearest);
  });
  return h(
    "div",
    { className: "problem" },
    h("strong", {}, problem.title),
    problem.detail ? h("p", {}, problem.detail) : null,
    places.length ? h("ul", {}, places) : null,
  );
}

/** Do something that may fail, and show a problem in `place` when it does. Tells whether it went well. */
export async function attempt(place, action, onplace) {
  place.replaceChildren();
  try {
    await action();
    return true;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    place.replaceChildren(problemView(error.problem, onplace));
    return false;
  }
}

const notice = { key: "", text: "" };

/** A problem that concerns the whole page; null takes it away. Each `key` takes away only its own. */
export function announce(key, problem) {
  if (!problem && notice.key !== key) return;
  const text = problem ? JSON.stringify(problem) : "";
  if (notice.text === text) return;
  Object.assign(notice, { key, text });
  byId("notice").replaceChildren(...(problem ? [problemView(problem)] : []));
}

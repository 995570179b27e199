// The page: tabs, the token, and one view per tab.

import { token } from "./api.js";
import { startAudit } from "./audit.js";
import { byId, say } from "./dom.js";
import { startJobs } from "./jobs.js";
import { startPolicies } from "./policies.js";
import { startReleases } from "./releases.js";
import { startStreams } from "./streams.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];
const panel = (tab) => byId(tab.getAttribute("aria-controls"));
const address = (tab) => `#${tab.id.replace("tab-", "")}`;

function select(tab, { focus = false } = {}) {
  for (const one of tabs) {
    const chosen = one === tab;
    one.setAttribute("aria-selected", chosen);
    one.tabIndex = chosen ? 0 : -1;
    panel(one).hidden = !chosen;
  }
  if (focus) tab.focus();
  history.replaceState(null, "", address(tab));
  panel(tab).dispatchEvent(new Event("shown"));
}

function startTabs() {
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  for (const tab of tabs) tab.addEventListener("click", () => select(tab));
  byId("tabs").addEventListener("keydown", (event) => {
    const place = tabs.indexOf(document.activeElement);
    const next =
      { Home: 0, End: tabs.length - 1 }[event.key] ??
      (event.key in steps ? (place + steps[event.key] + tabs.length) % tabs.length : null);
    if (next === null) return;
    event.preventDefault();
    select(tabs[next], { focus: true });
  });
  const named = () => tabs.find((tab) => address(tab) === location.hash);
  addEventListener("hashchange", () => named() && select(named()));
  select(named() ?? tabs[0]);
}

function startToken() {
  byId("token").value = token.get();
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token.set(byId("token").value.trim());
    say(token.get() ? "The token is used from now on." : "No token is used.");
    dispatchEvent(new Event("token"));
  });
}

startToken();
startStreams(byId("panel-streams"));
startJobs(byId("panel-jobs"));
startReleases(byId("panel-releases"));
startPolicies(byId("panel-policies"));
startAudit(byId("panel-audit"));
startTabs();

"""The console in a real browser, against a real service and a live stream."""

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from selenium.webdriver.common.keys import Keys

from tests.service.cli.cli_world import table_text
from tests.service.console.console_world import ADULT, HIERARCHIES, PATIENCE, anonymized
from tests.service.policy.test_purposes import given

pytestmark = [
    pytest.mark.browser,
    pytest.mark.needs_tool("chromium"),
    pytest.mark.xdist_group("browser"),
    pytest.mark.timeout(600),
]
TABS = ("streams", "jobs", "releases", "policies", "audit")
HEALTH = ADULT.parent / "health"


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table that takes long enough to be cancelled."""
    with (ADULT / "people.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    path = tmp_path_factory.mktemp("large") / "large.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows([f"{turn}-{row[0]}", *row[1:]] for turn in range(60) for row in rows)
    return path


def test_a_live_stream_shows_what_goes_in_and_out_and_what_it_achieves(console: Any) -> None:
    console.open("streams")
    orders = '[aria-label="Stream orders"]'
    console.until_text(f"{orders} .badge", "ready")
    tile = f'{orders} [data-tile="out"] b'
    console.until(lambda: console.text(tile) not in {"", "0"}, PATIENCE)
    first = console.text(tile)
    console.until(lambda: console.text(tile) != first, 60)
    drawn = f"return document.querySelector('{orders} path.line-2').getAttribute('d').length"
    console.until(lambda: console.js(drawn) > 20)
    assert console.text(f"{orders} .route") == "orders.raw → orders.safe"
    assert " s" in console.text(f'{orders} [data-tile="delay"] b')
    assert "%" in console.text(f'{orders} [data-tile="loss"] b')
    label = console.one(f"{orders} svg[role=img]").get_attribute("aria-label")
    assert label.startswith("Events per second: in ")
    console.until_text(f"{orders} .guarantee", "k-over-time")
    assert "✓" in console.text(f"{orders} .guarantee")
    assert "at least 10" in console.text(f"{orders} .guarantee")
    console.one(f"{orders} summary").click()
    console.until_text(f"{orders} details", "position")
    console.picture("streams-light")


def test_cohorts_take_the_place_of_clusters_where_people_are_remembered(console: Any) -> None:
    console.open("streams")
    orders, returns = '[aria-label="Stream orders"]', '[aria-label="Stream returns"]'
    cohorts = f'{orders} [data-tile="cohorts"]'
    console.until_text(cohorts, "persons are known")
    console.until_text(cohorts, "without one")
    console.until(lambda: console.text(f"{cohorts} b") not in {"", "0"}, PATIENCE)
    assert "Cohorts" in console.texts(f"{orders} figcaption > span:first-child")
    assert "open clusters" not in console.text(f"{orders} .tiles")
    console.until_text(f"{returns} .tiles", "open clusters")
    console.one(f"{orders} summary").click()
    console.until_text(f"{orders} details", "Persons who are remembered")
    assert "open clusters" not in console.text(f"{orders} details")
    console.picture("streams-cohorts-light")


def test_a_stopped_partition_stands_out_and_says_why(console: Any) -> None:
    console.open("streams")
    returns = '[aria-label="Stream returns"]'
    console.until_text(f"{returns} [role=alert]", "Partition 3 is stopped: the next event is gone from the input")
    assert console.text(f"{returns} .badge") == "not ready: 1 partition is stopped"


def test_a_job_is_submitted_watched_read_and_saved(console: Any) -> None:
    console.open("jobs")
    console.submit()
    job = console.newest_job("succeeded")
    assert "took" in console.text(f"{job} .words")
    console.picture("jobs-light")
    console.press(job, "Report")
    frame = console.until(lambda: next(iter(console.all("dialog iframe")), None))
    console.picture("report-light")
    console.driver.switch_to.frame(frame)
    console.until(lambda: "The guarantee holds" in console.text("main"))
    styled = console.js("return getComputedStyle(document.querySelector('.card')).borderRadius")
    console.driver.switch_to.default_content()
    assert styled != "0px", "the report's own style is let in by its hash"
    console.keys(Keys.ESCAPE)
    console.until(lambda: not console.all("dialog"))
    assert console.focused() == "Report"
    console.press(job, "Evidence")
    frame = console.until(lambda: next(iter(console.all("dialog iframe")), None))
    console.picture("evidence-light")
    console.driver.switch_to.frame(frame)
    console.until(lambda: "Evidence: adult" in console.text("main"))
    assert "by tester" in console.text("main")
    console.driver.switch_to.default_content()
    console.press("dialog", "Save as JSON")
    console.press("dialog", "Save the secret")
    assert json.loads(console.download("adult-evidence.json").read_text())["parts"]["made"]["by"] == "tester"
    assert len(console.download("adult-evidence.json.secret").read_text().strip()) == 64
    console.keys(Keys.ESCAPE)
    console.until(lambda: not console.all("dialog"))
    console.press(job, "CSV")
    console.press(job, "Parquet")
    console.press(job, "JSON lines")
    rows = list(csv.reader(io.StringIO(console.download("adult.csv").read_text())))
    assert len(rows) - 1 == pq.read_metadata(console.download("adult.parquet")).num_rows > 1_900
    lines = console.download("adult.jsonl").read_text().splitlines()
    assert len(lines) == len(rows) - 1
    assert "person" not in json.loads(lines[0])


def test_a_running_job_with_another_guarantee_is_cancelled_and_deleted(console: Any, large: Any) -> None:
    console.open("jobs")
    console.pick("jobs", "Guarantee", "sabre")
    console.field("jobs", "t").send_keys("0.1")
    console.pick("jobs", "neighbours", "exact")
    console.submit(large)
    job = console.newest_job("running")
    console.until_text(f"{job} .words", "rows", PATIENCE)
    assert console.text(f"{job} .badge") == "running"
    console.press(job, "Cancel")
    assert console.text(f"{job} .badge") == "running", "it is asked first"
    console.press(job, "Really cancel?")
    console.until_text(f"{job} .badge", "cancelled")
    console.press(job, "Delete")
    console.keys(Keys.TAB)
    console.press(job, "Delete")
    console.press(job, "Really delete?")
    console.until(lambda: not console.all(job))


def test_a_budget_is_asked_for_and_its_report_says_what_each_column_kept(console: Any) -> None:
    console.open("jobs")
    console.pick("jobs", "Guarantee", "budget")
    console.field("jobs", "k").send_keys("5")
    console.submit()
    job = console.newest_job("succeeded")
    console.press(job, "Report")
    frame = console.until(lambda: next(iter(console.all("dialog iframe")), None))
    console.driver.switch_to.frame(frame)
    console.until(lambda: "The guarantee holds" in console.text("main"))
    text = console.text("main")
    console.driver.switch_to.default_content()
    assert "k-anonymity" in text
    assert "budget" in text


def test_a_search_may_be_ended_with_its_best(console: Any) -> None:
    console.open("jobs")
    console.pick("jobs", "Guarantee", "ogf")
    console.field("jobs", "k").send_keys("5")
    runs = console.field("jobs", "runs")
    runs.clear()
    runs.send_keys("10000")
    console.submit()
    job = console.newest_job("running")
    console.press(job, "Stop the search")
    console.press(job, "Really stop the search?")
    console.until_text(f"{job} .badge", "succeeded", PATIENCE)
    console.press(job, "CSV")
    assert len(console.download("adult.csv").read_text().splitlines()) > 1_900


def test_a_policy_with_categories_is_used_and_asked_for_more(console: Any) -> None:
    console.open("jobs")
    console.pick("jobs", "Guarantee", "top_down")
    console.field("jobs", "k").send_keys("5")
    console.field("jobs", "p_categories").send_keys("3")
    console.choose("jobs", "Table", HEALTH / "patients.csv")
    console.choose("jobs", "Policy file", HEALTH / "policy.yaml")
    console.send()
    job = console.newest_job("succeeded")
    console.press(job, "Report")
    console.driver.switch_to.frame(console.until(lambda: next(iter(console.all("dialog iframe")), None)))
    console.until(lambda: "p-plus-sensitivity" in console.text("main"))
    console.driver.switch_to.default_content()
    console.keys(Keys.ESCAPE)


def test_a_purpose_is_chosen_and_its_release_is_shown(console: Any, tmp_path: Path) -> None:
    table, policy = tmp_path / "shop.csv", tmp_path / "shop.yaml"
    table.write_text(table_text())
    policy.write_text(yaml.safe_dump(given(releases={"data_set": "console-shops"})))
    console.open("jobs")
    console.choose("jobs", "Table", table)
    console.choose("jobs", "Policy file", ADULT / "policy.yaml")
    assert "Purpose" not in console.texts("#panel-jobs label")
    console.choose("jobs", "Policy file", policy)
    console.until(lambda: "Purpose" in console.texts("#panel-jobs label"))
    console.pick("jobs", "Purpose", "maps")
    console.send()
    console.newest_job("succeeded")
    console.pick("jobs", "Purpose", "research")
    console.send()
    assert "may tell more than either" in console.text(f"{console.newest_job('failed')} .problem")
    console.one("#tab-releases").click()
    console.until_text("#releases", "console-shops")
    console.pick("releases", "Data set", "console-shops")
    rows = [row.split()[-7:-4] for row in console.texts("#releases tbody tr")]
    assert rows == [["shop", "maps", "tester"]]
    console.picture("releases-light")


def test_progress_is_shown_without_events_too(console: Any) -> None:
    console.driver.execute_cdp_cmd("Network.enable", {})
    console.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/events"]})
    try:
        console.open("jobs")
        console.submit()
        console.newest_job("succeeded")
    finally:
        console.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})


def test_a_guarantee_that_cannot_be_met_is_answered_with_place_and_reason(console: Any, tmp_path: Path) -> None:
    console.open("jobs")
    broken = tmp_path / "policy.yaml"
    broken.write_text((ADULT / "policy.yaml").read_text().replace("k: 5", "k: 0"))
    console.submit(policy=broken)
    console.until_text("#panel-jobs form .problem", "guarantee.k")
    shown = console.text("#panel-jobs form .problem")
    assert "No publication can satisfy the guarantee" in shown
    assert "; nearest that works: 1" in shown


def test_a_job_that_fails_says_why_and_shows_no_value(console: Any, tmp_path: Path) -> None:
    console.open("jobs")
    table = tmp_path / "people.csv"
    lines = (ADULT / "people.csv").read_text().splitlines()
    table.write_text("\n".join([lines[0], lines[1].replace("Bachelors", "Xyzzy")]))
    console.submit(table)
    job = console.newest_job("failed")
    assert "The policy does not fit the table" in console.text(f"{job} .problem")
    assert "Xyzzy" not in console.driver.page_source


def test_files_can_be_dropped_together(console: Any) -> None:
    console.open("jobs")
    names = ["people.csv", "policy.yaml", "education.csv"]
    console.js(
        """
        const [text, names] = arguments;
        const dropped = new DataTransfer();
        for (const name of names) dropped.items.add(new File([name === "policy.yaml" ? text : "x"], name));
        const form = document.querySelector("#panel-jobs form");
        form.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
        """,
        (ADULT / "policy.yaml").read_text(),
        names,
    )
    held = "return [...arguments[0].files].map((file) => file.name)"
    console.until(lambda: console.js(held, console.field("jobs", "Table")))
    assert console.js(held, console.field("jobs", "Table")) == ["people.csv"]
    assert console.js(held, console.field("jobs", "Policy file")) == ["policy.yaml"]
    assert console.js(held, console.field("jobs", "Hierarchy files")) == ["education.csv"]


def test_every_algorithm_has_a_form_for_its_parameters(console: Any) -> None:
    console.open("jobs")
    console.pick("jobs", "Guarantee", "mondrian")
    assert console.field("jobs", "k").get_attribute("min") == "1"
    console.pick("jobs", "l, given as", "in detail")
    assert console.field("jobs", "entropy").is_displayed()
    console.pick("jobs", "Guarantee", "burel")
    assert console.field("jobs", "beta").get_attribute("required")
    console.pick("jobs", "Guarantee", "incognito")
    assert console.field("jobs", "widths").get_attribute("placeholder") == "JSON"


def test_a_policy_is_checked_at_its_path_saved_loaded_used_and_deleted(console: Any) -> None:
    console.open("policies")
    console.until_text("#policy-verdict", "people: usable for tables")
    editor = console.one("#panel-policies textarea")
    broken = editor.get_property("value").replace("min: 17", "min: 170").replace("k: 5", "k: -1")
    console.js("arguments[0].value = arguments[1]", editor, broken)
    editor.send_keys(" ")
    console.until_text("#policy-verdict", "2 problems")
    assert "guarantee.k" in console.text("#policy-verdict")
    assert console.texts(".lines .wrong") == ["✗ 6", "✗ 10"]
    console.picture("policies-light")
    console.press("#policy-verdict", "guarantee.k")
    assert console.js("return getSelection().toString()") == "k:"
    assert not console.one("#panel-policies .main").is_enabled()
    editor.send_keys("l:")
    console.press("#panel-policies", "New policy")
    console.until_text("#policy-verdict", "usable for tables")
    console.press("#panel-policies", "Save")
    console.until_text(".policies", "people")
    console.press(".policies", "people")
    console.until(lambda: '"guarantee":' in editor.get_property("value"))
    console.until_text("#policy-verdict", "usable for tables")
    console.one("#tab-jobs").click()
    console.until(lambda: "people" in console.text("#panel-jobs select"))
    console.one("#tab-policies").click()
    console.press("#panel-policies", "Delete")
    console.press("#panel-policies", "Really delete?")
    console.until(lambda: not console.all(".policies li"))


def test_an_audit_tells_a_good_publication_from_a_bad_one(console: Any, tmp_path: Path, service: Any) -> None:
    published = tmp_path / "safe.csv"
    published.write_bytes(anonymized(*service))
    console.open("audit")
    console.choose("audit", "Original table", ADULT / "people.csv")
    console.choose("audit", "Policy file", ADULT / "policy.yaml")
    console.choose("audit", "Hierarchy files", *HIERARCHIES)
    console.choose("audit", "Published table", published)
    console.press("#panel-audit", "Audit")
    console.until_text("#panel-audit .verdict", "✓ The guarantee holds", PATIENCE)
    assert "at least 5" in console.text("#panel-audit table")
    assert "at most 0.2" in console.text("#panel-audit table")
    console.picture("audit-light")
    lines = published.read_text().splitlines()
    bad = tmp_path / "bad.csv"
    bad.write_text("\n".join(lines[:4]))
    console.choose("audit", "Published table", bad)
    console.press("#panel-audit", "Audit")
    console.until_text("#panel-audit .verdict", "✗ The guarantee does not hold", PATIENCE)
    assert "k-anonymity" in console.text("#panel-audit table")


def test_an_audit_by_distribution(console: Any, tmp_path: Path, service: Any) -> None:
    published = tmp_path / "safe.csv"
    published.write_bytes(anonymized(*service))
    with (ADULT / "people.csv").open(newline="") as file:
        counts = Counter(row["occupation"] for row in csv.DictReader(file))
    distribution = tmp_path / "counts.json"
    distribution.write_text(json.dumps({"occupation": counts}))
    console.open("audit")
    console.choose("audit", "Published table", published)
    console.pick("audit", "Held against", "the original's distribution of sensitive values")
    console.choose("audit", "Distribution", distribution)
    console.choose("audit", "Policy file", ADULT / "policy.yaml")
    console.choose("audit", "Hierarchy files", *HIERARCHIES)
    console.press("#panel-audit", "Audit")
    console.until_text("#panel-audit .verdict", "The guarantee", PATIENCE)
    assert "t-closeness" in console.text("#panel-audit table")
    console.picture("audit-distribution")


def test_the_token_is_asked_for_and_kept_in_this_tab_only(console: Any) -> None:
    console.open("jobs")
    console.js("sessionStorage.clear()")
    console.driver.refresh()
    console.until_text("#notice", "A valid bearer token is needed")
    console.one("#token").send_keys(console._secret, Keys.ENTER)
    console.until(lambda: console.text("#notice") == "")
    assert console.js("return [localStorage.length, document.cookie]") == [0, ""]
    assert console._secret not in console.driver.current_url


def test_the_page_works_by_keyboard(console: Any) -> None:
    console.open("streams")
    console.js("document.activeElement.blur()")
    console.keys(Keys.TAB)
    assert console.focused() == "Skip to content"
    console.keys(Keys.TAB)
    assert console.focused() == "tab-streams"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert console.js(outline) == "solid"
    console.keys(Keys.ARROW_RIGHT)
    assert console.focused() == "tab-jobs"
    assert console.one("#tab-jobs").get_attribute("aria-selected") == "true"
    assert console.one("#panel-jobs").is_displayed()
    console.keys(Keys.END)
    assert console.one("#panel-audit").is_displayed()
    console.keys(Keys.ARROW_RIGHT, Keys.HOME, Keys.ARROW_RIGHT)
    assert console.focused() == "tab-jobs"
    console.keys(Keys.TAB, Keys.TAB, Keys.TAB)
    assert console.js("return document.activeElement.labels[0].textContent") == "Table"
    assert console.js(outline) == "solid"


def test_everything_has_a_name_for_those_who_listen(console: Any) -> None:
    nameless = """
        const fields = [...document.querySelectorAll("input, select, textarea, button, progress, iframe")];
        const named = (it) => it.labels?.length || it.getAttribute("aria-label") || it.textContent.trim() || it.title;
        return fields.filter((it) => !named(it)).map((it) => it.outerHTML);
    """
    for tab in TABS:
        console.open(tab)
        assert console.js(nameless) == []
        assert console.all("[role=tabpanel]:not([hidden])")[0].get_attribute("aria-labelledby") == f"tab-{tab}"


def test_a_phone_shows_everything_without_scrolling_sideways(console: Any) -> None:
    console.width(360)
    for tab in TABS:
        console.open(tab)
        if tab == "streams":
            console.until_text('[aria-label="Stream orders"] .badge', "ready")
        wide = console.js("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], tab
        console.picture(f"{tab}-phone")


def test_a_phone_has_the_list_of_jobs_one_press_away(console: Any) -> None:
    console.width(360)
    console.open("jobs")
    console.submit()
    newest = console.one(console.newest_job("succeeded"))
    seen = "const {top, bottom} = arguments[0].getBoundingClientRect(); return top >= 0 && bottom <= innerHeight"
    assert console.js(seen, newest), "what was submitted is seen at once"
    for text, place in (("New job", 1), ("List of jobs", 2)):
        console.press("#panel-jobs .jump", text)
        heading = console.one(f"#panel-jobs .two > :nth-child({place}) h3")
        console.until(lambda heading=heading: console.js(seen, heading))
        assert console.focused() == heading.text
        console.picture(f"jobs-phone-{text}")
    console.width(None)
    assert not console.one("#panel-jobs .jump").is_displayed(), "a wide page shows both beside each other"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(console: Any, scheme: str) -> None:
    console.prefer(scheme)
    console.open("streams")
    console.until_text('[aria-label="Stream returns"] [role=alert]', "stopped")
    console.picture(f"streams-{scheme}-2")
    contrast = """
        const light = (text) => {
          const part = text.match(/[\\d.]+/g).slice(0, 3).map((it) => it / 255);
          const [r, g, b] = part.map((it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (it) => {
          const own = getComputedStyle(it).backgroundColor;
          return own !== "rgba(0, 0, 0, 0)" || !it.parentElement ? own : behind(it.parentElement);
        };
        const texts = [...document.querySelectorAll("header *, main *")].filter(
          (it) => it.offsetParent && [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
        return texts.map((it) => {
          const [one, other] = [light(getComputedStyle(it).color), light(behind(it))];
          return [(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), it.textContent];
        }).filter(([ratio]) => ratio < 4.5);
    """
    assert console.js(contrast) == []
    dark = console.js("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    assert dark == (scheme == "dark")


def test_places_are_found_in_the_text_of_a_policy(console: Any) -> None:
    console.open("policies")
    text = json.dumps((ADULT / "policy.yaml").read_text())

    def at(path: str) -> str:
        found = console.module("policy_text.js", f"it.locate({text}, {json.dumps(path)})")
        return json.loads(text)[found["start"] : found["end"]]

    assert at("schema.quasi.hours-per-week.weight") == "weight:"
    assert at("guarantee.t") == "t:"
    assert at("table.on_refused") == "on_refused:"
    assert at("schema.public[0]") == "schema:", "what is not there is shown by what it would be in"
    changed = console.module("policy_text.js", f"it.withGuarantee({text}, {{algorithm: 'mondrian', k: 3}})")
    assert 'guarantee: {"algorithm":"mondrian","k":3}\ntable: {on_refused: stop}' in changed
    assert "sabre" not in changed
    assert console.module("policy_text.js", 'it.withGuarantee(\'{"name": "x", "guarantee": 1}\', {k: 2})')
    assert console.module("policy_text.js", "it.withGuarantee('{flow: style}', {k: 2})") is None

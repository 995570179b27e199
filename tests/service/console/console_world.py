"""A service with streams, and a browser that looks at it."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from service.demo import POLICY
from service.kafka import Partition
from service.policy import parse_policy
from service.ports import free_port
from service.worker.metrics import Metrics
from service.worker.settings import WorkerSettings
from service.worker.status import StatusServer
from service.worker.stream import stream_of

ADULT = Path(__file__).parents[3] / "examples" / "adult"
HIERARCHIES = sorted((ADULT / "hierarchies").glob("*.csv"))
PATIENCE = 480
"""Seconds: a first job compiles the kernels on whatever machine this is."""
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --window-size=1280,900"
)


def portcullis(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", *arguments]


@contextmanager
def serving(directory: Path, workers: list[str]) -> Iterator[Any]:
    """A service with one token; gives its address and the token."""
    tokens = directory / "tokens.jsonl"
    making = portcullis("token", "new", "tester", "--scope", "admin", "--append", str(tokens))
    said = subprocess.run(making, capture_output=True, text=True, check=True).stdout
    secret = next(word for word in said.split() if word.startswith("pc_"))
    port = free_port()
    command = portcullis("serve", "--port", str(port), "--data", str(directory / "data"), "--tokens-file", str(tokens))
    command += [part for worker in workers for part in ("--worker", worker)]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--job-workers", "1"], stdout=log, stderr=log)
    try:
        _until_ready(f"http://127.0.0.1:{port}/readyz", process, directory / "log")
        yield f"http://127.0.0.1:{port}/", secret
    finally:
        process.terminate()
        process.wait(120)


def _until_ready(url: str, process: subprocess.Popen, log: Path) -> None:  # type: ignore[type-arg]
    for _ in range(10 * PATIENCE):
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the service does not get ready")


def anonymized(url: str, secret: str) -> bytes:
    """The example table as the service publishes it, by HTTP alone."""
    parts = [("table", ADULT / "people.csv"), ("policy", ADULT / "policy.yaml")]
    parts += [("hierarchies", path) for path in HIERARCHIES]
    files = [(part, (path.name, path.read_bytes())) for part, path in parts]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as client:
        job = client.post("/v1/jobs", files=files).raise_for_status().json()
        for _ in range(10 * PATIENCE):
            if client.get(job["links"]["self"]).json()["state"] == "succeeded":
                return client.get(f"{job['links']['self']}/result", headers={"Accept": "text/csv"}).content
            time.sleep(0.1)
    raise AssertionError("the job does not succeed")


@contextmanager
def stopped_worker() -> Iterator[Any]:
    """The status page of a worker whose only partition waits for an operator; gives its address."""
    topics = {**POLICY["stream"], "input": "returns.raw", "output": "returns.safe"}
    policy = {**POLICY, "name": "returns", "stream": topics}
    metrics = Metrics(stream_of(parse_policy(policy), WorkerSettings()))
    place = Partition("returns.raw", 3)
    server = StatusServer(metrics, "127.0.0.1", 0)
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(1):
            metrics.polled(frozenset({place}), {}, {place: "the next event is gone from the input"})

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        ended.set()
        polling.join()
        server.close()


@contextmanager
def chromium(directory: Path) -> Iterator[Any]:
    """A browser with an empty profile that saves what it downloads in `directory`."""
    options = webdriver.ChromeOptions()
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    options.binary_location = next(filter(None, found))
    for flag in (*_FLAGS.split(), f"--user-data-dir={directory / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


class Console:
    """The page, as somebody uses it."""

    def __init__(self, driver: Any, url: str, secret: str, saved: Path) -> None:
        self.driver = driver
        self.url = url
        self.saved = saved
        self._secret = secret
        self._known: frozenset[str] = frozenset()
        saved.mkdir(exist_ok=True)
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(saved)})

    def open(self, tab: str = "streams") -> None:
        """Load the page anew, with the token in the tab's memory."""
        self.driver.get(f"{self.url}#{tab}")
        self.js("sessionStorage.setItem('portcullis.token', arguments[0])", self._secret)
        self.driver.refresh()
        self.until(lambda: not self.one(f"#panel-{tab}").get_attribute("hidden"))

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def module(self, name: str, expression: str) -> Any:
        """The value of an expression over one of the page's modules, called `it`."""
        script = f"import('/{name}').then((it) => arguments[0](JSON.stringify({expression})))"
        return json.loads(self.driver.execute_async_script(script))

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> Any:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.js("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def until(self, done: Any, seconds: float = 120) -> Any:
        # The page may draw itself anew between finding an element and looking at it.
        waiting = WebDriverWait(
            self.driver, seconds, poll_frequency=0.1, ignored_exceptions=[StaleElementReferenceException]
        )
        return waiting.until(lambda _: done())

    def until_text(self, selector: str, words: str, seconds: float = 120) -> None:
        try:
            self.until(lambda: words in self.text(selector), seconds)
        except TimeoutException:
            raise AssertionError(f"{selector} shows {self.text(selector)!r}, not {words!r}") from None

    def texts(self, selector: str) -> list[str]:
        """What all that can be seen say, looked at in one moment: a page that draws itself cannot come between."""
        script = """
            const found = [...document.querySelectorAll(arguments[0])].filter((it) => it.checkVisibility())
            return found.map((it) => it.innerText.trim())
        """
        return self.js(script, selector)

    def field(self, panel: str, label: str) -> Any:
        """The visible field with this label, once there is one."""
        script = """
            const labels = [...document.querySelectorAll(`#panel-${arguments[0]} label`)]
            const found = labels.find((it) => it.innerText === arguments[1] && it.checkVisibility())
            return found ? document.getElementById(found.htmlFor) : null
        """
        return self.until(lambda: self.js(script, panel, label))

    def choose(self, panel: str, label: str, *files: Path) -> None:
        self.field(panel, label).send_keys("\n".join(map(str, files)))

    def pick(self, panel: str, label: str, option: str) -> None:
        def picked() -> bool:
            field = self.field(panel, label)
            offered = option in field.text
            if offered:
                Select(field).select_by_visible_text(option)
            return offered

        self.until(picked)

    def press(self, scope: str, text: str) -> None:
        """Click a button by its text."""

        def pressed() -> bool:
            found = [one for one in self.all(f"{scope} button") if one.text == text]
            if found:
                found[0].click()
            return bool(found)

        self.until(pressed)

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        return self.js("const it = document.activeElement; return it.id || it.textContent")

    def submit(self, table: Path = ADULT / "people.csv", policy: Path = ADULT / "policy.yaml") -> None:
        """Fill in the form for jobs and send it."""
        self.choose("jobs", "Table", table)
        self.choose("jobs", "Policy file", policy)
        self.choose("jobs", "Hierarchy files", *HIERARCHIES)
        self.send()

    def send(self) -> None:
        """Send the form for jobs as it is."""
        self._known = self._jobs()
        self.press("#panel-jobs form", "Submit job")

    def newest_job(self, state: str, seconds: float = PATIENCE) -> str:
        """Selector of the job submitted last, once the page shows it in this state."""
        # Until the upload has ended, the first row is a job of another test.
        job = self.until(lambda: next((row for row in self._shown() if row not in self._known), None), seconds)
        self.until_text(f"#{job} .badge", state, seconds)
        return f".jobs li#{job}"

    def _shown(self) -> list[str]:
        return self.js("return [...document.querySelectorAll('.jobs > li')].map((it) => it.id)")

    def _jobs(self) -> frozenset[str]:
        """What the rows of all jobs that the service knows are called."""
        answer = httpx.get(f"{self.url}v1/jobs?limit=100", headers={"Authorization": f"Bearer {self._secret}"})
        return frozenset(f"job-{job['id']}" for job in answer.raise_for_status().json()["jobs"])

    def download(self, name: str) -> Path:
        path = self.saved / name
        self.until(lambda: path.exists() and not list(self.saved.glob("*.crdownload")))
        return path

    def width(self, pixels: int | None) -> None:
        """Make the page as narrow as a phone, or as wide as the window again."""
        if pixels is None:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        else:
            metrics = {"width": pixels, "height": 800, "deviceScaleFactor": 1, "mobile": True}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str) -> None:
        """Keep a picture of the page where somebody asks for it, to be looked at."""
        directory = os.environ.get("PORTCULLIS_PICTURES")
        if directory:
            self.driver.save_screenshot(str(Path(directory) / f"{name}.png"))

    def complaints(self) -> list[str]:
        """What the browser found wrong; answers that are problems are meant."""
        said = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [message for message in said if "Failed to load resource" not in message]

"""A browser without a window, for tests of pages."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fairopt as fo

if TYPE_CHECKING:
    from selenium import webdriver

__all__ = ["HOSTILE", "PATIENCE", "TAKEN", "WHY_NOT", "Window", "chromium", "hostile_cluster"]

PATIENCE = 300  # seconds until a page that gets there has got there, on however slow a machine

_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

WHY_NOT = (
    "there is no chromium with its chromedriver here"
    if _CHROMIUM is None or _DRIVER is None
    else ""
    if find_spec("selenium")
    else "there is no selenium here"
)
"""Why there is no browser here; empty if there is one."""


def chromium(profile: Path, *arguments: str) -> webdriver.Chrome:
    """Start a browser with a profile of its own, that logs what it says and asks for."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(_CHROMIUM)
    for argument in (*_ARGUMENTS, *arguments, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=_DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    return driver


HOSTILE = (  # names that would be more than text, if a page let them; each says so by what it leaves behind
    "<script data-evil>window.stolen = 1</script>",
    '"><img data-evil src=x onerror="window.stolen = 2">',
    "</script><script data-evil>window.stolen = 3</script>",
    "<svg data-evil onload='window.stolen = 4'><style data-evil>* { display: none }</style>",
    '\'" data-evil onmouseover="window.stolen = 5" autofocus onfocus="window.stolen = 5" x="',
    "<a data-evil href='javascript:window.stolen = 6'>6</a><base data-evil href='http://elsewhere.example/'>",
    "{{ 7 * 7 }}${window.stolen = 7}<iframe data-evil srcdoc='<script>parent.stolen = 7</script>'></iframe>",
    "--><!--</title></textarea></style><meta data-evil http-equiv=refresh content='0;url=http://elsewhere.example/'>",
    "]]><x data-evil>\u202etxt.exe\u0000\u2028&lt;script data-evil&gt;",
)

TAKEN = """
const found = [String(window.stolen)], walk = (root) => {
  for (const element of root.querySelectorAll("*")) {
    const acts = [...element.attributes].some((each) => each.name === "data-evil" || each.name.startsWith("on"));
    if (acts) found.push(element.outerHTML);
    if (element.shadowRoot) walk(element.shadowRoot);
  }
};
walk(document);
return found;
"""
"""Returns what `HOSTILE` names have left behind: what ran, and elements made of them, in shadow roots too. Of nothing: ["undefined"]."""


def hostile_cluster() -> fo.Instance:
    """Return a cluster in which every name would be more than text: of users, servers, resources and queues."""
    number = len(HOSTILE)
    demands = 1 + np.arange(2 * number).reshape(number, 2) % 3
    names = [f"{name} queue" for name in HOSTILE]
    return fo.Instance(
        [[9, 12], [12, 9]],
        demands,
        tasks=np.full(number, 5.0),
        users=HOSTILE,
        servers=[f"{name} server" for name in HOSTILE[:2]],
        resources=[f"{name} resource" for name in HOSTILE[2:4]],
        queues=[fo.Queue(name, weight=2.0) for name in names],
        queue_of=names,
    )


class Window:
    """A browser on one page, of a width and with a colour scheme."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Return what the condition comes to."""
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < end, "the page does not get there"
            time.sleep(0.02)
        return found

    def open(self, path: Path, width: int = 1280, scheme: str = "light") -> Window:
        """Open a file, and wait until its charts are drawn."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.scheme(scheme)
        self.driver.get(path.as_uri())
        self.wait(lambda: self.run("return document.documentElement.dataset.drawn"))
        return self

    def scheme(self, scheme: str, media: str = "") -> None:
        """Prefer dark or light, on paper if asked for."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def bars(self, place: str) -> list[str]:
        """Return the shapes of a chart's marks."""
        script = "return [...document.querySelectorAll(`#${arguments[0]} .mark-rect path`)].map((path) => path.getAttribute('d'))"
        return [str(shape) for shape in self.run(script, place)]

    def dimmed(self, place: str) -> int:
        """Return how many marks of a chart are faint."""
        marks = "[...document.querySelectorAll(`#${arguments[0]} .mark-rect path`)]"
        script = f"return {marks}.filter((path) => Number(path.getAttribute('opacity') ?? 1) < 0.5)"
        return len(self.run(script, place))

    def messages(self) -> list[str]:
        """Return what stands on the console since the last call."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def requested(self) -> set[str]:
        """Return the schemes of all that was asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {str(params["request"]["url"]).partition(":")[0] for params in sent}

"""A browser without a window, for tests of pages."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium import webdriver

__all__ = ["WHY_NOT", "chromium"]

_CHROMIUM, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
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
    driver.set_page_load_timeout(60)
    return driver

"""The page as it is served: to those who have its address, on this machine, with nothing from the network; and dragged in a browser."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.browser import PATIENCE, TAKEN, WHY_NOT, chromium, hostile_cluster
from support.command_line import PAPER, program

import fairopt as fo

if find_spec("panel") is None:
    pytest.skip("there is no panel here", allow_module_level=True)

# Widgets keep their elements in shadow roots, which a selector does not enter.
FIND = """
const found = [], walk = (root) => {
  for (const element of root.querySelectorAll("*")) {
    if (element.matches(arguments[0])) found.push(element);
    if (element.shadowRoot) walk(element.shadowRoot);
  }
};
walk(document);
return found;
"""
TEXT = "return [...arguments[0].shadowRoot.querySelectorAll('p, pre, td, img')].map((part) => part.textContent || part.alt);"


@contextmanager
def served(*arguments: object) -> Iterator[str]:
    """Give the address that the program prints; Ctrl-C ends it, with status 0 and without a word on stderr."""
    command = program("explore", *arguments, "--no-browser")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program_:
        assert program_.stdout is not None
        found, how = program_.stdout.readline().strip(), program_.stdout.readline()
        try:
            yield found
        finally:
            program_.send_signal(signal.SIGINT)
            try:
                said, complaints = program_.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                program_.kill()
                raise
    assert (program_.returncode, how, said, complaints) == (0, "Ctrl-C ends it.\n", "ended\n", "")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a page of three users."""
    with served(PAPER, "--set", "users.user-2.weight=3") as found:
        yield found


def status(address: str, path: str | None = None, **headers: str) -> int:
    """Return the status of a request, and check that every answer has the policy."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    connection.request("GET", parts.path if path is None else path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 101:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    return answer.status


def test_strangers_are_refused(address: str) -> None:
    """Without the token, by another name (DNS rebinding), from another site; a websocket too."""
    parts = urlsplit(address)
    own, token = parts.netloc, parts.path.strip("/")
    assert parts.hostname == "127.0.0.1"
    assert len(token) >= 32
    assert status(address) == 200
    assert status(address, Host=f"localhost:{parts.port}") == 200
    assert status(address, f"/{token}/static/js/bokeh.min.js") == 200
    for path in ("/", "/static/js/bokeh.min.js", "/ws", f"/{token[:-1]}/", f"/{token[:-1]}x/ws", f"//{token}/", f"/x/../{token}/"):
        assert status(address, path) == 403, path
    assert status(address, Host="rebound.example") == 403
    assert status(address, Host=f"rebound.example:{parts.port}") == 403
    assert status(address, Origin="http://elsewhere.example") == 403
    assert status(address, Origin="null") == 403
    socket = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    }
    assert status(address, f"/{token}/ws", Origin="http://elsewhere.example", **socket) == 403
    assert status(address, "/ws", Origin=f"http://{own}", **socket) == 403


def test_it_listens_on_this_machine_alone(address: str) -> None:
    """Another address of this machine does not answer."""
    with pytest.raises(OSError, match="refused"):
        status(address.replace("127.0.0.1", "127.0.0.2"))


def test_a_message_to_a_closed_tab_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    """Bokeh sends messages without waiting for them; any other error that nobody waits for is logged."""
    from tornado.websocket import WebSocketClosedError

    from fairopt.reporting.exploring.serving import _complain

    async def fails(error: Exception) -> None:
        raise error

    async def nobody_waits() -> None:
        asyncio.get_running_loop().set_exception_handler(_complain)
        for error in (WebSocketClosedError(), RuntimeError("news")):
            task = asyncio.create_task(fails(error))
            await asyncio.wait([task])
            del task
            gc.collect()

    asyncio.run(nobody_waits())
    assert len(caplog.records) == 1
    assert "news" in str(caplog.records[0].exc_info)


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_a_weight_is_dragged(address: str, tmp_path: Path) -> None:
    """The table changes, nothing leaves this machine, nothing is said on the console, and a narrow screen needs no scrolling sideways."""
    from selenium import webdriver

    driver = chromium(tmp_path, "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")

    def wait(condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < end, "the page does not get there"
            time.sleep(0.05)
        return found

    def text(place: str) -> list[str]:
        return list(driver.execute_script(TEXT, driver.execute_script(FIND, f".{place}")[0]))

    try:
        size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(address)
        wait(lambda: driver.execute_script(FIND, ".table") and "user-2" in text("table"))
        before = text("table")
        handle = driver.execute_script(FIND, ".noUi-handle")[2]  # alpha, which is hidden, user-1, user-2
        webdriver.ActionChains(driver).click_and_hold(handle).move_by_offset(60, 0).release().perform()
        wait(lambda: text("table") != before and text("table")[0] != "What if: no difference, 3 users")
        (command,) = text("command")
        assert command.startswith(f"fairopt solve {PAPER} --notion drfh --set users.user-2.weight=3 --set users.user-2.weight=")
        assert text("table")[1].startswith("users.user-2.weight: 3 -> ")
        assert float(command.rpartition("=")[2]) > 3
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        messages = [entry["message"] for entry in driver.get_log("browser") if entry["level"] != "INFO"]  # type: ignore[no-untyped-call]
        assert messages == []
        events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]  # type: ignore[no-untyped-call]
        urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        assert {url for url in urls if not url.startswith((address, "data:", "blob:", "chrome:", "chrome-untrusted:"))} == set()
    finally:
        driver.quit()


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_no_name_is_more_than_text(tmp_path: Path) -> None:
    """None runs, or becomes an element, in the shadow roots of widgets either; and a script that is put in does not run."""
    fo.save(hostile_cluster(), tmp_path / "<b data-evil>.json")
    driver = chromium(tmp_path / "profile", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")
    try:
        with served(tmp_path / "<b data-evil>.json") as page:
            driver.get(page)
            end = time.monotonic() + PATIENCE
            while not (
                driver.execute_script(FIND, ".table")
                and "data-evil" in str(driver.execute_script(TEXT, driver.execute_script(FIND, ".table")[0]))
            ):
                assert time.monotonic() < end, "the page does not get there"
                time.sleep(0.05)
            time.sleep(1)
            assert driver.execute_script(TAKEN) == ["undefined"]
            messages = [entry["message"] for entry in driver.get_log("browser") if entry["level"] != "INFO"]  # type: ignore[no-untyped-call]
            assert messages == []
            assert driver.current_url == page
            for attack in (
                "const s = document.createElement('script'); s.textContent = 'window.stolen = 8'; document.body.append(s)",
                "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.stolen = 9'>`)",
                "setTimeout('window.stolen = 10')",
            ):
                driver.execute_script(attack)
            time.sleep(0.5)
            assert driver.execute_script("return window.stolen") is None
            driver.get("about:blank")
    finally:
        driver.quit()

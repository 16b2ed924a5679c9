"""The page as it is served: to those who have its address, on this machine, with nothing from the network; and dragged in a browser."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.browser import PATIENCE, TAKEN, WHY_NOT, chromium, hostile_cluster
from support.command_line import PAPER, program

import fairopt as fo


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


def status(address: str, path: str | None = None, method: str = "GET", **headers: str) -> int:
    """Return the status of a request, and check that every answer has the policy."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    connection.request(method, parts.path if path is None else path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
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
    assert status(address, f"/{token}/elsewhere") == 404
    other = "y" if token.endswith("x") else "x"
    for path in ("/", "/elsewhere", "/ws", f"/{token[:-1]}/", f"/{token[:-1]}{other}/ws", f"//{token}/", f"/x/../{token}/"):
        assert status(address, path) == 403, path
    assert status(address, Host="rebound.example") == 403
    assert status(address, Host=f"rebound.example:{parts.port}") == 403
    assert status(address, Origin="http://elsewhere.example") == 403
    assert status(address, Origin="null") == 403
    assert status(address, method="POST", path="/answer") == 403
    assert status(address, method="POST", path=f"/{token}/answer", Origin="http://elsewhere.example") == 403
    assert status(address, method="POST", path=f"/{token}/answer", Host="rebound.example") == 403
    assert status(address, method="POST", path=f"/{token}/nothing") == 404
    assert status(address, method="POST", path=f"/{token}/answer") == 400  # no JSON
    assert status(address, method="DELETE") == 403
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
    }
    assert status(address, f"/{token}/ws", Origin="http://elsewhere.example", **upgrade) == 403
    assert status(address, "/ws", Origin=f"http://{own}", **upgrade) == 403


def test_it_listens_on_this_machine_alone(address: str) -> None:
    """Another address of this machine does not answer."""
    with pytest.raises(OSError, match="refused"):
        status(address.replace("127.0.0.1", "127.0.0.2"))


def test_an_answer_comes_line_by_line(address: str) -> None:
    """Of what the page asks: the command, and the parts, which end with "done"."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    asked = {"tab": "t", "number": 1, "values": {"users.user-1.weight": 2}, "alpha": 1, "notions": ["drfh"], "explained": "user-1"}
    connection.request("POST", f"{parts.path}answer", json.dumps(asked), {"Content-Type": "application/json"})
    lines = [json.loads(line) for line in connection.getresponse().read().splitlines()]
    connection.close()
    assert [lines[0]["place"], lines[-1]["place"]] == ["command", "done"]
    assert "--set users.user-1.weight=2" in lines[0]["html"]
    assert {"summary", "users", "frontier"} <= {line["place"] for line in lines}


def test_a_tab_that_is_closed_is_no_news(address: str) -> None:
    """Nothing on stderr, which is looked at in the end, and the page goes on."""
    parts = urlsplit(address)
    with socket.create_connection((str(parts.hostname), parts.port), timeout=PATIENCE) as connection:
        connection.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode())  # and no more
    assert status(address) == 200


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A browser that finds nothing but this machine."""
    driver = chromium(tmp_path / "profile", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1")
    yield driver
    driver.quit()


def until(condition: Callable[[], Any]) -> Any:
    """Return what a condition comes to."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "the page does not get there"
        time.sleep(0.05)
    return found


def settled(driver: Any) -> str:
    """Return what the page says when its answer is complete."""
    return str(
        until(lambda: driver.execute_script("return !document.querySelector('.stale') && document.getElementById('status').innerText"))
    )


def complaints(driver: Any) -> list[str]:
    """Return what stands on the console."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] != "INFO"]


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_weight_is_moved_by_the_keyboard(address: str, browser: Any, width: int, scheme: str) -> None:
    """The table changes, what changed is announced, nothing leaves this machine, and a narrow screen needs no scrolling sideways."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.get(address)
    assert settled(browser) == "As in the file."
    before = browser.find_element(By.ID, "users").text
    slider = browser.find_element(By.ID, "knob-users.user-2.weight")
    slider.send_keys(Keys.ARROW_RIGHT * 5)
    until(lambda: browser.find_element(By.ID, "users").text != before and settled(browser).startswith("1 change. drfh: "))
    command = browser.find_element(By.ID, "command").text
    assert command.startswith(f"fairopt solve {PAPER} --notion drfh --set users.user-2.weight=3 --set users.user-2.weight=")
    assert float(command.rpartition("=")[2]) > 3
    assert slider.get_attribute("aria-valuetext") == command.rpartition("=")[2]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    dark = browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    assert complaints(browser) == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert {url for url in urls if not url.startswith((address, "data:", "blob:", "chrome:", "chrome-untrusted:"))} == set()


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_every_control_has_a_name(address: str, browser: Any) -> None:
    """For assistive technology: sliders, numbers, lists, buttons and pictures; the way back to the file takes all changes back."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.get(address)
    settled(browser)
    script = "return [...document.querySelectorAll('input, select, button, img')].filter((each) => each.checkVisibility())"
    controls = browser.execute_script(script)
    assert len(controls) > 10
    assert [each.get_attribute("outerHTML") for each in controls if not each.accessible_name] == []
    number = browser.find_element(By.CSS_SELECTOR, "input[aria-label='user-1: type a number']")
    number.send_keys(Keys.CONTROL, "a")
    number.send_keys("99", Keys.TAB)
    assert until(lambda: settled(browser).startswith("1 change."))
    assert float(browser.find_element(By.ID, "knob-users.user-1.weight").get_attribute("max")) == 99
    browser.find_element(By.XPATH, "//button[text()='Back to the file']").click()
    assert until(lambda: settled(browser) == "As in the file.")


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_no_name_is_more_than_text(tmp_path: Path, browser: Any) -> None:
    """None runs, or becomes an element; and a script that is put in does not run."""
    fo.save(hostile_cluster(), tmp_path / "<b data-evil>.json")
    with served(tmp_path / "<b data-evil>.json") as page:
        browser.get(page)
        settled(browser)
        assert "data-evil" in browser.execute_script("return document.getElementById('users').innerText")
        assert browser.execute_script(TAKEN) == ["undefined"]
        assert complaints(browser) == []
        assert browser.current_url == page
        for attack in (
            "const s = document.createElement('script'); s.textContent = 'window.stolen = 8'; document.body.append(s)",
            "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.stolen = 9'>`)",
            "setTimeout('window.stolen = 10')",
        ):
            browser.execute_script(attack)
        time.sleep(0.5)
        assert browser.execute_script("return window.stolen") is None
        browser.get("about:blank")

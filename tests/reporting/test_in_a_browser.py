"""The report in a browser: it draws in silence, reacts, and is legible at any width, dark or light; skipped where there is no browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.browser import HOSTILE, TAKEN, WHY_NOT, Window, chromium, hostile_cluster

import fairopt as fo
from fairopt.reporting.composing import report
from fairopt.reporting.histories import write_history_page
from fairopt.reporting.side_by_side import write_side_by_side_page

if WHY_NOT:
    pytest.skip(WHY_NOT, allow_module_level=True)

from selenium import webdriver  # only where there is a browser
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

EVIL = "<script>document.title = 'stolen'</script>"
OWN = {"file", "data", "chrome", "chrome-untrusted"}  # what is asked of nobody; the last two: the start page of the browser itself
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """A browser with a profile of its own."""
    driver = chromium(tmp_path_factory.mktemp("profile"))
    yield Window(driver)
    driver.quit()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three users, one of whom would like to be a script."""
    instance = fo.Instance(
        [[9, 12, 100], [12, 12, 0]],
        [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
        weights=[1, 1, 2],
        users=[EVIL, "a user with a name that is far longer than any chart has room for", "שלום"],
        servers=["old", "new"],
        resources=["cpu", "memory", "net"],
    )
    folder = tmp_path_factory.mktemp("small")
    return report(instance, folder / "small.html", notions=["drfh", "tsf"], schedules=["drfh:best-fit"], explain=[EVIL], effort=2).path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thousand users of twenty kinds."""
    number = np.arange(1000)
    demands = np.column_stack([1 + number % 5, 1 + number % 4])
    many = fo.Instance([[900, 700], [500, 800]], demands, counts=[30, 20], users=[f"team-{n}" for n in number])
    return report(many, tmp_path_factory.mktemp("large") / "large.html", notions=["drfh", "tsf"], effort=1).path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["small", "large"])
def test_it_draws_in_silence_and_fits(window: Window, name: str, width: int, request: pytest.FixtureRequest) -> None:
    """All charts, no word on the console, nothing asked of anybody, no need to scroll sideways."""
    path: Path = request.getfixturevalue(name)
    window.messages(), window.requested()
    window.open(path, width)
    assert int(window.run("return document.documentElement.dataset.drawn")) == (5 if name == "small" else 4)
    assert window.messages() == []
    assert window.requested() <= OWN
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.run("return [...document.querySelectorAll('.chart svg')].every((svg) => svg.getBoundingClientRect().width > 200)")


def test_a_wide_table_hints_at_its_rest(window: Window, tmp_path: Path) -> None:
    """On a telephone the numbers beside the bars are whole, and a shadow says that more follows; on a desk nothing is cut."""
    queues = [fo.Queue("a", guarantee={"gpu": 5}, limit={"gpu": 6}), fo.Queue("b", guarantee={"cpu": 50}, limit={"cpu": 60})]
    instance = fo.Instance([[100, 10]], [[1, 1], [10, 0]], users=["x", "y"], resources=["cpu", "gpu"], queues=queues, queue_of=["a", "b"])
    report(instance, tmp_path / "one.html", notions=["drfh"], one_page=True)
    window.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    )
    window.driver.get((tmp_path / "one.html").as_uri())
    assert window.run("return document.documentElement.scrollWidth") <= 390
    held = "document.querySelector('.answer thead th:nth-child(4)').getBoundingClientRect().right"
    assert window.run(f"return {held} <= document.querySelector('.answer .scroll').getBoundingClientRect().right")
    assert "gradient" in window.run("return getComputedStyle(document.querySelector('.answer .scroll')).backgroundImage")
    window.open(report(instance, tmp_path / "full.html", notions=["drfh"], effort=1).path)
    assert window.run("const all = document.querySelector('#summary .scroll'); return all.scrollWidth <= all.clientWidth")


def test_a_label_is_inert(window: Window, small: Path) -> None:
    """No script of a label runs, in the page or in a tooltip."""
    window.open(small)
    assert window.driver.title == "Fair shares of a cluster"
    bar = window.driver.find_element(By.CSS_SELECTOR, "#chart-tasks .mark-rect path")
    webdriver.ActionChains(window.driver).move_to_element(bar).perform()
    tooltip = window.wait(lambda: window.run("return document.querySelector('#vg-tooltip-element.visible')?.textContent"))
    assert "document.title" in tooltip
    assert "tasks" in tooltip
    assert window.run("return document.querySelectorAll('#vg-tooltip-element script').length") == 0
    assert window.driver.title == "Fair shares of a cluster"


def hostile_report(folder: Path) -> Path:
    """Write the report of a hostile cluster."""
    options: dict[str, Any] = {
        "notions": ["drfh"],
        "schedules": ["drfh:best-fit"],
        "explain": HOSTILE[:2],
        "effort": 1,
        "title": HOSTILE[0],
    }
    return report(hostile_cluster(), folder / "report.html", **options).path


def hostile_history(folder: Path) -> Path:
    """Write the page of a hostile log."""
    rows: dict[str, Any] = {"user": HOSTILE, "submit": 0.0, "start": 3600.0 * np.arange(len(HOSTILE)), "tasks": 4, "cpu": 1}
    rows["end"] = rows["start"] + 3600.0
    found = fo.history(pd.DataFrame(rows), fo.Instance([[8]], [[1]], resources=["cpu"], servers=[HOSTILE[1]], users=["nobody"]))
    write_history_page(found, folder / "history.html", title=HOSTILE[2])
    return folder / "history.html"


def hostile_side_by_side(folder: Path) -> Path:
    """Write the page of schedulers side by side, with hostile users."""
    number = len(HOSTILE)
    trace = fo.Trace(HOSTILE, np.arange(number), np.full(number, 4), np.ones((number, 1)), np.full(number, 50.0), resources=[HOSTILE[3]])
    cluster = fo.Instance([[4]], [[1]], users=["nobody"], servers=[HOSTILE[1]], resources=[HOSTILE[3]])
    write_side_by_side_page(fo.compare_over_time(trace, cluster, ["fifo", "drfh"]), folder / "week.html", title=HOSTILE[2])
    return folder / "week.html"


@pytest.mark.parametrize("write", [hostile_report, hostile_history, hostile_side_by_side])
def test_no_name_is_more_than_text(window: Window, write: Callable[[Path], Path], tmp_path: Path) -> None:
    """In no page does one run, become an element or an attribute, hide anything, or lead elsewhere."""
    path = write(tmp_path)
    window.messages(), window.requested()
    window.driver.get(path.as_uri())
    if write is hostile_report:
        window.wait(lambda: window.run("return document.documentElement.dataset.drawn"))
        assert window.run("return document.documentElement.dataset.drawn") != "failed"
    assert window.run(TAKEN) == ["undefined"]
    assert [each for each in window.messages() if "Infinite extent" not in each] == []  # Vega, of a chart in which nobody is picked
    assert window.requested() <= OWN
    assert window.driver.current_url == path.as_uri()
    assert window.run("return document.body.innerText").count("data-evil") > len(HOSTILE)
    policy = window.run("return document.querySelector('meta[http-equiv]').content")
    assert "unsafe-eval" not in policy
    assert ("unsafe-inline" in policy) == (write is not hostile_report)  # matplotlib styles the parts of a picture by attributes


def test_the_policy_stops_a_script_that_is_put_in(window: Window, small: Path, tmp_path: Path) -> None:
    """Even a page in which a label were a script would not run it."""
    text = small.read_text(encoding="utf-8").replace("<h1>", "<script>document.title = 'stolen'</script><h1>", 1)
    (tmp_path / "broken.html").write_text(text, encoding="utf-8")
    window.open(tmp_path / "broken.html")
    assert window.driver.title == "Fair shares of a cluster"
    assert any("Content Security Policy" in message for message in window.messages())


def test_the_keyboard_switches_the_notion(window: Window, small: Path) -> None:
    """Tab reaches the choice, an arrow moves it: bars change, and so do the words beside them."""
    window.open(small)
    before, shown = (
        window.bars("chart-tasks"),
        "return [...document.querySelectorAll('[data-notion]')].filter((e) => !e.hidden).map((e) => e.dataset.notion)",
    )
    assert set(window.run(shown)) == {"drfh"}
    for _ in range(60):
        webdriver.ActionChains(window.driver).send_keys(Keys.TAB).perform()
        if window.run("return document.activeElement.name") == "notion":
            break
    assert window.run("return document.activeElement.value") == "drfh"
    assert window.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"  # focus can be seen
    webdriver.ActionChains(window.driver).send_keys(Keys.ARROW_RIGHT).perform()
    window.wait(lambda: window.bars("chart-tasks") != before)
    assert set(window.run(shown)) == {"tsf"}
    webdriver.ActionChains(window.driver).send_keys(Keys.ARROW_LEFT).perform()
    window.wait(lambda: window.bars("chart-tasks") == before)


def test_a_user_is_highlighted_in_every_chart(window: Window, small: Path) -> None:
    """By its button, from the keyboard too, and by a click on a bar; a second time ends it."""
    window.open(small)
    assert window.dimmed("chart-tasks") == window.dimmed("chart-use") == 0
    button = window.driver.find_elements(By.CSS_SELECTOR, "button[data-user]")[2]
    button.send_keys(Keys.ENTER)
    window.wait(lambda: window.dimmed("chart-tasks") == 2 and window.dimmed("chart-shares") == 2 and window.dimmed("chart-use") > 0)
    assert button.get_attribute("aria-pressed") == "true"
    assert "שלום is highlighted" in window.run("return document.getElementById('spoken').textContent")
    button.send_keys(Keys.ENTER)
    window.wait(lambda: window.dimmed("chart-use") == 0)
    bar = window.driver.find_element(By.CSS_SELECTOR, "#chart-tasks .mark-rect path")
    webdriver.ActionChains(window.driver).move_to_element(bar).click().perform()
    window.wait(lambda: window.dimmed("chart-shares") == 2)
    assert window.driver.find_elements(By.CSS_SELECTOR, "button[data-user]")[0].get_attribute("aria-pressed") == "true"


def test_one_of_a_thousand_users_is_found_by_name(window: Window, large: Path) -> None:
    """Its point appears on the curves."""
    window.open(large)
    count = "return document.querySelectorAll('#chart-tasks .mark-symbol path[opacity=\"1\"]').length"
    assert window.run(count) == 0
    window.driver.find_element(By.ID, "pick").send_keys("team-123")
    window.wait(lambda: window.run(count) == 1)


# How far apart text and what is behind it are, by the definition of WCAG 2: every text that is shown, in charts too.
CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
};
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] > 0.99) return colour;
  }
  return rgba(getComputedStyle(document.documentElement).backgroundColor);
};
const worst = {};
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const element = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest(".quiet, script, style, noscript")) continue;
  const inside = element.closest("svg") !== null;
  const style = getComputedStyle(element);
  const [over, under] = [light(rgba(inside ? style.fill : style.color)), light(behind(element))];
  const ratio = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
  const kind = inside ? "chart" : "page";
  worst[kind] = Math.min(worst[kind] ?? Infinity, ratio);
}
return worst;
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_text_can_be_read_in_the_dark_in_the_light_and_on_paper(window: Window, small: Path, width: int) -> None:
    """Contrast of 4.5 at least, in page and charts; dark and light differ, paper is always light. The page follows without a reload."""
    window.open(small, width)
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    label = "return getComputedStyle(document.querySelector('.chart svg text')).fill"
    seen = []
    for scheme, media in (("light", ""), ("dark", ""), ("dark", "print")):
        window.scheme(scheme, media)
        contrast = window.run(CONTRAST)
        assert set(contrast) == {"chart", "page"}
        assert min(contrast.values()) >= 4.5
        seen.append((window.run(background), window.run(label)))
    assert seen[0] == seen[2] == ("rgb(255, 255, 255)", seen[0][1])
    assert seen[1][0] != seen[0][0]
    assert seen[1][1] != seen[0][1]


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page about a tree of queues, of whose guarantees some are missing."""
    instance = fo.Instance(
        [[20, 160]],
        [[1, 4], [2, 4]],
        users=[EVIL, "a user with a name that is far longer than any page of paper has room for"],
        resources=["gpu", "cpu"],
        queues=[fo.Queue("research", guarantee={"gpu": 18}), fo.Queue("teaching", guarantee={"gpu": 6}, limit={"gpu": 12})],
        queue_of=["research", "teaching"],
    )
    return report(instance, tmp_path_factory.mktemp("sheet") / "page.html", one_page=True, explain=[EVIL]).path


@pytest.mark.parametrize("width", WIDTHS)
def test_one_page_can_be_read_everywhere(window: Window, sheet: Path, width: int) -> None:
    """It runs nothing, says nothing on the console, needs no scrolling sideways, and its text is seen in any scheme and on paper."""
    window.messages(), window.requested()
    window.driver.get(sheet.as_uri())
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert window.run("return document.documentElement.scrollWidth") <= width
    assert window.driver.title == "Fair shares of a cluster"
    for scheme, media in (("light", ""), ("dark", ""), ("dark", "print")):
        window.scheme(scheme, media)
        assert min(window.run(CONTRAST).values()) >= 4.5
    bars = "return [...document.querySelectorAll('rect.held')].filter((bar) => bar.getBoundingClientRect().width > 5).length"
    assert window.run(bars) >= 4  # two queues, each with its user, and the sign of the legend
    window.scheme("light")
    assert window.messages() == []
    assert window.requested() <= {"file", "data", "chrome"}


def test_paper_has_no_buttons_and_all_tables(window: Window, small: Path) -> None:
    """What is closed on the screen is open on paper, and closed again after it; nothing is wider than the page."""
    window.open(small, 700)
    closed = "return document.querySelectorAll('details:not([open])').length"
    before = window.run(closed)
    assert before > 0
    window.scheme("light", "print")
    window.run("window.dispatchEvent(new Event('beforeprint'))")
    assert window.run(closed) == 0
    hidden = "return ['nav', '.controls', 'button', 'input', '.skip'].flatMap((each) => [...document.querySelectorAll(each)])"
    assert not any(window.run(f"{hidden}.filter((each) => each.checkVisibility()).map((each) => each.tagName)"))
    assert window.run("return [...document.querySelectorAll('.scroll')].every((each) => getComputedStyle(each).overflow === 'visible')")
    window.run("window.dispatchEvent(new Event('afterprint'))")
    assert window.run(closed) == before
    window.scheme("light")

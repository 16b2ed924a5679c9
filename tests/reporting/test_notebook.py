"""What notebooks show: every object has a page, it is well formed, no label is markup, and the numbers are those of the object."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.reporting.notebook import html_of

BAD = "<img src=x onerror=alert(1)>\x1b[31m"
VOID = {"img", "br", "mspace"}


class Checked(HTMLParser):
    """The tags of a page, which must be closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close it."""
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open and close a tag."""
        self.seen.add(tag)


def tags(page: str) -> set[str]:
    """Return the tags of a page that is well formed."""
    parser = Checked()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser.seen


@pytest.fixture(scope="module")
def objects() -> dict[str, object]:
    """One object of each kind, of users and queues with a hostile name."""
    flat = fo.Instance([[9, 18], [4, 8]], [[1, 4], [3, 1]], users=[BAD, "b"], resources=["cpu", "memory"])
    queues = [fo.Queue(BAD, guarantee={"cpu": 2}), fo.Queue("q", limit={"cpu": 3})]
    tree = flat.replace(queues=queues, queue_of=[BAD, "q"])
    allocation, greedy = fo.solve(tree, "drfh"), fo.schedule(flat, "drfh")
    jobs = pd.DataFrame({"user": [BAD, "b"], "submit": [0, 1], "start": [0, 2], "end": [2, 3], "queue": [BAD, "q"], "cpu": [8, 8]})
    trace = fo.Trace([BAD, "b"], [0.0, 0.0], [3, 2], [[1, 4], [3, 1]], [5.0, 5.0], resources=["cpu", "memory"])
    return {
        "instance": tree,
        "history": fo.history(jobs, fo.Instance([[8]], [[1]], resources=["cpu"])),
        "allocation": allocation,
        "certificate": allocation.certificate,
        "program": fo.formulate(tree, "drfh"),
        "comparison": fo.compare(flat, notions=["drfh", "proportional"], schedules=["drfh:best-fit"]),
        "audit": fo.audit(greedy, ["envy-freeness", "pareto"]),
        "explanation": fo.explain(fo.solve(flat, "drfh"), BAD),
        "frontier": fo.frontier(flat),
        "regret": fo.regret(greedy),
        "simulation": fo.simulate(trace, flat, "drfh:best-fit"),
        "what-if": fo.what_if(tree, tree.replace(weights={BAD: 2}, counts=[2, 1])),
    }


KINDS = [
    "instance",
    "allocation",
    "certificate",
    "program",
    "comparison",
    "audit",
    "explanation",
    "frontier",
    "regret",
    "simulation",
    "history",
    "what-if",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_has_a_page(kind: str, objects: dict[str, object]) -> None:
    """Tables or mathematics, closed tags, no tag and no control character of a label, nothing that runs or loads."""
    page = objects[kind]._repr_html_()  # type: ignore[attr-defined]
    seen = tags(page)
    assert seen & {"table", "math"}
    assert not seen & {"img", "script", "link", "style", "iframe"}
    assert "\x1b" not in page
    assert not re.search(r"(src|href)\s*=", re.sub(r"&lt;.*?&gt;", "", page))


def test_numbers_are_those_of_the_allocation() -> None:
    """Tasks, what is in use, the certificate."""
    allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"]), "drf")
    page = html_of(allocation)
    assert re.search(r">A</td><td[^>]*>3</td>", page)
    assert re.search(r">100.0 %</td><td[^>]*>77.8 %</td>", page)
    assert "Certified exact" in page
    assert "Certified exact" not in html_of(fo.schedule(allocation.instance, "drf"))


def test_long_tables_are_cut_and_say_so() -> None:
    """Ten rows at each end, and how many there are."""
    page = html_of(fo.Instance([[9.0]], np.ones((50, 1))))
    assert page.count("<tr>") == 1 + 1 + 1 + 1 + 20  # the server and its heading, the heading of users, the gap, users
    assert "50 rows: see to_frame()" in page
    assert ">user-10<" in page
    assert ">user-11<" not in page
    assert ">user-41<" in page


def test_anything_else_is_its_text() -> None:
    """An object without a page of its own."""
    assert html_of("<b>") == '<div class="fairopt tex2jax_ignore mathjax_ignore"><pre>&#x27;&lt;b&gt;&#x27;</pre></div>'

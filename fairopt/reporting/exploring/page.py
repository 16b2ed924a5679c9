"""The page in a browser: sliders on the left, the results on the right; one file with its script and its style.

A change shows at once that the answer is being computed. The page waits until the sliders rest for a moment and drops an answer that is
no longer asked for. Labels come from files and must stay text: the page takes them from a block of JSON, in which no tag can begin, and
the parts of an answer have them escaped.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "lab.yaml")
...     _ = path.write_text("servers: [{name: new, capacity: {gpu: 8}}]\\nusers: [{name: '</script>', demand: {gpu: 1}}]")
...     site = Page(Exploration(path), "drfh").site()
>>> site.page.count("</script>"), sorted(site.actions)
(2, ['answer', 'save'])
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import re
import threading
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from fairopt.errors import FairoptError
from fairopt.models import NOTIONS
from fairopt.reporting.bars import PATTERN
from fairopt.reporting.exploring.exploration import MOST_NOTIONS, PLACES, Asked, Exploration, Part
from fairopt.reporting.exploring.knobs import KINDS, Kind
from fairopt.reporting.exploring.serving import Site
from fairopt.specs import options_of
from fairopt.wording import printable

__all__ = ["Page"]

log = logging.getLogger(__name__)

_FEW = 8  # knobs of a kind that are all shown at once
_ALPHA = "proportional"  # the notion that has an alpha
_TITLES: dict[Kind, str] = {
    "weights": "Weights",
    "counts": "Servers of each row",
    "capacities": "Capacity of one server",
    "demands": "Demand of a task",
    "speeds": "Speed of a task",
    "guarantees": "Guarantees",
    "limits": "Limits",
}
_OPEN: tuple[Kind, ...] = ("weights", "counts")


class Page:
    """The page, which all tabs share, and the actions that it asks for.

    Parameters
    ----------
    exploration : Exploration
    notion : str
        The notion that is chosen first, perhaps with options.
    """

    def __init__(self, exploration: Exploration, notion: str) -> None:
        self.exploration, self.notion = exploration, notion
        self.turn = threading.Lock()
        """Held while a part is computed: tabs take turns."""
        self._latest: dict[str, int] = {}  # the number of the last request of each tab

    def site(self) -> Site:
        """Return the page with its policy and its actions."""
        folder = files("fairopt.reporting.exploring")
        shared = files("fairopt.reporting").joinpath("page.css").read_text(encoding="utf-8")
        template, own, script = (folder.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
        style = shared + own
        heading = printable(" with ".join([str(self.exploration.path), *self.exploration.given]))
        parts = {
            "heading": html.escape(heading),
            "style": style,
            "script": script,
            "pattern": str(PATTERN),
            "data": json.dumps(self._data()).replace("<", "\\u003c").replace("&", "\\u0026"),
        }
        page = re.sub(r"\[\[(\w+)\]\]", lambda found: parts[found[1]], template)
        policy = [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
        return Site(page, "; ".join(policy), {"answer": self.answer, "save": self.save})

    def _data(self) -> dict[str, Any]:
        """Return what the script needs to make the controls."""
        _, identifier, options = options_of(self.notion)
        own = identifier == _ALPHA and set(options) <= {"alpha"}
        chosen = _ALPHA if own else self.notion
        notions = {chosen: chosen, **{name: f"{name}: {kind.title}" for name, kind in NOTIONS.items()}}
        sections = []
        for kind in KINDS:
            knobs = [knob for knob in self.exploration.knobs if knob.kind == kind]
            first = [knob.path for knob in knobs if knob.likely][:_FEW]
            plain = [
                {
                    "path": knob.path,
                    "name": printable(f"{knob.name} ({knob.unit})" if knob.unit else knob.name),
                    "value": knob.value,
                    "high": knob.high,
                    "step": knob.step,
                    "shown": knob.path in first,
                }
                for knob in knobs
            ]
            is_open = kind in _OPEN or (kind == "guarantees" and any(knob.value > 0 for knob in knobs)) or kind in ("speeds", "limits")
            if plain:
                sections.append({"title": _TITLES[kind], "open": is_open, "knobs": plain})
        return {
            "notions": [[name, title] for name, title in notions.items()],
            "notion": chosen,
            "alpha": float(options.get("alpha", 1.0)) if own else 1.0,
            "with_alpha": _ALPHA,
            "most": MOST_NOTIONS,
            "explainable": [[name, printable(name)] for name in self.exploration.explainable],
            "sections": sections,
            "places": PLACES,
        }

    def asked(self, sent: Any) -> Asked:
        """Return the request that a page sent.

        Raises
        ------
        FairoptError, LookupError, TypeError, ValueError
            It is none.
        """
        values = {str(path): float(value) for path, value in sent["values"].items()}
        alpha = float(sent["alpha"])
        notions = [f"{each}:alpha={alpha:.12g}" if each == _ALPHA and alpha != 1 else str(each) for each in sent["notions"]]
        if not notions:
            raise ValueError
        return Asked(self.exploration.words(values), tuple(dict.fromkeys(notions))[:MOST_NOTIONS], str(sent["explained"]))

    def answer(self, sent: Any) -> Iterator[dict[str, str]]:
        """Yield the command of a request, then the parts of its answer, until its tab has sent a later one."""
        tab, mine = str(sent["tab"]), int(sent["number"])
        self._latest[tab] = max(mine, self._latest.get(tab, 0))
        try:
            asked = self.asked(sent)
            yield {"place": "command", "html": f"<pre>{html.escape(printable(self.exploration.command(asked)))}</pre>"}
            parts = self.exploration.answer(asked)
            while True:
                with self.turn:
                    part = next(parts, None) if mine == self._latest[tab] else None
                if part is None:
                    break
                yield {"place": part.place, "html": _html(part)}
        except FairoptError as error:
            yield {"place": "error", "html": _sentence(str(error))}
        except Exception:  # a defect: its trace is for the terminal, a sentence for the page
            log.exception("the page could not be computed")
            yield {"place": "error", "html": _sentence("This could not be computed; the terminal says more.")}
        if mine == self._latest[tab]:
            yield {"place": "done", "html": ""}

    def save(self, sent: Any) -> Iterator[dict[str, str]]:
        """Write the changed instance to the file that is named."""
        name = str(sent["name"]).strip()
        if not name:
            yield {"place": "saved", "html": _sentence("give the name of a file, such as changed.yaml")}
            return
        try:
            with self.turn:
                path = self.exploration.save_as(self.asked(sent), name, replace=bool(sent["replace"]))
        except FairoptError as error:
            said = str(error).replace("replace it with --force", "tick the box to replace it")
            yield {"place": "saved", "html": _sentence(said)}
        else:
            yield {"place": "written", "html": _sentence(f"written: {path}")}


def _html(part: Part) -> str:
    """Return a part as HTML."""
    if part.form == "sentence":
        return _sentence(part.text)
    if part.form == "svg":
        data = base64.b64encode(part.text.encode()).decode()
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(printable(part.says))}">'
    return part.text


def _sentence(text: str) -> str:
    return "".join(f"<p>{html.escape(printable(line))}</p>" for line in text.splitlines())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

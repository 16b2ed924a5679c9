"""The page in a browser: sliders on the left, the results on the right.

A change shows at once that the answer is being computed. The computation waits until the slider rests for a moment, runs in a thread of
its own, so that sliders move meanwhile, and stops between two parts if there is a later change. Labels come from files and must stay text:
all of them are escaped, and pictures are images, in which nothing runs.
"""

# Panel is imported when a page is made, so that the command line starts quickly without it.

from __future__ import annotations

import asyncio
import base64
import html
import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import panel as pn
from panel.links import Callback

from fairopt.errors import FairoptError
from fairopt.models import NOTIONS
from fairopt.reporting.exploring.exploration import PLACES, Asked, Exploration, Part, Place
from fairopt.reporting.exploring.knobs import KINDS, Kind, Knob
from fairopt.specs import options_of
from fairopt.wording import plural, printable

__all__ = ["Page"]

T = TypeVar("T")
log = logging.getLogger(__name__)

_FEW = 8  # knobs of a kind that are all shown at once
_PAUSE = 0.15  # seconds that a slider rests before anything is computed
_ALPHA = "proportional"  # the notion that has an alpha
_TITLES: dict[Kind, str] = {"weights": "Weights", "counts": "Servers of each row", "guarantees": "Guarantees"}
_MORE: dict[Kind, str] = {"weights": "Another weight", "counts": "Another row of servers", "guarantees": "Another guarantee"}
_FRESH, _STALE = {"opacity": "1"}, {"opacity": "0.45"}
_STYLE = """
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: 0.1rem 0.9rem 0.1rem 0; vertical-align: baseline; white-space: nowrap; }
h2 { font-size: 1rem; margin: 0.6rem 0 0.3rem; }
img { width: 100%; height: auto; }
p { margin: 0.3rem 0; max-width: 60rem; overflow-wrap: anywhere; }
pre { margin: 0; padding: 0.5rem; background: #f3f3f3; white-space: pre-wrap; overflow-wrap: anywhere; user-select: all; }
"""
_OF_PLACES = {"error": "p { color: #a00000; font-weight: bold; }", "remarks": "p { color: #7a4a00; }", "status": "p { color: #555; }"}
_CAPTIONS: dict[Place, str] = {
    "users": "Users",
    "servers": "Use of each server",
    "queues": "Queues",
    "frontier": "Fairness against efficiency",
}


def _slider_of(**settings: Any) -> Any:
    """Return a slider with a number that can be typed; a number beyond its end moves the end.

    Panel moves the end by a script that it sends as text, which the policy of the page forbids to run. Here the server moves it.
    """
    slider = pn.widgets.EditableFloatSlider(**settings)
    registry: Any = Callback.registry
    registry.pop(getattr(slider, "_value_edit", None), None)

    def widen(event: Any) -> None:
        slider.end = max(slider.end, event.new)

    slider.param.watch(widen, "value")
    return slider


class Page:
    """The page of one browser tab.

    Parameters
    ----------
    exploration : Exploration
        What is explored; the pages of several tabs share it.
    notion : str
        The notion that is chosen first, perhaps with options.
    turn : asyncio.Lock
        Held while a part is computed: pages take turns.
    """

    def __init__(self, exploration: Exploration, notion: str, turn: asyncio.Lock) -> None:
        self.exploration = exploration
        self._turn = turn
        self._latest = 0  # the number of the last change
        self._sliders: dict[Knob, Any] = {}
        _, identifier, options = options_of(notion)
        own = identifier == _ALPHA and set(options) <= {"alpha"}
        chosen = _ALPHA if own else notion
        titles = {f"{name}: {kind.title}": name for name, kind in NOTIONS.items()}
        self.notion = pn.widgets.Select(
            label="Notion of fairness",
            options=titles if chosen in titles.values() else {chosen: chosen, **titles},
            value=chosen,
            sizing_mode="stretch_width",
        )
        self.alpha = _slider_of(
            label="alpha",
            start=0.0,
            end=10.0,
            fixed_start=0.0,
            step=0.1,
            value=float(options.get("alpha", 1.0)) if own else 1.0,
            visible=own,
            sizing_mode="stretch_width",
        )
        self.explained = pn.widgets.Select(
            label="Explain a user or a queue",
            options={printable(name): name for name in exploration.explainable},
            sizing_mode="stretch_width",
        )
        self.reset = pn.widgets.Button(label="Back to the file", sizing_mode="stretch_width")
        self.name = pn.widgets.TextInput(label="Save the changed instance as", placeholder="changed.yaml", sizing_mode="stretch_width")
        self.replace = pn.widgets.Checkbox(label="replace a file that exists")
        self.save = pn.widgets.Button(label="Save", sizing_mode="stretch_width")
        self.saved = _place("saved")
        self.status, self.command = _place("status"), _place("command")
        self.shown = {place: _place(place) for place in PLACES}

    # What is on it -----------------------------------------------------------------------------------------------------------------

    def template(self, nonce: str) -> pn.Template:
        """Return the page, whose scripts have this nonce, and begin to compute."""
        text = files("fairopt.reporting.exploring").joinpath("page.html").read_text(encoding="utf-8")
        found = pn.Template(text)
        found.add_variable("nonce", nonce)
        found.add_variable("app_favicon", "data:,")
        found.add_variable("apple_icon", "")
        found.add_variable("heading", printable(" with ".join([str(self.exploration.path), *self.exploration.given])))
        controls = [self.notion, self.alpha, *(part for kind in KINDS for part in self._section(kind)), self.reset]
        found.add_panel("controls", pn.Column(*controls, sizing_mode="stretch_width"))
        found.add_panel("saving", pn.Column(self.name, self.replace, self.save, self.saved, sizing_mode="stretch_width"))
        for place, pane in self.shown.items():
            found.add_panel(place, pane)
        for name, part in {"status": self.status, "command": self.command, "explained": self.explained}.items():
            found.add_panel(name, part)
        for widget in (self.notion, self.alpha, self.explained):
            widget.param.watch(self._changed, "value")
        self.reset.on_click(self._go_back)
        self.save.on_click(self._save)
        pn.state.onload(self._changed)
        pn.state.on_session_destroyed(self._leave)
        return found

    def _section(self, kind: Kind) -> Iterator[Any]:
        """Yield the heading, the sliders, and where there are too many, the choice of another."""
        knobs = [knob for knob in self.exploration.knobs if knob.kind == kind]
        if not knobs:
            return
        yield pn.pane.HTML(f"<h2>{_TITLES[kind]}</h2>", stylesheets=[_STYLE], margin=(8, 10, 0, 10))
        first = [knob for knob in knobs if knob.likely][:_FEW]
        column = pn.Column(*map(self._slider, first), sizing_mode="stretch_width")
        yield column
        if len(first) < len(knobs):
            hidden = {knob.path: knob for knob in knobs if knob not in self._sliders}
            names = {f"choose one of {len(hidden):,}": "", **{printable(knob.name): path for path, knob in hidden.items()}}
            choice = pn.widgets.Select(label=_MORE[kind], options=names, value="", sizing_mode="stretch_width")

            def add(event: Any) -> None:
                if event.new in hidden:
                    column.append(self._slider(hidden.pop(event.new)))
                choice.value = ""

            choice.param.watch(add, "value")
            yield choice

    def _slider(self, knob: Knob) -> Any:
        slider = self._sliders[knob] = _slider_of(
            label=_label(f"{knob.name} ({knob.unit})" if knob.unit else knob.name),
            start=knob.low,
            end=knob.high,
            fixed_start=knob.low,
            step=knob.step,
            value=knob.value,
            sizing_mode="stretch_width",
        )
        slider.param.watch(self._changed, "value")
        return slider

    # What follows ------------------------------------------------------------------------------------------------------------------

    def asked(self) -> Asked:
        """Return the request that the widgets show."""
        changes = (knob.word(slider.value) for knob, slider in self._sliders.items() if knob.is_changed(slider.value))
        alpha = f":alpha={self.alpha.value:.12g}" if self.notion.value == _ALPHA and self.alpha.value != 1 else ""
        return Asked(tuple(changes), f"{self.notion.value}{alpha}", str(self.explained.value))

    async def _changed(self, *events: Any) -> None:
        """Show that an answer is being computed, then its parts, unless there is a later change."""
        self._latest += 1
        mine = self._latest
        asked = self.asked()
        self.alpha.visible = self.notion.value == _ALPHA
        self.command.object = f"<pre>{html.escape(printable(self.exploration.command(asked)))}</pre>"
        self.status.object = '<p class="computing">computing …</p>'
        for place in self.shown.values():
            place.styles = _STALE
        await asyncio.sleep(_PAUSE)
        try:
            await self._answer(asked, mine)
        except Exception:  # a defect: its trace is for the terminal, a sentence for the page
            log.exception("the page could not be computed")
            self._show(Part("error", "sentence", "This could not be computed; the terminal says more."))
            self.status.object = "<p>not computed</p>"

    async def _answer(self, asked: Asked, mine: int) -> None:
        """Show the parts of an answer as they come, until there is a later change."""
        parts, seen = self.exploration.answer(asked), set[Place]()
        async with self._turn:
            while mine == self._latest:
                part = await _aside(partial(next, parts, None))
                if mine != self._latest:
                    return
                if part is None:
                    break
                self._show(part)
                seen.add(part.place)
        if mine == self._latest:
            for name, place in self.shown.items():
                if name not in seen and ("error" not in seen or name == "remarks"):  # beside an error, what was before stays, pale
                    place.object, place.styles = "", _FRESH
            self.status.object = f"<p>{plural(len(asked.changes), 'change')}</p>" if asked.changes else "<p>as in the file</p>"

    def _show(self, part: Part) -> None:
        place = self.shown[part.place]
        place.object, place.styles = _html(part), _FRESH

    def _go_back(self, event: Any) -> None:
        """Give every knob the value of the file."""
        for knob, slider in self._sliders.items():
            slider.value = knob.value

    async def _save(self, event: Any) -> None:
        """Write the changed instance to the file that is named."""
        name, replace, asked = (self.name.value_input or self.name.value or "").strip(), self.replace.value, self.asked()
        if not name:
            self.saved.object = _sentence("give the name of a file, such as changed.yaml")
            return
        try:
            path = await _aside(lambda: self.exploration.save_as(asked, name, replace=replace))
        except FairoptError as error:
            self.saved.object = _sentence(str(error).replace("replace it with --force", "tick the box to replace it"))
        else:
            self.saved.object = _sentence(f"written: {path}")
            self.replace.value = False

    def _leave(self, context: Any) -> None:
        """Compute no more: the tab is closed."""
        self._latest += 1


def _place(name: str) -> pn.pane.HTML:
    """Return an empty place of the page."""
    return pn.pane.HTML(
        "",
        css_classes=[name],
        stylesheets=[_STYLE, _OF_PLACES.get(name, "")],
        disable_math=True,  # a $ in a label begins no formula
        sizing_mode="stretch_width",
        margin=0,
    )


def _label(name: str) -> str:
    """Return the name of a slider, which Panel takes for HTML with formulas."""
    return "".join(f"<span>{c}</span>" if c in "$\\" else c for c in html.escape(printable(name)))


def _html(part: Part) -> str:
    """Return a part as HTML."""
    caption = _CAPTIONS.get(part.place, "")
    head = f"<h2>{caption}</h2>" if caption else ""
    if part.form == "sentence":
        return head + _sentence(part.text)
    if part.form == "svg":
        data = base64.b64encode(part.text.encode()).decode()
        return f'{head}<img src="data:image/svg+xml;base64,{data}" alt="{caption}">'
    return part.text


def _sentence(text: str) -> str:
    return "".join(f"<p>{html.escape(printable(line))}</p>" for line in text.splitlines())


async def _aside(task: Callable[[], T]) -> T:
    """Run a task in a thread that ends with the program, and return what it returns."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not finished.done():
            set_it(value)

    def run() -> None:
        try:
            value = task()
        except BaseException as error:  # raised where it is awaited
            loop.call_soon_threadsafe(settle, finished.set_exception, error)
        else:
            loop.call_soon_threadsafe(settle, finished.set_result, value)

    threading.Thread(target=run, daemon=True).start()
    return await finished

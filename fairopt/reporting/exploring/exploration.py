"""The results of changes to an instance: its allocation beside that of the file, an explanation, pictures, the frontier.

The answer comes in parts, the quick ones first, so that a page can show each part as it arrives and drop the rest if the instance has
changed again. If a part cannot be computed, a sentence says why.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "lab.yaml")
...     users = "[{name: a, demand: {gpu: 1}}, {name: b, demand: {gpu: 1}}]"
...     _ = path.write_text(f"servers: [{{name: new, capacity: {{gpu: 8}}}}]\\nusers: {users}")
...     lab = Exploration(path)
>>> asked = Asked(("users.a.weight=3",), "drfh", "a")
>>> table = next(lab.answer(asked))
>>> table.place, "1 user gains, 1 loses" in table.text
('table', True)
"""

from __future__ import annotations

import io
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fairopt.allocation import Allocation
from fairopt.analysis.comparing import compare
from fairopt.analysis.comparison import Comparison
from fairopt.analysis.differences import Differences
from fairopt.analysis.explaining import explain
from fairopt.analysis.frontiers import frontier
from fairopt.analysis.what_ifs import WhatIf
from fairopt.errors import FairoptError
from fairopt.files import refuse_existing, refuse_read
from fairopt.formats import save, source_of
from fairopt.formats.changes import Changed
from fairopt.formats.document import instance_from
from fairopt.instance import Instance
from fairopt.instance.doubts import doubts
from fairopt.instance.remarks import remarks
from fairopt.models import Sharing
from fairopt.plots import plot_frontier, plot_queues, plot_shares, plot_utilization
from fairopt.reporting.exploring.knobs import Knob, knobs_of
from fairopt.reporting.notebook import html_of
from fairopt.validation import check_time_limit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PLACES", "Asked", "Exploration", "Part", "Place"]

Place: TypeAlias = Literal["error", "remarks", "table", "proof", "explanation", "users", "servers", "queues", "frontier"]
PLACES: tuple[Place, ...] = ("error", "remarks", "table", "proof", "explanation", "users", "servers", "queues", "frontier")
"""Where parts of an answer stand, in the order in which they come."""

_ALPHAS = (0.0, 0.5, 1.0, 2.0, float("inf"))  # of the frontier
_RESOLVES = 3  # changes that an explanation solves
_REMEMBERED = 64  # allocations of the file, one for each notion with its options


@dataclass(frozen=True, slots=True)
class Asked:
    """The request: changes in the words of ``--set``, a notion with its options, and the user or queue to explain."""

    changes: tuple[str, ...]
    notion: str
    explained: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer: a sentence, or else HTML or a picture as SVG."""

    place: Place
    form: Literal["sentence", "html", "svg"]
    text: str


class Exploration:
    """An instance in a file, which is read once and never written.

    Parameters
    ----------
    path : path
    changes : sequence of str
        Changes of ``--set`` with which it begins.
    sharing, time_limit
        As for `fairopt.solve`.

    Raises
    ------
    InvalidInstance
    """

    def __init__(self, path: Path, changes: Sequence[str] = (), *, sharing: Sharing | None = None, time_limit: float | None = None) -> None:
        check_time_limit(time_limit)
        self.path, self.given, self.sharing, self.time_limit = path, tuple(changes), sharing, time_limit
        self._source = source_of(path)
        self.instance = self.changed(())
        self.knobs: tuple[Knob, ...] = knobs_of(Changed(self._source, self.given) if self.given else self._source, self.instance)
        self._before: dict[str, Comparison] = {}

    @property
    def explainable(self) -> tuple[str, ...]:
        """The users, and the queues whose names no user has."""
        return (*self.instance.users, *(queue.name for queue in self.instance.queues if queue.name not in self.instance.users))

    def changed(self, changes: Sequence[str]) -> Instance:
        """Return the instance with changes."""
        words = (*self.given, *changes)
        return instance_from(Changed(self._source, words) if words else self._source)

    def command(self, asked: Asked) -> str:
        """Return the command that solves the same instance."""
        words = ["fairopt", "solve", str(self.path), "--notion", asked.notion]
        if self.sharing is not None:
            words += ["--sharing", self.sharing]
        for change in (*self.given, *asked.changes):
            words += ["--set", change]
        return shlex.join(words)

    def save_as(self, asked: Asked, name: str, *, replace: bool = False) -> Path:
        """Write the changed instance to another file: completely or not at all.

        Raises
        ------
        InvalidInstance
            It is the file that was read, it exists and shall not be replaced, or it cannot be written.
        """
        path = Path(name).expanduser()
        if not replace:
            refuse_existing(path, force=False)
        refuse_read(path, [self.path])
        save(self.changed(asked.changes), path)
        return path

    def answer(self, asked: Asked) -> Iterator[Part]:
        """Yield the parts of the answer, in the order of `PLACES`; after an error no more."""
        try:
            instance = self.changed(asked.changes)
            found = self._what_if(instance, asked.notion)
        except FairoptError as error:
            yield Part("error", "sentence", str(error))
            return
        (row,) = found.rows
        allocation = found.after[row].allocation
        if allocation is None:
            yield Part("error", "sentence", found.after[row].message)
            return
        if said := (*doubts(instance), *remarks(instance)):
            yield Part("remarks", "sentence", "\n".join(said))
        yield Part("table", "html", html_of(found))
        yield Part("proof", "sentence", f"{allocation.proof}.")
        yield self._explanation(allocation, asked.explained)
        yield _picture("users", lambda: plot_shares(allocation, title=""))
        yield _picture("servers", lambda: plot_utilization(allocation, title=""))
        if instance.queues:
            yield _picture("queues", lambda: plot_queues(allocation, title=""))
        yield _picture("frontier", lambda: self._frontier(allocation, asked.notion))

    def _what_if(self, instance: Instance, notion: str) -> WhatIf:
        """Return the allocations of the file and of the changed instance side by side; that of the file is computed once."""
        if notion not in self._before:
            while len(self._before) >= _REMEMBERED:
                del self._before[next(iter(self._before))]
            self._before[notion] = self._compared(self.instance, notion)
        differences = Differences(self.instance, instance).all
        before = self._before[notion]
        return WhatIf(("before", "now"), before, self._compared(instance, notion) if differences else before, differences, {})

    def _compared(self, instance: Instance, notion: str) -> Comparison:
        return compare(instance, notions=[notion], sharing=self.sharing, time_limit=self.time_limit)

    def _explanation(self, allocation: Allocation, name: str) -> Part:
        try:
            return Part("explanation", "html", html_of(explain(allocation, name, resolves=_RESOLVES, time_limit=self.time_limit)))
        except FairoptError as error:
            return Part("explanation", "sentence", str(error))

    def _frontier(self, allocation: Allocation, notion: str) -> Figure:
        found = frontier(
            allocation.instance,
            alphas=_ALPHAS,
            notions=[notion],
            sharing=allocation.sharing,  # type: ignore[arg-type]
            time_limit=self.time_limit,
        )
        return plot_frontier(found, title="", figsize=(7.0, 4.5))


def _picture(place: Place, draw: Callable[[], Figure]) -> Part:
    """Return a picture, or why there is none."""
    page = io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # a browser has more fonts than matplotlib
            draw().savefig(page, format="svg")
    except FairoptError as error:
        return Part(place, "sentence", str(error))
    return Part(place, "svg", page.getvalue())

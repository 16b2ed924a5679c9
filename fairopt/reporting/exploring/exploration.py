"""The results of changes to an instance: allocations of one to three notions beside those of the file, an explanation, the frontier.

The answer comes in parts, the quick ones first, so that a page can show each part as it arrives and drop the rest if the instance has
changed again. If a part cannot be computed, a sentence says why.

>>> import tempfile
>>> from pathlib import Path
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "lab.yaml")
...     users = "[{name: a, demand: {gpu: 1}}, {name: b, demand: {gpu: 1}}]"
...     _ = path.write_text(f"servers: [{{name: new, capacity: {{gpu: 8}}}}]\\nusers: {users}")
...     lab = Exploration(path)
>>> asked = Asked(("users.a.weight=3",), ("drfh", "tsf"), "a")
>>> summary, users, *_ = lab.answer(asked)
>>> summary.place, summary.text
('summary', '1 change. drfh: 1 user gains, 1 loses. tsf: 1 user gains, 1 loses.')
>>> users.place, users.form
('users', 'html')
"""

from __future__ import annotations

import io
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairopt.allocation import Allocation
from fairopt.analysis.comparing import compare
from fairopt.analysis.comparison import Comparison
from fairopt.analysis.differences import Differences
from fairopt.analysis.explaining import explain
from fairopt.analysis.frontiers import frontier
from fairopt.analysis.what_ifs import WhatIf
from fairopt.errors import FairoptError, InvalidInstance
from fairopt.files import refuse_existing, refuse_read
from fairopt.formats import save, source_of
from fairopt.formats.changes import Changed
from fairopt.formats.document import instance_from
from fairopt.instance import Instance
from fairopt.instance.doubts import doubts
from fairopt.instance.remarks import remarks
from fairopt.models import Sharing
from fairopt.plots import plot_frontier
from fairopt.reporting.exploring.drawn import queues_html, servers_html, users_html
from fairopt.reporting.exploring.knobs import Knob, knobs_of
from fairopt.reporting.tables.bounds import bounds_beside
from fairopt.reporting.tables.explanation import explanation_blocks
from fairopt.reporting.tables.what_ifs import measure_tables
from fairopt.show.html import blocks_html, table_html
from fairopt.show.table import Table
from fairopt.validation import check_time_limit
from fairopt.wording import plural, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST_NOTIONS", "PLACES", "Asked", "Exploration", "Part", "Place"]

Place: TypeAlias = Literal[
    "error", "remarks", "summary", "users", "queues", "servers", "bounds", "measures", "proof", "explanation", "frontier"
]
PLACES: tuple[Place, ...] = (
    "error",
    "remarks",
    "summary",
    "users",
    "queues",
    "servers",
    "bounds",
    "measures",
    "proof",
    "explanation",
    "frontier",
)
"""Where parts of an answer stand, in the order in which they come."""

MOST_NOTIONS = 3  # side by side
_ALPHAS = (0.0, 0.5, 1.0, 2.0, float("inf"))  # of the frontier
_RESOLVES = 3  # changes that an explanation solves
_REMEMBERED = 64  # allocations of the file, one for each choice of notions with their options


@dataclass(frozen=True, slots=True)
class Asked:
    """The request: changes in the words of ``--set``, up to three notions with their options, and the user or queue to explain.

    Of the first notion is the explanation.
    """

    changes: tuple[str, ...]
    notions: tuple[str, ...]
    explained: str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer: a sentence, or else HTML or a picture as SVG, with what it shows in words."""

    place: Place
    form: Literal["sentence", "html", "svg"]
    text: str
    says: str = ""


class Exploration:
    """An instance in a file, which is read once and never written.

    Parameters
    ----------
    path : path
    changes : sequence of str
        Changes of ``--set`` with which it begins.
    rules : sequence of str
        Rules of ``--rule``, beside those of the file.
    sharing, time_limit
        As for `fairopt.solve`.

    Raises
    ------
    InvalidInstance
    """

    def __init__(
        self,
        path: Path,
        changes: Sequence[str] = (),
        rules: Sequence[str] = (),
        *,
        sharing: Sharing | None = None,
        time_limit: float | None = None,
    ) -> None:
        check_time_limit(time_limit)
        self.path, self.given, self.rules, self.sharing, self.time_limit = path, tuple(changes), tuple(rules), sharing, time_limit
        self._source = source_of(path)
        self.instance = self.changed(())
        self.knobs: tuple[Knob, ...] = knobs_of(Changed(self._source, self.given) if self.given else self._source, self.instance)
        self._before: dict[tuple[str, ...], Comparison] = {}

    @property
    def explainable(self) -> tuple[str, ...]:
        """The users, and the queues whose names no user has."""
        return (*self.instance.users, *(queue.name for queue in self.instance.queues if queue.name not in self.instance.users))

    def changed(self, changes: Sequence[str]) -> Instance:
        """Return the instance with changes."""
        words = (*self.given, *changes)
        instance = instance_from(Changed(self._source, words) if words else self._source)
        return instance.replace(rules=[*instance.rules, *self.rules]) if self.rules else instance

    def words(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """Return the changes of ``--set`` for values of knobs, by their paths; a value of the file is no change.

        Raises
        ------
        InvalidInstance
            There is no such knob.
        """
        by_path = {knob.path: knob for knob in self.knobs}
        if unknown := [path for path in values if path not in by_path]:
            raise InvalidInstance(f"nothing on this page changes {unknown[0]}")
        return tuple(by_path[path].word(value) for path, value in values.items() if by_path[path].is_changed(value))

    def command(self, asked: Asked) -> str:
        """Return the command that solves the same instance, or compares its allocations."""
        how = ["solve", str(self.path), "--notion", asked.notions[0]]
        if len(asked.notions) > 1:
            how = ["compare", str(self.path), "--notions", ",".join(asked.notions)]
        words = ["fairopt", *how]
        if self.sharing is not None:
            words += ["--sharing", self.sharing]
        for change in (*self.given, *asked.changes):
            words += ["--set", change]
        for rule in self.rules:
            words += ["--rule", rule]
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
            found = self._what_if(instance, asked.notions)
        except FairoptError as error:
            yield Part("error", "sentence", str(error))
            return
        rows = [row for row in found.rows if found.after[row].allocation is not None]
        refused = [f"{printable(row)}: {found.after[row].message}" for row in found.rows if row not in rows]
        if not rows:
            yield Part("error", "sentence", "\n".join(refused))
            return
        if said := (*doubts(instance), *remarks(instance), *refused):
            yield Part("remarks", "sentence", "\n".join(said))
        yield Part("summary", "sentence", _summary(found, rows, asked))
        yield Part("users", "html", users_html(found, rows))
        if instance.queues:
            yield Part("queues", "html", queues_html(found, rows))
        yield Part("servers", "html", servers_html(found, rows))
        if (bounds := _bounds(found, rows)) is not None:
            yield Part("bounds", "html", _table(bounds))
        yield Part("measures", "html", blocks_html(measure_tables(found, rows), _table))
        allocation = found.after[rows[0]].allocation
        assert allocation is not None
        yield Part("proof", "sentence", "\n".join(f"{printable(row)}: {_proof(found, row)}" for row in rows))
        yield self._explanation(allocation, asked.explained)
        yield self._frontier(allocation, asked.notions)

    def _what_if(self, instance: Instance, notions: tuple[str, ...]) -> WhatIf:
        """Return the allocations of the file and of the changed instance side by side; those of the file are computed once."""
        if notions not in self._before:
            while len(self._before) >= _REMEMBERED:
                del self._before[next(iter(self._before))]
            self._before[notions] = self._compared(self.instance, notions)
        differences = Differences(self.instance, instance).all
        before = self._before[notions]
        return WhatIf(("before", "now"), before, self._compared(instance, notions) if differences else before, differences, {})

    def _compared(self, instance: Instance, notions: tuple[str, ...]) -> Comparison:
        return compare(instance, notions=notions, sharing=self.sharing, time_limit=self.time_limit)

    def _explanation(self, allocation: Allocation, name: str) -> Part:
        try:
            found = explain(allocation, name, resolves=_RESOLVES, time_limit=self.time_limit)
        except FairoptError as error:
            return Part("explanation", "sentence", str(error))
        return Part("explanation", "html", blocks_html(explanation_blocks(found), _table))

    def _frontier(self, allocation: Allocation, notions: tuple[str, ...]) -> Part:
        try:
            found = frontier(
                allocation.instance,
                alphas=_ALPHAS,
                notions=notions,
                sharing=allocation.sharing,  # type: ignore[arg-type]
                time_limit=self.time_limit,
            )
        except FairoptError as error:
            said = str(error)
            return Part("frontier", "sentence", f"{said[:1].upper()}{said[1:]}.")
        says = "; ".join(
            f"{each.name}: {plural(each.total, 'task')}, smallest share {each.smallest_share:.3g}"
            for each in found.points
            if each.allocation is not None
        )
        return Part("frontier", "svg", _svg(lambda: plot_frontier(found, title="", figsize=(7.0, 4.5))), says)


def _summary(found: WhatIf, rows: Iterable[str], asked: Asked) -> str:
    """Return what the page tells those who listen to it: the number of changes, and who gains and loses."""
    if not asked.changes:
        return "As in the file."
    return f"{plural(len(asked.changes), 'change')}. " + " ".join(f"{printable(row)}: {found.summary(row)}." for row in rows)


def _proof(found: WhatIf, row: str) -> str:
    allocation = found.after[row].allocation
    assert allocation is not None
    return f"{allocation.proof}."


def _bounds(found: WhatIf, rows: Iterable[str]) -> Table | None:
    """Return what limits allow and what is used of them, and both sides of rules, before and now, under each notion."""
    made = [
        (f"{row}, {when}", side[row].allocation)
        for row in rows
        for when, side in zip(found.names, (found.before, found.after), strict=True)
    ]
    return bounds_beside([(name, allocation) for name, allocation in made if allocation is not None])


def _table(table: Any) -> str:
    return table_html(table, missing="")


def _svg(draw: Callable[[], Figure]) -> str:
    page = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a browser has more fonts than matplotlib
        draw().savefig(page, format="svg", transparent=True)
    return page.getvalue()

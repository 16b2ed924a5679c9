"""What if: the allocations of two instances side by side, who gains, who loses, and through which difference.

Users are the same where their names are. For each notion and schedule, the tasks of each user (with speeds, their work) in both
instances are compared. Each difference of the instances is also made alone, in the first instance, and the allocation is computed again:
what a user gains or loses by this one difference. The parts need not add up to the whole, because differences may work together.

>>> import fairopt as fo
>>> lab = fo.Instance([[8]], [[1], [2]], users=["vision", "language"], servers=["new"], resources=["gpu"])
>>> what_if(lab, lab.replace(counts={"new": 3}, weights={"vision": 2}))
What if: 2 differences, 2 users
1. servers.new.count: 1 -> 3
2. users.vision.weight: 1 -> 2
<BLANKLINE>
drfh     before after change only 1  only 2
vision        4    16    +12     +8   +1.33
language      2     4     +2     +4  -0.667
drfh: 2 users gain
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.comparing import compare
from fairopt.analysis.comparison import Comparison, Row
from fairopt.analysis.differences import Difference, Differences, shown
from fairopt.analysis.rerun import rerun
from fairopt.errors import FairoptError, InvalidInstance
from fairopt.instance import FloatArray, Instance, require_instance
from fairopt.instance.tolerances import NOTHING, WRITTEN
from fairopt.models import Sharing
from fairopt.results import plain, result
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.specs import NotionSpec, ScheduleSpec
from fairopt.wording import figure, joined, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Effect", "UserChange", "WhatIf", "largest_changes", "signed", "what_if"]

_SHOWN = 20  # users in a repr


@dataclass(frozen=True, slots=True)
class UserChange:
    """What a user runs in both allocations.

    Attributes
    ----------
    name : str
    before, after : float or None
        Tasks; None if the user is not in the instance.
    shares : pair of float or None
        Its share in each, as the notion counts it; None if it is not there, or has a share for each server.
    """

    name: str
    before: float | None
    after: float | None
    shares: tuple[float | None, float | None]

    @property
    def change(self) -> float | None:
        """Tasks more, or fewer where it is negative; None if the user is in one instance only."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def moved(self) -> float:
        """Tasks more, or fewer where it is negative; 0 for a user "as before". In the instance that lacks it, a user has no tasks."""
        return 0.0 if self.verdict == "as before" else (self.after or 0.0) - (self.before or 0.0)

    @property
    def relative(self) -> float | None:
        """The change as a part of the tasks before; None if there were none."""
        return self.change / self.before if self.change is not None and self.before else None

    @property
    def verdict(self) -> str:
        """One of "gains", "loses", "as before", "new" and "gone"."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "gone"
        if abs(self.after - self.before) <= WRITTEN * max(self.before, self.after):
            return "as before"
        return "gains" if self.after > self.before else "loses"


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """What one difference, or one group of differences, does alone.

    Attributes
    ----------
    what : str
        Such as "servers.new.count".
    differences : tuple of Difference
    changes : dict
        Tasks more than before, by user; empty if the change is not valid on its own.
    message : str
        Why it cannot be alone, or was not computed; else empty.
    """

    what: str
    differences: tuple[Difference, ...]
    changes: dict[str, float]
    message: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WhatIf(ComparesItself, ShowsItself):
    """Two instances side by side.

    Attributes
    ----------
    names : pair of str
        What the two instances are called.
    before, after : Comparison
        All allocations of each instance, with their measures; rows of one name belong together.
    differences : tuple of Difference
    effects : dict
        By the name of a row: a tuple of `Effect`; empty where there is only one group of differences.
    groups : tuple of (str, tuple of Difference)
        What is told as one: a difference, a queue with all that comes or goes with it, or one of many of a kind.
    """

    names: tuple[str, str]
    before: Comparison
    after: Comparison
    differences: tuple[Difference, ...]
    effects: dict[str, tuple[Effect, ...]]
    question: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[tuple[str, tuple[Difference, ...]], ...] = ()

    @property
    def users(self) -> tuple[str, ...]:
        """The users of both instances, those of the first one first."""
        first = self.before.instance.users
        return (*first, *(name for name in self.after.instance.users if name not in set(first)))

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the notions and schedules."""
        return tuple(row.name for row in self.before)

    def changes(self, row: str) -> tuple[UserChange, ...]:
        """Return what each user runs before and after, in a row such as "drfh"; empty if either has no allocation."""
        sides = [_held(comparison[row]) for comparison in (self.before, self.after)]
        if any(comparison[row].allocation is None for comparison in (self.before, self.after)):
            return ()
        nothing = (None, None)
        found = []
        for name in self.users:
            (before, share), (after, later) = (side.get(name, nothing) for side in sides)
            found.append(UserChange(name, before, after, (share, later)))
        return tuple(found)

    def summary(self, row: str) -> str:
        """Return a sentence on a row such as "drfh": "2 users gain, 1 loses"; if an allocation is missing, the reason."""
        for name, comparison in zip(self.names, (self.before, self.after), strict=True):
            if comparison[row].allocation is None:
                return f"no allocation of {name}: {comparison[row].message}"
        verdicts = [change.verdict for change in self.changes(row)]
        parts: list[str] = []
        for verdict, one, many in (
            ("gains", "gains", "gain"),
            ("loses", "loses", "lose"),
            ("as before", "is as before", "are as before"),
            ("new", "is new", "are new"),
            ("gone", "is gone", "are gone"),
        ):
            number = verdicts.count(verdict)
            if number:
                noun = ("user " if number == 1 else "users ") if not parts else ""
                parts.append(f"{number:,} {noun}{one if number == 1 else many}")
        return ", ".join(parts)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per allocation and user: tasks and shares before and after, and the change by each difference alone."""
        import pandas as pd

        records, index = [], []
        for row in self.rows:
            for change in self.changes(row):
                index.append((row, change.name))
                records.append(
                    {
                        "before": change.before,
                        "after": change.after,
                        "change": change.change,
                        "relative": change.relative,
                        "verdict": change.verdict,
                        "share before": change.shares[0],
                        "share after": change.shares[1],
                        **{f"only {effect.what}": effect.changes.get(change.name) for effect in self.effects.get(row, ())},
                    }
                )
        frame = pd.DataFrame(records, index=pd.MultiIndex.from_tuples(index, names=["allocation", "user"]) if index else None)
        numbers = [column for column in frame.columns if column != "verdict"]
        return frame.astype(dict.fromkeys(numbers, float))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number."""
        rows = []
        for row in self.rows:
            users = [
                {
                    "name": change.name,
                    "before": change.before,
                    "after": change.after,
                    "change": change.change,
                    "verdict": change.verdict,
                    "share_before": change.shares[0],
                    "share_after": change.shares[1],
                }
                for change in self.changes(row)
            ]
            effects = [{"what": effect.what, "message": effect.message, "changes": effect.changes} for effect in self.effects.get(row, ())]
            rows.append({"name": row, "summary": self.summary(row), "users": users, "effects": effects})
        found = {
            "names": list(self.names),
            "differences": [
                {
                    "path": each.path,
                    "before": _plain(each.before),
                    "after": _plain(each.after),
                    **({"unit": each.unit} if each.unit else {}),
                }
                for each in self.differences
            ],
            "rows": rows,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
        return result("what-if", self.question, self.after.instance.units, found)

    def plot(
        self, *, ax: Axes | Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
    ) -> Figure:
        """Draw how many tasks each user gains or loses, in up to four notions and schedules; marks are the change by one difference alone.

        Returns a matplotlib figure.

        ``ax``: axes of yours to draw into (one for each notion or schedule). ``figsize``: of a new figure, in inches. ``title``: in place
        of the default ("": none).
        """
        return draw("what_if", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        import pandas as pd

        lines = [f"What if: {plural(len(self.differences), 'difference')}, {plural(len(self.users), 'user')}"]
        listed = [_told(what, own) for what, own in self.groups[:_SHOWN]]
        lines += [f"{j}. {text}" for j, text in enumerate(listed, 1)]
        for row in self.rows:
            changes = self.changes(row)
            if changes:
                table = {
                    change.name: {
                        self.names[0]: figure(change.before),
                        self.names[1]: figure(change.after),
                        "change": signed(change.change),
                        **{f"only {j}": signed(effect.changes.get(change.name)) for j, effect in enumerate(self.effects.get(row, ()), 1)},
                    }
                    for change in largest_changes(changes, _SHOWN)
                }
                width = max(map(len, [row, *table]))
                text = pd.DataFrame.from_dict(table, orient="index")
                text.index = pd.Index([name.ljust(width) for name in table], name=None)
                text.columns.name = row.ljust(width)
                lines += ["", *(line.rstrip() for line in text.to_string(line_width=None).splitlines())]
                if len(changes) > len(table):
                    lines.append(f"and {plural(len(changes) - len(table), 'more user')}, whose changes are no larger")
            lines.append(f"{row}: {self.summary(row)}")
        return "\n".join(lines)


def what_if(
    before: Instance,
    after: Instance,
    *,
    notions: Sequence[NotionSpec] = ("drfh",),
    schedules: Sequence[ScheduleSpec] = (),
    integral: bool = False,
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    effects: bool = True,
    names: tuple[str, str] = ("before", "after"),
    done: Callable[[str], object] | None = None,
) -> WhatIf:
    """Compare the allocations of two instances: who gains, who loses, and through which difference.

    Parameters
    ----------
    before, after : Instance
        Two clusters, or two policies of one. Users, servers and queues are the same where their names are.
    notions, schedules, integral, sharing, time_limit
        As for `compare`.
    effects : bool
        Also make each difference alone, and compute every allocation again: who gains or loses by it. Many differences are grouped by what
        they are about.
    names : pair of str
        What to call the two instances in tables.
    done : function, optional
        Called with the name of each allocation when it is finished.

    Raises
    ------
    InvalidInstance, Unsupported
        As for `compare`; and if no user is in both instances.

    Examples
    --------
    >>> import fairopt as fo
    >>> lab = fo.Instance([[8], [8]], [[1], [2]], users=["vision", "language"], servers=["new", "old"], resources=["gpu"])
    >>> found = fo.what_if(lab, lab.replace(counts={"old": 0}, weights={"vision": 2}))
    >>> [(change.name, round(change.change, 3), change.verdict) for change in found.changes("drfh")]
    [('vision', -2.667, 'loses'), ('language', -2.667, 'loses')]
    >>> {effect.what: round(effect.changes["vision"], 3) for effect in found.effects["drfh"]}
    {'servers.old.count': -4.0, 'users.vision.weight': 2.667}
    """
    for instance in (before, after):
        require_instance(instance)
    if not set(before.users) & set(after.users):
        raise InvalidInstance(
            f"no user is in both instances: there are {joined(before.users, 5)}, and {joined(after.users, 5)}; give the same users one name"
        )
    if len(names) != 2 or names[0] == names[1]:
        raise InvalidInstance(f"names are {names!r}; give two different ones")
    options: dict[str, Any] = {
        "notions": notions,
        "schedules": schedules,
        "integral": integral,
        "sharing": sharing,
        "time_limit": time_limit,
        "done": done,
    }
    differences = Differences(before, after)
    first, second = (compare(instance, **options) for instance in (before, after))
    groups = differences.groups()
    found: dict[str, tuple[Effect, ...]] = {}
    if effects and len(groups) > 1:
        made = [(what, own, _made(differences, own)) for what, own in groups]
        for row in first:
            if row.allocation is not None:
                found[row.name] = tuple(_effect(row.allocation, what, own, instance, time_limit) for what, own, instance in made)
            if done is not None:
                done(row.name)
    question = {**first.question, "names": names, "effects": effects}
    return WhatIf(names, first, second, differences.all, found, plain(question), tuple(groups if found else differences.told()))


def _made(differences: Differences, own: Sequence[Difference]) -> Instance | str:
    """Return the first instance with some differences, or why it cannot be."""
    try:
        return differences.only(own)
    except FairoptError as error:
        return str(error)


def _effect(allocation: Allocation, what: str, own: tuple[Difference, ...], instance: Instance | str, time_limit: float | None) -> Effect:
    """Compute an allocation again with some differences."""
    if isinstance(instance, str):
        return Effect(what, own, {}, instance)
    try:
        alone = rerun(allocation, instance, time_limit=time_limit)
    except FairoptError as error:
        return Effect(what, own, {}, str(error))
    held = dict(zip(allocation.instance.users, allocation.work.tolist(), strict=True))
    now = dict(zip(instance.users, alone.work.tolist(), strict=True))
    return Effect(what, own, {name: now[name] - tasks for name, tasks in held.items() if name in now})


def _held(row: Row) -> dict[str, tuple[float, float | None]]:
    """Return tasks (with speeds, work) and share of each user."""
    allocation = row.allocation
    if allocation is None:
        return {}
    shares: FloatArray | list[None] = allocation.shares if allocation.shares.ndim == 1 else [None] * len(allocation.shares)
    tasks = allocation.work.tolist()
    listed = [None if share is None else float(share) for share in shares]
    return {name: (held, share) for name, held, share in zip(allocation.instance.users, tasks, listed, strict=True)}


def _told(what: str, own: Sequence[Difference]) -> str:
    """Return a group of differences in words."""
    return str(own[0]) if len(own) == 1 else what


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: infinity, which it lacks, in words."""
    return shown(value) if isinstance(value, float) and np.isinf(value) else value


def largest_changes(changes: Sequence[UserChange], most: int) -> list[UserChange]:
    """Return the ``most`` users whose tasks change most, in the order that they have; users that come or go count with all their tasks.

    >>> changes = [UserChange(name, before, after, (None, None)) for name, before, after in (("a", 3, 3), ("b", 1, 4), ("c", None, 2))]
    >>> [change.name for change in largest_changes(changes, 2)]
    ['b', 'c']
    """
    order = sorted(range(len(changes)), key=lambda j: -abs(changes[j].moved))
    return [changes[j] for j in sorted(order[:most])]


def signed(value: float | None, digits: int = 3) -> str:
    """Return a change with its sign.

    >>> signed(1.25), signed(-3), signed(1e-12), signed(None)
    ('+1.25', '-3', '0', '')
    """
    if value is None or value != value:
        return ""
    if abs(value) < NOTHING:
        return "0"
    return f"{'+' if value > 0 else ''}{figure(value, digits)}"

"""A plan: what stops, what starts, in which step, and how few stops there must be."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.results import result
from fairopt.show.equality import ComparesItself
from fairopt.wording import did_you_mean, joined, plural, printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SYSTEMS", "Action", "Plan"]


def _kubectl(name: str) -> str:
    space, _, pod = name.rpartition("/")
    return f"kubectl delete pod {shlex.quote(pod)}" + (f" --namespace {shlex.quote(space)}" if space else "")


def _condor(name: str) -> str:
    """Return the command for a job, on its access point.

    >>> _condor("12.0 of ap1"), _condor("12.0")
    ('condor_rm -name ap1 12.0', 'condor_rm 12.0')
    """
    number, sign, access_point = name.partition(" of ")
    return f"condor_rm -name {shlex.quote(access_point)} {shlex.quote(number)}" if sign else f"condor_rm {shlex.quote(number)}"


SYSTEMS: Mapping[str, Callable[[str], str]] = {
    "kubectl": _kubectl,
    "scancel": lambda name: f"scancel {shlex.quote(name)}",
    "qdel": lambda name: f"qdel {shlex.quote(name)}",
    "condor_rm": _condor,
    "yarn": lambda name: f"yarn application -kill {shlex.quote(name)}",
}
"""What stops something by its name, by the program that does it."""


@dataclass(frozen=True, slots=True)
class Action:
    """Tasks of a user that stop or start on a server.

    Attributes
    ----------
    user, server : str
    tasks : int
    step : int
        1 or 2; actions of a step may be taken in any order.
    names : tuple of str
        Of stops: what the scheduler calls them, where that is known.
    gang : bool
        Whether they stop as a part of something that stops as a whole.
    """

    user: str
    server: str
    tasks: int
    step: int
    names: tuple[str, ...] = ()
    gang: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(ComparesItself):
    """The way from what runs to what is fair.

    Attributes
    ----------
    instance : Instance
    notion : str
    stops, starts : tuple of Action
        In order. A task that moves is a stop and a start.
    held, target, fair : dict
        Tasks by user: now, at the end, and without a budget.
    bound : int
        No plan to this target has fewer stops.
    notes : tuple of str
        What must be said: where nothing says on which server tasks run, what is exceeded now, what protected tasks or the budget changed.
    question : mapping
    """

    instance: Instance
    notion: str
    stops: tuple[Action, ...]
    starts: tuple[Action, ...]
    held: dict[str, int]
    target: dict[str, int]
    fair: dict[str, int]
    bound: int
    notes: tuple[str, ...] = ()
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_stops(self) -> int:
        """Number of tasks that stop."""
        return sum(stop.tasks for stop in self.stops)

    @property
    def n_starts(self) -> int:
        """Number of tasks that start."""
        return sum(start.tasks for start in self.starts)

    @property
    def moved(self) -> int:
        """Number of tasks that stop on one server and start on another."""
        return sum(min(stops, starts) for stops, starts in self.changes().values())

    def changes(self) -> dict[str, tuple[int, int]]:
        """Return how many tasks of each user stop and start."""
        found = dict.fromkeys(self.held, (0, 0))
        for which, actions in enumerate((self.stops, self.starts)):
            for each in actions:
                pair = found[each.user]
                found[each.user] = (pair[0] + each.tasks, pair[1]) if which == 0 else (pair[0], pair[1] + each.tasks)
        return found

    def commands(self, system: str) -> list[str]:
        """Return the commands that stop what stops, in order, as lines of a shell script. They are never run.

        What runs must have names: ``namespace/pod`` for kubectl, the number of a job for scancel and qdel, ``12.0``, or ``12.0 of ap1`` on
        an access point, for condor_rm, the number of an application for yarn. Stops without a name are comments.

        Parameters
        ----------
        system : str
            One of `SYSTEMS`.

        >>> stops = (Action("a", "x", 2, 1, ("lab/train-0", "lab/train-1")), Action("b", "x", 1, 1))
        >>> print(*Plan(None, "drfh", stops, (), {}, {}, {}, 3).commands("kubectl"), sep="\\n")
        kubectl delete pod train-0 --namespace lab
        kubectl delete pod train-1 --namespace lab
        # stop 1 task of b on x: nothing says its name
        """
        if system not in SYSTEMS:
            raise InvalidInstance(f'there is no command "{system}"{did_you_mean(system, SYSTEMS)}; there are {joined(list(SYSTEMS))}')
        lines: dict[str, None] = {}
        for stop in self.stops:
            for name in stop.names:
                lines[SYSTEMS[system](name)] = None
            if not stop.names:
                what = f"{plural(stop.tasks, 'task')} of {printable(stop.user)} on {printable(stop.server)}"
                lines[f"# stop {what}: nothing says its name"] = None
        return [*lines]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per action: step, action, user, server, tasks, names."""
        import pandas as pd

        rows = [(each.step, what, each.user, each.server, each.tasks, "|".join(each.names)) for what, each in self.actions()]
        return pd.DataFrame(rows, columns=["step", "action", "user", "server", "tasks", "names"])

    def actions(self) -> list[tuple[str, Action]]:
        """Return all actions in order, each with "stop" or "start"."""
        found = [("stop", each) for each in self.stops] + [("start", each) for each in self.starts]
        return sorted(found, key=lambda each: each[1].step)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""

        def plain(action: Action) -> dict[str, Any]:
            found: dict[str, Any] = {"user": action.user, "server": action.server, "tasks": action.tasks, "step": action.step}
            return found | ({"names": list(action.names)} if action.names else {})

        found = {
            "notion": self.notion,
            "stops": [plain(each) for each in self.stops],
            "starts": [plain(each) for each in self.starts],
            "moved": self.moved,
            "bound": self.bound,
            "held": dict(self.held),
            "target": dict(self.target),
            "fair": dict(self.fair),
            "notes": list(self.notes),
        }
        return result("plan", self.question, self.instance.units, found)

    def __repr__(self) -> str:
        what = f"{plural(self.n_stops, 'stop')}, {plural(self.n_starts, 'start')}, {self.moved} moved"
        return f"Plan({self.notion}: {what}; at least {self.bound} needed)"

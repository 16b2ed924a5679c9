"""Asynchronous servers: each acts every T seconds, given the tasks of its users on other servers at that moment.

The distributed procedure of Khamse-Ashari et al. (2017), section III-D: "each server individually (and even asynchronously) executes the
server procedure every T seconds". An action is the limit of that procedure (`fairopt.solvers.equilibrium.kernel`): the leximin of (y[n] +
x[n,i]) / (phi[n] gamma[n,i]) over the resources of the server, where y[n] are the tasks of n elsewhere. Other servers do not change. The
procedure is not exact: if the servers converge, they converge to a PS-DSF allocation; before, only the limits of servers are guaranteed to
hold.

    phases   when
    random   server s at U[s] T, U[s] T + T, ..., with U[s] drawn uniformly from [0, 1): each at times of its own
    sweep    all at 0, T, 2 T, ..., one after the other: each knows what those before it have just done
    at-once  all at 0, T, 2 T, ..., and none knows what the others do: servers that are alike act alike, and they need not settle

A user runs at most its tasks: if it is given more, or has fewer than before, its tasks are reduced by the same factor on all servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import kernel
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.validation import check_seconds, check_whole_number
from fairopt.wording import did_you_mean

__all__ = ["AsynchronousServers", "Turns"]

_PHASES = ("random", "sweep", "at-once")


@dataclass(frozen=True, slots=True)
class Turns:
    """When servers act.

    Parameters
    ----------
    period : float
        T, in seconds, > 0.
    phases : {"random", "sweep", "at-once"}
    seed : int
        Of random phases.

    Raises
    ------
    Unsupported

    >>> Turns(0)
    Traceback (most recent call last):
        ...
    fairopt.errors.Unsupported: the period of the servers is 0; give a number of seconds > 0
    """

    period: float
    phases: Literal["random", "sweep", "at-once"] = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        check_seconds("the period of the servers", self.period)
        if self.phases not in _PHASES:
            hint = did_you_mean(self.phases, _PHASES) if isinstance(self.phases, str) else ""
            raise Unsupported(f'the phases of the servers are "{self.phases}"{hint}; give one of {", ".join(_PHASES)}')
        check_whole_number("the seed of the servers", self.seed, 0)


class AsynchronousServers:
    """Single servers, the tasks that they give to users, and the next action.

    Parameters
    ----------
    row : int array (servers,)
        Which row each single server belongs to.
    rates : array (users, rows)
        gamma[n,i] of one server of the row, 0 where n may not run.
    demands : array (users, resources)
    capacities : array (rows, resources)
    time : bool
        Is time divided? Else resources.
    turns : Turns
    origin : float
        From when on they act.
    tolerances : sequence of float
        `near` and `fair` hold the times since when the running tasks have been within these of the exact allocation.
    """

    def __init__(
        self,
        row: IntArray,
        rates: FloatArray,
        demands: FloatArray,
        capacities: FloatArray,
        time: bool,
        turns: Turns,
        origin: float,
        tolerances: Sequence[float],
    ) -> None:
        self.steps = Steps(kernel)
        number = row.size
        phases = turns.period * np.random.default_rng(turns.seed).random(number) if turns.phases == "random" else np.zeros(number)
        self.servers = kernel.Servers(row, np.argsort(phases, kind="stable"), phases, np.zeros(number, bool))
        self.rates, self.demands, self.capacities, self.time = rates, demands, capacities, time
        self.at_once, self.period, self.origin = turns.phases == "at-once", float(turns.period), origin
        self.turn, self.acted = 0, 0
        self.watch = kernel.Watch(np.array(tolerances, float), np.full(len(tolerances), np.inf), np.full(len(tolerances), np.inf))
        self.members = np.empty(0, np.int64)
        nothing = np.zeros(0)
        self.users: kernel.Users = self._users(self.members, nothing, nothing, nothing)

    def _users(self, members: IntArray, weights: FloatArray, tasks: FloatArray, exact: FloatArray) -> Any:
        alone = np.ascontiguousarray(self.rates[members].T)
        if self.time:
            use, bounds = np.where(alone > 0, safe_ratio(1.0, alone), 0.0).reshape(*alone.shape, 1), np.ones((len(alone), 1))
        else:
            use = np.where(alone[:, :, None] > 0, self.demands[members], 0.0)
            bounds = np.array(self.capacities)
        x = np.zeros((self.servers.row.size, members.size))
        return kernel.Users(alone, alone * weights, tasks, use, bounds, exact, x, np.zeros(members.size))

    def change(self, there: BoolArray, members: IntArray, weights: FloatArray, tasks: FloatArray, exact: FloatArray) -> None:
        """Continue with these servers, users (positions in ``rates``, ascending) and numbers of tasks; resources of other users become
        free."""
        self.servers.there[:] = there
        users = self._users(members, weights, tasks, exact)
        _, now, before = np.intersect1d(members, self.members, assume_unique=True, return_indices=True)
        users.x[:, now] = self.users.x[:, before]
        users.x[~there] = 0.0
        self.members, self.users = members, users
        self.steps.run("keep_to_tasks", users)

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes."""
        users = {f"users.{name}": value for name, value in self.users._asdict().items()}
        watch = {"near": self.watch.near, "fair": self.watch.fair}
        return users | watch | {"there": self.servers.there, "members": self.members, "turn": self.turn, "acted": self.acted}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take a state of servers of the same numbers."""
        self.servers.there[:] = state["there"]
        self.watch.near[:], self.watch.fair[:] = state["near"], state["fair"]
        self.members, self.turn, self.acted = state["members"], int(state["turn"]), int(state["acted"])
        self.users = kernel.Users(**{name: state[f"users.{name}"] for name in kernel.Users._fields})

    def watch_afresh(self, now: float) -> None:
        """Begin to measure the distance to a new exact allocation."""
        self.steps.run("look_afresh", self.servers, self.users, self.watch, now)

    def follow(self, now: float, until: float, user: IntArray, tasks: FloatArray, left: FloatArray, started: FloatArray) -> float:
        """Let servers act until just before ``until`` or until a job may have ended; return when that is.

        Of each unfinished job: whose it is (a position among the members; ascending), its tasks, the work that is left and when it was
        started (nan: not yet). The last two are brought up to date.
        """
        jobs = kernel.Jobs(user, tasks, left, started, np.zeros(left.size))
        before = self.turn
        now, self.turn = self.steps.run(
            *("follow", self.servers, self.users, jobs, self.watch, now, until, self.turn, self.origin, self.period, self.at_once),
            seconds=SETTINGS.pair_seconds * self.users.x.size * (until - now) / self.period,
        )
        self.acted += self.turn - before
        return float(now)

    def skip(self, now: float) -> None:
        """Skip the time in which nobody had tasks: continue with the first action from now on."""
        rounds = max(int((now - self.origin) // self.period), 0)
        within = now - self.origin - rounds * self.period
        later = int(np.searchsorted(self.servers.phases[self.servers.order], within))
        self.turn = max(self.turn, rounds * self.servers.row.size + later)

    @property
    def distance(self) -> float:
        """Largest relative difference between the tasks of a user and those of the exact allocation."""
        return float(self.steps.run("distance", self.users.total, self.users.exact))

    @property
    def violation(self) -> float:
        """Largest violation of the condition that characterises PS-DSF allocations."""
        return float(self.steps.run("violation", self.servers, self.users))

    @property
    def rows(self) -> FloatArray:
        """Tasks that each row gives to each member, (rows, members)."""
        tasks = np.zeros((len(self.capacities), self.members.size))
        np.add.at(tasks, self.servers.row, self.users.x)
        return tasks

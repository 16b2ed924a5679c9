"""The answer: who runs how many tasks where, with everything that follows from it.

>>> import fairopt as fo
>>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"]), "drf")
>>> allocation
Allocation(drf, sharing rdm, by water-filling: A 3, B 2 tasks; worst residual 0.0e+00)
>>> allocation.utilization
array([[1.        , 0.77777778]])
>>> allocation.dominant_resources
('memory', 'cpu')
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.certificate import Certificate
from fairopt.drawing import draw
from fairopt.instance import BoolArray, FloatArray, Instance, safe_ratio
from fairopt.validation import restore_read_only
from fairopt.wording import figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fairopt.models import Notion
    from fairopt.solvers import Chooser, Placement

__all__ = ["GIVEN", "Allocation", "Exact", "Greedy", "Level"]

GIVEN = "given"  # notion and solver of an allocation that somebody else made: no optimum, no schedule


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of a leximin: the users who stop there, and the prices that prove it.

    Attributes
    ----------
    value : float
        The common share U[n] / phi[n].
    users : tuple of str
    prices : array (servers, resources) or (servers, 1), or None
        Dual multipliers that prove the level. One more unit of a resource (or, under time division, of each server's whole time) raises
        it by at most this, and by exactly this where the multipliers are unique. Levels above the first one by ``interior-point`` are
        proved with those below held (`fairopt.certificate.levels`): there this is so only while these stay as they are, and prices of
        what they fill may be below 0. None for whole tasks, which
        have none.
    """

    value: float
    users: tuple[str, ...]
    prices: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """What `fairopt.solve` was asked for: the notion with its options, and what its caller chose. `fairopt.analysis.rerun` asks it
    again."""

    notion: Notion
    solver: str | None = None
    integral: bool = False
    tolerance: float = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """What `fairopt.schedule` was asked for: the criterion and the placement with their options, ties, seed and where to stop."""

    notion: Notion
    placement: str | Placement | Chooser
    ties: Literal["index", "largest-demand", "random"]
    seed: int
    stop: Literal["exhausted", "first-block"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Allocation:
    """An allocation of the servers of ``instance`` to its users.

    Attributes
    ----------
    instance : Instance
    notion, solver, sharing : str
        What was asked for and which engine answered.
    tasks : array (users, servers)
        x[n,i], one way to realise what is unique: the shares, and ``tasks_per_user`` wherever a task is worth the same on every
        server (whole tasks apart).
    shares : array (users,) or (users, servers)
        The notion's own share, weights included; per server where the notion is.
    prices : array (servers, resources) or (servers, 1), or None
        Dual price of capacity (of a server's time): the most that the goal can gain with one more unit, and what it does gain where the
        prices are unique. For a leximin, of the lowest level that a bottleneck stops; ``levels`` has them all.
    levels : tuple of Level
        Ascending; empty where the goal has none.
    certificate : Certificate
    seconds : dict
        Time to merge and formulate, to solve and to certify; parts of the second: ``compile`` the program, ``load`` compiled code (once).
    details : dict
        What the engine tells: iterations, programs solved, gap and bound for whole tasks; of a schedule, the number of placements, whose
        task fits nowhere, and at whom it stopped if the first block was to end it.
    trace : object
        A record of the way there (sweeps, a trajectory), of engines that keep one; its rows are those of the merged instance. A trajectory
        draws itself, ``trace.plot()``. Of a schedule, the order of its placements.
    question : Exact, Greedy or None
        What it is the answer to, with all options; None for allocations that somebody else made.
    """

    instance: Instance
    notion: str
    solver: str
    sharing: str
    tasks: FloatArray
    shares: FloatArray
    prices: FloatArray | None
    levels: tuple[Level, ...]
    certificate: Certificate
    seconds: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    trace: Any = None
    question: Exact | Greedy | None = None

    def __post_init__(self) -> None:
        for array in (self.tasks, self.shares, self.prices):
            if array is not None:
                array.setflags(write=False)

    __setstate__ = restore_read_only

    @property
    def tasks_per_user(self) -> FloatArray:
        """x[n] = sum_i x[n,i], (users,)."""
        total: FloatArray = self.tasks.sum(axis=1)
        return total

    @property
    def shares_to_show(self) -> FloatArray | None:
        """The shares, (users,), where there is one a user and it is not the number of tasks itself; else None."""
        if self.shares.ndim == 2 or np.allclose(self.shares, self.tasks_per_user, rtol=1e-9, atol=0.0):
            return None
        return self.shares

    @property
    def usage(self) -> FloatArray:
        """sum_n x[n,i] d[n,r], (servers, resources)."""
        return self.tasks.T @ self.instance.demands

    @property
    def utilization(self) -> FloatArray:
        """Usage / capacity, (servers, resources); 0 where there is no capacity. Under time division see ``time_utilization``."""
        capacity = self.instance.row_capacity
        return np.divide(self.usage, capacity, out=np.zeros_like(capacity), where=capacity > 0)

    @property
    def time_utilization(self) -> FloatArray:
        """sum_n x[n,i] / gamma[n,i], (servers,)."""
        rates = self.instance.rates
        usable = (rates > 0) & np.isfinite(rates)
        used: FloatArray = np.divide(self.tasks, rates, out=np.zeros_like(self.tasks), where=usable).sum(axis=0)
        return used

    @property
    def dominant_resources(self) -> tuple[str, ...]:
        """Resource of which a task of each user takes the largest part of the whole cluster; "" for a user who demands nothing."""
        parts = safe_ratio(self.instance.demands, self.instance.total_capacity)
        best = parts.argmax(axis=1)
        return tuple(self.instance.resources[r] if parts[n, r] > 0 else "" for n, r in enumerate(best))

    @property
    def complete(self) -> BoolArray:
        """Which users run all the (finitely many) tasks that they have, (users,)."""
        return self.tasks_per_user >= self.instance.tasks * (1 - 1e-9)

    @property
    def level_of_user(self) -> tuple[int | None, ...]:
        """Number of the level at which each user stops, from 1; None for one who has all its tasks, or where there are no levels."""
        number: dict[str, int] = {}
        for k, level in enumerate(self.levels, start=1):
            for user in level.users:
                number[user] = k
        return tuple(number.get(user) for user in self.instance.users)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per user: tasks, share, level, dominant resource, weight, and tasks on each server."""
        import pandas as pd

        columns: dict[str, Any] = {"tasks": self.tasks_per_user}
        if self.shares.ndim == 1:
            columns["share"] = self.shares
        columns["level"] = pd.array(self.level_of_user, dtype="Int64")
        columns["dominant_resource"] = list(self.dominant_resources)
        if self.instance.weights.ndim == 1:
            columns["weight"] = self.instance.weights
        frame = pd.DataFrame(columns, index=pd.Index(self.instance.users, name="user"))
        placed = pd.DataFrame(self.tasks, index=frame.index, columns=[f"tasks @ {server}" for server in self.instance.servers])
        return pd.concat([frame, placed], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: notion, solver, sharing, users, servers, levels, certificate, seconds."""
        instance = self.instance
        per_user, shares = self.tasks_per_user, self.shares
        usage, utilization = self.usage, self.utilization
        users = []
        for n, (name, dominant, level) in enumerate(zip(instance.users, self.dominant_resources, self.level_of_user, strict=True)):
            held = np.flatnonzero(self.tasks[n])
            users.append(
                {
                    "name": name,
                    "tasks": float(per_user[n]),
                    "share": shares[n].tolist(),
                    "level": level,
                    "dominant_resource": dominant,
                    "servers": {instance.servers[i]: float(self.tasks[n, i]) for i in held},
                }
            )
        servers = [
            {
                "name": name,
                "count": int(instance.counts[i]),
                "usage": dict(zip(instance.resources, usage[i].tolist(), strict=True)),
                "utilization": dict(zip(instance.resources, utilization[i].tolist(), strict=True)),
            }
            for i, name in enumerate(instance.servers)
        ]
        certificate = self.certificate
        claims = {"feasibility": certificate.feasibility, "optimality": None, "fairness": None, "worst": None}
        if not certificate.reservation:
            claims |= {"optimality": certificate.optimality, "fairness": certificate.fairness, "worst": certificate.worst}
        return {
            "notion": self.notion,
            "solver": self.solver,
            "sharing": self.sharing,
            "users": users,
            "servers": servers,
            "levels": [{"value": level.value, "users": list(level.users)} for level in self.levels],
            "certificate": {
                **claims,
                "whole_tasks": certificate.whole_tasks,
                "greedy": certificate.greedy,
                "approximate": certificate.approximate,
                "best_found": certificate.best_found,
            },
            "unservable": list(instance.unservable),
            "seconds": dict(self.seconds),
            "details": dict(self.details),
        }

    def plot(self) -> Figure:
        """Draw tasks per user and utilization per server; returns a matplotlib figure. A trajectory is ``trace.plot()``."""
        return draw("allocation", self)

    def __repr__(self) -> str:
        tasks = [f"{user} {figure(x, 6)}" for user, x in zip(self.instance.users, self.tasks_per_user, strict=True)]
        if len(tasks) > 6:
            tasks = [*tasks[:5], f"... {len(tasks) - 5} more users, {figure(self.tasks_per_user.sum(), 6)}"]
        reservation, excess = self.certificate.reservation, self.certificate.feasibility
        proof = f"excess {excess:.1e}, not an optimum" if reservation else f"worst residual {self.certificate.worst:.1e}"
        how = GIVEN if self.solver == GIVEN else f"{reservation} by {self.solver}".lstrip()
        return f"Allocation({self.notion}, sharing {self.sharing}, {how}: {', '.join(tasks)} tasks; {proof})"

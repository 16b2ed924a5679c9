"""An allocation: how many tasks each user runs on each server, and what follows from it.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation.counted import counting_of, dominant_resources
from fairopt.allocation.exact_answer import ExactAnswer
from fairopt.allocation.holdings import QueueHoldings, UserHoldings, frame_of, holdings_of, queue_holdings
from fairopt.allocation.level import Level
from fairopt.allocation.proof import proof_of
from fairopt.allocation.question import Approximation, Greedy, Optimum
from fairopt.allocation.records import labelled_arrays, plain_data, user_frame
from fairopt.certificate import Certificate
from fairopt.errors import Unsupported
from fairopt.formats.frames import dataset
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.fractions import rounding
from fairopt.instance.tolerances import FITS, NOTHING
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.validation import restore_read_only
from fairopt.wording import figure

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.models import Notion
    from fairopt.models.counting import Counting

__all__ = ["GIVEN", "Allocation"]

GIVEN = "given"  # notion and solver of an allocation that fairopt did not compute


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Allocation(ComparesItself, ShowsItself):
    """An allocation of the servers of ``instance`` to its users.

    Attributes
    ----------
    instance : Instance
    notion, solver, sharing : str
        The notion, the engine that solved it, and what is shared: "rdm" (resources) or "tdm" (time).
    tasks : array (users, servers)
        x[n,i], one way to realise what is unique: the shares, and ``tasks_per_user`` if a task has the same worth on every server. (With
        whole tasks neither need be unique.)
    shares : array (users,) or (users, servers)
        The notion's own share of each user, divided by its weight (``shares_by_weight``); per server for a server-specific notion.
    prices : array (servers, resources) or (servers, 1), or None
        Dual price of capacity (of a server's time): an upper bound on what the goal gains with one more unit, and exactly its gain if the
        prices are unique. For a leximin, of the lowest level that a bottleneck stops; ``levels`` has all.
    queue_prices : dict
        The same of the limits of queues, of shared resources ("licences of the cluster") and of rows of one's own
        (`fairopt.Program.with_limit`), by name, as in `Level`; of a goal with levels, the price at the first level where it has one.
    levels : tuple of Level
        Ascending: the distinct final levels, with all users; empty if the goal has none.
    certificate : Certificate
    seconds : dict
        Seconds to ``formulate`` (merging included), to ``solve`` and to ``certify``. Of these, ``compile`` is the time to compile the
        program, ``load`` that to load compiled code (once).
    details : dict
        What the engine reports: iterations, programs solved, gap and bound for whole tasks. For a schedule: the number of placements, the
        users whose task fits on no server, and with ``stop="first-block"`` the user that was blocked.
    trace : object
        A record of the iterations (sweeps, a trajectory), from engines that keep one, in rows of the merged instance. A trajectory has a
        picture, ``trace.plot()``. For a schedule: the order of its placements.
    question : Optimum, Greedy, Approximation or None
        The arguments of `fairopt.solve` or `fairopt.schedule`; None for an allocation that fairopt did not compute.
    exact : ExactAnswer or None
        Of ``solve(..., exact=True)`` and ``schedule(..., exact=True)``: ``tasks``, ``tasks_per_user``, ``shares`` and ``levels`` as
        Fractions, and the ``radius`` of goals whose optimum is irrational.
    measured_by : Notion or None
        Of an allocation that fairopt did not compute: the notion that it is compared with, with its options.
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
    question: Optimum | Greedy | Approximation | None = None
    queue_prices: dict[str, float] = field(default_factory=dict)
    exact: ExactAnswer | None = None
    measured_by: Notion | None = None

    def __post_init__(self) -> None:
        for array in (self.tasks, self.shares, self.prices):
            if array is not None:
                array.setflags(write=False)

    __setstate__ = restore_read_only

    @classmethod
    def of(
        cls,
        question: Optimum | Greedy | Approximation,
        instance: Instance,
        *,
        solver: str,
        sharing: str,
        certificate: Certificate,
        moments: tuple[float, float, float, float],
        tasks: FloatArray | None = None,
        shares: FloatArray | None = None,
        exact: ExactAnswer | None = None,
        seconds: Mapping[str, float] | None = None,
        **more: Any,
    ) -> Allocation:
        """Return the answer to a question. With an ``exact`` answer, tasks, shares, prices and levels are the nearest floats.

        Parameters
        ----------
        moments : four floats
            When it began, and when it was formulated, solved and certified.
        tasks, shares : arrays
            Not needed with ``exact``.
        seconds : mapping, optional
            Parts of the engine's time.
        **more
            Other attributes.
        """
        started, formulated, solved, certified = moments
        phases = {"formulate": formulated - started, "solve": solved - formulated, "certify": certified - solved}
        if exact is not None:
            more = {
                "prices": None if exact.prices is None else exact.prices.astype(np.float64),
                "levels": tuple(level.in_floats for level in exact.proved_levels),
                "queue_prices": {name: float(price) for name, price in exact.queue_prices.items()},
                **more,
            }
            tasks, shares = exact.tasks.astype(np.float64), exact.shares.astype(np.float64)
        assert tasks is not None
        assert shares is not None
        given = {"prices": None, "levels": (), **more}
        return cls(
            instance=instance,
            notion=question.notion.name,
            solver=solver,
            sharing=sharing,
            tasks=tasks,
            shares=shares,
            certificate=certificate,
            seconds=phases | dict(seconds or {}),
            question=question,
            exact=exact,
            **given,
        )

    @property
    def stopped_by(self) -> tuple[dict[str, tuple[str, ...]], ...]:
        """What stops the users of each of the ``levels``, by user: names of limits as in ``print(program)``; `fairopt.allocation.stops`.

        >>> import fairopt as fo
        >>> pool = fo.Instance([[8]], [[1], [1]], tasks=[2, 9], users=["ann", "ben"], servers=["pool"], resources=["gpu"])
        >>> fo.solve(pool, "drf").stopped_by
        ({'ann': ('tasks of ann',)}, {'ben': ('gpu @ pool',)})
        """
        from fairopt.allocation.stops import stops

        return stops(self)

    @property
    def in_fractions(self) -> Allocation:
        """The allocation with the instance, tasks, shares and prices of ``exact``: code written for floats then computes in fractions.

        Raises
        ------
        Unsupported
            The allocation is in floats.

        >>> import fairopt as fo
        >>> fo.solve(fo.Instance([[5]], [[3], [1]]), "drf", exact=True).in_fractions.usage
        array([[Fraction(5, 1)]], dtype=object)
        """
        if self.exact is None:
            raise Unsupported("the allocation is in floats; solve or schedule it with exact=True")
        exact = self.exact
        return replace(
            self,
            instance=self.instance.exact,
            tasks=exact.tasks,
            shares=exact.shares,
            prices=exact.prices,
            levels=exact.proved_levels,
            queue_prices=exact.queue_prices,
        )

    @property
    def as_known(self) -> Allocation:
        """``in_fractions`` where the numbers are known as Fractions (a radius of 0), else the allocation as it is."""
        return self if self.exact is None or self.exact.radius else self.in_fractions

    @property
    def tasks_per_user(self) -> FloatArray:
        """x[n] = sum_i x[n,i], (users,)."""
        total: FloatArray = self.tasks.sum(axis=1)
        return total

    @property
    def work(self) -> FloatArray:
        """U[n] = sum_i speed[n,i] x[n,i], (users,): the work of each user; the number of its tasks where no speeds are given.

        >>> import fairopt as fo
        >>> lab = fo.Instance([[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1, 0.5], [1, 1]])
        >>> fo.solve(lab, "max-min").work.round(6)
        array([8., 8.])
        """
        return self.instance.work(self.tasks)

    @property
    def shares_to_show(self) -> FloatArray | None:
        """The shares, (users,); None if they are per server, or equal to the numbers of tasks."""
        if self.shares.ndim == 2 or np.allclose(self.shares.astype(float), self.tasks_per_user.astype(float), rtol=NOTHING, atol=0.0):
            return None
        return self.shares

    @property
    def equalizes(self) -> bool:
        """Whether the notion equalises shares, level by level or in a schedule; False of goals that are a sum."""
        if self.question is None or isinstance(self.question, Greedy) or self.levels:
            return True
        goal = getattr(self.question.notion, "goal", None)
        return goal is not None and goal(np.ones(self.instance.n_users)).has_levels

    @property
    def shares_by_weight(self) -> bool:
        """Whether ``shares`` are divided by the weights of users.

        Not for goals that are a sum; and not in a tree of queues (or where users have guarantees, or weights of 0), where weights count
        among siblings only. Weights per resource, and shares per server, are always divided by them.

        >>> import fairopt as fo
        >>> flat = fo.Instance([[10]], [[1], [1]], weights=[4, 1])
        >>> tree = flat.replace(queues=[fo.Queue("lab")], queue_of=["lab", "lab"])
        >>> for each in (fo.solve(flat), fo.solve(tree)):  # 8 and 2 tasks in both
        ...     print(each.shares_by_weight, each.shares.round(6).tolist())
        True [0.2, 0.2]
        False [0.8, 0.2]
        """
        return self.shares.ndim == 2 or (self.equalizes and (self.instance.weights.ndim == 2 or not self.instance.is_tree))

    @property
    def share_heading(self) -> str:
        """What a table calls the shares: "share / weight" where they are divided by weights that are not all 1, else "share"."""
        return "share / weight" if self.shares_by_weight and (self.instance.weights != 1).any() else "share"

    @property
    def usage(self) -> FloatArray:
        """sum_n x[n,i] d[n,i,r] of the resources of servers, (servers, M)."""
        return self.instance.usage(self.tasks)

    @property
    def shared_usage(self) -> FloatArray:
        """sum_n d[n,r] x[n] of the resources of the whole cluster, (shared,).

        >>> import fairopt as fo
        >>> fo.solve(fo.Instance([[20]], [[1, 1], [1, 0]], shared={"licences": 10})).shared_usage.round(4)
        array([6.6667])
        """
        return self.instance.usage_of_shared(self.tasks)

    @property
    def shared_utilization(self) -> FloatArray:
        """The part of each resource of the whole cluster that is in use, (shared,); 0 if there is nothing of it."""
        capacity = self.instance.shared_capacity
        return np.divide(self.shared_usage, capacity, out=np.zeros_like(capacity), where=capacity > 0)

    @property
    def utilization(self) -> FloatArray:
        """Usage / capacity, (servers, M); 0 if the capacity is 0. For time division see ``time_utilization``."""
        capacity = self.instance.row_capacity
        return np.divide(self.usage, capacity, out=np.zeros_like(capacity), where=capacity > 0)

    @property
    def time_utilization(self) -> FloatArray:
        """sum_n x[n,i] / gamma[n,i], (servers,)."""
        rates = self.instance.rates
        usable = (rates > 0) & (rates < np.inf)
        used: FloatArray = np.divide(self.tasks, rates, out=np.zeros_like(self.tasks), where=usable).sum(axis=0)
        return used

    @property
    def counting(self) -> Counting | None:
        """What counts in dominant shares, as its notion was asked with; None if all resources count once."""
        return counting_of(self)

    @property
    def dominant_resources(self) -> tuple[str, ...]:
        """Dominant resource of each user, argmax_r m[r] d[n,r] / C[r] with C the capacity of the cluster; "" for a user without demand.

        m is 1 where the notion has no resource weights, and for users who demand nothing that counts. Where demands differ by server, it
        is that of all that the user holds, and "" for a user that holds nothing.
        """
        return dominant_resources(self)

    @property
    def complete(self) -> BoolArray:
        """Which users run all their tasks, (users,)."""
        complete: BoolArray = self.tasks_per_user >= self.instance.tasks * (1 - rounding(FITS, self.tasks))
        return complete

    @property
    def level_of_user(self) -> tuple[int | None, ...]:
        """Number of each user's level, from 1; None for a user without one, or if there are no levels."""
        number: dict[str, int] = {}
        for k, level in enumerate(self.levels, start=1):
            for user in level.users:
                number[user] = k
        return tuple(number.get(user) for user in self.instance.users)

    @property
    def proof(self) -> str:
        """What the certificate says, as a sentence without its full stop."""
        return proof_of(self)

    def __getitem__(self, name: str) -> UserHoldings | QueueHoldings:
        """Return what a user holds, or a queue; of a user and a queue of one name the user.

        >>> import fairopt as fo
        >>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], resources=["cpu", "memory"]), "drf")
        >>> allocation["B"].tasks, allocation["B"].used
        (2.0, {'cpu': 6.0, 'memory': 2.0})
        """
        return holdings_of(self, name)

    def queue_holdings(self) -> tuple[QueueHoldings, ...]:
        """Return what each queue holds: the root first, and each queue followed by those below it.

        See `fairopt.allocation.holdings.QueueHoldings`: tasks, shares, amounts in use, guarantees and what is missing of them, limits.
        """
        whole = self.certificate.whole_tasks or isinstance(self.question, Greedy)
        weights = self.instance.weights
        shares = self.shares * weights if self.shares_by_weight and self.shares.ndim == weights.ndim == 1 else self.shares
        return queue_holdings(self.instance, self.tasks, shares, whole=whole, prices=self.queue_prices, counting=self.counting)

    def to_frame(self, by: Literal["user", "queue"] = "user") -> pd.DataFrame:
        """Return the allocation as a table.

        Parameters
        ----------
        by : {"user", "queue"}
            A row per user: its queue where there are queues, tasks, share, level, dominant resource, weight, and tasks on each server.
            Or a row per queue, each followed by the queues below it, the whole cluster first: parent, depth, number of users, tasks,
            sum of shares, dominant share of what it holds, weight, tier, whether its guarantees are met, amounts in use, and the amounts
            of each guarantee (with what is missing of it, and what is borrowed beyond it) and of each limit.

        Raises
        ------
        Unsupported
            There are no rows by ``by``.
        """
        if by not in ("user", "queue"):
            raise Unsupported(f'there are no rows by "{by}"; use by="user" or by="queue"')
        return frame_of(self.queue_holdings()) if by == "queue" else user_frame(self)

    def to_xarray(self) -> xr.Dataset:
        """Return tasks, shares, usage, utilization and prices with labels; needs xarray (the extra ``xarray``).

        Raises
        ------
        SolverUnavailable
            xarray is not installed.
        """
        facts = {"notion": self.notion, "solver": self.solver, "sharing": self.sharing, "worst_residual": self.certificate.worst}
        return dataset(self.instance, labelled_arrays(self), facts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: notion, solver, sharing, users, queues, servers, levels, certificate, seconds.

        A user has its queue, and there is a list of queues, where the instance has any: each followed by those below it.

        Of an answer in fractions, users, queues and levels have ``exact`` beside their floats: fractions as text, "20/3". Where the
        optimum is irrational, the certificate has its ``radius``, not rounded down (`fairopt.allocation.ExactAnswer`).
        """
        return plain_data(self)

    def plot(
        self,
        by: Literal["user", "queue"] = "user",
        *,
        ax: Axes | Sequence[Axes] | None = None,
        figsize: tuple[float, float] | None = None,
        title: str | None = None,
    ) -> Figure:
        """Draw tasks per user and utilization per server, or what each queue holds; returns a matplotlib figure.

        ``ax``: your axes (two; one by queue). ``figsize``: inches of a new figure. ``title``: instead of the default, "" for none.

        ``trace.plot()`` draws a recorded trajectory.

        Raises
        ------
        Unsupported
            There is no picture by ``by``.
        """
        if by not in ("user", "queue"):
            raise Unsupported(f'there is no picture by "{by}"; use by="user" or by="queue"')
        return draw("allocation" if by == "user" else "queues", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        tasks = [f"{user} {figure(x, 6)}" for user, x in zip(self.instance.users, self.tasks_per_user, strict=True)]
        if len(tasks) > 6:
            tasks = [*tasks[:5], f"... {len(tasks) - 5} more users, {figure(self.tasks_per_user.sum(), 6)}"]
        qualifier, excess = self.certificate.qualifier, self.certificate.feasibility
        proof = f"excess {excess:.1e}, not an optimum" if qualifier else f"worst residual {self.certificate.worst:.1e}"
        how = GIVEN if self.solver == GIVEN else f"{qualifier} by {self.solver}".lstrip()
        return f"Allocation({self.notion}, sharing {self.sharing}, {how}: {', '.join(tasks)} tasks; {proof})"

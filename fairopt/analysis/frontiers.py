"""Efficiency against fairness: the exact Pareto frontier of an instance, and allocations on or below it.

Efficiency is the *total* number of tasks, sum_n x[n], or their work, where tasks do other work on other servers. Fairness is the *smallest
share*: the minimum of the weighted global dominant shares, over the users who can have something (`fairopt.analysis.measures`). Weights
count in the share only. The set of attainable pairs (total, smallest share) is a polygon. The frontier is its upper right boundary. All
vertices of the frontier are computed exactly, by linear programs (``fairopt/solvers/via_highs/pareto.py`` has the method and proves that
it misses none). If a user has few tasks, the share of all of them bounds the smallest share, as in `fairopt.compare`. Each allocation has
two prices:

* *price of fairness*    1 - total / largest total                    what fairness costs (Bertsimas, Farias and Trichakis 2011);
* *price of efficiency*  1 - smallest share / largest smallest share  what efficiency costs (Bertsimas, Farias and Trichakis 2012).

*Queues.* Limits of queues bound the polygon. Guarantees, tiers and weights of queues do not go with a frontier: they say that shares shall
differ, and the smallest share of all users would count what they ask for as unfair. A point that meets them need not be near the frontier,
and one on it need not meet them. Compare such allocations with `fairopt.compare`, or measure a price against the exact one with
`fairopt.regret`.

There are four kinds of allocations:

* *alpha*: the alpha-fair allocations of tasks or of dominant shares: the largest total for alpha = 0, proportional fairness for 1, max-min
  for inf. A user of weight phi counts like phi users of weight 1: the goal is sum phi[n] g(U[n]), where U[n] = x[n] / phi[n] or the
  weighted dominant share. That is ``fo.solve(instance, "proportional", alpha=..., utility=...)`` with the utility 1 / phi or
  `fairopt.analysis.measures.shares_per_task`. So with weights too, alpha = 0 maximises sum phi[n] U[n] (for tasks: the end of the
  frontier), and alpha = inf is the leximin of U (for shares: "drfh"). Without a utility, "proportional" and "efficiency" weight the tasks
  themselves.
* *notion*: the notions of ``fo.NOTIONS``. A notion that does not apply to the instance says why.
* *fds*, *gfj*: members (beta, lambda) of the two families of trade-offs (Joe-Wong, Sen, Lan and Chiang 2013).
* *greedy*: schedules of whole tasks. The other three kinds are exact, of divisible tasks.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 30]], [[1, 4], [3, 1]], users=["A", "B"])
>>> found = frontier(instance, alphas=[0, 1, float("inf")], notions=["drf"], schedules=["drf:first-fit"])
>>> found.vertices.round(4)
array([[5.7273, 0.5455],
       [7.9091, 0.1818]])
>>> found
Frontier of 2 users, 1 server, sharing rdm: 2 vertices, up to 7.90909 tasks and a min share of 0.545455
                 kind  tasks  min share  price of fairness  of efficiency  slack
alpha=0         alpha   7.91      0.182                  0          0.667      0
alpha=1         alpha      6        0.5              0.241         0.0833      0
alpha=inf       alpha    4.5        0.3              0.431           0.45   0.45
drf            notion   5.73      0.545              0.276              0      0
drf:first-fit  greedy      5        0.4              0.368          0.267  0.267
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.frontier_points import FAMILIES, alpha_fair_point, checked_alpha, members_of, scheduled_point
from fairopt.analysis.measures import dominant_shares, shares_per_task, takes_part
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, require_instance
from fairopt.instance.aggregation import merge
from fairopt.instance.by_server import work_in_words
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import NOTHING
from fairopt.models import NOTIONS, Sharing, default_sharing
from fairopt.processes.crew import Crew, check_workers
from fairopt.results import plain, result
from fairopt.show.drawing import ShowsItself, draw
from fairopt.show.equality import ComparesItself
from fairopt.solvers import able_users, pareto_frontier
from fairopt.solvers.backend import Deadline
from fairopt.solving import formulate, notion_of, solve
from fairopt.specs import NotionSpec, ScheduleSpec, kind_of, read_notion, read_schedule
from fairopt.validation import check_time_limit, restore_read_only
from fairopt.wording import did_you_mean, exactly, figure, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ALPHAS", "FAMILIES", "Frontier", "FrontierPoint", "frontier", "why_none"]

ALPHAS = (0.0, 0.5, 1.0, 2.0, 5.0, float("inf"))


@dataclass(frozen=True, slots=True, eq=False)
class FrontierPoint:
    """One allocation, with its total and smallest share; if it could not be computed, only ``name``, ``kind`` and ``message`` are set.

    Attributes
    ----------
    name : str
    kind : str
        "alpha", "notion", "fds", "gfj", "greedy" or "approximate" (a baseline).
    message : str
        Why there is no allocation; else empty.
    total : float
        Number of tasks; with speeds, their work.
    smallest_share : float
        Smallest weighted global dominant share of the users who can have something.
    price_of_fairness, price_of_efficiency : float
        1 - total / largest total, and 1 - smallest share / largest smallest share.
    below : float
        How much the smallest share could rise without losing tasks, as a part of the largest smallest share; 0 on the frontier.
    seconds : float
    allocation : Allocation or None
    """

    name: str
    kind: str
    message: str = ""
    total: float = float("nan")
    smallest_share: float = float("nan")
    price_of_fairness: float = float("nan")
    price_of_efficiency: float = float("nan")
    below: float = float("nan")
    seconds: float = float("nan")
    allocation: Allocation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; None stands for a missing number."""
        entry = {name: getattr(self, name) for name in self.__slots__ if name != "allocation"} | {"time_s": self.seconds}
        return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in entry.items()}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frontier(ComparesItself, ShowsItself):
    """The Pareto frontier of an instance, and points on or below it; ``frontier["drfh"]`` is one point, and iteration yields all points.

    Attributes
    ----------
    instance : Instance
    sharing : str
    of : str
        The utility of the alpha-fair points: "tasks" or "shares".
    vertices : array (V, 2)
        Total and smallest share of each vertex, from the largest share to the largest total. The frontier is straight between vertices.
    gap : float
        The largest distance of any allocation above the frontier, bounded by weak duality; relative to the largest total and share.
    points : tuple of FrontierPoint
    question : mapping
        The arguments of `fairopt.frontier`, as plain data.
    """

    instance: Instance
    sharing: str
    of: str
    vertices: FloatArray
    gap: float
    points: tuple[FrontierPoint, ...]
    question: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.vertices.setflags(write=False)

    __setstate__ = restore_read_only

    @property
    def total_of(self) -> str:
        """What the total is of: "tasks", or "work" where tasks do other work on other servers."""
        return "tasks" if self.instance.speeds_given is None else "work"

    @property
    def alpha_fair_in(self) -> str:
        """What the alpha-fair points weigh: "tasks", "work" or "shares"."""
        return self.total_of if self.of == "tasks" else self.of

    @property
    def largest_total(self) -> float:
        """The largest number of tasks; with speeds, the most work."""
        return float(self.vertices[-1, 0])

    @property
    def largest_share(self) -> float:
        """The largest possible smallest share."""
        return float(self.vertices[0, 1])

    def share_at(self, total: float) -> float:
        """Return the largest smallest share of all allocations with at least this total; NaN beyond the largest total."""
        slack = NOTHING * self.largest_total
        return float("nan") if total > self.largest_total + slack else float(np.interp(total, self.vertices[:, 0], self.vertices[:, 1]))

    def __iter__(self) -> Iterator[FrontierPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, name: str) -> FrontierPoint:
        for point in self.points:
            if point.name == name:
                return point
        names = [point.name for point in self.points]
        raise KeyError(f'there is no point "{name}"{did_you_mean(name, names)}; there are {", ".join(names)}')

    def to_frame(self) -> pd.DataFrame:
        """Return one row per point: kind, total, smallest share, the two prices, ``below``, seconds and message."""
        import pandas as pd

        rows = [{name: getattr(point, name) for name in point.__slots__ if name not in ("name", "allocation")} for point in self.points]
        frame = pd.DataFrame(rows, index=pd.Index([point.name for point in self.points], name="point"))
        return frame[[*(name for name in frame if name != "message"), *(["message"] if rows else [])]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: sharing, vertices, gap and points; None stands for a missing number."""
        vertices = [{"total": total, "smallest_share": share} for total, share in self.vertices.tolist()]
        points = [point.to_dict() for point in self.points]
        found = {"sharing": self.sharing, "of": self.of, "vertices": vertices, "gap": self.gap, "points": points}
        return result("frontier", self.question, self.instance.units, found)

    def plot(self, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw the frontier, the unattainable region, and the points; return a matplotlib figure.

        ``ax``: axes of yours to draw into. ``figsize``: of a new figure, in inches. ``title``: in place of the default ("": none).
        """
        return draw("frontier", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        import pandas as pd

        instance = self.instance
        lines = [
            {
                "kind": point.kind,
                "tasks": point.total,
                "min share": point.smallest_share,
                "price of fairness": point.price_of_fairness,
                "of efficiency": point.price_of_efficiency,
                "slack": point.below,
            }
            for point in self.points
            if point.allocation is not None
        ]
        names = [point.name for point in self.points if point.allocation is not None]
        table = pd.DataFrame(lines, index=names).to_string(float_format=figure, na_rep="") if lines else "no points"
        text = [
            f"Frontier of {plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}, sharing {self.sharing}: "
            f"{len(self.vertices)} {'vertex' if len(self.vertices) == 1 else 'vertices'}, "
            f"up to {work_in_words(self.instance, self.largest_total)} and a min share of {figure(self.largest_share, 6)}",
            *(line.rstrip() for line in table.splitlines()),
            *(f"{point.name}: {point.message}" for point in self.points if point.message),
        ]
        return "\n".join(text)


def frontier(
    instance: Instance,
    *,
    alphas: Sequence[float] = ALPHAS,
    notions: Sequence[NotionSpec] | None = None,
    families: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    schedules: Sequence[ScheduleSpec] = (),
    of: Literal["tasks", "shares"] = "tasks",
    sharing: Sharing | None = None,
    time_limit: float | None = None,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    done: Callable[[str], object] | None = None,
) -> Frontier:
    """Compute the exact frontier of total and smallest share, and allocations to compare with it.

    Parameters
    ----------
    instance : Instance
    alphas : sequence of float
        The alpha of each alpha-fair allocation: 0 is the largest total, ``inf`` is max-min.
    notions : sequence, optional
        Identifiers ("drfh"), with options "proportional:alpha=2" or ("proportional", {"alpha": 2}), or notions. The default is all of
        ``fo.NOTIONS``; if a user has no task limit, notions that divide whole requests (`Notion.divides_requests`) are left out.
    families : mapping, optional
        Pairs (beta, lambda) of "fds" and "gfj", such as {"fds": [(2, -1), (2, -4)]}.
    schedules : sequence
        Greedy schedules, as in `fairopt.compare`: "drfh:best-fit".
    of : {"tasks", "shares"}
        The utility of the alpha-fair allocations.
    sharing : {"rdm", "tdm"}, optional
        For the frontier and for all points.
    time_limit : float, optional
        Seconds for each point, and for the frontier.
    workers, backend, address
        Workers that compute the points, as `fairopt.study` takes them; the default is this process alone.
    done : function, optional
        Called with the name of each point, and with "frontier", when it is finished.

    Raises
    ------
    InvalidInstance, Unsupported
        If a point is not defined (a notion does not exist, alpha is negative), or no user can have anything.
    NoSolution
        If the time limit is reached before the frontier is computed.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 30]], [[1, 4], [3, 1]])
    >>> points = frontier(instance, alphas=[], notions=[], families={"gfj": [(2, -0.5), (2, -1), (2, -4)]})
    >>> [(point.name, round(point.price_of_fairness, 3), round(point.price_of_efficiency, 3)) for point in points]
    [('gfj:beta=2:lam=-0.5', 0.343, 0.195), ('gfj:beta=2:lam=-1', 0.241, 0.083), ('gfj:beta=2:lam=-4', 0.0, 0.667)]
    """
    require_instance(instance)
    if of not in ("tasks", "shares"):
        raise Unsupported(f'the alpha-fair points cannot be of "{of}"; use "tasks" or "shares"')
    check_time_limit(time_limit)
    check_workers(workers, backend, address)
    _check_tree(instance)
    how = default_sharing(instance) if sharing is None else sharing
    asked = list(NOTIONS) if notions is None else [notions] if isinstance(notions, str) else notions
    tasks: list[tuple[str, str, Callable[[], Allocation]]] = []
    for alpha in alphas:
        label = f"alpha={exactly(checked_alpha(alpha))}"
        tasks.append((label, "alpha", partial(alpha_fair_point, instance, float(alpha), of, how, time_limit)))
    for name, notion in map(read_notion, asked):
        if notions is None and NOTIONS[name].divides_requests and np.isinf(instance.tasks).any():
            tasks.append((name, "notion", partial(_no_request, instance)))
        else:
            tasks.append((name, "notion", partial(solve, instance, notion, sharing=how, time_limit=time_limit)))
    for family, beta, lam in members_of(families or {}):
        notion = notion_of(family, beta=beta, lam=lam)
        name = f"{family}:beta={exactly(float(beta))}:lam={exactly(float(lam))}"
        tasks.append((name, family, partial(solve, instance, notion, sharing=how, time_limit=time_limit)))
    for name, plan in map(read_schedule, [schedules] if isinstance(schedules, str) else schedules):
        tasks.append((name, kind_of(plan), partial(scheduled_point, instance, plan, how)))

    found = _Exact(instance, how, time_limit)
    if done is not None:
        done("frontier")
    names: dict[str, int] = {}
    asked_for: list[_Asked] = []
    for name, kind, task in tasks:
        names[name] = names.get(name, 0) + 1
        asked_for.append((name if names[name] == 1 else f"{name} ({names[name]})", kind, task))
    points: dict[int, FrontierPoint] = {}
    with Crew(workers, backend, address) as crew:
        for position, point in crew.each(found.point, asked_for, _lost_point):
            points[position] = point
            if done is not None:
                done(point.name)
    question = {
        "alphas": alphas,
        "notions": asked,
        "families": {name: pairs for name, pairs in (families or {}).items() if pairs},
        "schedules": [schedules] if isinstance(schedules, str) else schedules,
        "of": of,
        "sharing": how,
        "time_limit_s": time_limit,
    }
    return Frontier(instance, how, of, found.vertices, found.gap, tuple(points[j] for j in range(len(points))), plain(question))


def _check_tree(instance: Instance) -> None:
    """Refuse guarantees, tiers and weights of queues, under which the smallest share of all users says nothing of fairness."""
    if found := why_none(instance):
        raise Unsupported(
            "a frontier sets the total against the smallest share of all users, and guarantees, tiers and weights of queues ask for shares "
            f"that differ; {found}: leave these out (limits of queues may stay), or use compare"
        )


def why_none(instance: Instance) -> str:
    """Return what asks for shares that differ, so that there is no frontier: 'queue "lab" has a guarantee'; "" if nothing does."""
    found = next((f'queue "{queue.name}" has {what}' for queue in instance.queues if (what := _asks(queue))), "")
    if not found and instance.is_tree:
        n = int(np.argmax((instance.guarantees > 0) | (instance.weights.reshape(instance.n_users, -1) == 0).any(axis=1)))
        what = "a guarantee" if instance.guarantees[n] > 0 else "the weight 0" if (instance.weights[n] == 0).any() else ""
        found = f'user "{instance.users[n]}" has {what}' if what else ""
    return found


def _asks(queue: Queue) -> str:
    """Return what a queue has beyond limits, "" for nothing."""
    if any(each.guarantee for each in queue.everywhere_and_on_groups):
        return "a guarantee"
    return "a tier" if queue.tier else "a weight" if queue.weight != 1 else ""


def _no_request(instance: Instance) -> Allocation:
    """Raise the reason why a notion that divides requests is not among the default notions."""
    user = instance.users[int(np.isinf(instance.tasks).argmax())]
    raise Unsupported(f'it divides whole requests, and "{user}" has no number of tasks; give tasks, or name the notion')


_Asked: TypeAlias = tuple[str, str, Callable[[], Allocation]]  # name, kind, and what computes the point


def _lost_point(asked: _Asked, why: str) -> FrontierPoint:
    """Return what stands in the place of a point whose computation has ended its worker."""
    return FrontierPoint(asked[0], asked[1], f"computing it ended its worker twice, the second time alone: {why}")


class _Exact:
    """The frontier; measures points against it."""

    def __init__(self, instance: Instance, sharing: Sharing, time_limit: float | None) -> None:
        self.part = takes_part(instance)
        if not self.part.any():
            raise InvalidInstance(
                "no user can have anything, so there is no frontier; give a user a server where it may run, a demand and tasks"
            )
        small = instance if instance.rules else merge(instance).instance
        program = formulate(small.replace(weights=None), "efficiency", sharing=sharing)
        shares = shares_per_task(small)
        per_pair = shares[program.pair_users, program.pair_servers if shares.shape[1] > 1 else 0]
        work = small.speeds[program.pair_users, program.pair_servers]
        counted = takes_part(small)
        if instance.rules:  # whoever can have nothing under them would make the smallest share 0 for good
            counted = self.part = self.part & able_users(program)
        if not self.part.any():
            raise InvalidInstance("no user can have anything under the rules, so there is no frontier; leave a rule out")
        pareto = pareto_frontier(program, per_pair, counted, Deadline(time_limit), work)
        idle = instance.zero_demand & instance.servable  # users without demand have all their tasks
        free = float((instance.tasks[idle] * np.where(instance.eligibility, instance.speeds, 0)[idle].max(axis=1)).sum())
        self.vertices, self.gap = pareto.vertices + np.array([free, 0.0]), pareto.gap

    def point(self, asked: _Asked) -> FrontierPoint:
        name, kind, task = asked
        started = time.perf_counter()
        try:
            allocation = task()
        except FairoptError as error:
            return FrontierPoint(name, kind, str(error))
        seconds = time.perf_counter() - started
        total, smallest = float(allocation.work.sum()), float(dominant_shares(allocation)[self.part].min())
        (_, largest_share), (largest_total, _) = self.vertices[0], self.vertices[-1]
        reachable = float(np.interp(total, self.vertices[:, 0], self.vertices[:, 1]))
        return FrontierPoint(
            name,
            kind,
            total=total,
            smallest_share=smallest,
            price_of_fairness=_missing(total, largest_total),
            price_of_efficiency=_missing(smallest, largest_share),
            below=max(0.0, _missing(smallest + largest_share - reachable, largest_share)),
            seconds=seconds,
            allocation=allocation,
        )


def _missing(value: float, best: float) -> float:
    """Return 1 - value / best, and 0 if its size is below the tolerance of a certificate."""
    missing = 1.0 - value / float(best)
    return 0.0 if abs(missing) < NOTHING else missing

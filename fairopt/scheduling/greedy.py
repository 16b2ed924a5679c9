"""Greedy schedules: instance, criterion and placement -> whole tasks, by progressive filling.

As in a real scheduler, one task at a time goes to the user with the smallest share, on a server where it fits, and none is taken back. The
result is not an optimum, and its certificate covers feasibility only. `solve` computes the optimum to compare it with.

To define a scheduler of your own, give a share, a placement, or both. The share is a notion with the share of one task
(`fairopt.ShareNotion`), the placement a function (`fairopt.solvers.filling.placements`). Entries in ``fo.NOTIONS`` and ``fo.PLACEMENTS``
give them names.

>>> import fairopt as fo
>>> class CpuTime(fo.ShareNotion):
...     name, title, source = "cpu-time", "Share of the first resource alone", "folklore"
...
...     def share_per_task(self, instance):
...         return instance.demands[:, 0] / instance.total_capacity[0]
>>> def emptiest(user, free, demand, fits):
...     return fits[free[fits].sum(axis=1).argmax()]
>>> instance = fo.Instance([[9, 18], [9, 9]], [[1, 4], [3, 1]], users=["A", "B"])
>>> fo.schedule(instance, CpuTime, placement=emptiest)
Allocation(cpu-time, sharing rdm, greedy by progressive-filling:emptiest: A 6, B 2 tasks; excess 0.0e+00, not an optimum)
"""

from __future__ import annotations

import dataclasses
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.allocation import Allocation, Greedy
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, require_instance, safe_ratio
from fairopt.instance.aggregation import single_servers
from fairopt.instance.fractions import fractions_of
from fairopt.instance.packing_rules import as_limits
from fairopt.instance.tolerances import CERTIFIED, FITS
from fairopt.models import Notion, Sharing
from fairopt.program.filling import Criterion, Filling, Measure
from fairopt.scheduling.arguments import check_first_block, check_placeable, check_single_servers, planned, written_plan
from fairopt.scheduling.arrays import filling_of, order_of_ties, time_of_a_task
from fairopt.scheduling.baselines import Baseline
from fairopt.scheduling.baselines.approximating import approximate
from fairopt.scheduling.in_fractions import answer_in_fractions, check_placements, fill_exactly, seen_exactly
from fairopt.scheduling.queues import queues_of, server_limits
from fairopt.solvers import Chooser, Filled, Placement, fill
from fairopt.solving import checked
from fairopt.validation import check_yes_or_no
from fairopt.wording import joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Record", "schedule"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The order in which tasks were placed.

    Attributes
    ----------
    instance : Instance
    users, servers : int arrays (tasks,)
        User and single server of each task. Single servers are numbered row by row, ``counts[i]`` for row i.
    """

    instance: Instance
    users: IntArray
    servers: IntArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row per task, with the names of its user and its single server.

        >>> instance = Instance([[2]], [[1]], counts=[2], users=["A"], servers=["node"])
        >>> schedule(instance, record=True).trace.to_frame()["server"].tolist()
        ['node#1', 'node#1', 'node#2', 'node#2']
        """
        import pandas as pd

        _, names = single_servers(self.instance)
        return pd.DataFrame(
            {"user": np.array(self.instance.users, object)[self.users], "server": np.array(names, object)[self.servers]},
            index=pd.RangeIndex(1, self.users.size + 1, name="task"),
        )


def schedule(
    instance: Instance,
    criterion: str | Notion | type[Notion] = "drfh",
    *,
    placement: str | Placement | Chooser | Baseline = "first-fit",
    ties: Literal["index", "largest-demand", "random"] = "index",
    seed: int = 0,
    stop: Literal["exhausted", "first-block"] = "exhausted",
    record: bool = False,
    sharing: Sharing | None = None,
    exact: bool = False,
    integral: bool = False,
    **options: Any,
) -> Allocation:
    """Fill the servers with whole tasks, one at a time: a greedy schedule, not an optimum. Or follow a baseline of ``fairopt.BASELINES``.

    Of the users that have tasks left and a server on which one fits, the one with the smallest share is given one task, on a server that
    the placement chooses. This is repeated until no task fits. A row that stands for several servers is filled server by server; the
    allocation has one number for the row.

    In a tree of queues, the user is found by a walk from the root down, among the children below which a task can be placed within all
    limits. At each node the walk takes a child below a guarantee first (its own, or one of a node below it), the one with the smallest
    use / guarantee (`fairopt.program.filling`); else, of those of the highest tier, the one with the smallest share / weight, or in a queue
    of the order "listed" the first in the instance. So guarantees
    of 20 and 10 in a pool of 15 give 10 and 5, as in Spark, Hadoop's FairSharePolicy and HTCondor. A child of weight 0 takes part only
    below a guarantee. Shares count what is guaranteed, as YARN does and ``fairopt.solve(..., guarantees="clamp")``: "surplus", the default
    of `solve`, differs.

    Parameters
    ----------
    instance : Instance
    criterion : str or Notion
        The share that is compared: a notion that equalises one ("drfh", "tsf", "cdrf", "asset", "max-min", "drf"), "psdsf" or "rpsdsf",
        whose shares differ between servers, or a notion of your own. If shares differ between servers and the placement chooses the server
        after the user, a user's share is the smallest over the servers on which its task fits. The placement and the options may stand
        in the same text: "drfh:best-fit:only=gpu".
    placement : str or function
        How the server is chosen: an identifier of ``fairopt.PLACEMENTS``, or a function (user, free, demand, fits) -> server. Or a
        baseline, such as "pop", which approximates the notion ``criterion`` and takes no ``ties``, ``stop``, ``record`` and ``exact``.
    ties : {"index", "largest-demand", "random"}
        Which user comes first of several with the smallest share (up to a relative 1e-12): the first in the instance, the one whose task
        takes the largest fraction of a resource of the cluster (as in the example of the DRF paper), or a random one. A queue stands
        where its first user stands.
    seed : int
        Seed of random ties and placements. The same seed gives the same schedule.
    stop : {"exhausted", "first-block"}
        Stop when no task fits, or as soon as the task of the user with the smallest share does not fit, as algorithm 1 of the DRF paper is
        printed. "first-block" stops also if that task does not fit on an empty server. (Users without an eligible server are left out.)
        Not with queues.
    record : bool
        Keep the order of the placements in ``allocation.trace``, a `Record`.
    sharing : {"rdm", "tdm"}, optional
        Servers divide their resources (default), or their time (default for instances with rates): a task takes the fraction 1 / rate.
    exact : bool
        Decide every step in fractions: whether a task fits, whose share is the smallest and which server is the best, without tolerances.
        An int and a Fraction of the instance are taken as they are, a float by its shortest decimal. ``allocation.exact`` has the tasks
        and shares. (A placement that is a function sees floats.) About a hundred times slower.
    integral : bool
        Of a baseline, which answers in fractions of tasks: round to whole tasks (`fairopt.scheduling.baselines.rounding`). A greedy
        schedule has whole tasks in any case.
    **options
        Options of the placement: ``metric`` (best-fit), ``slots`` (slots), or of the baseline. Options of the criterion: ``utility``
        (max-min), ``queue_share``.

    Returns
    -------
    Allocation
        Its ``shares`` are those of the criterion; with the placement "slots" those of slots, and for "rpsdsf", whose residuals end near 0,
        those of "psdsf". It has no prices and no levels. ``details["fits_nowhere"]`` names the users whose task fits on no empty eligible
        server (with "slots": needs more slots than any such server has).

    Raises
    ------
    InvalidInstance, Unsupported

    Examples
    --------
    >>> instance = Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
    >>> schedule(instance, "drfh", placement="best-fit").tasks
    array([[19.,  2.],
           [ 2., 19.]])

    A baseline, with its options:

    >>> schedule(instance, "drfh:pop:parts=2:seed=0").tasks_per_user.round(3)
    array([13., 13.])

    In a tree, A and B have half of the cluster each, and what the first user of A leaves goes to the second:

    >>> from fairopt import Queue
    >>> queues = [Queue("A"), Queue("B")]
    >>> tree = Instance([[100]], [[1], [1], [1]], tasks=[10, np.inf, np.inf], queues=queues, queue_of=["A", "A", "B"])
    >>> schedule(tree, "drfh").tasks_per_user
    array([10., 40., 50.])
    """
    started = time.perf_counter()
    if (plan := written_plan(criterion, placement, options)) is not None:
        made = {"placement": placement, "ties": ties, "seed": seed, "stop": stop, "record": record, "sharing": sharing, "exact": exact}
        return schedule(instance, **made | {"integral": integral} | options | plan)
    how_placed, name, own = planned(
        criterion, placement=placement, ties=ties, seed=seed, stop=stop, record=record, integral=integral, **options
    )
    if isinstance(how_placed, Baseline):
        if exact:
            raise Unsupported(f'"{name}" computes in floats; leave exact out')
        return approximate(instance, own, how_placed, integral=integral, sharing=sharing)
    assert not isinstance(placement, Baseline)
    require_instance(instance)
    given, instance = instance, as_limits(instance, "a greedy schedule")
    chosen, how = checked(instance, own, sharing, {})
    check_placeable(instance, how_placed)
    if instance.limited.any():
        raise Unsupported(
            f'a schedule cannot limit parallelism, but user "{instance.users[int(instance.limited.argmax())]}" is limited to '
            f"{instance.parallelism[instance.limited][0]:g} servers at once; use solve, with integral=True for whole tasks, or leave "
            "parallelism out"
        )
    check_yes_or_no("exact", exact)
    check_single_servers(instance)
    if instance.unservable:
        log.warning("%s; users without a server get no tasks", instance.unservable_in_words)
    asked = instance.exact if exact else instance
    prepared = how_placed.prepare(instance) if isinstance(how_placed, Placement) else instance
    seen = seen_exactly(instance, how_placed) if exact else prepared
    queues = queues_of(asked, seen, chosen)
    filling, too_large = filling_of(seen, chosen, how, "index", stop == "first-block", queues, server_limits(asked))
    filling = dataclasses.replace(filling, order=order_of_ties(asked, ties))  # by demands of resources, also with slots
    too_large |= instance.servable & ~seen.servable & (instance.tasks > 0)  # no server has even one slot
    if stop == "first-block":
        check_first_block(filling, chosen, how_placed)
    fits_nowhere = [instance.users[n] for n in np.flatnonzero(too_large)]
    if fits_nowhere:
        why = how_placed.too_large if isinstance(how_placed, Placement) else Placement.too_large
        made = {"ties": ties, "seed": seed, "stop": stop}
        usual = {"ties": "index", "seed": 0, "stop": "exhausted"}
        words = [f"{word}={value}" for word, value in (options | made).items() if np.ndim(value) == 0 and value != usual.get(word)]
        log.warning("%s: a task of %s %s; such tasks do not run", ":".join([chosen.name, name, *words]), joined(fits_nowhere, 5), why)
    formulated = time.perf_counter()

    filler = fill_exactly if exact else fill
    filled = filler(filling, how_placed, random_ties=ties == "random", seed=int(seed), first_block=stop == "first-block")
    solved = time.perf_counter()

    tasks = filled.tasks.astype(float)
    for n in np.flatnonzero(seen.zero_demand & instance.servable):
        tasks[n, np.flatnonzero(instance.eligibility[n])[0]] = np.floor(instance.tasks[n] * (1 + (0 if exact else FITS)))
    shares = _shares(seen, filling.criterion, fractions_of(tasks) if exact else tasks)
    if exact:
        check_placements(instance, filled, how)
    excess = 0.0 if exact else max(allocation_excess(given, tasks, how), _excess_of_single_servers(filling, filled))
    certificate = Certificate(excess, np.nan, np.nan, whole_tasks=True, greedy=True, exact=exact)
    certificate.require(CERTIFIED, chosen.name, f"progressive-filling:{name}")
    return Allocation.of(
        Greedy(chosen, how_placed if isinstance(how_placed, Placement) else placement, ties, int(seed), stop, exact),
        given,
        solver=f"progressive-filling:{name}",
        sharing=how,
        tasks=tasks,
        shares=shares.astype(float),
        certificate=certificate,
        moments=(started, formulated, solved, time.perf_counter()),
        seconds={"load": filled.loading},
        details={
            "placements": int(filled.users.size),
            "fits_nowhere": fits_nowhere,
            "blocked_by": None if filled.blocked_by is None else instance.users[filled.blocked_by],
        },
        trace=Record(given, filled.users, filled.servers) if record else None,
        exact=answer_in_fractions(tasks, shares) if exact else None,
    )


# Result --------------------------------------------------------------------------------------------------------------------------


def _excess_of_single_servers(filling: Filling, filled: Filled) -> float:
    """Return the largest relative excess over a capacity of a single server, computed from the list of placements."""
    row = np.repeat(np.arange(filling.counts.size), filling.counts)
    column = row[filled.servers] if filling.demands.shape[1] > 1 else 0
    worst = 0.0
    for r in range(filling.capacities.shape[1]):
        used = np.bincount(filled.servers, weights=filling.demands[filled.users, column, r], minlength=row.size)
        capacity = filling.capacities[row, r]
        worst = max(worst, float(np.max(safe_ratio(np.maximum(used - capacity, 0.0), capacity), initial=0.0)))
    return worst


def _shares(instance: Instance, criterion: Criterion, tasks: FloatArray) -> FloatArray:
    """Return the shares of the criterion, (users,), or (users, servers) if they are server-specific."""
    per_task, total = criterion.per_task, tasks.sum(axis=1)
    if criterion.measure is Measure.RESIDUAL:
        per_task = time_of_a_task(instance) * per_task[:, None]
    shares: FloatArray
    if criterion.measure is not Measure.OWN:
        shares = np.where(instance.eligibility & (total > 0).astype(bool)[:, None], per_task, 0) * total[:, None]
    elif per_task.ndim == 1:
        shares = np.where(total > 0, per_task, 0) * total
    else:
        shares = (np.where(tasks > 0, per_task, 0) * tasks).sum(axis=1)
    return shares

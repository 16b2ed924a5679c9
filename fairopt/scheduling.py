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

from fairopt.aggregation import single_servers
from fairopt.allocation import Allocation, Greedy
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.models import CRITERIA, NOTIONS, Notion, Sharing
from fairopt.program.filling import FITS, Criterion, Filling, Measure
from fairopt.solvers import PLACEMENTS, Chooser, Filled, Placement, fill
from fairopt.solving import checked, notion_of
from fairopt.validation import check_whole_number
from fairopt.wording import did_you_mean, figure, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Record", "filling_of", "placement_of", "planned", "schedule"]

log = logging.getLogger(__name__)

_ENDLESS = np.iinfo(np.int64).max // 2  # tasks of a user without a limit
_MOST_SERVERS = 20_000_000
_TOLERANCE = 1e-8  # of the certificate; each placement is checked with FITS


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
    placement: str | Placement | Chooser = "first-fit",
    ties: Literal["index", "largest-demand", "random"] = "index",
    seed: int = 0,
    stop: Literal["exhausted", "first-block"] = "exhausted",
    record: bool = False,
    sharing: Sharing | None = None,
    **options: Any,
) -> Allocation:
    """Fill the servers with whole tasks, one at a time: a greedy schedule, not an optimum.

    Of the users that have tasks left and a server on which one fits, the one with the smallest share is given one task, on a server that
    the placement chooses. This is repeated until no task fits. A row that stands for several servers is filled server by server; the
    allocation has one number for the row.

    Parameters
    ----------
    instance : Instance
    criterion : str or Notion
        The share that is compared: a notion that equalises one ("drfh", "tsf", "cdrf", "asset", "max-min", "drf"), "psdsf" or "rpsdsf",
        whose shares differ between servers, or a notion of your own. If shares differ between servers and the placement chooses the server
        after the user, a user's share is the smallest over the servers on which its task fits.
    placement : str or function
        How the server is chosen: an identifier of ``fairopt.PLACEMENTS``, or a function (user, free, demand, fits) -> server.
    ties : {"index", "largest-demand", "random"}
        Which user comes first of several with the smallest share (up to a relative 1e-12): the first in the instance, the one whose task
        takes the largest fraction of a resource of the cluster (as in the example of the DRF paper), or a random one.
    seed : int
        Seed of random ties and placements. The same seed gives the same schedule.
    stop : {"exhausted", "first-block"}
        Stop when no task fits, or as soon as the task of the user with the smallest share does not fit, as algorithm 1 of the DRF paper is
        printed. "first-block" stops also if that task does not fit on an empty server. (Users without an eligible server are left out.)
    record : bool
        Keep the order of the placements in ``allocation.trace``, a `Record`.
    sharing : {"rdm", "tdm"}, optional
        Servers divide their resources (default), or their time (default for instances with rates): a task takes the fraction 1 / rate.
    **options
        Options of the placement: ``metric`` (best-fit), ``slots`` (slots). Options of the criterion: ``utility`` (max-min).

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
    """
    started = time.perf_counter()
    how_placed, name, own = planned(criterion, placement=placement, ties=ties, seed=seed, stop=stop, **options)
    chosen, how = checked(instance, own, sharing, {})
    if instance.limited.any():
        raise Unsupported(
            f'a schedule cannot limit parallelism, but user "{instance.users[int(instance.limited.argmax())]}" is limited to '
            f"{instance.parallelism[instance.limited][0]:g} servers at once; use solve, with integral=True for whole tasks, or leave "
            "parallelism out"
        )
    check_single_servers(instance)
    if instance.unservable:
        log.warning("no server is eligible for %s: no tasks there", joined(instance.unservable, 5))
    seen = how_placed.prepare(instance) if isinstance(how_placed, Placement) else instance
    filling, too_large = filling_of(seen, chosen, how, "index", stop == "first-block")
    filling = dataclasses.replace(filling, order=order_of_ties(instance, ties))  # of resources, also where slots are filled
    too_large |= instance.servable & ~seen.servable & (instance.tasks > 0)  # no server has even one slot
    if stop == "first-block":
        _check_first_block(filling, chosen, how_placed)
    fits_nowhere = [instance.users[n] for n in np.flatnonzero(too_large)]
    if fits_nowhere:
        why = how_placed.too_large if isinstance(how_placed, Placement) else Placement.too_large
        made = {"ties": ties, "seed": seed, "stop": stop}
        usual = {"ties": "index", "seed": 0, "stop": "exhausted"}
        words = [f"{word}={value}" for word, value in (options | made).items() if np.ndim(value) == 0 and value != usual.get(word)]
        log.warning("%s: a task of %s %s: no tasks there", ":".join([chosen.name, name, *words]), joined(fits_nowhere, 5), why)
    formulated = time.perf_counter()

    filled = fill(filling, how_placed, random_ties=ties == "random", seed=int(seed), first_block=stop == "first-block")
    solved = time.perf_counter()

    tasks = filled.tasks.astype(float)
    for n in np.flatnonzero(seen.zero_demand & instance.servable):
        tasks[n, np.flatnonzero(instance.eligibility[n])[0]] = np.floor(instance.tasks[n] * (1 + FITS))
    excess = max(allocation_excess(instance, tasks, how), _excess_of_single_servers(filling, filled))
    certificate = Certificate(excess, np.nan, np.nan, whole_tasks=True, greedy=True)
    certificate.require(_TOLERANCE, chosen.name, f"progressive-filling:{name}")
    return Allocation(
        instance=instance,
        notion=chosen.name,
        solver=f"progressive-filling:{name}",
        sharing=how,
        tasks=tasks,
        shares=_shares(seen, filling.criterion, tasks),
        prices=None,
        levels=(),
        certificate=certificate,
        seconds={
            "formulate": formulated - started,
            "solve": solved - formulated,
            "certify": time.perf_counter() - solved,
            "load": filled.loading,
        },
        details={
            "placements": int(filled.users.size),
            "fits_nowhere": fits_nowhere,
            "blocked_by": None if filled.blocked_by is None else instance.users[filled.blocked_by],
        },
        trace=Record(instance, filled.users, filled.servers) if record else None,
        question=Greedy(chosen, how_placed if isinstance(how_placed, Placement) else placement, ties, int(seed), stop),
    )


# Arguments -----------------------------------------------------------------------------------------------------------------------


def check_single_servers(instance: Instance) -> None:
    """Refuse instances with more servers than can be filled one by one."""
    if instance.counts.sum() > _MOST_SERVERS:
        raise Unsupported(
            f"the instance has {figure(instance.counts.sum())} servers, and a schedule fills at most {_MOST_SERVERS:,}, one by one; "
            "give a part of the cluster, or use solve, which merges rows"
        )


def planned(
    criterion: str | Notion | type[Notion] = "drfh",
    *,
    placement: str | Placement | Chooser = "first-fit",
    ties: str = "index",
    seed: int = 0,
    stop: str = "exhausted",
    record: bool = False,
    **options: Any,
) -> tuple[Placement | Chooser, str, Notion]:
    """Return the placement, its name and the notion of the arguments of `schedule`, checked as far as possible without an instance.

    >>> planned("drfh", placement="best-fit", metrik="l2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.Unsupported: "drfh" with "best-fit" takes no option "metrik" (did you mean "metric"?); ...
    """
    how_placed, name, rest = placement_of(placement, options)
    chosen = _criterion(criterion, rest, placement)
    for word, value, known in (("ties", ties, ("index", "largest-demand", "random")), ("stop", stop, ("exhausted", "first-block"))):
        if not isinstance(value, str) or value not in known:
            raise Unsupported(f'{word} cannot be "{value}"{did_you_mean(str(value), known)}; use {" or ".join(known)}')
    check_whole_number("seed", seed, 0)
    return how_placed, name, chosen


def placement_of(placement: str | Placement | Chooser, options: dict[str, Any]) -> tuple[Placement | Chooser, str, dict[str, Any]]:
    """Return the placement with its options, its name, and the options that are not its own."""
    entry: Any = placement
    if isinstance(placement, str):
        if placement not in PLACEMENTS:
            raise Unsupported(
                f'there is no placement "{placement}"{did_you_mean(placement, PLACEMENTS)}; there are {", ".join(PLACEMENTS)}'
            )
        entry = PLACEMENTS[placement]
    if isinstance(entry, type) and issubclass(entry, Placement):
        known = _options_of(entry)
        entry = entry(**{word: value for word, value in options.items() if word in known})
        options = {word: value for word, value in options.items() if word not in known}
    if isinstance(entry, Placement):
        return entry, entry.name, options
    if not callable(entry):
        raise Unsupported(
            f"placement is {entry!r}; give one of {', '.join(PLACEMENTS)}, or a function (user, free, demand, fits) -> server"
        )
    return entry, placement if isinstance(placement, str) else getattr(entry, "__name__", type(entry).__name__), options


def _options_of(entry: Any) -> list[str]:
    """Return the names of the options of a placement or notion; none if it is an instance already."""
    return [f.name for f in dataclasses.fields(entry)] if isinstance(entry, type) and dataclasses.is_dataclass(entry) else []


def _criterion(criterion: str | Notion | type[Notion], options: dict[str, Any], placement: Any) -> Notion:
    known = {**NOTIONS, **CRITERIA}
    if isinstance(criterion, str):
        if criterion not in known:
            raise Unsupported(f'there is no criterion "{criterion}"{did_you_mean(criterion, known)}; there are {", ".join(known)}')
        criterion = known[criterion]
    for placed in PLACEMENTS.values():
        words = _options_of(placed)
        if word := next((word for word in options if word in words), None):
            raise Unsupported(f'"{word}" is an option of the placement "{placed.name}"; choose that one, or leave it out')  # type: ignore[union-attr]
    own = _options_of(criterion)
    if isinstance(criterion, type) and (word := next((word for word in options if word not in own), None)):
        takes = [
            *_options_of(PLACEMENTS.get(placement) if isinstance(placement, str) else placement),
            *own,
            "ties",
            "seed",
            "stop",
            "record",
        ]
        names = [f'"{getattr(thing, "name", getattr(thing, "__name__", thing))}"' for thing in (criterion, placement)]
        raise Unsupported(f'{names[0]} with {names[1]} takes no option "{word}"{did_you_mean(word, takes)}; it takes {", ".join(takes)}')
    return notion_of(criterion, **options)


def _check_first_block(filling: Filling, chosen: Notion, placement: Placement | Chooser) -> None:
    if filling.criterion.measure is not Measure.OWN:
        raise Unsupported(
            f'"{chosen.name}" has a user with the smallest share for each server, not one for all, so stop="first-block" has no meaning; '
            'leave stop out, or use a criterion such as "drfh"'
        )
    if isinstance(placement, Placement) and placement.server_first:
        raise Unsupported(
            f'"{placement.name}" chooses the server before the user, so stop="first-block" has no meaning; '
            'leave stop out, or use "first-fit"'
        )


# Input of progressive filling ----------------------------------------------------------------------------------------------------


def filling_of(instance: Instance, chosen: Notion, sharing: Sharing, ties: str, first_block: bool = False) -> tuple[Filling, BoolArray]:
    """Return the arrays of progressive filling, and which users have a task that fits on no server. These take part only to block."""
    if sharing == "tdm":
        capacities = np.ones((instance.n_servers, 1))
        demands = np.where(instance.eligibility, safe_ratio(instance.counts, instance.rates), 0.0)[:, :, None]
    else:
        capacities, demands = instance.capacities, instance.demands[:, None, :]
    fits = instance.eligibility.copy()
    for r in range(capacities.shape[1]):  # one resource at a time, to avoid an array (users, servers, resources)
        fits &= demands[:, :, r] <= capacities[:, r] * (1 + FITS)
    takes_part = instance.servable & ~instance.zero_demand & (instance.tasks > 0)
    too_large = takes_part & ~fits.any(axis=1)
    if not first_block:
        takes_part &= ~too_large
    whole = np.floor(np.minimum(instance.tasks, _ENDLESS / 2) * (1 + FITS)).astype(np.int64)
    return Filling(
        capacities=capacities,
        counts=instance.counts.astype(np.int64),
        demands=demands,
        eligibility=fits,
        tasks=np.where(takes_part, whole, 0),
        criterion=_weighted_criterion(instance, chosen, takes_part, fits),
        order=order_of_ties(instance, ties),
    ), too_large


def order_of_ties(instance: Instance, ties: str) -> IntArray:
    """Return the users in the order in which ties are broken: by index, or by the largest part of a resource that a task takes."""
    if ties != "largest-demand":
        return np.arange(instance.n_users)
    largest = safe_ratio(instance.demands, instance.total_capacity).max(axis=1)
    rounded = [-float(f"{part:.12g}") for part in largest]  # those that differ by rounding stay in order
    return np.argsort(rounded, kind="stable")


def _weighted_criterion(instance: Instance, chosen: Notion, takes_part: BoolArray, fits: BoolArray) -> Criterion:
    criterion = chosen.criterion(instance)
    per_task = np.array(criterion.per_task, dtype=np.float64)
    if per_task.shape not in ((instance.n_users,), fits.shape):
        raise InvalidInstance(
            f'the share of a task under "{chosen.name}" has shape {per_task.shape}; '
            f"return one per user, ({instance.n_users},), or per user and server, {fits.shape}"
        )
    table = per_task if per_task.ndim == 2 else per_task[:, None]
    counted = takes_part[:, None] if per_task.ndim == 1 else fits & takes_part[:, None]
    wrong = np.argwhere(counted & ~((table > 0) & np.isfinite(table)))
    if wrong.size:
        n, i = wrong[0]
        raise InvalidInstance(
            f'a task of user "{instance.users[n]}" is worth a share of {table[n, i]:g} under "{chosen.name}", but shares must be > 0; '
            'give the user a demand > 0, or use "max-min" with a utility of your own'
        )
    weights = instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users)  # weights per resource are part of the share
    return Criterion((table / weights[:, None]).reshape(per_task.shape), criterion.measure)


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
        per_task = np.where(instance.eligibility, safe_ratio(instance.counts, instance.rates), 0.0) * per_task[:, None]
    shares: FloatArray
    if criterion.measure is not Measure.OWN:
        shares = np.where(instance.eligibility & (total > 0)[:, None], per_task, 0.0) * total[:, None]
    elif per_task.ndim == 1:
        shares = np.where(total > 0, per_task, 0.0) * total
    else:
        shares = (np.where(tasks > 0, per_task, 0.0) * tasks).sum(axis=1)
    return shares

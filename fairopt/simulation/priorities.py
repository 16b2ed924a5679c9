"""Why the priority of a user or a queue is what it is under a scheduler of jobs, who is next, and when that changes.

Usage fades and grows by what runs:  U(t) = U(0) z + R h / ln 2 (1 - z),  z = 2^(-t / h),  with R what is billed each second now. So two
children of a node change places where a linear equation in z has its root, and the first change of a rank is found exactly, if what runs
goes on and nothing else starts. Where nothing runs, all usage fades alike, and no rank of "fairtree" changes.

>>> import fairopt as fo
>>> lab = fo.Instance([[64]], [[4], [1]], resources=["cpu"], users=["ada", "bob"])
>>> found = explain_priority(lab, "ada", "fairtree:half_life=1h", usage={"ada": 7200, "bob": 3600}, held=[[0], [2]])
>>> found.rank, found.next, found.better.user, round(found.better.seconds)
(2, ('bob', 'ada'), 'bob', 1545)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import FloatArray, Instance, IntArray, require_instance
from fairopt.results import finite, result
from fairopt.simulation.baselines.fair_tree import FairTree
from fairopt.simulation.baselines.options import Baseline, baseline_of, unit_of
from fairopt.simulation.baselines.usage import fading, same_digits
from fairopt.simulation.baselines.windows import targets
from fairopt.simulation.billing import Billing, BillingLike, billed, billing_of
from fairopt.simulation.past_usage import PastUsage, UsageLike, past_usage
from fairopt.simulation.window_ranks import WindowRanks
from fairopt.wording import did_you_mean, duration, figure, joined

__all__ = ["Change", "Place", "PriorityExplanation", "explain_priority"]

_LEAST = 0.5  # HTCondor's smallest real priority
_EXPLAINED = ("fairtree", "priority", "maui")  # schedulers whose order is
_AFTER = 1e-9  # a part of the half-life: just after a change


@dataclass(frozen=True, slots=True)
class Place:
    """One child of a node on the way from the root to the user.

    Attributes
    ----------
    name : str
    above : str or None
        The queue that it is in; None: the root.
    shares, used : float
        Its part of the shares, and of the usage, of all children there.
    level : float
        shares / used, the level fairshare of Slurm; inf: nothing was used.
    place, of : int
        Its place among the children, by level, and how many there are.
    """

    name: str
    above: str | None
    shares: float
    used: float
    level: float
    place: int
    of: int


@dataclass(frozen=True, slots=True)
class Change:
    """The first time at which the rank changes, to which rank, and who is passed, or passes."""

    seconds: float
    rank: int
    user: str


@dataclass(frozen=True, slots=True)
class PriorityExplanation:
    """Why a user is where it is in the order of a scheduler.

    Attributes
    ----------
    user, scheduler : str
    rank, ranks : int
        Its rank, from 1, and how many different ranks there are. Of a queue: of the first of its users.
    next : tuple of str
        Who is next: the users with tasks that wait, the first ones first; all users where it is not known what runs.
    way : tuple of Place
        From the root down, under "fairtree".
    priority, best : float
        Under "priority": the effective priority of the user (the smaller, the better), and the smallest there is.
    part : float
        Under "priority": the part of the free cores that the user gets when all who wait divide them.
    better, worse : Change or None
        When the rank improves and worsens, if what runs goes on and nothing else starts; None: never.
    runs : bool
        Is it known what runs?
    notes : tuple of str
    """

    user: str
    scheduler: str
    rank: int
    ranks: int
    next: tuple[str, ...]
    way: tuple[Place, ...] = ()
    priority: float = math.nan
    best: float = math.nan
    part: float = math.nan
    better: Change | None = None
    worse: Change | None = None
    runs: bool = False
    notes: tuple[str, ...] = ()
    question: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the JSON of ``fairopt explain --scheduler --json``."""

        def change(found: Change | None) -> dict[str, Any] | None:
            return None if found is None else {"seconds": found.seconds, "rank": found.rank, "name": found.user}

        return result(
            "explain-priority",
            self.question,
            {"seconds": "s"},
            {
                "name": self.user,
                "scheduler": self.scheduler,
                "rank": self.rank,
                "ranks": self.ranks,
                "next": list(self.next),
                "way": [
                    {
                        "name": each.name,
                        "above": each.above,
                        "shares": each.shares,
                        "used": each.used,
                        "level": finite(each.level),
                        "place": each.place,
                        "of": each.of,
                    }
                    for each in self.way
                ],
                "priority": finite(self.priority),
                "best": finite(self.best),
                "sentences": self.sentences(),
                "part": finite(self.part),
                "better": change(self.better),
                "worse": change(self.worse),
                "notes": list(self.notes),
            },
        )

    def sentences(self) -> list[str]:
        """Return why the rank is what it is, who is next, and when that changes."""
        lines = []
        below = [each for each in self.way if each.place > 1]
        if below:
            first = below[0]
            where = f'in "{first.above}"' if first.above else "at the root"
            lines.append(
                f'{where[:1].upper()}{where[1:]}, "{first.name}" has {figure(100 * first.shares, 3)} % of the shares and '
                f"{figure(100 * first.used, 3)} % of the usage: place {first.place} of {first.of}. That decides first."
            )
        elif self.way:
            lines.append("Nobody is before it: on its whole way it has the smallest usage for its shares.")
        if not math.isnan(self.priority):
            lines.append(
                f"Its effective priority is {figure(self.priority, 4)}, and the best is {figure(self.best, 4)}"
                + (f"; of free cores it gets {figure(100 * self.part, 3)} %." if not math.isnan(self.part) else ".")
            )
        lines.append(f"Next: {joined(list(self.next), 5)}." if self.next else "Nobody waits.")
        if not self.runs:
            lines.append("What runs is not known, so that nobody can say when this changes; --allocation FILE tells it.")
        else:
            for what, found in (("better", self.better), ("worse", self.worse)):
                if found is not None:
                    lines.append(f'It gets {what} in {duration(found.seconds)}: rank {found.rank}, "{found.user}" changes places with it.')
            if self.better is None:
                lines.append("It does not get better while what runs goes on and nothing else starts.")
        return lines

    def __str__(self) -> str:
        head = f'"{self.user}" has rank {self.rank} of {self.ranks} under {self.scheduler}.'
        return "\n".join([head, *self.sentences(), *(f"Note: {note}" for note in self.notes)])


def explain_priority(
    instance: Instance,
    name: str,
    scheduler: str = "fairtree",
    *,
    usage: UsageLike | None = None,
    billing: BillingLike = None,
    held: npt.ArrayLike | None = None,
) -> PriorityExplanation:
    """Explain the place of a user or a queue in the order of a scheduler.

    Parameters
    ----------
    instance : Instance
    name : str
        A user or, under "fairtree", a queue.
    scheduler : str
        "fairtree:half_life=7d", "priority:half_life=1d" or "maui:interval=1d:depth=7", as `fairopt.simulate` takes them.
    usage, billing : optional
        As `fairopt.simulate` takes them. Without usage nobody has used anything.
    held : array (users, servers), optional
        The tasks that run now.

    Returns
    -------
    PriorityExplanation

    Raises
    ------
    InvalidInstance, Unsupported
        There is no such user or queue. The scheduler has no order of users that can be explained.
    """
    require_instance(instance)
    plan = baseline_of(scheduler)
    if plan is None or plan.order not in _EXPLAINED:
        hint = did_you_mean(str(scheduler).partition(":")[0], _EXPLAINED)
        raise Unsupported(
            f'the order of "{scheduler}" is not explained{hint}; fairtree, priority and maui are, as in fairtree:half_life=7d'
        )
    queues = [queue.name for queue in instance.queues] if plan.order == "fairtree" else []
    if name not in instance.users and name not in queues:
        known = [*instance.users, *queues]
        raise InvalidInstance(f'there is no user "{name}"{did_you_mean(name, known)}; there are {joined(known, 5)}')
    past = past_usage({} if usage is None else usage, instance)
    if plan.order == "fairtree" or billing is not None:
        weights = billing_of(billing, instance)
    else:
        weights = Billing(np.eye(instance.n_resources)[unit_of(plan.unit, instance.resources, plan.order)], largest=False)
    tasks = None if held is None else _tasks(held, instance)
    rate = np.zeros(instance.n_users) if tasks is None else _rate(instance, tasks, weights)
    waits = np.ones(instance.n_users, bool) if tasks is None else tasks.sum(axis=1) < instance.tasks
    question = {"name": name, "scheduler": scheduler, "usage": usage, "billing": billing}
    asked = _Asked(instance, name, plan, past, rate, waits, tasks is not None, {k: v for k, v in question.items() if v is not None})
    return {"fairtree": _by_tree, "priority": _by_priority, "maui": _by_windows}[plan.order](asked)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Whose place is asked for, what was used, what runs is billed a second, and who waits."""

    instance: Instance
    name: str
    plan: Baseline
    past: PastUsage
    rate: FloatArray
    waits: npt.NDArray[np.bool_]
    runs: bool
    question: dict[str, Any]

    def later(self, used: FloatArray, rate: FloatArray, seconds: float) -> FloatArray:
        """Return U(t) from U(0), the rate and t."""
        kept, grown = fading(seconds, self.plan.half_life)
        return np.asarray(used * kept + rate * grown)

    def found(
        self, rank_at: Callable[[float], tuple[int, IntArray]], mine: int, times: list[float], note: str = "", **more: Any
    ) -> PriorityExplanation:
        """Return the explanation; ``times`` are those at which the rank of ``mine`` may change."""
        rank, ranks = rank_at(0.0)
        better, worse = _changes(times, rank_at, self.plan.half_life, self.instance.users, mine) if self.runs else (None, None)
        order = np.argsort(ranks, kind="stable")
        return PriorityExplanation(
            self.name,
            self.plan.name,
            rank + 1,
            int(ranks.max()) + 1,
            tuple(self.instance.users[n] for n in order if self.waits[n]),
            better=better,
            worse=worse,
            runs=self.runs,
            notes=(*self.past.notes, *filter(None, [note])),
            question=self.question,
            **more,
        )


def _tasks(held: npt.ArrayLike, instance: Instance) -> FloatArray:
    tasks = np.asarray(held, float)
    if tasks.shape != (instance.n_users, instance.n_servers) or not (np.isfinite(tasks) & (tasks >= 0)).all():
        raise InvalidInstance(f"held must be tasks >= 0 of shape (users, servers) = ({instance.n_users}, {instance.n_servers})")
    return tasks


def _rate(instance: Instance, tasks: FloatArray, weights: Billing) -> FloatArray:
    """Return what the running tasks of each user are billed a second."""
    each = billed(weights, instance.demands_by_kind)
    on_rows = each if each.shape[1] == 1 else each[:, instance.kind_of]
    return np.asarray((tasks * on_rows).sum(axis=1))


def _crossing(one: tuple[float, float], other: tuple[float, float], half_life: float) -> float:
    """Return when two usages by share, each (now, rate), are equal; inf: never after now."""
    start, slope = one[0] - other[0], one[1] - other[1]
    if math.isinf(half_life):
        seconds = -start / slope if slope else math.inf
    else:
        end = slope * half_life / math.log(2)
        z = end / (end - start) if end != start else math.inf
        seconds = -half_life * math.log2(z) if 0 < z < 1 else math.inf
    return seconds if seconds > 0 else math.inf


def _changes(
    times: list[float], rank_at: Callable[[float], tuple[int, IntArray]], half_life: float, names: tuple[str, ...], mine: int
) -> tuple[Change | None, Change | None]:
    """Return the first of these times after which the rank is smaller, and the first after which it is larger."""
    now, before = rank_at(0.0)
    found: dict[Literal["better", "worse"], Change] = {}
    step = _AFTER * (half_life if math.isfinite(half_life) else 86400.0)
    for time in sorted({time for time in times if math.isfinite(time)}):
        rank, ranks = rank_at(time + step)
        what: Literal["better", "worse"] | None = "better" if rank < now else "worse" if rank > now else None
        if what is not None and what not in found:
            passed = (before < now) & (ranks >= rank) if what == "better" else (before >= now) & (ranks < rank)
            passed[mine] = False
            who = int(np.argmax(passed)) if passed.any() else mine
            found[what] = Change(time, rank + 1, names[who])
        if len(found) == 2:
            break
    return found.get("better"), found.get("worse")


def _by_tree(asked: _Asked) -> PriorityExplanation:
    instance, name, half_life, rate = asked.instance, asked.name, asked.plan.half_life, asked.rate
    tree = instance.tree
    fair = FairTree(tree, np.asarray(instance.weights, float))
    used, of_queues = asked.past.faded(half_life)
    inside = np.array([name in tree.path(int(node)) for node in tree.user_node]) if name not in instance.users else None
    if inside is not None and not inside.any():
        raise InvalidInstance(f'no user is in the queue "{name}"; name one that has users')
    members = np.array([instance.index(name)]) if inside is None else np.flatnonzero(inside)

    def rank_at(seconds: float) -> tuple[int, IntArray]:
        ranks = fair.ranks(asked.later(used, rate, seconds), asked.later(of_queues, np.zeros(of_queues.size), seconds))
        return int(ranks[members].min()), ranks

    first = int(members[np.argmin(rank_at(0.0)[1][members])])
    siblings = fair.siblings
    nodes = siblings.of_nodes(used, of_queues)
    has, grows = np.concatenate([nodes[1:], used]), np.concatenate([siblings.of_nodes(rate)[1:], rate])
    levels = same_digits(fair.level_fairshare(used, of_queues))
    child = siblings.n_queues + first if inside is None else tree.index(name) - 1
    way: list[Place] = []
    times = [0.0]
    while True:
        above = int(siblings.above[child])
        others = np.flatnonzero(siblings.above == above)
        way.append(
            Place(
                instance.users[first] if child >= siblings.n_queues else tree.name(child + 1),
                tree.name(above) if above else None,
                float(fair.shares[child]),
                float(has[child] / nodes[above]) if nodes[above] else 0.0,
                float(levels[child]),
                1 + int((levels[others] > levels[child]).sum()),
                others.size,
            )
        )
        for other in others.tolist():
            if other != child and siblings.weights[other] and siblings.weights[child]:
                one, two = ((float(has[k] / siblings.weights[k]), float(grows[k] / siblings.weights[k])) for k in (child, other))
                times.append(_crossing(one, two, half_life))
        if not above:
            break
        child = above - 1
    return asked.found(rank_at, first, times, way=tuple(reversed(way)))


def _by_priority(asked: _Asked) -> PriorityExplanation:
    instance, half_life, rate = asked.instance, asked.plan.half_life, asked.rate
    mine, fade = instance.index(asked.name), math.log(2) / half_life
    least = _LEAST / fade
    weights = np.asarray(instance.weights, float)
    factor = np.divide(1.0, weights, out=np.full(weights.size, np.inf), where=weights > 0)
    used = np.maximum(asked.past.faded(half_life)[0], least)

    def priorities(seconds: float) -> FloatArray:
        return np.asarray(same_digits(np.maximum(asked.later(used, rate, seconds) * fade, _LEAST) * factor))

    def rank_at(seconds: float) -> tuple[int, IntArray]:
        ranks = np.unique(priorities(seconds), return_inverse=True)[1]
        return int(ranks[mine]), np.asarray(ranks, np.int64)

    def course(n: int) -> tuple[float, float]:
        return float(used[n] * factor[n]), float(rate[n] * factor[n])

    times = [0.0]
    for n in np.flatnonzero(weights > 0).tolist():
        lowest = float(least * factor[n])
        times.append(_crossing(course(n), (lowest, lowest * fade), half_life))  # the smallest priority is reached
        if n != mine and weights[mine]:
            times.append(_crossing(course(mine), course(n), half_life))
            for m, k in ((mine, n), (n, mine)):  # one of them stays at the smallest priority
                lowest = float(least * factor[k])
                times.append(_crossing(course(m), (lowest, lowest * fade), half_life))
    now = priorities(0.0)
    claims = np.where(asked.waits & np.isfinite(now), 1 / now, 0.0)
    part = float(claims[mine] / claims.sum()) if claims[mine] else math.nan
    return asked.found(rank_at, mine, times, priority=float(now[mine]), best=float(now.min()), part=part)


def _by_windows(asked: _Asked) -> PriorityExplanation:
    instance, mine = asked.instance, asked.instance.index(asked.name)
    assert asked.plan.windows is not None
    wanted = targets(instance.tree, np.asarray(instance.weights, float))
    ranks = WindowRanks(asked.plan.windows, wanted, asked.past.of_windows(instance.tree, wanted), asked.rate)
    now, used = ranks.at(0.0), float(ranks.effective(0.0)[mine])

    def rank_at(seconds: float) -> tuple[int, IntArray]:
        found = ranks.at(seconds)
        return int(found[mine]), found

    part = float(wanted[mine])
    place = Place(asked.name, None, part, used, part / used if used else math.inf, 1 + int((now < now[mine]).sum()), now.size)
    note = "the order is by the part of the shares minus that of the usage in windows; the present window is taken to have just begun"
    return asked.found(rank_at, mine, ranks.times(mine), note, way=(place,))

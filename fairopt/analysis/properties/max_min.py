"""U-max-min fairness: no user's share can rise without lowering the share of a user at or below it.

U[n] = sum_i u[n,i] x[n,i] / phi[n]. If the goal of the notion is a leximin of shares, U[n] is the share of the notion. For any other
allocation, U[n] is the weighted global dominant share; if the instance has rates, U[n] is the part of what the user would run alone,
x[n] / (phi[n] sum_i gamma[n,i]) (Kesidis et al. 2018, definition 1 and equation (3)). Where tasks do other work on other servers, it is
the share of the work that they do.

An allocation is U-max-min fair if and only if its shares are those of the exact leximin, which are unique. If the allocation has levels
with prices, the prices prove it (`fairopt.certificate.levels`). Otherwise the exact leximin is solved and compared. Among the users with a
larger share in the exact leximin, let n be the user with the smallest U[n]. Then no user at or below U[n] has less in the exact leximin: it
raises n at the expense of larger shares only, and is the witness. The violation is what n gains.

*Whole tasks* are compared with the exact leximin of whole tasks, whose sorted list of shares is unique. At the first position where the two
sorted lists differ, the exact share is larger. Let s be the smaller one. The violation is the largest gain of a user whose share is at most
s in the allocation, and more than s in the exact leximin.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.properties.branching import better_sorted, single_servers_known
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, judged_in_floats, violated
from fairopt.analysis.properties.whole_tasks import best_sorted, largest_totals, proved
from fairopt.certificate import certify
from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import BoolArray, FloatArray, Instance, safe_ratio
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion, ShareNotion, Stated
from fairopt.models.share_notion import by_work, dominant_share, share_of_work
from fairopt.program import LimitKind, Program, Solution, Stage
from fairopt.solving import notion_of, solve, without_remarks
from fairopt.wording import figure, joined, plural

__all__ = ["NAME", "check", "judge"]

NAME = "max-min"
_WHOLE = "Judged among whole tasks: "


def check(case: Case) -> Verdict:
    """Judge the shares of the notion, or dominant shares."""
    instance = case.instance
    if case.program is not None:
        return judge(case, NAME, case.share, f"share under {case.program.name}")
    if case.last.any():
        assert isinstance(case.notion, ShareNotion | Stated)
        share = case.notion.share_per_task(instance)
        share = share / instance.weights if instance.weights.ndim == 1 else share
        return judge(case, NAME, np.broadcast_to(share[:, None], instance.eligibility.shape), f"share under {case.notion.name}")
    if instance.rates_per_server is None:
        of_work = share_of_work(instance, None) if instance.differs_by_server else dominant_share(instance, instance.total_capacity)
        what = "dominant share"
    else:
        of_work, what = safe_ratio(1, (case.rates * instance.speeds).sum(axis=1)), "part of what it runs alone"
    share = of_work / instance.weights if instance.weights.ndim == 1 else of_work
    return judge(case, NAME, by_work(instance, np.broadcast_to(share[:, None], instance.eligibility.shape)), what)


def judge(case: Case, name: str, share: FloatArray, what: str) -> Verdict:
    """Judge whether an allocation is max-min fair in shares; ``share`` is that of a task, (users, servers), by weight, named ``what``."""
    if not case.members.size:
        return holds(name, "Nobody takes part.")
    instance = case.instance
    usable = instance.eligibility & case.part[:, None]
    share = np.where(usable & (share < np.inf) & (share > 0), share, 1)
    if case.whole:
        return (_whole if case.radius is None else _whole_in_fractions)(case, name, share, what)
    exactly = case.radius is not None
    provable = case.feasible and not exactly and not case.last.any()
    if provable and _proved(case, _leximin(case, share).formulate(_bare(case), sharing=case.sharing, integral=False)):
        return holds(name, f"Nobody's {what} can rise without lowering one at or below it: the prices of the levels prove it.")
    try:
        with without_remarks():
            exact = solve(*_question(case, share), sharing=case.sharing, time_limit=case.time_limit, exact=exactly)
    except FairoptError as error:
        return does_not_apply(name, f"Undecided: the exact shares are not known: {error}")
    best_tasks = case.tasks_of(exact)
    own, best = (_shares(share, tasks, case) for tasks in (case.allocation.tasks, best_tasks))
    per_task = _share_of_worth(case, share, usable)
    gain = np.divide(best - own, per_task, out=np.zeros_like(own), where=per_task > 0)
    rising = np.flatnonzero(gain > case.slack)
    if not rising.size:
        if case.feasible:
            return holds(name, f"Nobody's {what} can rise without lowering one at or below it: all have the exact ones.")
        return does_not_apply(name, "The allocation exceeds its limits, and nobody has less than the exact allocation gives.")
    ranked, _ = _ranked(case, own, best)
    n = case.first_largest(rising, -ranked)
    losing = np.flatnonzero(gain < -case.slack)
    if (ranked[losing] <= ranked[rising].min()).any():
        return does_not_apply(name, "The allocation exceeds its limits, so its shares do not show what could rise.")
    return violated(
        name,
        gain[n],
        f"{case.name(n)} can rise without lowering anybody at or below its {what}.",
        _witness(case, best_tasks, own, best, n, what),
    )


def _witness(case: Case, tasks: FloatArray, own: FloatArray, best: FloatArray, n: int, what: str) -> Witness:
    losing = np.flatnonzero(case.part & (case.values(tasks) < case.value - case.slack))
    order = losing[np.argsort(own[losing], kind="stable")]
    told = [f"{case.name(m)} {figure(own[m], 6)} to {figure(best[m], 6)}" for m in order]
    others = f"; those who lose are {joined(told, 3)}" if told else "; nobody loses"
    return Witness(
        f"{case.name(n)} has a {what} of {figure(own[n], 6)} and can have {figure(best[n], 6)}: "
        f"{case.amount(case.values(tasks)[n])} instead of {figure(case.value[n], 6)}{others}.",
        (case.instance.users[n], *(case.instance.users[m] for m in order)),
        tasks=tasks.copy(),
    )


def _leximin(case: Case, share: FloatArray) -> Notion:
    """Return the leximin of these shares, within the rows of the notion's own."""
    found = notion_of("max-min", utility=share)
    return Stated(found, case.own_rows, _bare(case)) if case.own_rows else found


def _question(case: Case, share: FloatArray) -> tuple[Instance, Notion]:
    """Return whose leximin of these shares is to be known: users without weights; or where somebody comes last, the notion's own."""
    if case.last.any():
        assert case.notion is not None
        return case.in_floats.instance, case.notion
    return _bare(case), _leximin(case, share)


def _ranked(case: Case, own: FloatArray, best: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return shares as they are compared: those of users who come last are above all others."""
    if not case.last.any():
        return own, best
    above = (1 + max(own.max(), best.max())) * case.last
    return own + above, best + above


def _bare(case: Case) -> Instance:
    """Return the instance without weights and speeds; the shares of tasks contain them."""
    instance = case.in_floats.instance
    if instance.speeds_given is None:
        return instance.replace(weights=None)
    return instance.replace(weights=None, speeds=None, eligibility=instance.eligibility)


def _share_of_worth(case: Case, share: FloatArray, usable: BoolArray) -> FloatArray:
    """Return the share of what is worth one task, (users,); with speeds of a unit of work."""
    if case.instance.speeds_given is None:
        return np.asarray(np.where(usable, share, 0).max(axis=1))
    return np.asarray(np.divide(share, case.instance.speeds, out=np.zeros_like(share), where=usable).max(axis=1))


def _shares(share: FloatArray, tasks: FloatArray, case: Case) -> FloatArray:
    shares: FloatArray = np.where(case.part, (np.where(tasks > 0, share, 0) * tasks).sum(axis=1), 0)
    return shares


def _proved(case: Case, program: Program) -> bool:
    """Say whether the prices of the allocation's levels prove that the shares are max-min fair; a certificate checks the prices."""
    levels = case.allocation.levels
    position = {user: n for n, user in enumerate(case.instance.users)}
    stopped = [np.array([position[user] for user in level.users if not case.complete[position[user]]], dtype=np.int64) for level in levels]
    if not any(len(users) and level.prices is not None for level, users in zip(levels, stopped, strict=True)):
        return False
    limits = program.limits
    x = case.allocation.tasks[program.pair_users, program.pair_servers]
    shares = program.per_user(program.utilities * x)
    stages = []
    for level, members in zip(levels, stopped, strict=True):
        if level.prices is None:  # who else stops there, the certificate misses
            continue
        prices = np.zeros(len(limits))
        rows = np.flatnonzero(limits.of_kinds(LimitKind.CAPACITY, LimitKind.TIME))
        prices[rows] = level.prices[limits.keys[rows, 0], np.maximum(limits.keys[rows, 1], 0)]
        for row in np.flatnonzero(limits.of_kinds(LimitKind.SHARED, LimitKind.LIMIT, LimitKind.NAMED)).tolist():
            prices[row] = level.queue_prices.get(program.limit_name(row), 0.0)
        if members.size:
            stages.append(Stage(float(shares[members].min()), members, prices))
    stages.sort(key=lambda stage: stage.value)
    return bool(certify(program, Solution(x, tuple(stages))).worst <= case.tolerance)


def _whole(case: Case, name: str, share: FloatArray, what: str) -> Verdict:
    proved = True
    try:
        with without_remarks(), case.counted():
            exact: Allocation | FloatArray = solve(
                *_question(case, share), sharing=case.sharing, integral=True, time_limit=case.time_limit
            ).tasks
    except NoSolution as error:
        if "tasks" not in error.known:
            return does_not_apply(name, f"{_WHOLE}undecided: {error}")
        exact, proved = error.known["tasks"], False
    except FairoptError as error:
        return does_not_apply(name, f"{_WHOLE}undecided: {error}")
    found, different = _against(case, name, share, what, np.asarray(exact))
    if found is not None:
        return found
    if not proved:
        return does_not_apply(
            name,
            f"{_WHOLE}undecided: branch and cut found nothing better before it reached {case.ended}, and did not prove that nothing better "
            "exists.",
        )
    if different and not case.feasible:
        return does_not_apply(name, f"{_WHOLE}the allocation exceeds its limits, and no allocation within the limits reaches its shares.")
    return holds(name, f"{_WHOLE}sorted, the shares are those of the exact leximin ({what}).")


def _against(case: Case, name: str, share: FloatArray, what: str, tasks: FloatArray) -> tuple[Verdict | None, bool]:
    """Return the verdict if the sorted shares of ``tasks`` are larger (else None), and whether the sorted shares differ."""
    own, best = (_shares(share, each, case) for each in (case.allocation.tasks, tasks))
    ranked = _ranked(case, own, best)
    low, high, same = np.sort(ranked[0][case.part]), np.sort(ranked[1][case.part]), case.same(CERTIFIED)
    different = np.flatnonzero(np.abs(high - low) > same * np.maximum(high, low))
    if not different.size or high[different[0]] < low[different[0]]:
        return None, bool(different.size)
    k = int(different[0])
    level = low[k]
    rises = np.flatnonzero(case.part & (ranked[0] <= level * (1 + same)) & (ranked[1] > level * (1 + same)))
    gain = case.values(tasks) - case.value
    n = case.first_largest(rises, gain)
    statement = (
        f"{_WHOLE}sorted from the smallest, the exact shares are larger at position {k + 1} of {low.size}: {figure(high[k], 6)}, here "
        f"{figure(low[k], 6)}."
    )
    return violated(name, gain[n], statement, _witness(case, tasks, own, best, n, what)), True


def _whole_in_fractions(case: Case, name: str, share: FloatArray, what: str) -> Verdict:
    """Compare all placements if they are few; else use branch and bound in fractions, else branch and cut in floats."""
    usable = case.instance.eligibility & case.part[:, None]
    alike = all(len(set(row[may].tolist())) <= 1 for row, may in zip(share, usable, strict=True))
    per_task = np.where(usable, share, 0).max(axis=1)
    known = case.feasible and alike and not case.own_rows and not case.last.any()
    placements = largest_totals(case.instance, case.sharing, case.members) if known else None
    if placements is not None:
        found, different = _against(case, name, share, what, best_sorted(case, placements, per_task))
        if found is not None:
            return found
        if different:
            return does_not_apply(
                name, f"{_WHOLE}the allocation exceeds its limits, and no allocation within the limits reaches its shares."
            )
        number = plural(len(placements.totals), "largest placement")
        statement = f"{_WHOLE}sorted, no shares are larger: {number} compared in fractions ({what})."
        return replace(holds(name, statement), exact=Fraction(0))
    if known and single_servers_known(case):
        with suppress(NoSolution):
            tasks = better_sorted(case, per_task)
            if tasks is None:
                statement = f"{_WHOLE}sorted, no shares are larger, by branch and bound in fractions ({what})."
                return replace(holds(name, statement), exact=Fraction(0))
            found, _ = _against(case, name, share, what, tasks)
            assert found is not None
            return found
    verdict = _whole(case.in_floats, name, share.astype(np.float64), what)
    if case.feasible and verdict.witness is not None and verdict.witness.tasks is not None:
        tasks = proved(case, verdict.witness.tasks)
        found, _ = (None, False) if tasks is None else _against(case, name, share, what, tasks)
        if found is not None:
            return found
    return judged_in_floats(verdict)

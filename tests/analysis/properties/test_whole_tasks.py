"""Whole tasks in fractions against all placements, tried one by one; ties, and tasks that are too large by 10^-40."""

# mypy: disable-error-code="arg-type"
# (fractions where the types say floats)

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from support.deadlines import slow_clock, steps_spent

import fairopt as fo
from fairopt.analysis.properties import branching, max_min, pareto
from fairopt.analysis.properties.branching import better_point
from fairopt.analysis.properties.whole_tasks import largest_totals
from fairopt.analysis.rerun import given
from fairopt.solvers.backend import Deadline

TINY = Fraction(1, 10**40)
Total = tuple[int, ...]


def draw(rng: random.Random) -> fo.Instance:
    """A tiny instance in whole numbers and thirds, some of them 10^-40 more or less."""
    n, k, m = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2)
    off = [Fraction(0), Fraction(0), TINY]
    return fo.Instance(
        [[Fraction(rng.randint(1, 6), rng.choice([1, 3])) - rng.choice(off) for _ in range(m)] for _ in range(k)],
        [[Fraction(rng.randint(1, 4), rng.choice([1, 3])) + rng.choice(off) for _ in range(m)] for _ in range(n)],
        weights=[rng.choice([1, 2, 1 + TINY]) for _ in range(n)] if rng.random() < 0.5 else None,
        tasks=[rng.choice([1, 2, Fraction(5, 2)]) for _ in range(n)] if rng.random() < 0.3 else None,
        counts=[rng.randint(1, 2) for _ in range(k)] if rng.random() < 0.4 else None,
        eligibility=[[rng.random() < 0.8 for _ in range(k)] for _ in range(n)] if rng.random() < 0.4 else None,
    )


def every_total(exact: fo.Instance) -> list[Total]:
    """The tasks per user of all placements of whole tasks on single servers, by loops."""
    users, things = range(exact.n_users), range(exact.n_resources)
    totals: set[Total] = {(0,) * exact.n_users}
    for i in range(exact.n_servers):
        most = [
            int(min(exact.capacities[i, r] / exact.demands[n, r] for r in things)) if exact.eligibility[n, i] else 0  # all demands are > 0
            for n in users
        ]
        options = [
            placed
            for placed in itertools.product(*(range(q + 1) for q in most))
            if all(sum(placed[n] * exact.demands[n, r] for n in users) <= exact.capacities[i, r] for r in things)
        ]
        for _ in range(int(exact.counts[i])):
            totals = {tuple(a + b for a, b in zip(total, placed, strict=True)) for total in totals for placed in options}
    return [total for total in totals if all(q <= tasks for q, tasks in zip(total, exact.tasks, strict=True))]


def some_tasks(instance: fo.Instance, rng: random.Random) -> fo.Allocation:
    """A schedule, or a schedule of which some tasks are taken away."""
    schedule = fo.schedule(instance, "drfh", exact=True)
    assert schedule.exact is not None
    if rng.random() < 0.5 or (instance.counts > 1).any():
        return schedule
    fewer = [[Fraction(rng.randint(0, int(q))) for q in row] for row in schedule.exact.tasks.tolist()]
    return given(instance, np.array(fewer), "rdm", "drfh", exact=True)


def not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were too many placements to compare."""
    for module in (pareto, max_min):
        monkeypatch.setattr(module, "largest_totals", lambda *arguments: None)


@pytest.mark.parametrize(("compared", "number"), [(True, 40), (False, 12)])
def test_against_all_placements(compared: bool, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pareto optimality and max-min fairness: the same verdict, in fractions, and a witness that is one of the placements, and better.

    Of compared placements it is the best; branch and bound finds a better one.
    """
    if not compared:
        not_compared(monkeypatch)
    rng, seen = random.Random(11), {(name, holds): 0 for name in ("pareto", "max-min") for holds in (True, False)}
    for _ in range(number):
        instance = draw(rng)
        exact, totals = instance.exact, every_total(instance.exact)
        allocation = some_tasks(instance, rng)
        assert allocation.exact is not None
        x = tuple(int(q) for q in allocation.exact.tasks_per_user)
        found = fo.audit(allocation, ["pareto", "max-min"])
        members = np.flatnonzero(instance.servable).tolist()
        capacity = exact.counts @ exact.capacities
        share = {n: max(d / c for d, c in zip(exact.demands[n], capacity, strict=True)) / exact.weights[n] for n in members}
        best = max(sorted(share[n] * total[n] for n in members) for total in totals)
        more = any(total != x and all(a >= b for a, b in zip(total, x, strict=True)) for total in totals)
        assert found["pareto"].holds == (not more)
        assert found["max-min"].holds == (sorted(share[n] * x[n] for n in members) == best)
        for name, verdict in found.items():
            assert verdict.holds is not None
            seen[name, verdict.holds] += 1
            if verdict.holds:
                assert verdict.exact == 0
                continue
            assert verdict.witness is not None
            assert verdict.witness.exact is not None
            better = tuple(verdict.witness.exact.sum(axis=1).tolist())
            assert better in totals
            gains = [a - b for a, b in zip(better, x, strict=True)]
            assert verdict.exact in gains
            if name == "pareto":
                assert min(gains) >= 0
            else:
                shares = sorted(share[n] * better[n] for n in members)
                assert shares == best if compared else shares > sorted(share[n] * x[n] for n in members)
    assert min(seen.values()) >= number // 8


def test_a_tie_and_a_task_that_is_too_large_by_a_hair() -> None:
    """Three thirds fill a server; of thirds and 10^-40 only two fit, so that two tasks are all that there can be."""
    for extra, most in ((Fraction(0), 3), (TINY, 2)):
        pool = fo.Instance([[1]], [[Fraction(1, 3) + extra]])
        for tasks in (2, 3):
            if tasks <= most:
                verdict = fo.audit(given(pool, [[tasks]], "rdm", exact=True), "pareto")["pareto"]
                assert verdict.holds == (tasks == most)
                assert verdict.exact == most - tasks


def test_time_is_compared_too() -> None:
    """A task takes 2/7 of the time of the first server and 2/5 of the other: 3 and 2 tasks fit, of whomever."""
    shared = fo.Instance([[7], [5]], [[2], [2]])
    allocation = fo.schedule(shared, "drfh", exact=True, sharing="tdm")
    placements = largest_totals(shared.exact, "tdm", np.array([0, 1]))
    assert placements is not None
    assert sorted(placements.totals.tolist()) == [[k, 5 - k] for k in range(6)]
    assert fo.audit(allocation, "pareto")["pareto"].exact == 0


def test_limits_of_queues_and_what_is_moved() -> None:
    """p may hold 3 gpu: without a task of it on the second server, one of r fits there; a task of q that moves makes room for nothing."""
    queues = [fo.Queue("p", limit={"gpu": 3}), fo.Queue("q")]
    tree = fo.Instance(
        [[4, 9], [5, 9]], [[1, 2], [2, 1], [1, 1]], resources=["gpu", "cpu"], queues=queues, queue_of=["p", "q", "q"], users=["a", "b", "c"]
    )
    more = fo.audit(given(tree, [[2, 1], [0, 1], [1, 1]], "rdm", exact=True), "pareto")["pareto"]  # 6 gpu of 9 are held
    assert more.holds is False
    assert more.witness is not None
    assert more.witness.exact is not None
    assert more.witness.exact[0].sum() == 3
    assert fo.audit(given(tree, more.witness.exact, "rdm", exact=True), "pareto").violations == ()
    full = fo.audit(given(tree, [[2, 1], [1, 2], [0, 0]], "rdm", exact=True), "pareto")["pareto"]
    assert full.exact == 0


def test_one_of_two_halves() -> None:
    """Divided, 3/2 tasks of 2 units fit into 3; in whole numbers one does, and a part is cut off by no bound of its relaxation."""
    entries, right = [(0, 0, 2), (0, 1, 2)], [3]
    assert better_point([1, 1], entries, right, 1, Deadline(None)) is None
    assert sum(better_point([1, 1], entries, right, 0, Deadline(None)) or []) == 1
    with pytest.raises(fo.NoSolution):
        better_point([1, 1], entries, right, 1, Deadline(0.0))


def by_branch_and_bound(monkeypatch: pytest.MonkeyPatch) -> fo.Allocation:
    """Whole tasks in fractions on two servers that branch and bound judges, as their placements are not compared."""
    not_compared(monkeypatch)
    return fo.schedule(fo.Instance([[7, 9], [8, 7]], [[2, 3], [3, 2], [2, 2]], tasks=[2, 2, 2]), "drfh", exact=True)


def test_a_busy_machine_decides_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes between any two steps."""
    allocation = by_branch_and_bound(monkeypatch)
    slow_clock(monkeypatch)
    verdict = fo.audit(allocation, ["max-min"])["max-min"]
    assert verdict.exact == 0
    assert "by branch and bound in fractions" in verdict.statement


def test_branch_and_bound_ends_at_the_same_step_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its work is too little, and what branch and cut in floats says then is no exact verdict."""
    allocation = by_branch_and_bound(monkeypatch)
    spent = steps_spent(monkeypatch)
    assert fo.audit(allocation, ["max-min"])["max-min"].exact == 0
    whole = list(spent)
    monkeypatch.setattr(branching, "_MOST_WORK", sum(whole) / 2)
    parts = []
    for _ in range(2):
        spent.clear()
        verdict = fo.audit(allocation, ["max-min"])["max-min"]
        assert verdict.exact is None
        assert verdict.statement.startswith("Judged in floats: ")
        parts.append(list(spent))
    assert parts[0] == parts[1] != whole
    assert parts[0][:2] == whole[:2]


def test_what_is_too_large_to_compare_is_proved_or_said_to_be_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """One task more, and a relaxation, are still in fractions; what only branch and cut decides says so."""
    pool = fo.Instance([[3, 9]], [[1, 1], [2, 1]])
    not_compared(monkeypatch)
    monkeypatch.setattr(branching, "_COLUMNS", 0)
    full = fo.audit(given(pool, [[1], [1]], "rdm", "drfh", exact=True), ["pareto", "max-min"])
    assert full["pareto"].exact == 0
    assert full["max-min"].holds
    assert full["max-min"].exact is None
    assert full["max-min"].statement.startswith("Judged in floats: ")
    free = fo.audit(given(pool, [[0], [1]], "rdm", "drfh", exact=True), ["pareto", "max-min"])
    assert free["pareto"].exact == 1
    assert free["max-min"].exact == 1
    assert free["max-min"].witness is not None
    assert free["max-min"].witness.exact is not None

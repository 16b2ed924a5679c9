"""Alpha-fair optima by the active sets of another answer: right where its certificate says so, and no answer elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.reruns import check_reruns, small_cluster

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import LimitKind
from fairopt.program.likeness import Likeness
from fairopt.solvers.active_sets import known_sets
from fairopt.solvers.active_sets.known_sets import solve_on_known_sets


@pytest.mark.parametrize("known", [2.0, 3.0, 1.0])
def test_a_price_that_moves_while_the_sets_stay(known: float) -> None:
    """12 cpu, a task takes one, C has 2 tasks: with B, A = B = 5 and a cpu costs 1/5. Without B, A = 10, and a cpu costs 1/10.

    C pays 1/2 for a task, 1/10 of it for its cpu, the rest for one more task. Where C had 3 tasks before, it has too many now; where it
    had one, nothing shows that it has all.
    """
    program = fo.formulate(fo.Instance([[12]], [[1], [1]], tasks=[np.inf, 2], users=["A", "C"]), "proportional")
    prices = np.where(program.limits.of_servers, 1 / 5, 0.0)
    found = solve_on_known_sets(program, Likeness(False, prices[None], np.array([5.0, known])))
    assert (found is None) == (known == 1.0)
    if found is not None and found.prices is not None:
        np.testing.assert_allclose(found.x, [10, 2], rtol=1e-12)
        np.testing.assert_allclose(found.prices, np.where(program.limits.kinds == LimitKind.TASKS, 4 / 10, 1 / 10), rtol=1e-12)
        assert certify(program, found).worst <= 1e-12


def test_sets_of_another_cluster_are_no_answer() -> None:
    """A may run on the first server of 4 cpu, B on both. With 10 cpu on the second, A has 4 and B 10; with 8, 4 and 8; with 2, both have 3.

    With 2 cpu, B needs a part of the first server, which its tasks do not show.
    """
    there = [[True, False], [True, True]]
    programs = {cpu: fo.formulate(fo.Instance([[4], [cpu]], [[1], [1]], eligibility=there), "proportional") for cpu in (2, 8, 10)}
    known = Likeness(False, np.array([[1 / 4, 1 / 10]]), np.array([4.0, 0.0, 10.0]))
    for cpu in (8, 10):
        found = solve_on_known_sets(programs[cpu], known)
        assert found is not None
        np.testing.assert_allclose(found.x, [4, 0, cpu], rtol=1e-12)
    assert solve_on_known_sets(programs[2], known) is None
    assert solve_on_known_sets(programs[8], Likeness(False)) is None
    assert solve_on_known_sets(programs[8], Likeness(False, known.prices, np.array([0.0, 0.0, 10.0]))) is None  # A has nothing
    assert solve_on_known_sets(fo.formulate(fo.Instance([[4]], [[1]]), "drfh"), known) is None


@pytest.mark.parametrize("seed", range(8))
def test_reruns_agree_with_fractions(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The first solve knows no sets; reruns do."""
    alpha = (1.0, 2.0, 0.5)[seed % 3]
    with monkeypatch.context() as without:
        without.setattr(known_sets, "solve_on_known_sets", lambda *_: pytest.fail("no sets are known"))
        allocation = fo.solve(small_cluster(seed), "proportional", alpha=alpha)
    check_reruns(monkeypatch, solve_on_known_sets, allocation, seed, 1e-10, notion="proportional", alpha=alpha)


def test_limits_of_another_kind_are_not_solved_on_known_sets() -> None:
    """What an answer says of limits of servers says nothing of a limit across servers."""
    pool = fo.Instance([[4], [4]], [[1], [1]])
    program = fo.formulate(pool, "proportional")
    known = Likeness(False, np.full((1, len(program.limits)), 0.25), np.full(program.n_pairs, 2.0))
    shared = fo.formulate(
        pool.replace(capacities=[[4, 1], [4, 1]], demands=[[1, 0.1], [1, 0.1]], resources=["cpu", "licence"]), "proportional"
    )
    limited = program.with_limit("both", {(pool.users[0], pool.servers[0]): 1, (pool.users[0], pool.servers[1]): 1}, 3)
    assert known.has_prices_of(program.limits)
    assert not known.has_prices_of(shared.limits)  # others of servers
    more = Likeness(False, np.full((1, len(limited.limits)), 0.25), known.tasks)
    assert not more.has_prices_of(limited.limits)
    assert not Likeness(True).has_prices_of(program.limits)

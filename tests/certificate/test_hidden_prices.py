"""What rounding hides in prices: the certificate doubts answers whose conditions hold to rounding and whose tasks do not."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import gpu_cluster

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.hidden_prices import hidden_part
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair, solve_tradeoff

# Users 1, 2 and 3 pay 10^9 times and more what users 4, 5 and 6 pay, who need memory alone, each on a server of its own.
DEMANDS = [[1, 1], [1, 0], [2, 1], [0, 1], [0, 2], [0, 1]]

# Capacities, weights, the servers of users 4, 5 and 6, alpha; and what they have, by an interior point with 120 digits.
APART = [
    (
        [[7, 56], [3, 67], [2, 103]],
        [2, 2, 3, 3, 3, 1],
        [0, 2, 1],
        10,
        [3.0431493350078904, 3.0431493350080294, 2.95685066499204, 54.02157466750401, 50.98921266624803, 64.0],
    ),
    (
        [[7, 76], [8, 114], [8, 117]],
        [2, 2, 1, 2, 2, 3],
        [1, 0, 2],
        8,
        [6.246956564455671, 6.246956672863834, 5.253043381340247, 107.15284904114044, 37.81173916821596, 112.72367267663172],
    ),
    (
        [[5, 60], [5, 115], [5, 63]],
        [2, 3, 1, 2, 2, 3],
        [2, 0, 1],
        10,
        [3.965651251925712, 4.129748885674468, 3.4522999311999096, 60.5, 29.78243722141862, 110.51717437403714],
    ),
]


def beside(alpha: float, memory: float = 100, **options: Any) -> Program:
    """Users 1 and 2 need a CPU for a task, and user 1 memory, too; users 3 and 4 need memory alone, each on a server of its own.

    Server 2 has a CPU for everything that user 1 can have, 4 tasks, and user 2 takes the rest. So user 1 leaves all of the memory of server
    1 to user 3, who has less than user 4: x = (4, 4, memory, 2 memory - 4) to 10^-10, if alpha is 10 or more.
    """
    return fo.formulate(
        fo.Instance([[3, memory], [5, 2 * memory]], [[1, 1], [1, 0], [0, 1], [0, 1]], eligibility=[[1, 1], [1, 1], [1, 0], [0, 1]]),
        "proportional",
        alpha=alpha,
        **options,
    )


def at(program: Program, first: float) -> Solution:
    """The answer in which user 1 has ``first`` tasks on server 1, and the prices at which it is one up to rounding."""
    alpha = program.goal_as(AlphaFair).alpha
    memory = program.limits.bounds[1]
    x = np.array([first, 4 - first, 3 - first, 1 + first, memory - first, 2 * memory - 4 + first])
    return Solution(x, prices=np.array([4.0**-alpha, x[4] ** -alpha, 4.0**-alpha, x[5] ** -alpha]))


@pytest.mark.parametrize("alpha", [10.0, 20.0, 50.0])
def test_two_answers_that_satisfy_all_conditions_to_rounding(alpha: float) -> None:
    """User 3 lacks 1.5% of its tasks in the second one. The prices of memory, 10^-14 of those of CPUs and less, would show it."""
    program = beside(alpha)
    wrong = at(program, 1.5)
    certificate = certify(program, wrong)
    assert certificate.doubt > 1e-5
    assert certificate.worst < 1e-12  # nothing else sees it


@pytest.mark.parametrize("alpha", [10.0, 20.0])
def test_least_tasks_that_nobody_lacks_hide_nothing(alpha: float) -> None:
    """A rule that every answer obeys by far: the doubt is that without the rule. Once, a rule of any kind made it 0."""
    ruled = beside(alpha).with_rule("many", {("user-3", "server-1"): 1}, ">=", 2)
    wrong = at(beside(alpha), 1.5)
    assert wrong.prices is not None
    certificate = certify(ruled, Solution(wrong.x, prices=np.append(wrong.prices, 0.0)))
    assert certificate.doubt == certify(beside(alpha), wrong).doubt > 1e-5
    assert certificate.worst < 1e-12


def test_who_has_the_least_tasks_still_chooses_where() -> None:
    """User 1 has to have 5 tasks, and user 2 gets 3. The costs of user 1 do not tell how much memory of server 1 it leaves to user 3."""
    alpha, first = 10.0, 1.5
    ruled = beside(alpha).with_rule("least", {("user-1", "server-1"): 1, ("user-1", "server-2"): 1}, ">=", 5)
    x = np.array([first, 5 - first, 3 - first, first, 100 - first, 195 + first])
    prices = np.array([3.0**-alpha, x[4] ** -alpha, 3.0**-alpha, x[5] ** -alpha, 3.0**-alpha - 5.0**-alpha])
    certificate = certify(ruled, Solution(x, prices=prices))
    assert certificate.doubt > 1e-5
    assert certificate.worst < 1e-12


def test_rules_of_several_users_are_not_judged() -> None:
    """What such a rule hides is not known."""
    program, wrong = beside(10.0), at(beside(10.0), 1.5)
    assert wrong.prices is not None
    ruled = program.with_rule("both", {("user-1", "server-1"): 1, ("user-2", "server-1"): 1}, ">=", 1)
    assert hidden_part(ruled, wrong.x, np.append(wrong.prices, 0.0)) == 0.0


@pytest.mark.parametrize("alpha", [10.0, 20.0, 50.0])
@pytest.mark.parametrize("memory", [100.0, 1000.0])
def test_fractions_find_what_floats_hide(alpha: float, memory: float) -> None:
    """By hand: x = (4, 4, memory, 2 memory - 4)."""
    allocation = fo.solve(beside(alpha, memory))
    np.testing.assert_allclose(allocation.tasks_per_user, [4, 4, memory, 2 * memory - 4], rtol=1e-8)
    assert allocation.certificate.distance is not None
    assert allocation.certificate.distance < 1e-9


@pytest.mark.parametrize(("capacities", "weights", "servers", "alpha", "expected"), APART)
def test_what_users_have_is_that_of_many_digits(
    capacities: list[list[int]], weights: list[int], servers: list[int], alpha: float, expected: list[float]
) -> None:
    """Floats were wrong by up to 3% here, with residuals of 1e-10 and less."""
    eligible = np.ones((6, 3), bool)
    eligible[3:] = np.arange(3) == np.array(servers)[:, None]
    allocation = fo.solve(fo.Instance(capacities, DEMANDS, weights=weights, eligibility=eligible), "proportional", alpha=alpha)
    np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-8)


@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([3, 5, 8, 12, 20]), orders=st.sampled_from([0.0, 1.0, 3.0]))
def test_no_certified_answer_is_far_from_the_proved_one(seed: int, alpha: int, orders: float) -> None:
    """Fractions near the optimum, whose distance from it ball arithmetic proves, are the judge."""
    rng = np.random.default_rng(seed)
    users, servers, resources = (int(number) for number in rng.integers([3, 1, 1], [8, 4, 3]))
    demands = rng.integers(0, 10, (users, resources)).astype(float)
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    eligible = rng.random((users, servers)) < 0.7
    eligible[np.arange(users), rng.integers(0, servers, users)] = True
    instance = fo.Instance(
        rng.integers(1, 1000, (servers, resources)), demands, weights=10 ** rng.uniform(0, orders, users), eligibility=eligible
    )
    try:
        exact = fo.solve(instance, "proportional", alpha=alpha, exact=True, digits=12).exact
        certified = fo.solve(instance, "proportional", alpha=alpha)
    except (fo.NoSolution, fo.CertificateError):
        return
    assert exact is not None
    proved = np.array([float(tasks) for tasks in exact.tasks_per_user])
    np.testing.assert_allclose(certified.tasks_per_user, proved, rtol=max(1e-8, certified.certificate.doubt))


@pytest.mark.parametrize("alpha", [2.0, 8.0, 32.0])
@pytest.mark.parametrize("finite", [True, False])
def test_money_that_lies_far_apart_hides_nothing_here(alpha: float, finite: bool) -> None:
    """Users who pay 10^-40 of what others pay have what these leave, which CPUs and GPUs decide: the path has 13 digits of it."""
    program = fo.formulate(gpu_cluster(40, 1, finite), "proportional", alpha=alpha)
    with np.errstate(all="ignore"):
        found = solve_alpha_fair(program, program.goal_as(AlphaFair), 1e-8, Deadline(None))
    assert found is not None
    assert found.prices is not None
    assert hidden_part(program, found.x, found.prices) < 1e-9


def test_nothing_is_hidden_where_nothing_has_a_price() -> None:
    """Without prices or tasks there is nothing to compare."""
    program = beside(10.0)
    right = at(program, 0.0)
    assert right.prices is not None
    assert hidden_part(program, right.x, None) == 0.0
    assert hidden_part(program, right.x, 0 * right.prices) == 0.0
    assert hidden_part(program, 0 * right.x, right.prices) == 0.0


def test_a_doubt_is_told_wherever_an_answer_is(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where fractions are not tried, the goal is certified, and a warning, the proof and the record name the doubt."""
    monkeypatch.setattr("fairopt.solving.floats._FEW", 0)
    allocation = fo.solve(beside(10.0))
    certificate = allocation.certificate
    assert certificate.worst <= 1e-8
    assert certificate.unsure == certificate.doubt > 1e-6
    assert "rounding hides" in caplog.text
    assert "rounding hides" in allocation.proof
    assert "exact=True may prove them" in allocation.proof  # it may refuse, too
    assert "exact" not in allocation.proof.partition(";")[0]
    assert allocation.to_dict()["certificate"]["doubt"] == certificate.doubt
    assert certificate.to_frame()["value"]["doubt"] == certificate.doubt


def test_utilities_of_the_callers_own_are_fractions_too() -> None:
    """Tasks that are worth 0.3 each are as many: the answer is that of `beside`."""
    allocation = fo.solve(beside(10.0, utility=[0.3, 0.3, 0.3, 0.3]))
    assert allocation.details["finished_by"] == "rational-newton"
    np.testing.assert_allclose(allocation.tasks_per_user, [4, 4, 100, 196], rtol=1e-8)


def rich(apart: bool = False) -> fo.Instance:
    """A user with large tasks, and two with small ones and the weights 2 and 3, who share a server or have one each.

    The third one may run on a second, small server, so it is not merged with the other one.
    """
    if apart:
        return fo.Instance(np.ones((3, 1)), [[1.0], [0.001], [0.001]], eligibility=np.eye(3, dtype=bool))
    eligibility = np.array([[True, False], [True, False], [True, True]])
    return fo.Instance([[1.0], [0.1]], [[1.0], [0.001], [0.001]], weights=[1, 2, 3], eligibility=eligibility)


@pytest.mark.parametrize("beta", [2.0, 5.0, 20.0])
def test_what_users_have_whose_worth_is_that_of_the_total(beta: float) -> None:
    """At beta 20, (250 / 0.5)^-20 next to the worth of the total decides who of the users with much has how much."""
    program = fo.formulate(rich(), "gfj", beta=beta)
    with np.errstate(all="ignore"):
        near = solve_tradeoff(program, program.goal_as(Tradeoff), 1e-8, Deadline(None))
    assert near is not None
    right = fo.solve(rich(), "gfj", beta=beta, exact=True).tasks_per_user
    certificate, off = certify(program, near), float(np.abs(program.per_user(near.x) / right - 1).max())
    assert certificate.worst < 1e-11
    assert certificate.doubt >= off / 4 - 1e-12
    assert (certificate.doubt > 1e-6) == (beta > 2)


@pytest.mark.parametrize("beta", [5.0, 20.0])
def test_what_users_have_on_servers_of_their_own_is_not_hidden(beta: float) -> None:
    """However little of its worth is its own."""
    allocation = fo.solve(rich(apart=True), "gfj", beta=beta)
    assert (allocation.certificate.doubt < 1e-12, allocation.tasks_per_user.tolist()) == (True, [1, 1000, 1000])


def test_fractions_find_what_floats_hide_of_a_trade_off() -> None:
    """Of two users with the weights 2 and 3, the second one has (3 / 2)^(1 / beta) times as much."""
    allocation = fo.solve(rich(), "gfj", beta=20.0)
    assert allocation.details["finished_by"] == "rational-newton"
    np.testing.assert_allclose(allocation.tasks_per_user[2] / allocation.tasks_per_user[1], 1.5 ** (1 / 20), rtol=1e-9)


def test_a_trade_off_in_doubt_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Where fractions are not tried."""
    monkeypatch.setattr("fairopt.solving.floats._FEW", 0)
    allocation = fo.solve(rich(), "gfj", beta=30.0)
    assert allocation.certificate.worst <= 1e-8
    assert allocation.certificate.doubt > 1e-6
    assert "rounding hides" in caplog.text

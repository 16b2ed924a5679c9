"""Finish-time fairness against an oracle of linear programs: bisection on rho, users settled by raising each alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.linear import TIGHT, optimum
from scipy.optimize import linprog

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Solution
from fairopt.program.most_work import work_of_slice
from fairopt.specs import asked, read_notion


def drawn(seed: int) -> tuple[fo.Instance, dict[str, Any]]:
    """Return a small cluster, at odd seeds with speeds, at every third with a shared resource, and work and times of its users."""
    rng = np.random.default_rng(seed)
    n, k, shared = int(rng.integers(2, 5)), int(rng.integers(1, 4)), seed % 3 == 0
    m = 3 if shared else 2
    cluster = fo.Instance(
        rng.uniform(3, 12, (k, 2)),
        rng.uniform(0.3, 2, (n, m)),
        speeds=rng.choice([0.5, 1.0, 2.0], (n, k)) if seed % 2 else None,
        shared={"licence": float(rng.uniform(2, 8))} if shared else None,
        weights=rng.choice([0.5, 1.0, 2.0], n),
        tasks=np.where(rng.random(n) < 0.3, rng.uniform(0.5, 4, n), np.inf),
    )
    elapsed = rng.choice([0.0, 1.0, 30.0], n) * rng.uniform(0.5, 2, n)
    elapsed[0] = 3.0
    return cluster, {"left": rng.uniform(1, 50, n), "elapsed": elapsed, "alone": elapsed * rng.uniform(0, 1.5, n)}


def rows_of(cluster: fo.Instance) -> tuple[np.ndarray, np.ndarray]:
    """Return all limits over the pairs of users and servers, written down one by one."""
    n, k = cluster.eligibility.shape
    m = cluster.n_server_resources
    rows, bounds = list[np.ndarray](), list[Any]()
    for i, r in np.ndindex(k, m):
        row = np.zeros((n, k))
        row[:, i] = cluster.demands[:, r]
        rows, bounds = [*rows, row.ravel()], [*bounds, cluster.capacities[i, r]]
    for r, amount in enumerate(cluster.shared.values(), m):
        rows, bounds = [*rows, np.repeat(cluster.demands[:, r], k)], [*bounds, amount]
    for user in np.flatnonzero(np.isfinite(cluster.tasks)):
        row = np.zeros((n, k))
        row[user] = 1
        rows, bounds = [*rows, row.ravel()], [*bounds, cluster.tasks[user]]
    return np.array(rows), np.array(bounds)


def most(goal: np.ndarray, matrix: np.ndarray, bounds: np.ndarray) -> float:
    """Return the optimum of a linear program, -inf if nothing is feasible."""
    found = optimum(goal, matrix, bounds, **TIGHT)
    return found.value if found.x is not None else -np.inf


def alone(cluster: fo.Instance, user: int) -> float:
    """Return the rate of a user with its slice of every row, by a linear program."""
    n, k = cluster.eligibility.shape
    matrix, bounds = rows_of(cluster)
    own = cluster.weights[user] / cluster.weights.sum()
    is_task = np.arange(len(bounds)) >= k * cluster.n_server_resources + len(cluster.shared)
    worth = np.zeros((n, k))
    worth[user] = cluster.speeds[user]
    return most(worth.ravel(), matrix, np.where(is_task, bounds, own * bounds))


def ratios(cluster: fo.Instance, times: dict[str, Any]) -> np.ndarray:
    """Return the ratios rho: the largest by bisection, then whoever cannot be better off is settled, and so on."""
    n = cluster.n_users
    matrix, bounds = rows_of(cluster)
    whole = times["alone"] + times["left"] / [alone(cluster, user) for user in range(n)]
    works = [np.where(np.arange(n)[:, None] == user, cluster.speeds, 0).ravel() for user in range(n)]
    rho = np.full(n, np.nan)

    def needs(level: float, rising: np.ndarray) -> np.ndarray:
        """Return the rates that a level needs, inf where it cannot be reached."""
        ratio = np.where(rising, level, rho)
        left = ratio * whole - times["elapsed"]
        return np.where(left > 0, times["left"] / np.where(left > 0, left, 1), np.inf)

    def feasible(level: float, rising: np.ndarray, user: int = 0) -> float:
        rates = needs(level, rising)
        if np.isinf(rates).any():
            return -np.inf
        rates = rates * (1 - 1e-11)
        return most(works[user], np.vstack([matrix, -np.array(works)]), np.append(bounds, -rates))

    while np.isnan(rho).any():
        rising = np.isnan(rho)
        low, high = 0.0, 1e4
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if feasible(middle, rising) > -np.inf else (middle, high)
        high *= 1 + 1e-9
        for user in np.flatnonzero(rising).tolist():
            rate = feasible(high, rising, user)
            own = (times["elapsed"][user] + times["left"][user] / rate) / whole[user]
            if own >= high * (1 - 1e-5):
                rho[user] = high
        assert not np.isnan(rho[rising]).all()
    return rho


@pytest.mark.parametrize("seed", range(9))
def test_ratios_are_those_of_bisection(seed: int) -> None:
    """Level by level, with linear programs over rows that are written down; the answer is certified."""
    cluster, times = drawn(seed)
    found = fo.solve(cluster, "finish-time", **times)
    assert found.certificate.worst < 1e-8
    np.testing.assert_allclose(work_of_slice(cluster), [alone(cluster, user) for user in range(cluster.n_users)], rtol=1e-9)
    np.testing.assert_allclose(1 / found.shares, ratios(cluster, times), rtol=2e-6)
    values = [level.value for level in found.levels]
    assert values == sorted(values)
    assert sorted(name for level in found.levels for name in level.users) == sorted(cluster.users)


def test_wrong_answers_fail_their_certificate() -> None:
    """Less than the answer, and somebody's tasks given to another."""
    cluster, times = drawn(2)
    program = fo.formulate(cluster, "finish-time", **times)
    found = fo.solve(program)
    x = found.tasks[program.pair_users, program.pair_servers]
    from fairopt.solvers import SOLVERS
    from fairopt.solvers.backend import Deadline

    solution = SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=Deadline(None))
    assert certify(program, solution).worst < 1e-8
    np.testing.assert_allclose(program.per_user(program.utilities * solution.x), program.per_user(program.utilities * x), rtol=1e-8)
    assert certify(program, Solution(solution.x * 0.999, solution.stages)).worst > 1e-5
    other = solution.x * np.where(program.pair_users == 0, 0.99, 1.0)
    assert certify(program, Solution(other, solution.stages)).worst > 1e-5


def test_who_has_just_come_is_measured_by_what_it_could_do_alone() -> None:
    """With equal slices that is "cdrf", in floats, in fractions and in whole tasks."""
    cluster = fo.Instance([[9, 18], [9, 9]], [[1, 4], [3, 1]], eligibility=[[1, 1], [1, 0]])
    questions: list[dict[str, Any]] = [{}, {"exact": True}, {"integral": True}]
    for options in questions:
        np.testing.assert_allclose(
            fo.solve(cluster, "finish-time", left=7, **options).tasks_per_user.astype(float),
            fo.solve(cluster, "cdrf", **options).tasks_per_user.astype(float),
            rtol=1e-9,
        )
    assert fo.schedule(cluster, "finish-time").tasks_per_user.tolist() == fo.schedule(cluster, "cdrf").tasks_per_user.tolist()


def test_tasks_as_fractions_are_numbers_in_a_program_in_floats() -> None:
    """Half of two servers: on the faster one a task counts half more; at most 7/2 tasks. Alone, and with half of the servers."""
    third = fo.Instance([[4], [5]], [[1], [2]], speeds=[[1.5, 1.0], [1.0, 1.0]], tasks=np.array([Fraction(7, 2), np.inf]))
    assert work_of_slice(third).dtype == float
    np.testing.assert_allclose(work_of_slice(third), [2 * 1.5 + 1.5, 2.25])
    assert list(work_of_slice(third.exact)) == [Fraction(9, 2), Fraction(9, 4)]
    verdicts = fo.audit(fo.solve(third, "finish-time", left=3, exact=True), effort=3)
    assert verdicts["max-min"].holds


def test_a_specification_lists_the_users() -> None:
    """With + between the numbers, in the order of the users; what is no number is refused."""
    cores = fo.Instance([[8]], [[1], [1]])
    _, notion = read_notion("finish-time:left=14400:elapsed=0+3600:alone=0+1.5e2")
    expected = fo.solve(cores, "finish-time", left=14400, elapsed=[0, 3600], alone=[0, 150]).tasks_per_user
    assert (fo.solve(cores, notion).tasks_per_user == expected).all()
    with pytest.raises(fo.InvalidInstance, match="\"elapsed\" of finish-time hold 'a\\+b'"):
        read_notion("finish-time:elapsed=a+b")
    with pytest.raises(fo.InvalidInstance, match="left of finish-time has 3 numbers"):
        fo.solve(cores, read_notion("finish-time:left=1+2+3")[1])


def spread(seed: int, users: int, kinds: int, decades: float) -> tuple[fo.Instance, dict[str, Any]]:
    """Return users on a few kinds each, a third with finite tasks, and work and times that differ by so many powers of ten."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((users, kinds)) < min(1.0, 2.5 / kinds)
    eligible[np.arange(users), rng.integers(0, kinds, users)] = True
    cluster = fo.Instance(
        rng.uniform(50, 200, (kinds, 3)),
        rng.uniform(0.3, 2, (users, 1, 3)) * rng.uniform(0.5, 2, (users, kinds, 3)),
        speeds=rng.uniform(0.3, 1, (users, kinds)),
        eligibility=eligible,
        tasks=np.where(rng.random(users) < 0.3, rng.uniform(0.1, 400 * kinds / users, users), np.inf),
    )
    elapsed = np.where(rng.random(users) < 0.3, 0.0, 10 ** rng.uniform(0, decades, users))
    return cluster, {"left": 10 ** rng.uniform(0, decades, users), "elapsed": elapsed, "alone": elapsed * rng.uniform(0.1, 1.2, users)}


@pytest.mark.parametrize(("seed", "users", "kinds", "decades"), [(0, 40, 10, 5), (1, 40, 10, 5), (2, 120, 12, 2), (0, 300, 30, 5)])
def test_work_and_times_over_powers_of_ten(seed: int, users: int, kinds: int, decades: float) -> None:
    """Certified; no ratio below the largest is possible for all, by one linear program whose needs are 1e-7 further."""
    cluster, times = spread(seed, users, kinds, decades)
    found = fo.solve(cluster, "finish-time", **times)
    assert found.certificate.worst < 1e-8
    assert (found.tasks_per_user <= cluster.tasks * (1 + 1e-12)).all()
    rho = float((1 / found.shares).max())
    own = times["left"] / work_of_slice(cluster) + times["alone"]
    n, k = cluster.eligibility.shape
    pairs = np.argwhere(cluster.eligibility)
    columns = np.arange(len(pairs))
    by_row = np.zeros((k * 3 + n, len(pairs) + 1))
    asked = cluster.demands_of(pairs[:, 0], pairs[:, 1])
    for j, (user, kind) in enumerate(pairs.tolist()):
        by_row[kind * 3 : kind * 3 + 3, j] = asked[j] / cluster.capacities[kind]
        by_row[k * 3 + user, j] = 1 / cluster.tasks[user]
    for further, possible in ((1 + 1e-7, True), (1 - 1e-7, False)):
        needed = times["left"] / (rho * further * own - times["elapsed"])  # the rates; below 0 if it is too late
        if (needed <= 0).any():  # somebody cannot even if it ends now
            assert not possible
            continue
        served = np.zeros((n, len(pairs) + 1))
        served[pairs[:, 0], columns] = -cluster.speeds[pairs[:, 0], pairs[:, 1]] / needed[pairs[:, 0]]
        served[:, -1] = 1
        result: Any = linprog(
            np.where(np.arange(len(pairs) + 1) == len(pairs), -1.0, 0.0),
            A_ub=np.vstack([by_row, served]),
            b_ub=np.append(np.ones(len(by_row)), np.zeros(n)),
            bounds=(0, None),
        )
        assert (-result.fun >= 1) == possible


@pytest.mark.parametrize(("seed", "users", "kinds"), [(2, 100, 20), (3, 300, 30), (5, 300, 30)])
def test_who_pays_a_millionth_has_all_its_digits(seed: int, users: int, kinds: int) -> None:
    """In another order, and in other units, everybody does the same work: also who takes a millionth of what others take."""
    cluster, times = spread(seed, users, kinds, 5)
    rng = np.random.default_rng(seed)
    who, where, units = rng.permutation(users), rng.permutation(kinds), rng.uniform(0.3, 3, 3)
    other = fo.Instance(
        cluster.capacities[where] * units,
        cluster.demands_on(servers=where)[who] * units,
        speeds=cluster.speeds[who][:, where],
        eligibility=cluster.eligibility[who][:, where],
        tasks=cluster.tasks[who],
    )
    found = fo.solve(other, "finish-time", **{word: numbers[who] for word, numbers in times.items()})
    np.testing.assert_allclose(found.work, fo.solve(cluster, "finish-time", **times).work[who], rtol=1e-11)


def test_who_can_do_nothing_has_no_share() -> None:
    """Its speed is 0 everywhere. The other does 12 a second, and ends after 1 + 1 / 12 seconds; alone with its slice, 6, after 1 / 6."""
    lab = fo.Instance([[8], [4]], [[1], [1]], speeds=[[1, 1], [0, 0]])
    found = fo.solve(lab, "finish-time", elapsed=1)
    assert found.work.tolist() == pytest.approx([12, 0])
    assert found.shares.tolist() == pytest.approx([(1 / 6) / (1 + 1 / 12), 0])
    idle = lab.replace(speeds=[[1, 2], [1, 0.5]], tasks=[0, np.inf])  # its slice is 5 of 10
    for each in (idle, idle.replace(speeds=None)):
        assert fo.solve(each, "finish-time").work.tolist() == pytest.approx([0, 10 if each is idle else 12])
        assert fo.solve(each, "finish-time", exact=True).work.tolist() == [0, 10 if each is idle else 12]
    assert work_of_slice(idle).tolist() == [0, 5]
    assert work_of_slice(idle.exact).tolist() == [0, 5]
    assert "never" in fo.NOTIONS["finish-time"]().describe_measure(idle, 0)


def test_extreme_times() -> None:
    """Who waited a hundred thousand times as long as alone is served first, and as far as it can."""
    cluster = fo.Instance([[8]], [[1], [1], [1]], tasks=[3, np.inf, np.inf])
    found = fo.solve(cluster, "finish-time", left=[1, 1, 1], elapsed=[1e5, 1e-6, 0])
    assert found.certificate.worst < 1e-8
    assert found.tasks_per_user[0] == pytest.approx(3, rel=1e-6)
    assert found.tasks_per_user[1] > found.tasks_per_user[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"left": 0}, 'work left of "all users" is 0; it must be finite and > 0'),
        ({"left": [1, -1]}, 'work left of "user 2" is -1'),
        ({"left": "a"}, "the numbers \"left\" of finish-time hold 'a'"),
        ({"elapsed": -1}, "time elapsed.*>= 0"),
        ({"alone": [[1, 2]]}, "one number, or one for each user"),
        ({"left": [1, 2, 3]}, "left of finish-time has 3 numbers; give one number, or one for each of 2 users"),
        ({"elapsed": 1, "exact": True}, "irrational in general"),
        ({"elapsed": 1, "integral": True}, "no engine finds whole tasks"),
    ],
)
def test_what_is_not_meant_is_refused(options: dict[str, Any], said: str) -> None:
    """In a sentence that says what to give."""
    with pytest.raises(fo.FairoptError, match=said):
        fo.solve(fo.Instance([[4]], [[1], [1]]), "finish-time", **options)


@pytest.mark.parametrize(("notion", "option"), [("finish-time", "left"), ("max-min", "utility")])
def test_an_option_with_a_number_for_each_user_is_named_where_an_answer_is_shown(notion: str, option: str) -> None:
    """In a notebook, too, whether it was given as a list or as an array of numpy."""
    cores = fo.Instance([[8]], [[1], [1]])
    for given in ([1.0, 2.0], np.array([1.0, 2.0])):
        options: dict[str, Any] = {option: given}
        found = fo.solve(cores, notion, **options)
        assert asked(found) == f"{notion}:{option}"
        assert f"{notion}:{option}" in found._repr_html_()

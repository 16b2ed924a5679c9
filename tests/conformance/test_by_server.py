"""Demands and speeds by server against an oracle that is given rows alone, and against what they mean where nothing differs."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from open_model import BOUND, campaign, question_by_server
from queue_oracle import random_tree
from reference.rows import Rows, leximin
from scipy.optimize import linprog

import fairopt as fo
from fairopt.instance.doubts import doubts
from fairopt.solvers.filling.placements import BestFit

NOTIONS = ("max-min", "cdrf", "tsf", "drfh")


def drawn(seed: int, *, limited: bool = True) -> fo.Instance:
    """Return a random instance of two or three kinds of servers, with speeds, shared resources, counts, tasks and parallelism."""
    rng = np.random.default_rng(seed)
    n, k, m, kinds = (int(rng.integers(low, high)) for low, high in ((2, 5), (2, 5), (1, 3), (2, 4)))
    shared = {"licences": float(rng.uniform(2, 20))} if rng.random() < 0.4 else {}
    by_kind = rng.uniform(0.3, 2, (n, kinds, m + len(shared))) * (rng.random((n, kinds, m + len(shared))) < 0.8)
    by_kind[..., 0] = np.maximum(by_kind[..., 0], 0.3)
    speeds = np.where(rng.random((n, k)) < 0.1, 0, rng.choice([0.5, 0.8, 1, 2], (n, k)))
    speeds[:, 0] = np.maximum(speeds[:, 0], 0.3)
    parallelism = np.where(rng.random(n) < 0.3, rng.uniform(0.5, 2, n), np.inf) if limited and not shared else None
    return fo.Instance(
        rng.uniform(3, 12, (k, m)),
        by_kind[:, rng.integers(0, kinds, k)],
        speeds=speeds,
        weights=rng.choice([0.5, 1, 2], n),
        counts=rng.integers(1, 4, k),
        tasks=np.where(rng.random(n) < 0.3, rng.uniform(1, 8, n), np.inf),
        parallelism=parallelism,
        shared=shared or None,
    )


def most(goal: np.ndarray, rows: list[np.ndarray], bounds: list[float], upper: np.ndarray) -> float:
    """Return the optimum of a linear program."""
    found: Any = linprog(-goal, A_ub=np.array(rows) if rows else None, b_ub=bounds or None, bounds=[(0, each) for each in upper])
    return float(-found.fun)


def rows_of(instance: fo.Instance, columns: list[tuple[int, int]]) -> Rows:
    """Return all limits of the instance, written down one by one."""
    rows = Rows(columns)
    demand = {(n, i): instance.demands_by_kind[n, instance.kind_of[i]] for n, i in columns}
    m = instance.capacities.shape[1]
    for i, r in itertools.product(range(instance.n_servers), range(m)):
        rows.add([demand[p][r] if p[1] == i else 0.0 for p in columns], instance.counts[i] * instance.capacities[i, r])
    for r, amount in enumerate(instance.shared.values(), m):
        rows.add([demand[p][r] for p in columns], amount)
    for n in range(instance.n_users):
        if np.isfinite(instance.tasks[n]):
            rows.add([float(p[0] == n) for p in columns], instance.tasks[n])
        if np.isfinite(instance.parallelism[n]):
            rows.add([1 / one_server(instance, *p) if p[0] == n else 0.0 for p in columns], instance.parallelism[n])
    return rows


def one_server(instance: fo.Instance, n: int, i: int) -> float:
    """Return how many tasks of a user one server of a row runs alone."""
    demand = instance.demands_by_kind[n, instance.kind_of[i]]
    return min(float(c / d) for c, d in zip(instance.capacities[i], demand, strict=False) if d > 0)


def unit_of_work(instance: fo.Instance, notion: str, n: int) -> float:
    """Return what a unit of work of a user is worth, by the definitions of the notions, over single rows of servers."""
    if notion == "max-min":
        return 1.0
    k, m = instance.capacities.shape
    everywhere = [instance.demands_by_kind[n, instance.kind_of[i]] for i in range(k)]
    rows = [np.array([d[r] for d in everywhere]) for r in range(m, instance.n_resources)]
    bounds = [float(amount) for amount in instance.shared.values()]
    if notion == "drfh":
        rows = [np.array([d[r] for d in everywhere]) for r in range(m)] + rows
        bounds = [float(each) for each in (instance.counts[:, None] * instance.capacities).sum(axis=0)] + bounds
        offers = [max(c / x for c, x in zip(instance.capacities[i], d, strict=False) if x > 0) for i, d in enumerate(everywhere)]
        return 1 / most(instance.speeds[n], rows, bounds, instance.counts * offers)
    upper = np.array([instance.counts[i] * one_server(instance, n, i) for i in range(k)])
    if notion == "cdrf":
        upper = np.where(instance.eligibility[n], upper, 0)
        if np.isfinite(instance.parallelism[n]):
            rows, bounds = [*rows, np.array([1 / one_server(instance, n, i) for i in range(k)])], [*bounds, float(instance.parallelism[n])]
    return 1 / most(instance.speeds[n], rows, bounds, upper)


@pytest.mark.parametrize("notion", NOTIONS)
def test_work_is_that_of_an_oracle_of_rows(notion: str) -> None:
    """Of all rows, written down one by one, and of the definitions of the notions over single rows of servers."""
    for seed in range(12):
        instance = drawn(seed)
        columns = [(n, i) for n, i in np.ndindex(instance.speeds.shape) if instance.speeds[n, i] > 0]
        unit = [unit_of_work(instance, notion, n) for n in range(instance.n_users)]
        worth = [float(instance.speeds[p] * unit[p[0]] / instance.weights[p[0]]) for p in columns]
        expected = leximin(rows_of(instance, columns), worth, instance.n_users) * instance.weights / unit
        found = fo.solve(instance, notion)
        assert found.certificate.worst < 1e-8
        np.testing.assert_allclose(found.work, expected, rtol=2e-6, err_msg=f"{notion} {seed}")


def test_trees_limits_and_rules_are_those_of_an_oracle_of_rows() -> None:
    """With shared resources, named limits, rules, queues, tiers and orders at once: a fixed sample of ``open_model.py --by-server``."""
    found = campaign(range(18), question_by_server)
    assert not found.failures
    assert found.worst <= BOUND
    assert found.exact == 6


def test_tasks_in_other_units_on_each_server_change_no_work() -> None:
    """A task that stands for three on some server takes three times as much there and does three times the work.

    In trees with guarantees, limits, quotas, tiers and lending limits; who is guaranteed tasks, or has some number of them, keeps its unit.
    """
    for seed in range(8):
        plain = random_tree(seed)
        unit = np.random.default_rng(seed).choice([0.5, 1, 2, 3], (plain.n_users, plain.n_servers))
        unit[(plain.guarantees > 0) | np.isfinite(plain.tasks)] = 1
        other = plain.replace(demands=plain.demands[:, None] * unit[:, :, None], speeds=unit)
        for notion, guarantees in (("drfh", "clamp"), ("tsf", "surplus"), ("max-min", "surplus")):
            how: Any = {"guarantees": guarantees, "queue_share": "sum"}
            expected = fo.solve(plain, notion, **how).work
            np.testing.assert_allclose(fo.solve(other, notion, **how).work, expected, rtol=1e-8, atol=1e-12, err_msg=f"{notion} {seed}")


def without_bottleneck(instance: fo.Instance, tasks: np.ndarray, by_time: bool) -> float:
    """Return by how much an allocation fails the definition of PS-DSF, all work counted at each server; of users with endless tasks."""
    work, m = (instance.speeds * tasks).sum(axis=1), instance.capacities.shape[1]
    alone = {(n, i): instance.counts[i] * one_server(instance, n, i) for n, i in np.argwhere(instance.eligibility)}
    share = {(n, i): work[n] / (rate * instance.speeds[n, i] * instance.weights[n]) for (n, i), rate in alone.items()}
    worst = 0.0
    for n, i in share:
        demands = {k: instance.demands_by_kind[k, instance.kind_of[i]] for k, j in share if j == i}
        violations = []
        for r in range(m):
            use = {k: 1 / alone[k, i] if by_time else d[r] for k, d in demands.items()}
            size = 1.0 if by_time else instance.counts[i] * instance.capacities[i, r]
            if use[n] > 0:
                free = 1 - sum(tasks[k, i] * each for k, each in use.items()) / size
                highest = max((share[k, i] for k, each in use.items() if tasks[k, i] * each > 1e-9), default=0.0)
                violations.append(max(free, 1 - share[n, i] / highest if highest else 0.0))
        worst = max(worst, min(violations))
    return worst


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
def test_servers_compare_work_and_nobody_could_have_more_of_any(sharing: Any) -> None:
    """Every user has a bottleneck at every server where it may run; in fractions, too. Under time division that is the market's optimum."""
    for seed in range(60, 68):
        instance = drawn(seed, limited=False).replace(tasks=None, shared={"licences": None} if drawn(seed, limited=False).shared else {})
        found = fo.solve(instance, "psdsf", sharing=sharing)
        assert without_bottleneck(instance, found.tasks, sharing == "tdm") < 1e-9
        exact = fo.solve(instance, "psdsf", sharing=sharing, exact=True)
        assert without_bottleneck(instance, exact.tasks, sharing == "tdm") < 1e-12
        if sharing == "tdm":
            market = fo.solve(instance, "proportional", sharing=sharing, solver="cvxpy").work
            np.testing.assert_allclose(found.work, market, rtol=1e-6)


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@pytest.mark.parametrize("notion", ["psdsf", "per-server-drf", "uniform", "fds", "gfj", "proportional"])
def test_every_notion_keeps_work_in_other_units_of_tasks(notion: str, sharing: Any) -> None:
    """As above, in flat lists."""
    for seed in range(6):
        rng = np.random.default_rng([seed, 54])
        tasks = np.where(rng.random(3) < 0.3, rng.uniform(1, 6, 3), np.inf)
        plain = fo.Instance(rng.uniform(3, 9, (3, 2)), rng.uniform(0.3, 2, (3, 2)), weights=rng.choice([1, 2], 3), tasks=tasks)
        unit = np.where(np.isfinite(tasks)[:, None], 1, rng.choice([0.5, 1, 2, 4], (3, 3)))
        other = plain.replace(demands=plain.demands[:, None] * unit[:, :, None], speeds=unit)
        expected = fo.solve(plain, notion, sharing=sharing).work
        np.testing.assert_allclose(fo.solve(other, notion, sharing=sharing).work, expected, rtol=1e-7)


def test_the_uniform_slice_is_used_for_the_most_work() -> None:
    """Of every server and of what is shared, within the tasks of each user: a linear program each."""
    for seed in range(70, 76):
        instance = drawn(seed, limited=False)
        found, k = fo.solve(instance, "uniform"), instance.n_servers
        part = instance.weights / instance.weights.sum()
        for n in range(instance.n_users):
            upper = [part[n] * instance.counts[i] * one_server(instance, n, i) if instance.eligibility[n, i] else 0.0 for i in range(k)]
            demands = [instance.demands_by_kind[n, instance.kind_of[i]] for i in range(k)]
            rows = [np.array([d[r] for d in demands]) for r in range(instance.capacities.shape[1], instance.n_resources)]
            bounds = [float(part[n] * amount) for amount in instance.shared.values()]
            if np.isfinite(instance.tasks[n]):
                rows, bounds = [*rows, np.ones(k)], [*bounds, float(instance.tasks[n])]
            assert found.work[n] == pytest.approx(most(instance.speeds[n], rows, bounds, np.array(upper)), rel=1e-9)
        np.testing.assert_allclose(fo.solve(instance, "uniform", exact=True).work, found.work, rtol=1e-9)


def test_a_queue_asks_for_no_more_by_running_where_its_tasks_take_more() -> None:
    """All its tasks run on A100, where one takes 1 gpu; that it could hold 14 on V100 is no guarantee that is missed."""
    queues = [fo.Queue("q", guarantee={"gpu": 12}), fo.Queue("r", guarantee={"gpu": 4})]
    demands = [[[1], [2]], [[1], [1]], [[1], [2]]]
    tree = fo.Instance([[8], [8]], demands, tasks=[4, np.inf, 3], queues=queues, queue_of=["q", "r", "q"], resources=["gpu"])
    for exact in (False, True):
        found = fo.solve(tree, "cdrf", exact=exact)
        np.testing.assert_allclose(found.work, [4, 9, 3], rtol=1e-9)
        assert [each.met for queue in found.queue_holdings() for each in queue.guarantees] == [True, True]
    without = fo.solve(tree.replace(tasks=None), "cdrf")
    assert sum(each.missing for queue in without.queue_holdings() for each in queue.guarantees) == pytest.approx(0, abs=1e-9)
    held = [each.held for queue in without.queue_holdings() for each in queue.guarantees]
    assert held[0] >= 12 * (1 - 1e-9)


def test_a_user_of_two_kinds_of_servers_is_a_queue_of_two_users() -> None:
    """One of each kind, whose tasks are worth their speeds; fairness among queues comes first then, and inside them nothing is lost."""
    for seed in range(4):
        rng = np.random.default_rng([seed, 50])
        n, k = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        capacities, demands, speeds = rng.uniform(2, 8, (k, 2)), rng.uniform(0.2, 2, (n, k, 2)), rng.uniform(0.5, 2, (n, k))
        weights = rng.choice([0.5, 1, 2], n)
        queues = [fo.Queue(f"q{j}", weight=float(weights[j])) for j in range(n)]
        apart = fo.Instance(
            capacities,
            demands.reshape(n * k, 2),
            eligibility=np.tile(np.eye(k, dtype=bool), (n, 1)),
            queues=queues,
            queue_of=[queue.name for queue in queues for _ in range(k)],
        )
        tasks = fo.solve(apart, "max-min", utility=speeds.ravel(), tree="nested").tasks_per_user
        found = fo.solve(fo.Instance(capacities, demands, speeds=speeds, weights=weights), "max-min").work
        np.testing.assert_allclose(found, (tasks.reshape(n, k) * speeds).sum(axis=1), rtol=1e-7)


@pytest.mark.parametrize("notion", [*NOTIONS, "efficiency", "proportional"])
def test_engines_and_fractions_agree(notion: str) -> None:
    """Two engines in floats, and the answer in fractions."""
    for seed in range(20, 24):
        instance = drawn(seed)
        exact = fo.solve(instance, notion, exact=True)
        other = fo.solve(instance, notion, solver="cvxpy")
        if notion == "efficiency":
            np.testing.assert_allclose(other.work @ instance.weights, exact.work @ instance.weights, rtol=1e-7)
            continue
        np.testing.assert_allclose(fo.solve(instance, notion).work, exact.work, rtol=1e-8, err_msg=f"{notion} {seed}")
        np.testing.assert_allclose(other.work, exact.work, rtol=1e-6, err_msg=f"{notion} {seed}")


@pytest.mark.parametrize("notion", [*NOTIONS, "efficiency", "proportional"])
def test_where_nothing_differs_the_answer_is_the_same_to_the_bit(notion: str) -> None:
    """Demands that are given by server and are equal, and speeds of 1, say nothing."""
    rng = np.random.default_rng(3)
    capacities, demands, tasks = rng.uniform(3, 9, (3, 2)), rng.uniform(0.2, 2, (4, 2)), [np.inf, 2, 3.5, np.inf]
    plain = fo.Instance(capacities, demands, tasks=tasks)
    by_server = fo.Instance(capacities, np.repeat(demands[:, None], 3, axis=1), speeds=np.ones((4, 3)), tasks=tasks)
    assert by_server == plain
    assert (fo.solve(by_server, notion).tasks == fo.solve(plain, notion).tasks).all()


def test_a_speed_is_the_unit_of_work() -> None:
    """Twice the speed, everywhere and for all, is twice the work; half of the demand at half of the speed changes nothing."""
    instance = drawn(7, limited=False).replace(tasks=None)
    work = fo.solve(instance, "cdrf").work
    np.testing.assert_allclose(fo.solve(instance.replace(speeds=2 * instance.speeds), "cdrf").work, 2 * work, rtol=1e-8)
    halves = instance.replace(speeds=instance.speeds / 2, demands=instance.demands_on() / 2)
    np.testing.assert_allclose(fo.solve(halves, "cdrf").work, work, rtol=1e-8)


def test_whole_tasks_are_the_best_of_all_that_fit() -> None:
    """Of one resource and two servers, all numbers of whole tasks are looked at."""
    lab = fo.Instance([[4], [5]], [[[1], [2]], [[2], [1]]], speeds=[[1.0, 1.5], [1.0, 1.0]], tasks=[6, 6])
    sorted_work = []
    for x in itertools.product(range(6), repeat=4):
        tasks = np.reshape(x, (2, 2))
        if tasks[0, 0] + 2 * tasks[1, 0] <= 4 and 2 * tasks[0, 1] + tasks[1, 1] <= 5 and (tasks.sum(axis=1) <= 6).all():
            sorted_work.append(sorted((tasks * lab.speeds).sum(axis=1)))
    assert sorted(fo.solve(lab, "max-min", integral=True).work.tolist()) == max(sorted_work)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"demands": np.ones((2, 3, 1))}, r"the shape of demands is \(2, 3, 1\).*there are 2 rows of servers"),
        ({"demands": [[[1], [-1]], [[1], [1]]]}, 'the demand of "user-1" for "resource-1" is -1'),
        ({"demands": [[[1], [0]], [[1], [1]]]}, 'user "user-1" demands nothing on "server-2" and has no task limit'),
        ({"demands": [[[0], [0]], [[1], [1]]]}, 'user "user-1" demands nothing and has no task limit'),
        ({"demands": [[1], [1]], "speeds": [[1, -1], [1, 1]]}, 'the speed of "user-1" for "server-2" is -1'),
        ({"demands": [[1], [1]], "speeds": [1, 1]}, "the shape of speeds is"),
    ],
)
def test_bad_input_is_refused_with_the_place(arguments: dict[str, Any], said: str) -> None:
    """The message names the user and the server."""
    with pytest.raises(fo.InvalidInstance, match=said):
        fo.Instance([[4], [4]], **arguments)


def test_a_speed_of_0_keeps_a_user_away_and_is_said() -> None:
    """The user is not eligible there, and a reader of the instance is told so."""
    lab = fo.Instance([[4], [5]], [[1], [1]], speeds=[[1.0, 0.0], [1.0, 0.5]], users=["train", "infer"], servers=["a100", "v100"])
    assert lab.eligibility.tolist() == [[True, False], [True, True]]
    endless = fo.Instance([[4], [4]], [[[0, 1], [0, 1]], [[1, 1], [1, 1]]], speeds=[[1.0, 0.0], [1.0, 1.0]], shared={"licences": 3})
    for notion in NOTIONS:
        np.testing.assert_allclose(fo.solve(endless, notion).work, [1.5, 1.5])  # tasks without end that do no work count nothing
    assert doubts(lab) == ("train cannot run on some servers: its speed on v100 is 0",)
    assert doubts(lab.replace(speeds=[[1, 0.5], [1, 0.5]])) == ()


def test_who_does_not_follow_it_refuses_it() -> None:
    """In a sentence that says what differs, for demands and for speeds alone."""
    lab = fo.Instance([[4], [5]], [[[1], [2]], [[2], [1]]])
    slow = fo.Instance([[4], [5]], [[1], [2]], speeds=[[1.0, 0.5], [1.0, 1.0]])
    for instance in (lab, slow):
        with pytest.raises(fo.Unsupported, match=r'user-1.*"asset" adds up what a task takes of the cluster'):
            fo.solve(instance, "asset")
        with pytest.raises(fo.Unsupported, match="user-1"):
            instance.pooled()
    with pytest.raises(fo.Unsupported, match=r'user-1" has 3 tasks, and the work that one does is 0\.5 on server-2 and 1 on server-1'):
        fo.solve(slow.replace(tasks=[3, np.inf]), "psdsf")
    tree = lab.replace(queues=[fo.Queue("q")], queue_of=["q", None])
    with pytest.raises(fo.Unsupported, match="a queue has no dominant share"):
        fo.solve(tree, "drfh", queue_share="dominant")


def filled(instance: fo.Instance, unit: list[float], placement: str, limits: Sequence[tuple[np.ndarray, float]] = ()) -> np.ndarray:
    """Return tasks, (users, servers), placed one at a time: whoever has done the least work for its weight, on the first server that fits.

    With "tightest", on the one that has the least free, as a sum of parts of the cluster; with "fastest" on the one where the dominant
    part of the cluster that a unit of work takes is smallest. A row stands for one server. ``limits`` are what a task counts, (users,
    servers), and a bound.
    """
    free, tasks = instance.capacities.copy(), np.zeros(instance.speeds.shape)
    stopped: set[int] = set()
    m = instance.n_server_resources
    across = [(instance.demands_by_kind[:, :, r][:, instance.kind_of], amount) for r, amount in enumerate(instance.shared.values(), m)]
    across += limits
    while len(stopped) < instance.n_users:
        shares = (tasks * instance.speeds).sum(axis=1) * unit / instance.weights
        n = min((each for each in range(instance.n_users) if each not in stopped), key=lambda each: (round(shares[each], 12), each))
        fits = [i for i in range(instance.n_servers) if instance.eligibility[n, i]]
        fits = [i for i in fits if (instance.demands_by_kind[n, instance.kind_of[i]][:m] <= free[i] + 1e-9).all()]
        fits = [i for i in fits if all((use * tasks).sum() + use[n, i] <= bound + 1e-9 for use, bound in across)]
        if not fits or tasks[n].sum() + 1 > instance.tasks[n] + 1e-9:
            stopped.add(n)
            continue
        demands = instance.demands_by_kind[n, instance.kind_of]
        total = instance.total_capacity
        if placement == "tightest":
            fits.sort(key=lambda each: (round(float((free[each] / total[:m]).sum()), 12), each))
        elif placement == "fastest":
            fits.sort(key=lambda each: (round(float((demands[each] / total).max() / instance.speeds[n, each]), 12), each))
        i = fits[0]
        tasks[n, i] += 1
        free[i] -= instance.demands_by_kind[n, instance.kind_of[i]][:m]
    return tasks


@pytest.mark.parametrize("placement", ["first-fit", BestFit("tightest")])
@pytest.mark.parametrize("notion", NOTIONS)
def test_schedules_place_tasks_by_the_demand_of_the_server(notion: str, placement: Any) -> None:
    """Task by task, as a loop that is written down does; and in fractions the same."""
    for instance in [each.replace(counts=None) for each in (drawn(seed, limited=False) for seed in range(40, 52)) if not each.shared]:
        unit = [unit_of_work(instance, notion, n) for n in range(instance.n_users)]
        found = fo.schedule(instance, notion, placement=placement)
        np.testing.assert_array_equal(found.tasks, filled(instance, unit, "first-fit" if placement == "first-fit" else "tightest"))
    assert (fo.schedule(instance, notion, placement=placement, exact=True).tasks == found.tasks).all()


@pytest.mark.parametrize("notion", ["max-min", "drfh"])
def test_the_fastest_server_has_the_most_work_for_the_share(notion: str) -> None:
    """Task by task, as a loop that is written down does, in floats and in fractions; where nothing differs it is first-fit."""
    for instance in [each.replace(counts=None) for each in (drawn(seed, limited=False) for seed in range(60, 70)) if not each.shared]:
        unit = [unit_of_work(instance, notion, n) for n in range(instance.n_users)]
        found = fo.schedule(instance, notion, placement="fastest")
        np.testing.assert_array_equal(found.tasks, filled(instance, unit, "fastest"))
    assert (fo.schedule(instance, notion, placement="fastest", exact=True).tasks == found.tasks).all()
    plain = instance.replace(speeds=None, demands=instance.demands_by_kind[:, 0])
    first = fo.schedule(plain, notion, placement="first-fit")
    assert (fo.schedule(plain, notion, placement="fastest").tasks == first.tasks).all()


@pytest.mark.parametrize("placement", ["first-fit", "fastest", "joint"])
def test_schedules_within_resources_of_the_cluster_and_limits(placement: str) -> None:
    """What a task takes of a resource of the cluster differs by server, too; limits of tasks and of amounts beside it."""
    for instance in [each.replace(counts=None) for each in (drawn(seed, limited=False) for seed in range(80, 100)) if each.shared]:
        amounts = np.random.default_rng(instance.n_users).uniform(0, 2, instance.speeds.shape)
        limits = [(amounts, 6.5), (np.repeat([[1.0]], instance.n_servers, axis=1) * (np.arange(instance.n_users) < 2)[:, None], 7.0)]
        limited = instance.replace(limits=[fo.Limit("power", 6.5, amounts=amounts), fo.Limit("two", 7, users=instance.users[:2])])
        unit = [unit_of_work(instance, "max-min", n) for n in range(instance.n_users)]
        found = fo.schedule(limited, "max-min", placement=placement)
        expected = filled(instance, unit, "first-fit" if placement == "joint" else placement, limits)
        np.testing.assert_array_equal(found.tasks, expected)
    assert (fo.schedule(limited, "max-min", placement=placement, exact=True).tasks == found.tasks).all()

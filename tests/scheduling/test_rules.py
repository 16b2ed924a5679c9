"""Rules that are limits in greedy schedules, baselines, simulations and histories: what is placed, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.command_line import flat, run

import fairopt as fo


def drawn(seed: int) -> fo.Instance:
    """Whole numbers, and rules that are limits: of all tasks, of some servers, of an amount, of both together."""
    rng = np.random.default_rng(seed)
    texts = [
        f"x[a] + 2 * x[b] <= {rng.integers(1, 9)}",
        f"x[c, t] <= {rng.integers(0, 4)}",
        f"{rng.integers(2, 12)} >= amount[cpu, a] + amount[mem, c, s]",
        f"0.1 * x[a] + 0.2 * x[c] <= 0.{rng.integers(1, 10)}",
    ]
    return fo.Instance(
        rng.integers(5, 16, (2, 2)),
        rng.integers(1, 4, (3, 2)),
        users=["a", "b", "c"],
        servers=["s", "t"],
        resources=["cpu", "mem"],
        rules=[text for text in texts if rng.random() < 0.6],
    )


def room(instance: fo.Instance, tasks: np.ndarray, n: int, i: int) -> bool:
    """Does one more task of n on i break no capacity and no rule? Worked out here, in fractions, term by term."""
    more = tasks.copy()
    more[n, i] += 1
    for r in range(2):
        if (more[:, i] * instance.demands[:, r]).sum() > instance.capacities[i, r]:
            return False
    for rule in instance.rules:
        left = Fraction(0)
        for term, factor in rule.terms:
            user = instance.users.index(term.name)
            where = range(2) if not term.servers else [instance.servers.index(term.servers)]
            each = 1 if not term.resource else int(instance.demands[user, instance.resources.index(term.resource)])
            left += factor * each * sum(int(more[user, server]) for server in where)
        if left > rule.bound if rule.sense == "<=" else left < rule.bound:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_what_is_placed_obeys_the_rules_and_leaves_no_room(seed: int) -> None:
    """Each task of the record was allowed when it was placed, and at the end nobody's next task is; fractions decide the same."""
    instance = drawn(seed)
    how = ("drfh:best-fit", "drfh:first-fit", "tsf:joint")[seed % 3]
    done = fo.schedule(instance, how, record=True)
    assert done.instance is instance
    np.testing.assert_array_equal(done.tasks, fo.schedule(instance, how, exact=True).tasks)
    tasks = np.zeros((3, 2))
    for n, i in zip(done.trace.users.tolist(), done.trace.servers.tolist(), strict=True):
        assert room(instance, tasks, n, i)
        tasks[n, i] += 1
    np.testing.assert_array_equal(tasks, done.tasks)
    assert not any(room(instance, tasks, n, i) for n in range(3) for i in range(2))


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_beats_the_whole_task_optimum_under_the_same_rules(seed: int) -> None:
    """The smallest share of any schedule is at most that of the optimum: the rules are the same to both."""
    instance = drawn(seed)
    best = fo.solve(instance, "drfh", integral=True)
    assert fo.schedule(instance, "drfh:best-fit").shares.min() <= best.shares.min() + 1e-9
    assert fo.schedule(instance, "drfh:pop:parts=1").shares.min() <= fo.solve(instance, "drfh").shares.min() * (1 + 1e-7) + 1e-9


def test_a_schedule_says_which_rule_it_cannot_keep() -> None:
    """The rule, why, and what to do."""
    pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["gpu"], rules=["x[a] <= 4", "x[b] >= 2"])
    for how in ("drfh:best-fit", "drfh:pop"):
        with pytest.raises(fo.Unsupported, match=r'"x\[b\] >= 2" asks for at least something.*fairopt.solve'):
            fo.schedule(pool, how)


def test_precomputed_drf_and_arriving_tasks_keep_rules_that_are_limits() -> None:
    """Two tasks of a are allowed of the nine that fit."""
    pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["gpu"], tasks=[9, 9], rules=["x[a] <= 2"])
    assert fo.precomputed_drf(pool, cycles=None, finish=True).tasks_per_user.tolist() == [2, 7]
    found = fo.arrivals(pool.replace(tasks=[9, 0]), "gpu", ["first-fit"], until=1.0, step=0.5, seeds=[0], workers=1)
    assert found.allocated["first-fit"].max() == pytest.approx(2 / 9)


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "drfh", "fifo", "psdsf"])
def test_a_simulation_keeps_them_at_every_moment(scheduler: str) -> None:
    """Four tasks of A of 10 s each, two at once by the rule: 20 s. B is not in the rule, and all fit: 10 s."""
    cluster = fo.Instance([[9]], [[1], [1]], users=["A", "B"], resources=["cpu"], rules=["x[A] <= 2"])
    trace = fo.Trace(["B", "A"], [0, 0], [3, 4], [[1], [1]], [10, 10], resources=["cpu"])
    done = fo.simulate(trace, cluster, scheduler).jobs
    np.testing.assert_allclose(done.set_index("user")["finished_s"].loc[["B", "A"]], [10, 20])


def test_the_command_takes_a_rule_of_the_cluster(tmp_path: Path) -> None:
    """--rule of simulate: as rules of the file."""
    fo.save(fo.Instance([[9]], [[1], [1]], users=["A", "B"], resources=["cpu"]), tmp_path / "cluster.yaml")
    (tmp_path / "jobs.csv").write_text("user,submit_s,tasks,run_s,cpu\nB,0,3,10,1\nA,0,4,10,1\n")
    asked = ("simulate", tmp_path / "jobs.csv", "--cluster", tmp_path / "cluster.yaml", "--csv")
    ends = [line.split(",") for line in run(*asked, "--rule", "x[A] <= 2").stdout.splitlines()]
    assert [float(row[ends[0].index("finished_s")]) for row in ends[1:]] == [10, 20]
    assert "x[A] >= 2" in flat(run(*asked, "--rule", "x[A] >= 2", status=2).stderr)


def test_a_simulation_and_a_history_refuse_others() -> None:
    """Jobs come and go, so that nobody can be sure to have something."""
    cluster = fo.Instance([[9]], [[1], [1]], users=["A", "B"], resources=["cpu"], rules=["x[A] >= 2"])
    trace = fo.Trace(["B", "A"], [0, 0], [3, 5], [[1], [1]], [10, 10], resources=["cpu"])
    for ask in (lambda: fo.simulate(trace, cluster), lambda: fo.period_bound(trace, cluster, until=9)):
        with pytest.raises(fo.Unsupported, match="asks for at least something"):
            ask()

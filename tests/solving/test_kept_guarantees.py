"""Guarantees under notions that follow no tree: what the stages gave is kept, and then the goal counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from queue_oracle import Oracle
from reference.simplex import maximise

import fairopt as fo
from fairopt.program import Program
from fairopt.solving import kept_guarantees
from fairopt.solving.policy import Found, find

GPU = ("gpu",)


def lab(amount: Any, **data: Any) -> fo.Instance:
    """8 GPUs; a task of a takes 2, one of b 1; a's queue is guaranteed an amount."""
    queues = [fo.Queue("lab", guarantee={"gpu": amount})]
    return fo.Instance([[8]], [[2], [1]], users=["a", "b"], resources=GPU, queues=queues, queue_of=["lab", None], **data)


def test_the_largest_total_leaves_a_queue_its_guarantee() -> None:
    """b's tasks are cheaper; a keeps 6 GPUs for 3 tasks, and b gets the other 2. Without tasks for them a keeps less."""
    assert fo.solve(lab(6), "efficiency").tasks_per_user == pytest.approx([3, 2])
    assert fo.solve(lab(6, tasks=[1, np.inf]), "efficiency").tasks_per_user == pytest.approx([1, 6])
    exact = fo.solve(lab(F(20, 3)), "efficiency", exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [F(10, 3), F(4, 3)]


def test_proportional_fairness_leaves_a_queue_its_guarantee() -> None:
    """Money alone gives each half of 8 GPUs, a 2 tasks and b 4; a keeps 6 GPUs, and with a guarantee of 3 nothing changes. Alpha alike."""
    for alpha in (1, 2):
        assert fo.solve(lab(6), "proportional", alpha=alpha).tasks_per_user == pytest.approx([3, 2], rel=1e-7)
    assert fo.solve(lab(3), "proportional").tasks_per_user == pytest.approx([2, 4], rel=1e-7)


@pytest.mark.parametrize("notion", ["efficiency", "proportional", "fds", "gfj"])
def test_where_nobody_can_run_anything_nothing_is_kept(notion: str) -> None:
    """The server has no GPU, which every task takes; the queue is guaranteed CPUs."""
    queues = [fo.Queue("lab", guarantee={"cpu": 4})]
    nothing = fo.Instance([[0, 10]], [[1, 2], [2, 1]], resources=("gpu", "cpu"), queues=queues, queue_of=["lab", None])
    for exact in (False, True):
        assert fo.solve(nothing, notion, exact=exact).tasks_per_user.tolist() == [0, 0]
    if notion == "efficiency":
        assert fo.solve(nothing, notion, integral=True).tasks_per_user.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("notion", "how"),
    [
        *((notion, {"exact": exact}) for notion in ("efficiency", "proportional", "fds", "gfj") for exact in (False, True)),
        ("efficiency", {"integral": True}),
    ],
)
def test_a_rule_that_cannot_be_met_beside_a_guarantee_is_named(notion: str, how: dict[str, Any]) -> None:
    """The stages of the guarantee obey the rule, so that they are the first to which nothing is feasible."""
    with pytest.raises(fo.NoSolution, match="no allocation obeys the rules") as caught:
        fo.solve(lab(6, rules=["x[b] >= 9"]), notion, **how)
    assert caught.value.known["contradiction"] == ["x[b] >= 9", "gpu @ server-1"]


@pytest.mark.parametrize("notion", ["fds", "gfj"])
def test_trade_offs_leave_a_queue_its_guarantee(notion: str) -> None:
    """Without one a would have fewer than 3 tasks, and does with a guarantee of 1 GPU that changes nothing."""
    assert fo.solve(lab(6), notion).tasks_per_user == pytest.approx([3, 2], rel=1e-7)
    free = fo.solve(lab(6).replace(queues=[fo.Queue("lab")]), notion).tasks_per_user
    assert free[0] < 3
    assert fo.solve(lab(1), notion).tasks_per_user == pytest.approx(free, rel=1e-7)


@pytest.mark.parametrize("integral", [False, True])
def test_the_stages_are_proved_to_the_tolerance_that_is_asked_for(integral: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the question, for what the guarantees give and for the goal; an answer that is a thousandth off is none at 1e-4."""
    asked: list[float] = []

    def near(program: Program, engines: Any, tolerance: float, deadline: Any) -> Found:
        asked.append(tolerance)
        found = find(program, engines, tolerance, deadline)
        return replace(found, certificate=replace(found.certificate, feasibility=1e-3))

    monkeypatch.setattr(kept_guarantees, "find", near)
    assert fo.solve(lab(6), "efficiency", tolerance=2e-3, integral=integral).tasks_per_user == pytest.approx([3, 2])
    with pytest.raises(fo.CertificateError, match="the guarantees under efficiency"):
        fo.solve(lab(6), "efficiency", tolerance=1e-4, integral=integral)
    assert asked == [2e-3, 1e-4]


def test_guaranteed_tasks_of_a_user_are_kept() -> None:
    """a is guaranteed a task and a half."""
    users = fo.Instance([[8]], [[2], [1]], users=["a", "b"], resources=GPU, guarantees=[1.5, 0])
    assert fo.solve(users, "efficiency").tasks_per_user == pytest.approx([1.5, 5])


def test_guarantees_that_do_not_fit_are_kept_as_far_as_they_can_be_met_together() -> None:
    """900 and 100 of 100 GPUs: 90 and 10; nothing is left for the third, whose tasks are cheapest."""
    queues = [fo.Queue("A", guarantee={"gpu": 900}), fo.Queue("B", guarantee={"gpu": 100})]
    pool = fo.Instance([[100]], [[2], [2], [1]], resources=GPU, queues=queues, queue_of=["A", "B", None])
    assert fo.solve(pool, "efficiency").tasks_per_user == pytest.approx([45, 5, 0], abs=1e-7)


def test_a_queue_may_hold_its_guarantee_where_it_wants() -> None:
    """4 GPUs guaranteed on each of two servers, tasks for 6: the queue leaves 2 on either; c needs the first, and takes all of it there."""
    quotas = [fo.Quota(["s"], {"gpu": 4}), fo.Quota(["t"], {"gpu": 4})]
    pool = fo.Instance(
        [[4], [4]],
        [[1], [1]],
        users=["a", "c"],
        servers=["s", "t"],
        resources=GPU,
        tasks=[6, np.inf],
        eligibility=[[1, 1], [1, 0]],
        queues=[fo.Queue("q", quotas=quotas)],
        queue_of=["q", None],
    )
    assert fo.solve(pool, "efficiency").tasks_per_user == pytest.approx([6, 2])
    program = fo.formulate(pool, "efficiency")
    rows = [name for name in map(program.limit_name, range(len(program.limits))) if name.startswith("guaranteed")]
    assert rows == ["guaranteed gpu of q on s", "guaranteed gpu of q on t", "guaranteed gpu of q on s and t"]


def test_what_is_refused() -> None:
    """Weights of queues, tiers, and whole tasks of goals that are not linear."""
    with pytest.raises(fo.Unsupported, match="not their weights"):
        fo.solve(lab(6).replace(queues=[fo.Queue("lab", weight=2, guarantee={"gpu": 6})]), "efficiency")
    with pytest.raises(fo.Unsupported, match="not their tiers"):
        fo.solve(lab(6).replace(queues=[fo.Queue("lab", tier=1, guarantee={"gpu": 6})]), "efficiency")
    with pytest.raises(fo.Unsupported, match="whole tasks"):
        fo.solve(lab(6), "proportional", integral=True)


def test_rules_come_before_guarantees() -> None:
    """9 GPUs: a is guaranteed 4 tasks, of which a rule allows 2. The stages obey it, so that the rows can be met."""
    pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], resources=["gpu"], guarantees=[4, 0], rules=["x[a] <= 2"])
    for notion in ("efficiency", "proportional", "fds", "gfj"):
        np.testing.assert_allclose(fo.solve(pool, notion).tasks_per_user, [2, 7], rtol=1e-9)
        np.testing.assert_allclose(fo.solve(pool, notion, exact=True).tasks_per_user, [2, 7], rtol=1e-9)


def test_whole_tasks_keep_what_whole_stages_gave() -> None:
    """13 GPUs on two servers, tasks of a take 2: of the 7 that a is guaranteed it can hold 6, and of the rest most tasks are b's."""
    names: dict[str, Any] = {"users": ["a", "b"], "resources": ["gpu"]}
    pool = fo.Instance([[7], [6]], [[2], [1]], queues=[fo.Queue("q", guarantee={"gpu": 7})], queue_of=["q", None], **names)
    found = fo.solve(pool, "efficiency", integral=True)
    assert found.tasks_per_user.tolist() == [3, 7]
    ruled = fo.solve(pool.replace(rules=["x[b] <= 2 * x[a]"]), "efficiency", integral=True)
    assert ruled.tasks_per_user.tolist() == [3, 6]
    program = fo.formulate(pool, "efficiency", integral=True)
    assert fo.solve(program).tasks_per_user.tolist() == [3, 7]


def test_fractions_keep_guarantees_of_goals_with_a_gradient() -> None:
    """6 of 9 tasks are guaranteed: proportional fairness would give 4.5. A third of a task is no float."""
    given: dict[str, Any] = {"guarantees": [F(17, 3), 0], "users": ["a", "b"], "resources": GPU}
    found = fo.solve(fo.Instance([[9]], [[1], [1]], **given), "proportional", exact=True).exact
    assert found is not None
    assert found.tasks_per_user.tolist() == [F(17, 3), F(10, 3)]


def test_the_answer_is_that_of_an_oracle_in_fractions() -> None:
    """Stages by the LPs of the oracle, then the largest total above what they gave, on tiny trees whose guarantees often do not fit."""
    for seed in range(8):
        instance = tiny(seed)
        given = stages(instance)
        pairs = np.argwhere(instance.eligibility)
        rows: list[list[F]] = []
        bounds: list[F] = []
        for i in range(instance.n_servers):
            for r in range(instance.n_resources):
                rows.append([F(int(instance.demands[n, r])) if j == i else F(0) for n, j in pairs])
                bounds.append(F(int(instance.capacities[i, r])))
        for n in np.flatnonzero(np.isfinite(instance.tasks)):
            rows.append([F(int(m == n)) for m, _ in pairs])
            bounds.append(F(int(instance.tasks[n])))
        for queue in instance.queues:
            below = [
                n for n in range(instance.n_users) if instance.queue_of[n] == queue.name or (queue.name, instance.queue_of[n]) == ("a", "b")
            ]
            for name, amount in queue.guarantee.items():
                r = instance.resources.index(name)
                held = sum((given[n] * int(instance.demands[n, r]) for n in below), F(0))
                rows.append([-F(int(instance.demands[n, r])) if n in below else F(0) for n, _ in pairs])
                bounds.append(-min(held, F(amount)))
        total, _ = maximise([F(int(instance.weights[n])) for n, _ in pairs], rows, bounds)
        exact = fo.solve(instance, "efficiency", exact=True).exact
        assert exact is not None
        assert sum(w * int(weight) for w, weight in zip(exact.tasks_per_user.tolist(), instance.weights, strict=True)) == total, seed
        assert instance.weights @ fo.solve(instance, "efficiency").tasks_per_user == pytest.approx(float(total), rel=1e-8), seed


def stages(instance: fo.Instance) -> list[F]:
    """The tasks of users at the end of the guarantees, by the oracle."""
    oracle = Oracle(instance, [F(1)] * instance.n_users, queue_share="sum", number=F)
    if not oracle.promised:
        return [F(0)] * instance.n_users
    oracle.solve()  # finds floors, where there are some
    again = Oracle(instance, [F(1)] * instance.n_users, queue_share="sum", number=F)
    again.engine = oracle.engine
    if oracle.floors:
        again.floors = again.find_floors()
    again._guarantees()
    return [F(share) for share in again.share]


def tiny(seed: int) -> fo.Instance:
    """Three users, one or two servers and resources, queues a, b in a, and c, with guarantees."""
    rng = np.random.default_rng(seed)
    servers, resources = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    names = ["gpu", "cpu"][:resources]
    queues = [
        fo.Queue(name, parent, guarantee={each: float(rng.integers(1, 7)) for each in names if rng.random() < 0.7})
        for name, parent in (("a", None), ("b", "a"), ("c", None))
    ]
    return fo.Instance(
        rng.integers(2, 7, (servers, resources)),
        rng.integers(1, 4, (3, resources)),
        weights=rng.integers(1, 3, 3),
        tasks=np.where(rng.random(3) < 0.3, rng.integers(1, 4, 3), np.inf),
        queues=queues,
        queue_of=[str(rng.choice(["a", "b", "c"])) for _ in range(3)],
        resources=names,
    )

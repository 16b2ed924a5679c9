"""Right answers that a solver's prices do not prove are checked in fractions before they are refused, and wrong ones are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.deadlines import slow_clock, steps_spent

import fairopt as fo
from fairopt.instance.aggregation import unmerged
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving import notion_of, small_fractions
from fairopt.solving.policy import Found, find
from fairopt.solving.small_fractions import in_small_fractions, is_small


def nested(queues: int, ways: int, servers: int, seed: int) -> fo.Instance:
    """Queues of a few users each on few servers of whole numbers, weights from 1 to 4."""
    rng = np.random.default_rng(seed)
    demands, eligible, of = [], [], []
    for queue in range(queues):
        for _ in range(ways):
            demands.append(rng.integers(1, 6, 3))
            allowed = rng.random(servers) < 0.3
            allowed[rng.integers(servers)] = True
            eligible.append(allowed)
            of.append(f"q{queue}")
    weights = rng.integers(1, 5, queues)
    return fo.Instance(
        rng.integers(20, 60, (servers, 3)),
        demands,
        eligibility=eligible,
        queues=[fo.Queue(f"q{queue}", weight=float(weights[queue])) for queue in range(queues)],
        queue_of=of,
    )


@pytest.mark.parametrize(
    ("queues", "ways", "servers", "seed"), [(40, 3, 1, 8), (10, 2, 3, 3), (10, 2, 3, 7), (20, 3, 5, 1), (20, 3, 10, 0)]
)
def test_nested_trees_are_not_refused(queues: int, ways: int, servers: int, seed: int) -> None:
    """Some agents pay a ten-millionth of what others pay."""
    instance = nested(queues, ways, servers, seed)
    found = fo.solve(instance, "tsf", tree="nested")
    exact = fo.solve(instance, "tsf", tree="nested", exact=True)
    assert found.certificate.worst <= 1e-8
    np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user, atol=1e-8)


@pytest.mark.parametrize("seed", [8, 11])
def test_guarantees_over_eight_orders_of_magnitude(seed: int) -> None:
    """Shares of which nothing but rounding is left, 1e-17 of the cluster, gave rows that HiGHS refuses."""
    rng = np.random.default_rng([seed, 8])
    capacities, demands = rng.uniform(5, 20, (2, 2)).round(2), rng.uniform(0.1, 1, (8, 2)).round(2)
    amounts = 10 ** rng.uniform(-4, 4, 4)
    amounts *= 1.4 * capacities.sum(axis=0)[0] / amounts.sum()
    queues = [fo.Queue(f"q{k}", guarantee={f"r{k % 2}": float(f"{amount:.4g}")}) for k, amount in enumerate(amounts)]
    eligible = (rng.random((8, 2)) < 0.7) | (np.arange(2) == 0)
    pool = fo.Instance(
        capacities, demands, eligibility=eligible, queues=queues, queue_of=[f"q{n % 4}" for n in range(8)], resources=["r0", "r1"]
    )
    found, exact = fo.solve(pool, "drfh"), fo.solve(pool, "drfh", exact=True)
    np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user, rtol=1e-7, atol=1e-10)


def of_figure() -> tuple[fo.Instance, Found]:
    """An instance, and the answer of its program without prices that prove it."""
    instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    program = fo.formulate(instance, "drfh")
    right = find(program, [fo.SOLVERS["highs"]()], 1e-8, Deadline(None))
    stages = tuple(replace(stage, prices=np.ones(len(program.limits))) for stage in right.solution.stages)
    unproved = replace(right.solution, stages=stages)
    return instance, replace(right, solution=unproved, certificate=replace(right.certificate, fairness=1.0))


def test_what_is_right_is_proved() -> None:
    """By the prices in fractions."""
    instance, found = of_figure()
    proved = in_small_fractions(found, fo.NOTIONS["drfh"](), unmerged(instance).instance, Deadline(None))
    assert proved.certificate.worst <= 1e-15
    assert proved.finished_by == "rational-simplex"
    np.testing.assert_allclose(proved.solution.x, found.solution.x, rtol=1e-9)


def test_a_busy_machine_proves_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes between any two steps."""
    instance, found = of_figure()
    slow_clock(monkeypatch)
    proved = in_small_fractions(found, fo.NOTIONS["drfh"](), unmerged(instance).instance, Deadline(None))
    assert proved.finished_by == "rational-simplex"


@pytest.mark.parametrize("notion", ["tsf", "proportional"])
def test_work_ends_at_the_same_step_each_time(notion: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Half of the work of a proof is too little for it."""
    caplog.set_level("INFO")
    instance, options = nested(10, 2, 3, 3), {"tree": "nested"} if notion == "tsf" else {"alpha": 2}
    instance = instance if notion == "tsf" else instance.replace(queues=(), queue_of=None)
    chosen = notion_of(notion, **options)
    program = fo.formulate(instance, chosen)
    found = find(program, candidates(program, None), 1e-8, Deadline(None))
    spent = steps_spent(monkeypatch)
    assert in_small_fractions(found, chosen, instance, Deadline(None)) is not found
    whole = list(spent)
    assert sum(whole) > 0
    monkeypatch.setattr(small_fractions, "_MOST_WORK", sum(whole) / 2)
    parts = []
    for _ in range(2):
        spent.clear()
        assert in_small_fractions(found, chosen, instance, Deadline(None)) is found
        parts.append(list(spent))
    assert parts[0] == parts[1]
    assert parts[0][0] == whole[0]
    assert "within the usual number of steps" in caplog.text


def test_what_is_wrong_stays_refused() -> None:
    """A thousandth too little for everybody is another answer."""
    instance, found = of_figure()
    wrong = replace(found, solution=replace(found.solution, x=found.solution.x * 0.999))
    assert in_small_fractions(wrong, fo.NOTIONS["drfh"](), instance, Deadline(None)) is wrong


def test_goals_without_an_answer_in_fractions_are_not_small() -> None:
    """Nor are whole tasks. An irrational optimum has rationals near it."""
    instance, found = of_figure()
    assert is_small(found.program)
    assert is_small(fo.formulate(instance, "proportional"))
    assert not is_small(fo.formulate(instance, "psdsf"))
    assert not is_small(fo.formulate(instance, "drfh", integral=True))

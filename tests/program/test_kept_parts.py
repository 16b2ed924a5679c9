"""Rows of what queues keep, made where they are needed: the answers are those with all rows of the family, in floats and in fractions."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues, with_lenders
from queue_oracle import exact_shares, random_tree, share_per_task
from reference.kept import all_rows

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.exact import prove
from fairopt.errors import CertificateError
from fairopt.instance.fractions import rationals
from fairopt.program import Feature, LimitKind, Program
from fairopt.program.kept_parts import KeptParts, counted_rows
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving import formulate, notion_of
from fairopt.solving.policy import find

KEEPS: Any = {"guarantee": {"cpu": 20}, "lending_limit": {"cpu": 0}}


WHOLE = (1, 11, 13, 15, 17, 19, 21, 25, 27, 35, 37, 38)  # random trees whose whole tasks take less than a second


def two_lenders(tasks: float, **options: Any) -> fo.Instance:
    """A and B are guaranteed 20 of 100 cores, lend nothing, and have this many tasks of one core; C has tasks without end."""
    queues = [fo.Queue("A", **KEEPS), fo.Queue("B", **KEEPS), fo.Queue("C")]
    return fo.Instance(
        *([[100]], [[1], [1], [1]]), tasks=[tasks, tasks, np.inf], resources=["cpu"], users=["a", "b", "c"], queues=queues,
        queue_of=["A", "B", "C"], **options,
    )  # fmt: skip


def held(allocation: fo.Allocation) -> list[float]:
    """Tasks of each user."""
    return [float(value) for value in allocation.tasks_per_user.round(9)]


@pytest.mark.parametrize("tasks", [0, 5])
@pytest.mark.parametrize("solver", ["highs", "interior-point", "cvxpy", "pyomo"])
def test_two_queues_that_lend_nothing_keep_both_parts(tasks: float, solver: str) -> None:
    """20 + 20 of 100 are not C's, whether A and B use 5 each or nothing: 60."""
    pytest.importorskip(solver) if solver in ("cvxpy", "pyomo") else None
    rules: list[dict[str, Any]] = [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}]
    for options in rules:
        assert held(fo.solve(two_lenders(tasks), "drfh", solver=solver, **options)) == pytest.approx([tasks, tasks, 60])


@pytest.mark.parametrize("tasks", [0, 5])
def test_the_same_in_fractions_in_whole_tasks_and_in_schedules(tasks: float) -> None:
    """60, exactly; over time as well, and for every notion that follows a tree."""
    instance = two_lenders(tasks)
    for notion in ("drfh", "drf", "tsf", "cdrf", "asset", "max-min"):
        assert held(fo.solve(instance, notion, exact=True)) == [tasks, tasks, 60]
        assert held(fo.solve(instance, notion, integral=True)) == [tasks, tasks, 60]
    assert fo.solve(instance, "drfh", exact=True).certificate.exact
    for exact in (False, True):
        assert held(fo.schedule(instance, "drfh", exact=exact)) == [tasks, tasks, 60]
    jobs = [("a", tasks), ("b", tasks), ("c", 90)] if tasks else [("c", 90)]
    trace = fo.Trace(
        [name for name, _ in jobs], [0] * len(jobs), [int(n) for _, n in jobs], [[1]] * len(jobs), [10] * len(jobs), resources=["cpu"]
    )
    for scheduler in ("drfh", "drfh:first-fit", "drfh:best-fit"):
        assert fo.simulate(trace, instance.replace(tasks=None), scheduler, until=1).series.running[0].round(6).tolist() == [
            tasks,
            tasks,
            60,
        ]


def test_the_rows_are_stated() -> None:
    """In the program, as a price, and among the exceeded limits of an allocation that breaks them."""
    instance = two_lenders(5)
    program = formulate(instance, "drfh")
    assert [program.limit_name(k) for k in range(len(program.limits))][-1] == "cpu beside what A and B keep"
    assert "where a queue that uses less than it keeps counts with what it keeps, <= 100; kept: A 20, B 20" in str(program)
    assert "kept: A 20, B 20" in program.to_latex()
    assert fo.solve(instance, "drfh").queue_prices == {"cpu beside what A and B keep": pytest.approx(0.01)}
    (row,) = counted_rows(instance, np.array([[5.0], [20.0], [70.0]]))
    assert (row.name, row.bound, row.users.tolist()) == ("cpu beside what A keeps", 80, [False, True, True])
    assert counted_rows(instance, np.array([[20.0], [30.0], [50.0]])) == []  # then the server is all that counts


def test_rows_on_demand_give_the_answer_to_all_rows(caplog: pytest.LogCaptureFixture) -> None:
    """Beginning with every row, with the usual ones, and with none: the shares are the same, and the answer exceeds no row."""
    caplog.set_level(logging.CRITICAL)
    compared = made = 0
    for seed in range(60):
        instance = with_lenders(decimal_tree(instance_in_queues(seed)), seed) if seed % 2 else random_tree(seed + 1)
        program = formulate(instance, "tsf", queue_share="sum")
        if program.kept is None:
            continue
        programs = (_without_rows(program), program, _with_all_rows(program))
        found, usual, full = (find(each, candidates(each, None), 1e-8, Deadline(None)) for each in programs)
        shares = [program.per_user(each.solution.x * program.utilities) for each in (found, usual, full)]
        np.testing.assert_allclose(shares[0], shares[2], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(shares[1], shares[2], rtol=1e-7, atol=1e-9)
        assert max(found.certificate.worst, usual.certificate.worst) <= 1e-8
        tasks = np.zeros((instance.n_users, instance.n_servers))
        tasks[program.pair_users, program.pair_servers] = found.solution.x
        for row in all_rows(instance, float):
            used = tasks[np.ix_(row.users, row.servers)].sum(axis=1) @ instance.demands[row.users, row.resource]
            assert used <= row.bound * (1 + 1e-9) + 1e-9
        compared, made = compared + 1, made + len(found.program.kept_rows)
    assert compared >= 40
    assert made >= 20


def _without_rows(program: Program) -> Program:
    """Return a program without a row of what queues keep."""
    kept, others = len(program.kept_rows), len(program.queue_limits) - len(program.kept_rows)
    own = (program.limits.kinds == LimitKind.QUEUE) & (program.limits.keys[:, 0] >= others)
    assert own.sum() <= kept
    return replace(program, limits=program.limits.select(~own), kept_rows=(), queue_limits=program.queue_limits[:others])


def _with_all_rows(program: Program) -> Program:
    """Return a program with all rows of the family as limits: one for each set of queues that keep something, none below another."""
    kept = program.kept
    assert kept is not None
    more = []
    for number, keeping in enumerate(kept.keepings):
        for mask in range(1, 2 ** len(keeping.nodes)):
            chosen = tuple(k for k in range(len(keeping.nodes)) if mask >> k & 1)
            below = {k for k in chosen if any(above in chosen for above in _above(keeping, k))}
            if not below:
                more.append((number, chosen))
    return program.with_kept_rows([each for each in more if each not in program.kept_rows])


def _above(keeping: Any, k: int) -> list[int]:
    way = []
    while keeping.above[k] >= 0:
        k = keeping.above[k]
        way.append(k)
    return way


def test_fractions_are_those_of_the_oracle() -> None:
    """One server, queues that keep parts in and beside each other: shares level by level with every row of the family, in fractions."""
    compared = 0
    for seed in range(1, 60, 2):
        instance = random_tree(seed, servers=1)
        if KeptParts.of(instance) is None or seed in (9, 45, 57):  # of these the guarantees do not fit, which takes the oracle minutes
            continue
        expected = exact_shares(instance, share_per_task(instance, "max-min"), queue_share="sum")
        found = fo.solve(instance, "max-min", exact=True, queue_share="sum")
        assert found.exact is not None
        np.testing.assert_allclose(found.exact.shares.astype(float), np.array(expected, float), rtol=1e-12, atol=1e-12)
        assert found.certificate.exact
        compared += 1
    assert compared >= 10


def test_whole_tasks_on_demand_too(caplog: pytest.LogCaptureFixture) -> None:
    """The levels of whole tasks are those of the program with all rows, and nothing is exceeded."""
    caplog.set_level(logging.CRITICAL)
    made = 0
    for seed in WHOLE:
        program = formulate(with_lenders(instance_in_queues(seed), seed), "max-min", integral=True, queue_share="sum")
        assert program.kept is not None
        assert Feature.WHOLE_BY_STOP_TIMES in program.features()
        found, full = (find(each, candidates(each, None), 1e-8, Deadline(60)) for each in (_without_rows(program), _with_all_rows(program)))
        assert program.kept_excess(found.solution.x) <= 1e-9
        levels = [[(stage.part, round(stage.value, 6), len(stage.users)) for stage in each.solution.stages] for each in (found, full)]
        assert levels[0] == levels[1]
        made += len(found.program.kept_rows)
    assert made >= 8


def test_certificates_refuse_what_breaks_a_row_that_was_never_made() -> None:
    """Without rows C gets 75: feasible for the program, and not for what A and B keep; in floats and in fractions."""
    instance = two_lenders(5)
    notion = notion_of("drfh")
    program = notion.formulate(instance, sharing="rdm", integral=False)
    short = _without_rows(program)
    bare = replace(short, kept=None)
    solution = find(bare, candidates(bare, None), 1e-9, Deadline(None)).solution
    assert solution.x.tolist() == pytest.approx([5, 5, 90])
    assert certify(bare, solution).worst <= 1e-9
    assert certify(short, solution).feasibility == pytest.approx(0.5)
    exact = notion.in_fractions(instance.exact, short)
    wrong = replace(solution, x=rationals([5, 5, 90]), parts=())
    with pytest.raises(CertificateError, match="cpu beside what A and B keep"):
        prove(exact, wrong)
    assert find(short, candidates(short, None), 1e-9, Deadline(None)).solution.x.tolist() == pytest.approx([5, 5, 60])

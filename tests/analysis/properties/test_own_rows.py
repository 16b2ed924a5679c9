"""Audits and explanations within rows of a notion's own, beside linear programs over the program and nothing else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.linear import largest

import fairopt as fo
from fairopt.analysis.rerun import given as given_tasks
from fairopt.models.drfh import DRFH
from fairopt.program import LimitKind, Program
from fairopt.program.stated_rows import StatedRow, with_rows


class Purse(DRFH):
    """DRFH where a task of a on the first server costs 3, on others 1, and a has 4 to spend."""

    name = "purse"

    def formulate(self, instance: fo.Instance, *, sharing: Any, integral: bool) -> Program:
        """Return the program with the row."""
        program = super().formulate(instance, sharing=sharing, integral=integral)
        price = {("a", server): 3 if server.startswith("A") else 1 for server in program.servers if "a" in program.users}
        return with_rows(program, [StatedRow.of(program, "purse of a", price, 4)]) if price else program


def pool(**more: Any) -> fo.Instance:
    """Two servers of 8 GPUs and 64 cores, for two users."""
    return fo.Instance([[8, 64], [8, 64]], [[1, 4], [1, 8]], servers=["A", "V"], resources=["gpu", "cpu"], users=["a", "b"], **more)


@pytest.mark.parametrize("exact", [False, True])
def test_nobody_can_have_more_within_the_rows(exact: bool) -> None:
    """a can spend its purse on 4 tasks alone, which are its slice, its envy and its level; and no lie helps."""
    allocation = fo.solve(pool(), Purse, exact=exact)
    assert allocation.tasks_per_user.round(9).tolist() == [4, 12]
    audit = fo.audit(allocation, effort=40)
    assert audit.violated == []
    for name in ("psdsf", "no-justified-complaints"):
        assert audit[name].holds is None
    for name in ("sharing-incentive", "envy-freeness", "pareto", "max-min", "bottleneck-fairness", "population-monotonicity"):
        assert audit[name].holds, audit[name]
    text = str(fo.explain(allocation, "a"))
    assert 'Bottleneck: "purse of a" of 4 is used up.' in text
    assert "envy" not in text


@pytest.mark.parametrize("exact", [False, True])
def test_what_would_help_is_a_larger_bound(exact: bool) -> None:
    """Of a row that was stated for a program; it is solved again with one more."""
    program = fo.formulate(pool(), "drfh").with_limit("purse of a", {("a", "A"): 3, ("a", "V"): 1}, Fraction(4))
    explanation = fo.explain(fo.solve(program, exact=exact), "a")
    best = explanation.gains[0]
    assert (best.change, best.kind) == ('a bound of 5 instead of 4 for "purse of a"', "limit")
    assert best.by_solving == pytest.approx(1)


def test_whole_tasks_within_the_rows() -> None:
    """Whole tasks of a purse of 4.5: 4 tasks, and nobody can have a task more without another's loss."""
    program = fo.formulate(pool(), "drfh", integral=True).with_limit("purse of a", {("a", "A"): 3, ("a", "V"): 1}, 4.5)
    allocation = fo.solve(program)
    assert allocation.tasks_per_user.tolist() == [4, 12]
    audit = fo.audit(allocation, ["pareto", "max-min"])
    assert audit["pareto"].holds
    assert audit["max-min"].holds


def test_what_if_keeps_the_rows() -> None:
    """The same notion about a larger cluster: a still spends 4, and b has the rest."""
    found = fo.what_if(pool(), pool().replace(counts={"V": 2}), notions=[Purse()])
    (before,), (after,) = (list(each) for each in (found.before, found.after))
    assert before.allocation is not None
    assert after.allocation is not None
    assert before.allocation.tasks_per_user.round(9).tolist() == [4, 12]
    assert after.allocation.tasks_per_user.round(9).tolist() == [4, 20]


@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_pareto_and_slices_against_the_oracle(n: int, k: int, seed: int) -> None:
    """Random rows, and an allocation that leaves some out: who can gain without a loss, and what slices can run."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.integers(2, 9, (k, 2)), rng.integers(1, 4, (n, 2)), rng.choice([1.0, 2.0], n), rng.random((n, k)) < 0.8)
    program = fo.formulate(instance, "drfh")
    if not program.n_pairs:
        return
    for name in ("first", "second"):
        program = program.with_limit(name, rng.integers(0, 3, program.n_pairs).astype(float), float(rng.uniform(1, 5)))
    allocation = fo.solve(program)
    part = rng.choice([0.5, 1.0])
    audited = replace(allocation, tasks=allocation.tasks * part, levels=(), prices=None)
    held = audited.tasks.sum(axis=1)
    matrix = program.limits.matrix.toarray()
    own = np.where(program.pair_users == np.arange(n)[:, None], 1.0, 0.0)
    gain = largest(np.ones(program.n_pairs), np.vstack([matrix, -own]), np.append(program.limits.bounds, -held * (1 - 1e-12))) - held.sum()
    found = fo.audit(audited, ["pareto", "sharing-incentive"])
    if gain > 1e-3:
        assert found["pareto"].holds is False
    elif gain < 1e-7:
        assert found["pareto"].holds
    weights = instance.weights / instance.weights.sum()
    rows = program.limits.of_kinds(LimitKind.NAMED)
    lacks = []
    for user in np.flatnonzero(instance.servable):
        mine = np.flatnonzero(program.pair_users == user)
        upper = weights[user] * instance.rates[user, program.pair_servers[mine]]
        owed = largest(np.ones(mine.size), matrix[rows][:, mine], program.limits.bounds[rows], upper=upper)
        lacks.append(owed - held[user])
    if max(lacks, default=0) > 1e-3:
        assert found["sharing-incentive"].holds is False
        assert found["sharing-incentive"].violation == pytest.approx(max(lacks), rel=1e-4)
    elif max(lacks, default=0) < 1e-7:
        assert found["sharing-incentive"].holds


@pytest.mark.parametrize("exact", [False, True])
def test_queues_within_the_rows(exact: bool) -> None:
    """A queue whose users may spend 4 together lacks nothing of its slice; without the row it would."""
    tree = pool(queues=[fo.Queue("p"), fo.Queue("q")], queue_of=["p", "q"])
    for names, queue_of in ((["a", "b"], ["p", "q"]), (["a", "c", "b"], ["p", "p", "q"])):
        demands = [[1, 4]] * (len(names) - 1) + [[1, 8]]
        tree = fo.Instance([[8, 64], [8, 64]], demands, servers=["A", "V"], users=names, queues=tree.queues, queue_of=queue_of)
        program = fo.formulate(tree, "drfh").with_limit("together", {(u, s): 1 for u in names[:-1] for s in tree.servers}, 4)
        allocation = fo.solve(program, exact=exact)
        assert allocation.tasks_per_user[-1] == pytest.approx(12)
        audit = fo.audit(allocation, ["sharing-incentive", "envy-freeness", "pareto"])
        assert audit.violated == []
        loose = fo.solve(tree, "drfh", exact=exact)
        assert fo.audit(replace(loose, tasks=allocation.tasks, exact=None), ["sharing-incentive"]).violated == ["sharing-incentive"]


def test_nothing_that_may_be_had() -> None:
    """A bound of 0 leaves a user nothing: it envies nobody for it, and no lie helps; also with weights per resource, and utilities."""
    per_resource = pool(weights=[[1, 2], [2, 1]])
    options: Any
    for instance, notion, options in (
        (pool(), "drfh", {}),
        (per_resource, "uniform", {}),
        (pool(), "max-min", {"utility": [[1.1, 2], [1, 1]]}),
    ):
        program = fo.formulate(instance, notion, **options).with_limit("none", {("a", "A"): 1, ("a", "V"): 1}, 0)
        for exact in (False, True):
            allocation = fo.solve(program, exact=exact)
            assert allocation.tasks_per_user[0] == 0
            assert fo.audit(allocation, effort=8)["strategy-proofness"].holds
            assert fo.explain(allocation, "b").sentences


def test_a_given_allocation_knows_of_no_rows() -> None:
    """What a notion allows is asked of its own answers; tasks that somebody gives are judged by the limits of the instance."""
    tasks = given_tasks(pool(), [[4, 4], [4, 4]], "rdm", Purse())
    assert fo.audit(tasks, ["pareto"])["pareto"].holds

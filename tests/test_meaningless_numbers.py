"""Numbers that the documentation calls meaningless move no answer: metamorphic tests over all notions, schedules and audits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import limited_instances

import fairopt as fo
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.strategy_proofness import _Search
from fairopt.instance.aggregation import merge
from fairopt.processes.crew import Crew

NOTIONS = [name for name in fo.NOTIONS if name not in ("drf", "bbf", "gfj")]
PROPERTIES = ["sharing-incentive", "envy-freeness", "pareto", "bottleneck-fairness", "population-monotonicity", "psdsf", "max-min"]


def lacking(instance: fo.Instance) -> np.ndarray:
    """Where a server lacks a resource that the user demands, (users, servers)."""
    return np.asarray(((instance.demands[:, None] > 0) & (instance.capacities[None] == 0)).any(axis=2))


@st.composite
def pairs_of_instances(draw: st.DrawFn, *, parallelism: bool = True) -> tuple[fo.Instance, fo.Instance]:
    """An instance, and the same one with other numbers wherever the documentation gives them no meaning.

    These are: rates, placement and utilities where a user cannot run; capacities and rates of rows with count 0; parallelism of as many
    servers as there are, or more; demands, tasks, rates and parallelism of users who may run nowhere. (Their weights count:
    the uniform slice is cut by the weights of all users.)
    """
    instance = draw(limited_instances(rates=True, max_users=4, max_servers=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, k, m = instance.n_users, instance.n_servers, instance.n_resources
    placement = np.ones((n, k), bool) if instance.placement is None else np.array(instance.placement)
    placement[rng.random(n) < 0.15] = False
    counts = np.where(rng.random(k) < 0.2, 0, instance.counts)
    if draw(st.booleans()):  # identical rows, which merge
        twin, other = rng.integers(0, k, 2)
        capacities = np.array(instance.capacities)
        capacities[twin] = capacities[other]
        placement[:, twin] = placement[:, other]
        instance = instance.replace(capacities=capacities)
    instance = instance.replace(eligibility=placement, counts=counts)
    nowhere = np.asarray(~placement.any(axis=1))
    impossible: np.ndarray = lacking(instance) | (counts == 0)
    if instance.rates_per_server is not None:
        impossible |= instance.rates_per_server == 0

    capacities, demands, tasks = np.array(instance.capacities), np.array(instance.demands), np.array(instance.tasks)
    capacities[counts == 0] = rng.uniform(0, 9, (int((counts == 0).sum()), m))
    demands[nowhere] = rng.uniform(0.1, 9, (int(nowhere.sum()), m)) * (rng.random((int(nowhere.sum()), m)) < 0.7)
    demands[nowhere, 0] += 0.1
    tasks[nowhere] = np.where(rng.random(int(nowhere.sum())) < 0.5, np.inf, 3.0)
    at_once = np.array(instance.parallelism)
    if parallelism:
        never = (at_once >= instance.eligibility @ counts) & (at_once >= 1)
        at_once[never] = (instance.eligibility @ counts)[never] + np.where(rng.random(int(never.sum())) < 0.5, np.inf, 1.5)
    changed_placement = np.where(impossible & ~nowhere[:, None], rng.random((n, k)) < 0.5, placement)
    changed = instance.replace(
        capacities=capacities, demands=demands, tasks=tasks, parallelism=at_once, eligibility=changed_placement, rates=None
    )
    if instance.rates_per_server is not None:
        meaningless: np.ndarray = lacking(instance) | (counts == 0) | nowhere[:, None]
        rates = np.where(meaningless, rng.uniform(0, 99, (n, k)), instance.rates_per_server)
        changed = changed.replace(rates=rates)
    assert np.array_equal(changed.eligibility, instance.eligibility)
    return instance, changed


def answer(ask: Any) -> Any:
    """The answer, or the kind of refusal."""
    try:
        return ask()
    except fo.FairoptError as error:
        return type(error).__name__


def same(first: Any, second: Any) -> None:
    """Equal up to rounding, or refused alike."""
    if isinstance(first, str) or isinstance(second, str):
        assert first == second
    else:
        np.testing.assert_allclose(second, first, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rate", [1.0, 9.0])
def test_tsf_counts_no_server_that_lacks_a_resource(rate: float) -> None:
    """gamma0 of "A" is 1 + 0, whatever rate is given where there is no gpu: x + y = 1 on the first server, and gamma0 of "B" is 2."""
    instance = fo.Instance([[4, 1], [4, 0]], [[1, 1], [1, 0]], rates=np.array([[1.0, rate], [1.0, 1.0]]), eligibility=[[1, 1], [1, 0]])
    assert instance.unconstrained_rates.tolist() == [[1, 0], [1, 1]]
    np.testing.assert_allclose(fo.solve(instance, "tsf").tasks_per_user, [1 / 3, 2 / 3])


def test_they_keep_no_rows_apart() -> None:
    """Rows merge if they differ only in a rate where a resource is missing, or in parallelism of all servers or more."""
    instance = fo.Instance([[4, 1], [4, 0], [4, 0]], [[1, 1], [1, 0]], rates=[[1, 2, 3], [1, 5, 5]])
    assert merge(instance).instance.n_servers == 2
    instance = fo.Instance([[4], [9]], [[1], [1], [1]], parallelism=[2, 3, np.inf])
    assert merge(instance).instance.n_users == 1
    instance = fo.Instance([[4], [4]], [[1], [2]], eligibility=[[1, 1], [0, 0]])
    assert merge(instance, np.array([[1.0, 1.0], [2.0, 3.0]])).instance.n_servers == 1


def test_no_lie_claims_a_server_without_the_resource() -> None:
    """Such a claim changes nothing, so it is not counted as a lie; one for a server that placement alone forbids is."""
    instance = fo.Instance([[4, 1], [4, 0], [4, 1]], [[1, 1], [1, 0]], eligibility=[[1, 0, 0], [1, 1, 1]])
    search = _Search(Case(fo.solve(instance, "tsf"), effort=200, seed=0, crew=Crew(), time_limit=None))
    claimed = [lie.servers.tolist() for lie in search.systematic(np.array([0])) if lie.servers is not None]
    assert claimed == [[True, False, True]]


@pytest.mark.parametrize(
    ("notion", "sharing"), [*((name, None) for name in NOTIONS), *((name, "tdm") for name in ("drfh", "tsf", "cdrf", "psdsf"))]
)
@given(both=pairs_of_instances())
@settings(max_examples=12)
def test_no_notion_reads_them(notion: str, sharing: Any, both: tuple[fo.Instance, fo.Instance]) -> None:
    """x[n] is the same."""
    first, second = (answer(lambda each=each: fo.solve(each, notion, sharing=sharing).tasks_per_user) for each in both)
    same(first, second)


@pytest.mark.parametrize("notion", ["max-min", "proportional"])
@given(both=pairs_of_instances(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_no_utility_is_read_where_a_user_may_not_run(notion: str, both: tuple[fo.Instance, fo.Instance], seed: int) -> None:
    """u[n,i] of an ineligible pair may be anything, in notions and in schedules."""
    rng = np.random.default_rng(seed)
    utility = rng.uniform(0.5, 2, both[0].eligibility.shape)
    other = np.where(both[0].eligibility, utility, rng.choice([-1.0, 0.0, 77.0], utility.shape))
    first, second = (
        answer(lambda e=e, u=u: fo.solve(e, notion, utility=u).tasks_per_user) for e, u in zip(both, (utility, other), strict=True)
    )
    same(first, second)
    if notion == "max-min":
        first, second = (
            answer(lambda e=e, u=u: fo.schedule(e, notion, utility=u).tasks) for e, u in zip(both, (utility, other), strict=True)
        )
        same(first, second)


@pytest.mark.parametrize("criterion", ["drfh", "tsf", "cdrf", "asset", "max-min", "psdsf", "rpsdsf"])
@given(
    both=pairs_of_instances(), placement=st.sampled_from(list(fo.PLACEMENTS)), ties=st.sampled_from(["index", "largest-demand", "random"])
)
@settings(max_examples=20)
def test_no_schedule_reads_them(criterion: str, placement: str, ties: Any, both: tuple[fo.Instance, fo.Instance]) -> None:
    """Every task lies where it lay."""
    parts = [each.replace(demands=np.maximum(each.demands, 0.1 * (each.demands > 0))) for each in both]
    first, second = (answer(lambda each=each: fo.schedule(each, criterion, placement=placement, ties=ties, seed=3).tasks) for each in parts)
    same(first, second)


@pytest.mark.parametrize("notion", ["tsf", "drfh", "cdrf"])
@given(both=pairs_of_instances(parallelism=False))
@settings(max_examples=15)
def test_no_audit_reads_them(notion: str, both: tuple[fo.Instance, fo.Instance]) -> None:
    """The same verdicts by the same number of tasks, promises and lies tried."""
    audits = [fo.audit(fo.solve(each, notion), [*PROPERTIES, "strategy-proofness"], effort=6) for each in both]
    for name, verdict in audits[0].items():
        other = audits[1][name]
        assert (verdict.holds, verdict.promised, verdict.searched) == (other.holds, other.promised, other.searched), name
        np.testing.assert_allclose(other.violation, verdict.violation, rtol=1e-5, atol=1e-7)


@given(both=pairs_of_instances())
@settings(max_examples=15)
def test_no_explanation_reads_them(both: tuple[fo.Instance, fo.Instance]) -> None:
    """The same sentences for every user who may run somewhere."""
    for n in np.flatnonzero(both[0].servable):
        first, second = (fo.explain(fo.solve(each, "tsf"), each.users[n]).sentences for each in both)
        assert first == second

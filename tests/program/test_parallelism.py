"""Limits on how many servers a user is on at once, from the constructor to the certificate."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import limited_instances

import fairopt as fo
from fairopt.analysis.measures import could_run_with, violations
from fairopt.analysis.rerun import given as given_tasks
from fairopt.certificate import allocation_excess
from fairopt.instance.aggregation import expand, merge
from fairopt.program.parallelism import tasks_within


def gpus(parallelism: tuple[float, ...] = (1.0, 2.0, np.inf)) -> fo.Instance:
    """Two kinds of accelerators, and three users with speeds of their own on them."""
    return fo.Instance(
        [[1], [1]],
        [[1], [1], [1]],
        rates=[[1, 4], [2, 3], [1, 1]],
        counts=[2, 1],
        parallelism=parallelism,
        users=["a", "b", "c"],
        servers=["slow", "fast"],
        resources=["gpu"],
    )


def test_rates_of_one_server() -> None:
    """Rho is what one server of a row holds, gamma counts[i] times that."""
    instance = fo.Instance([[9, 18], [2, 2]], [[1, 4], [3, 1]], counts=[3, 2])
    assert instance.rates_of_one.tolist() == [[4.5, 0.5], [3.0, 2 / 3]]
    assert np.allclose(instance.rates, instance.rates_of_one * [3, 2])


def test_alone_in_the_cluster() -> None:
    """The fastest server first: user a 4 on one; b 3 and one of 2; c all three."""
    instance = gpus()
    assert tasks_within(instance, instance.rates).tolist() == [4.0, 5.0, 3.0]
    assert instance.limited.tolist() == [True, True, False]


def test_row_of_the_program() -> None:
    """x / rho, summed over the servers of a user; no row where the servers themselves are no more."""
    text = fo.formulate(gpus((1.0, 3.0, np.inf)), "tsf").to_text()
    assert "servers of a : x[a, slow] + 0.25 x[a, fast] <= 1" in text
    assert "servers of b" not in text
    assert "servers of c" not in text


def test_bad_values() -> None:
    """Zero, negative numbers and NaN are refused, with the user."""
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(fo.InvalidInstance, match=r'parallelism of "b" is .*; it must be > 0 servers, or inf for no limit'):
            gpus((1.0, bad, 1.0))
    with pytest.raises(fo.InvalidInstance, match=r"shape of parallelism is \(2,\), expected \(3,\): one per user, in servers"):
        gpus((1.0, 2.0))


@pytest.mark.parametrize("name", ["cluster.yaml", "cluster.json", "tables"])
def test_files(tmp_path: Path, name: str) -> None:
    """Written and read again it is the same instance."""
    instance = gpus()
    fo.save(instance, tmp_path / name)
    again = fo.load(tmp_path / name)
    assert again == instance
    assert again.parallelism.tolist() == [1.0, 2.0, np.inf]
    assert again != instance.replace(parallelism=None)


def test_bad_file(tmp_path: Path) -> None:
    """The message names the line."""
    (tmp_path / "c.yaml").write_text("servers:\n- {name: s, capacity: {cpu: 4}}\nusers:\n- name: a\n  demand: {cpu: 1}\n  parallelism: 0\n")
    with pytest.raises(fo.InvalidInstance, match=r"line 6: .*parallelism.*> 0"):
        fo.load(tmp_path / "c.yaml")


def test_repr_says_so() -> None:
    """Two of the three users are limited."""
    assert "2 users with limited parallelism" in repr(gpus())


def test_merging() -> None:
    """Users of the same parallelism per weight become one with the sum; others stay apart."""
    instance = fo.Instance([[4], [4], [2]], [[1]] * 3, weights=[1, 2, 1], parallelism=[0.5, 1, 2])
    merged = merge(instance).instance
    assert merged.parallelism.tolist() == [1.5, 2.0]
    assert merged.counts.tolist() == [2, 1]
    assert expand(instance.replace(counts=[2, 1, 1]))[0].parallelism.tolist() == [0.5, 1, 2]


def test_pool() -> None:
    """One server of three times the capacity: the part of it that so many servers are."""
    instance = fo.Instance([[4, 8]], [[1, 1], [1, 8]], counts=[3], parallelism=[1.5, np.inf])
    assert instance.pooled().parallelism.tolist() == [0.5, np.inf]


@pytest.mark.parametrize("notion", ["psdsf", "bbf"])
def test_refused(notion: str) -> None:
    """Notions without a meaning for it say so, where it matters only."""
    pool = fo.Instance([[4]], [[1], [2]], parallelism=[0.5, 1])
    with pytest.raises(fo.Unsupported, match="parallelism"):
        fo.solve(pool, notion)
    assert fo.solve(pool.replace(parallelism=[1, 2]), notion).tasks_per_user.sum() > 0


def test_refused_by_schedules() -> None:
    """Nothing ignores the limit."""
    instance = gpus()
    trace = fo.Trace(["a"], [0.0], [1], [[1.0]], [10.0], resources=["gpu"])
    calls: tuple[Callable[[], object], ...] = (
        lambda: fo.schedule(instance, "tsf"),
        lambda: fo.precomputed_drf(fo.Instance([[4]], [[1]], parallelism=[0.5])),
        lambda: fo.simulate(trace, instance, "tsf"),
    )
    for call in calls:
        with pytest.raises(fo.Unsupported, match=r"parallelism|servers a user is on"):
            call()


NOTIONS = [name for name in fo.NOTIONS if name not in ("psdsf", "bbf", "drf", "max-min")]  # of any cluster, without further data
UNIQUE = [name for name in NOTIONS if name not in ("efficiency", "per-server-drf")]  # in x[n], whatever the order of rows


@pytest.mark.parametrize("notion", NOTIONS)
@given(instance=limited_instances(rates=True), large=st.sampled_from([1.0, 1.5, np.inf]))
@settings(max_examples=15)
def test_a_limit_that_is_no_limit_changes_nothing(notion: str, instance: fo.Instance, large: float) -> None:
    """As many servers as there are, or more, are the instance without it, with the same program."""
    free = instance.replace(parallelism=None)
    many = instance.replace(parallelism=np.full(instance.n_users, large * instance.counts.sum()))
    assert fo.formulate(many, notion).to_text() == fo.formulate(free, notion).to_text()
    np.testing.assert_array_equal(fo.solve(many, notion).tasks, fo.solve(free, notion).tasks)


@pytest.mark.parametrize("notion", NOTIONS)
@given(instance=limited_instances(rates=True))
@settings(max_examples=25)
def test_limits_are_kept(notion: str, instance: fo.Instance) -> None:
    """Counted with loops: sum over i of x[n,i] / (tasks of n on one server of i) <= P[n]; and the certificate holds."""
    allocation = fo.solve(instance, notion)
    assert allocation.certificate.worst <= 1e-8
    for n in range(instance.n_users):
        servers = 0.0
        for i in range(instance.n_servers):
            if allocation.tasks[n, i] > 0:
                if instance.rates_per_server is not None:
                    one = instance.rates_per_server[n, i]
                else:
                    one = min(c / d for c, d in zip(instance.capacities[i], instance.demands[n], strict=True) if d > 0)
                servers += allocation.tasks[n, i] / one
        assert servers <= instance.parallelism[n] * (1 + 1e-8)


@pytest.mark.parametrize("notion", ["drfh", "tsf", "asset"])
@given(instance=limited_instances(rates=True), more=st.floats(1.0, 4.0))
@settings(max_examples=25)
def test_more_parallelism_is_no_less_fair(notion: str, instance: fo.Instance, more: float) -> None:
    """What was feasible stays so, and shares are measured as before: sorted, they are larger where they first differ."""
    before = np.sort(fo.solve(instance, notion).shares[instance.servable])
    after = np.sort(fo.solve(instance.replace(parallelism=instance.parallelism * more), notion).shares[instance.servable])
    different = np.flatnonzero(np.abs(after - before) > 1e-7 * np.maximum(after, before))
    assert not different.size or after[different[0]] > before[different[0]]


@given(instance=limited_instances(rates=True), more=st.floats(1.0, 4.0))
@settings(max_examples=25)
def test_more_parallelism_is_no_less_in_all(instance: fo.Instance, more: float) -> None:
    """The largest total, too."""
    larger = fo.solve(instance.replace(parallelism=instance.parallelism * more), "efficiency")
    assert float(instance.weights @ larger.tasks_per_user) >= float(instance.weights @ fo.solve(instance, "efficiency").tasks_per_user) * (
        1 - 1e-8
    )


@pytest.mark.parametrize("notion", UNIQUE)
@given(instance=limited_instances(rates=True))
@settings(max_examples=15)
def test_splitting_a_row_changes_nothing(notion: str, instance: fo.Instance) -> None:
    """A row of k servers, and k rows of one: rho is that of one server in both."""
    whole, row = fo.solve(instance, notion), expand(instance)[1]
    split = fo.solve(expand(instance)[0], notion)
    assert row.size == instance.counts.sum()
    np.testing.assert_allclose(split.tasks_per_user, whole.tasks_per_user, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("notion", ["drfh", "tsf", "asset", "proportional", "uniform"])
@given(instance=limited_instances(rates=True))
@settings(max_examples=15)
def test_halves_of_a_user_are_the_user(notion: str, instance: fo.Instance) -> None:
    """Two users of half the weight, half the tasks and half the parallelism have half each; merging is how they are solved."""
    n = instance.n_users
    two = np.concatenate([np.arange(n), np.arange(n)])
    halves = fo.Instance(
        instance.capacities,
        instance.demands[two],
        weights=instance.weights[two] / 2,
        eligibility=instance.eligibility[two],
        counts=instance.counts,
        tasks=instance.tasks[two] / 2,
        rates=None if instance.rates_per_server is None else instance.rates_per_server[two],
        parallelism=instance.parallelism[two] / 2,
    )
    tasks = fo.solve(halves, notion).tasks_per_user
    expected = fo.solve(instance, notion).tasks_per_user
    np.testing.assert_allclose(tasks[:n] + tasks[n:], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(tasks[:n], tasks[n:], rtol=1e-6, atol=1e-9)


def test_cdrf_measures_by_what_runs_alone_within_the_limit() -> None:
    """One server of 4 and one of 2: a user on one server runs 4 alone, a free one 6; DRF of the two would be 3 and 3.

    x1 = 4 t, x2 = 6 t; capacity 6 gives t = 0.6, and a limit of one server holds for 2.4 tasks.
    """
    instance = fo.Instance([[4], [2]], [[1], [1]], parallelism=[1, np.inf])
    np.testing.assert_allclose(fo.solve(instance, "cdrf").tasks_per_user, [2.4, 3.6], rtol=1e-9)
    np.testing.assert_allclose(fo.solve(instance, "tsf").tasks_per_user, [3, 3], rtol=1e-9)
    assert "the 4 tasks that it could run alone" in str(fo.explain(fo.solve(instance, "cdrf"), "user-1"))


def test_identical_users_of_cdrf_are_not_merged() -> None:
    """Two who run 7 alone, each on one of two servers, of 7 and 5: merged they would seem to run 12, and not 14."""
    instance = fo.Instance([[7], [5]], [[2], [1], [1]], parallelism=[np.inf, 1, 1])
    # x = t (6, 7, 7), and 2 x1 + x2 + x3 = 12: t = 12 / 26.
    np.testing.assert_allclose(fo.solve(instance, "cdrf").tasks_per_user, np.array([6, 7, 7]) * 12 / 26, rtol=1e-9)


# What looks at allocations ---------------------------------------------------------------------------------------------------------


def test_explanation_of_a_limited_user() -> None:
    """It says that the limit stops it, what more of it would give, and that weight would not."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[2, 2], [1, 1]], parallelism=[1, np.inf], users=["a", "b"])
    explanation = fo.explain(fo.solve(instance, "efficiency"), "a")
    assert "It is on 1 server at once, all that its parallelism allows." in explanation.sentences
    assert explanation.blockers == ()
    gain = {each.kind: each.by_solving for each in explanation.gains}
    assert gain["parallelism"] == pytest.approx(2.0)
    assert gain["weight"] == 0.0


def test_explanation_where_a_faster_server_would_help() -> None:
    """Both are on one server at once, and both would rather be on the fast one."""
    instance = fo.Instance([[1], [1]], [[1], [1]], rates=[[1, 4], [1, 4]], parallelism=[1, 1], users=["a", "b"], servers=["slow", "fast"])
    explanation = fo.explain(fo.solve(instance, "tsf"), "a")
    assert any("more time on fast, where it is faster, would help" in sentence for sentence in explanation.sentences)
    assert [each.server for each in explanation.blockers] == ["fast"]


def test_envy_is_of_what_can_be_used() -> None:
    """b holds two servers; a, who can be on one, could run 4 tasks with them and not 8. It has 0."""
    instance = fo.Instance([[4]], [[1], [1]], counts=[2], parallelism=[1, np.inf])
    held = given_tasks(instance, np.array([[0.0], [8.0]]), "rdm")
    assert could_run_with(held, 0).tolist() == [0.0, 4.0]
    assert could_run_with(held, 1).tolist() == [0.0, 8.0]
    verdicts = fo.audit(held)
    assert verdicts["envy-freeness"].violation == pytest.approx(4.0)
    # Its slice is a half of each of two servers, 4 tasks on one server's worth.
    assert verdicts["sharing-incentive"].violation == pytest.approx(4.0)


def test_what_exceeds_the_limit_is_said() -> None:
    """An allocation of somebody else's, with a user on two servers who can be on one."""
    instance = fo.Instance([[4]], [[1]], counts=[2], parallelism=[1], users=["a"])
    tasks = np.array([[8.0]])
    assert allocation_excess(instance, tasks, "rdm") == pytest.approx(1.0)
    assert [str(each) for each in violations(instance, tasks, "rdm", 1e-6)] == ["servers of a at once: 2, allowed 1"]


def test_improvement_within_the_limit() -> None:
    """User a has one of two free servers: that is Pareto optimal if it can be on one, and not if it can be on two."""
    instance = fo.Instance([[4]], [[1]], counts=[2], parallelism=[1])
    tasks = np.array([[4.0]])
    assert fo.audit(given_tasks(instance, tasks, "rdm"))["pareto"].holds
    free = fo.audit(given_tasks(instance.replace(parallelism=[2]), tasks, "rdm"))["pareto"]
    assert not free.holds
    assert free.violation == pytest.approx(4.0)


@given(instance=limited_instances(max_users=3, max_servers=3, rates=True))
@settings(max_examples=8)
def test_exact_allocations_pass_their_audit(instance: fo.Instance) -> None:
    """Pareto optimality and the max-min condition of a leximin; no search, no promise of theory is violated."""
    for notion in ("tsf", "cdrf", "uniform"):
        allocation = fo.solve(instance, notion)
        for name, verdict in fo.audit(allocation, properties=["pareto", "max-min", "envy-freeness", "sharing-incentive"]).items():
            if name in ("pareto", "max-min") and notion != "uniform":
                assert verdict.holds is not False, (notion, verdict)
            if name in ("envy-freeness", "sharing-incentive") and notion == "uniform":
                assert verdict.holds, (notion, verdict)


def test_compare_frontier_report(tmp_path: Path) -> None:
    """They go on without what refuses the instance, and say why."""
    instance = gpus()
    table = fo.compare(instance, notions=["tsf", "psdsf", "proportional"], schedules=["tsf:first-fit"])
    messages = {row.name: row.message for row in table.rows if row.allocation is None}
    assert set(messages) == {"psdsf", "tsf:first-fit"}
    assert all("limited" in message for message in messages.values())
    frontier = fo.frontier(instance)
    assert frontier.gap <= 1e-8
    assert frontier.vertices[:, 0].max() == pytest.approx(float(fo.solve(instance, "efficiency").tasks_per_user.sum()))
    page = tmp_path / "report.html"
    fo.report(instance, page, notions=["tsf"])
    assert "at once" in page.read_text()

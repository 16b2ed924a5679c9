"""What an explanation says, against numbers worked out by hand, independent solves, and the theorems that it quotes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import instances
from typer.testing import CliRunner

import fairopt as fo
from fairopt.analysis import rerun
from fairopt.analysis.explanation.room import Room
from fairopt.cli import app
from fairopt.instance import FloatArray
from fairopt.models.drf import DRF

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> fo.Instance:
    """Load one of the example files."""
    return fo.load(EXAMPLES / name)


def gain(explanation: fo.Explanation, change: str) -> Any:
    """Return a gain by price and by solving, None for neither."""
    (found,) = [each for each in explanation.gains if each.change == change]
    return found.by_price, found.by_solving


# Numbers from papers, worked out by hand ------------------------------------------------------------------------------------------


def test_drf_by_hand() -> None:
    """c = (9, 18), d = (1, 4), (3, 1): level 2/3, cpu is full.

    With 10 cpu a task of B is worth 3/10: x = (9/2 t, 10/3 t), cpu 9/2 t + 10 t = 10, t = 20/29. With weight 2 x = (9 t, 3 t): cpu alone
    would allow 18 t = 9, t = 1/2, which is the bound by price; memory allows 39 t = 18.
    """
    explanation = fo.explain(fo.solve(example("drf.yaml"), "drf"), "A")
    (blocker,) = explanation.blockers
    assert (blocker.server, blocker.resource, blocker.capacity, blocker.bottleneck) == ("server", "cpu", 9.0, True)
    assert blocker.used == pytest.approx(9.0)
    assert blocker.own == pytest.approx(3.0)
    assert [name for name, _ in blocker.holders] == ["B"]
    assert blocker.holders[0][1] == pytest.approx(6.0)
    assert gain(explanation, "+1 cpu on server") == (pytest.approx(90 / 29 - 3), pytest.approx(90 / 29 - 3))
    assert gain(explanation, "weight 2 instead of 1") == (pytest.approx(4.5 - 3), pytest.approx(162 / 39 - 3))


def test_psdsf_figure_1_by_hand() -> None:
    """Users 1 and 2 halve the memory of server 1, 12 / 2 tasks; 13 makes 3.25 each; by weight 2 : 1 they have 4 and 2."""
    explanation = fo.explain(fo.solve(example("psdsf-figure-1.yaml"), "psdsf"), "user-1", against="user-3")
    assert [(each.server, each.resource) for each in explanation.blockers] == [("server-1", "memory")]
    assert gain(explanation, "+1 memory on server-1") == (None, pytest.approx(0.25 / 2))
    assert gain(explanation, "weight 2 instead of 1") == (None, pytest.approx(1.0))
    assert explanation.against == "user-3"


def test_bbf_by_hand() -> None:
    """Entitlements .5, .3 and .2 and x = 1/2 each: both resources are full, and a task of the first user fills half of either."""
    explanation = fo.explain(fo.solve(example("bbf-section-5.yaml"), "bbf"), "user-1", resolves=0)
    assert {(each.resource, round(each.own, 6), each.holders[0][0]) for each in explanation.blockers} == {
        ("resource-1", 0.5, "user-3"),
        ("resource-2", 0.5, "user-2"),
    }
    assert any("its entitlement: all that it asks for, or 50 % of some resource that is used up" in line for line in explanation.sentences)


def highest_common_level(instance: fo.Instance) -> FloatArray:
    """Return tasks per user of the one LP of DRFH (all eligible, demands > 0): max g, sum_i w[n] x[n,i] = phi[n] g, written here anew."""
    n, k, m = instance.n_users, instance.n_servers, instance.n_resources
    worth = (instance.demands / (instance.counts @ instance.capacities)).max(axis=1) / instance.weights
    equal = np.zeros((n, n * k + 1))
    limits = np.zeros((k * m, n * k + 1))
    for u in range(n):
        equal[u, u * k : (u + 1) * k] = worth[u]
        equal[u, -1] = -1.0
        for i in range(k):
            limits[i * m : (i + 1) * m, u * k + i] = instance.demands[u]
    bounds = (instance.capacities * instance.counts[:, None]).ravel()
    objective = np.append(np.zeros(n * k), -1.0)
    found = linprog(objective, A_ub=limits, b_ub=bounds, A_eq=equal, b_eq=np.zeros(n), bounds=(0, None))
    assert found.x is not None
    levels: FloatArray = found.x[-1] / worth
    return levels


@pytest.mark.parametrize("name", ["drfh-figure-1.yaml", "kesidis.yaml"])
def test_what_is_solved_is_what_an_independent_program_gives(name: str) -> None:
    """Every change of capacity and weight of two papers' examples, by scipy."""
    instance = example(name)
    before = highest_common_level(instance)
    for n, user in enumerate(instance.users):
        explanation = fo.explain(fo.solve(instance, "drfh"), user, resolves=20)
        assert len(explanation.gains) > 1
        for each in explanation.gains:
            if each.kind == "weight":
                weights = instance.weights.copy()
                weights[n] += 1
                changed = instance.replace(weights=weights)
            else:
                resource, _, server = each.change.removeprefix("+1 ").partition(" on ")
                capacities = instance.capacities.copy()
                capacities[instance.servers.index(server), instance.resources.index(resource)] += 1
                changed = instance.replace(capacities=capacities)
            assert each.by_solving == pytest.approx(highest_common_level(changed)[n] - before[n], rel=1e-6)


# Every way to change an instance, against one that is built by hand -----------------------------------------------------------------


def test_one_server_of_a_row_is_changed() -> None:
    """A row of six servers: one of them has one gpu more, the others do not."""
    instance = example("gpu-lab")
    i, r = instance.servers.index("rack-v100"), instance.resources.index("gpu")
    allocation = fo.solve(instance, "tsf")
    found = fo.explain(allocation, "vision", resolves=30)
    capacities = np.vstack([instance.capacities, instance.capacities[i]])
    counts = np.append(instance.counts, 1.0)
    capacities[-1, r] += 1
    counts[i] -= 1
    assert instance.placement is not None
    changed = fo.Instance(
        capacities,
        instance.demands,
        weights=instance.weights,
        eligibility=np.column_stack([instance.placement, instance.placement[:, i]]),
        counts=counts,
        tasks=instance.tasks,
    )
    n = instance.index("vision")
    expected = fo.solve(changed, "tsf").tasks_per_user[n] - allocation.tasks_per_user[n]
    assert gain(found, "+1 gpu on one server of rack-v100")[1] == pytest.approx(expected, rel=1e-6)


def test_a_constraint_is_lifted() -> None:
    """Bob may run on the first server only, where alice is; the second is alice's. Without that, 8 cpu for two equal users."""
    instance = fo.Instance(
        [[4], [4]], [[1], [1]], eligibility=[[True, True], [True, False]], users=["alice", "bob"], servers=["s", "t"], resources=["cpu"]
    )
    allocation = fo.solve(instance.replace(demands=[[1], [1]], weights=[1, 3]), "max-min")
    np.testing.assert_allclose(allocation.tasks_per_user, [4.0, 4.0])
    assert gain(fo.explain(allocation, "bob"), "may run on t") == (pytest.approx(2.0), pytest.approx(2.0))


def test_a_unit_smaller_than_a_server() -> None:
    """Where a server has less than a unit, a tenth of it is asked about."""
    explanation = fo.explain(fo.solve(fo.Instance([[0.5]], [[0.1], [0.1]], servers=["s"], resources=["cpu"]), "drfh"), "user-1")
    assert gain(explanation, "+0.05 cpu on s")[1] == pytest.approx(0.25)


def test_time_is_asked_about_in_servers() -> None:
    """Two users share the time of two servers; with a third one each has half of it more."""
    allocation = fo.solve(fo.Instance([[4]], [[1], [1]], counts=[2], servers=["s"]), "psdsf", sharing="tdm")
    explanation = fo.explain(allocation, "user-1")
    assert gain(explanation, "one more server like s")[1] == pytest.approx(2.0)
    assert [each.resource for each in explanation.blockers] == ["time"]
    assert explanation.blockers[0].own == pytest.approx(0.5)


def test_rates_are_time() -> None:
    """An instance with rates of its own."""
    allocation = fo.solve(fo.Instance([[1]], [[1], [1]], rates=[[6], [2]], servers=["s"]), "psdsf")
    assert gain(fo.explain(allocation, "user-1"), "one more server like s")[1] == pytest.approx(3.0)


def test_options_are_kept_when_a_row_is_split() -> None:
    """The utility of a server row counts for its larger server too."""
    instance = fo.Instance([[4], [9]], [[1], [1]], counts=[3, 1], servers=["s", "t"], resources=["cpu"])
    utility = np.array([[1.0, 1.0], [2.0, 2.0]])
    explanation = fo.explain(fo.solve(instance, "max-min", utility=utility), "user-1")
    assert gain(explanation, "+1 cpu on one server of s") == (pytest.approx(2 / 3), pytest.approx(2 / 3))


# Prices ---------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["drfh", "tsf", "asset"]))
def test_prices_bound_what_solving_gives_where_all_stop_together(seed: int, notion: str) -> None:
    """Positive demands, no constraints, no limits: one level, and all that a user can gain is that it rises."""
    rng = np.random.default_rng(seed)
    n, k, m = rng.integers(2, 5), rng.integers(1, 4), rng.integers(1, 4)
    capacities, demands = rng.uniform(1, 10, (k, m)), rng.uniform(0.1, 2, (n, m))
    instance = fo.Instance(capacities, demands, weights=rng.uniform(0.5, 3, n), counts=rng.integers(1, 4, k))
    allocation = fo.solve(instance, notion)
    explanation = fo.explain(allocation, "user-1", resolves=4)
    solved = [each for each in explanation.gains if each.by_solving is not None]
    assert solved
    for each in solved:
        assert each.by_price is not None
        assert each.by_solving is not None
        assert each.by_price >= each.by_solving - 1e-6 * allocation.tasks_per_user[0]


@settings(max_examples=25)
@given(instances())
def test_prices_bound_the_lowest_level_of_all(instance: fo.Instance) -> None:
    """With constraints a user may gain more than its level, as the change frees it of others; the lowest level cannot.

    The worth of a task is fixed here (it is 1), so that more capacity changes nothing else.
    """
    instance = instance.replace(counts=np.ones(instance.n_servers))
    allocation = fo.solve(instance, "max-min")
    if not allocation.levels:
        return
    user = allocation.levels[0].users[0]
    n = instance.index(user)
    rising = instance.servable & (allocation.shares >= allocation.levels[0].value * (1 - 1e-9))  # below are only those with all their tasks
    for each in fo.explain(allocation, user, resolves=0).gains:
        if each.kind != "capacity" or each.by_price is None:
            continue
        amount, resource, _, server = each.change.split(" ")
        capacities = instance.capacities.copy()
        at = instance.servers.index(server), instance.resources.index(resource)
        capacities[at] += 1.0 if capacities[at] >= 1 else capacities[at] / 10
        after = fo.solve(instance.replace(capacities=capacities), "max-min")
        bound = (allocation.tasks_per_user[n] + each.by_price) / instance.weights[n]
        assert after.shares[rising].min() <= bound * (1 + 1e-6)
        assert float(amount) > 0


def test_the_price_of_an_upper_level() -> None:
    """A stops at 2 on server s, B and C at 3 on t, which one more unit of t lifts by a half."""
    instance = fo.Instance(
        [[2], [6]], [[1]] * 3, eligibility=[[1, 0], [0, 1], [0, 1]], users=["A", "B", "C"], servers=["s", "t"], resources=["cpu"]
    )
    explanation = fo.explain(fo.solve(instance, "max-min"), "B", resolves=9)
    assert gain(explanation, "+1 cpu on t") == (pytest.approx(0.5), pytest.approx(0.5))
    assert "Its share is 3; C has the same share; 1 user has less and nobody has more." in explanation.sentences


def test_a_user_gains_more_than_its_level() -> None:
    """Why prices bound levels and not users: A and B share two cpus, and A needs the only disk too.

    Both stop at 1. One more cpu lifts the level by nothing, as the disk stops A, and B has it all.
    """
    instance = fo.Instance([[2, 1]], [[1, 1], [1, 0]], users=["A", "B"], servers=["s"], resources=["cpu", "disk"])
    price, solved = gain(fo.explain(fo.solve(instance, "max-min"), "B"), "+1 cpu on s")
    assert solved == pytest.approx(1.0)
    assert price is None or price <= 0.5 + 1e-9


# What stops a user ------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(instances(), st.sampled_from(["drfh", "cdrf", "tsf", "asset", "max-min", "psdsf"]))
def test_everybody_has_a_bottleneck_wherever_it_may_run(instance: fo.Instance, notion: str) -> None:
    """The theorem of PS-DSF, and the exchange argument for leximins; so that "what stops it" is never empty."""
    allocation = fo.solve(instance, notion)
    for n in range(instance.n_users):
        if allocation.complete[n]:
            continue
        room = Room(allocation, n)
        stopped = {i for i, r in room.cells if room.bottleneck(i, r)}
        assert stopped == set(np.flatnonzero(instance.eligibility[n]).tolist())
        assert room.open_rows == []


def test_what_is_full_but_stops_nobody() -> None:
    """Simulation, who has more, fills the cpu of the servers where language stops for want of gpus."""
    blockers = fo.explain(fo.solve(example("gpu-lab"), "drfh"), "language", resolves=0).blockers
    assert {each.resource for each in blockers if each.bottleneck} == {"gpu"}
    assert "simulation" in {name for each in blockers if not each.bottleneck for name, _ in each.holders}


def test_holders_are_recomputed_from_the_tasks() -> None:
    """Parts of a row add up to what is in use."""
    instance = example("gpu-lab")
    allocation = fo.solve(instance, "psdsf")
    for each in fo.explain(allocation, "speech", resolves=0).blockers:
        i, r = instance.servers.index(each.server), instance.resources.index(each.resource)
        held = allocation.tasks[:, i] * instance.demands[:, r]
        assert each.capacity == pytest.approx(instance.counts[i] * instance.capacities[i, r])
        assert each.used == pytest.approx(held.sum())
        assert each.own == pytest.approx(held[instance.index("speech")])
        largest = sorted((value for n, value in enumerate(held) if instance.users[n] != "speech" and value > 0), reverse=True)[:3]
        assert [amount for _, amount in each.holders] == pytest.approx(largest)


# How it reads ---------------------------------------------------------------------------------------------------------------------


def test_sentences_of_an_exact_allocation() -> None:
    """The example of dominant resource fairness."""
    assert str(fo.explain(fo.solve(example("drf.yaml"), "drf"), "A")) == "\n".join(
        [
            "A runs 3 tasks in the exact allocation of drf, on server.",
            "It is measured by its share of the server: a task takes 22.2 % of the memory, its dominant resource (11.1 % of the cpu).",
            "Its share is 66.7 %; B has the same share; nobody has less or more.",
            "Bottleneck: cpu on server is full.",
            "Who has that cpu: B 66.7 %, A itself 33.3 %.",
            "What would help: +1 cpu on server would give it 0.103 tasks more (+3.45 %).",
            "Weight 2 instead of 1 would give it 1.15 tasks more (+38.5 %); up to 1.5 by its price.",
            "B has 2 tasks. With what B holds, A could run 0.5 tasks, fewer than its 3: nothing to envy.",
        ]
    )


def test_sentences_with_constraints_weights_and_levels() -> None:
    """The lab: some servers only, a weight, others at the same level, rows of several servers."""
    explanation = fo.explain(fo.solve(example("gpu-lab"), "drfh"), "vision", against="language")
    assert explanation.sentences[1:3] == (
        "It is measured by its share of the whole cluster: a task takes 4.17 % of the gpu, its dominant resource "
        "(1.55 % of the cpu and 1.39 % of the memory).",
        "Its share is 20 %, which is 10 % for each unit of its weight 2; language, speech, robotics and 2 more have the same share for "
        "their weight; nobody has less and 2 users have more.",
    )
    stops, rows = explanation.sentences[3].split(" on ")[:-1], explanation.sentences[3].split(" on ")[-1]
    assert " on ".join(stops) == "It may run on 3 of 6 rows of servers. Bottleneck there: gpu"
    assert {*rows.removesuffix(" is full.").replace(" and ", ", ").split(", ")} == {
        "rack-v100",
        "dgx",
        "old-dgx",
    }  # most first of what is its own there
    assert explanation.sentences[4] == "Who has that gpu: language 45 %, robotics 15 %, speech 10 %, vision itself 30 %."
    assert explanation.sentences[5:7] == (
        "What would help: +1 gpu on one server of rack-v100 would give it 0.05 tasks more (+1.04 %); "
        "4 other changes of this kind would give as much.",
        "Weight 3 instead of 2 would give it 1.75 tasks more (+36.4 %).",
    )
    assert "With what language holds, times 0.667 for the weights, vision could run 4.8 tasks, as many as it" in explanation.sentences[7]


def test_sentences_of_a_schedule() -> None:
    """Kesidis et al.: best-fit DRFH gives 21 tasks each, the exact allocation 21.67."""
    explanation = fo.explain(fo.schedule(example("kesidis.yaml"), "drfh", placement="best-fit"), "framework-1", resolves=0)
    assert explanation.sentences == (
        "framework-1 runs 21 tasks in the greedy schedule drfh:best-fit: 19 on server-1 and 2 on server-2.",
        "It is measured by its share of the whole cluster: a task takes 3.85 % of the resource-1, its dominant resource "
        "(0.769 % of the resource-2).",
        "Its share is 80.8 %; nobody has a smaller one or a larger one.",
        "Bottleneck: resource-1 on server-1 and server-2 has no room for another task.",
        "Who has that resource-1: framework-2 16.2 %, framework-1 itself 80.8 %.",
        "The exact allocation of drfh, of divisible tasks, would give it 21.7 instead of 21.",
        "framework-2 has 21 tasks. With what framework-2 holds, framework-1 could run 4.2 tasks, fewer than its 21: nothing to envy.",
    )


def test_a_few_sentences_for_every_notion_and_user() -> None:
    """About ten, none of them empty, each ends like one."""
    instance = example("gpu-lab")
    for notion in ("drfh", "psdsf", "uniform", "proportional", "efficiency"):
        allocation = fo.solve(instance, notion)
        for user in instance.users:
            told = fo.explain(allocation, user, resolves=0).sentences
            assert 3 <= len(told) <= 11
            assert all(line[0] != " " and line.endswith(".") and "  " not in line for line in told)


def test_the_slice_stops_nobody_else() -> None:
    """Uniform: memory is full because the slices are, and that is not what stops anybody."""
    told = str(fo.explain(fo.solve(example("psdsf-figure-1.yaml"), "uniform"), "user-1"))
    assert "Bottleneck: its own slice of server-1 is full" in told
    assert "left of memory" not in told


def test_prices_that_do_not_pay_are_not_shown() -> None:
    """Money is spoken of only where everybody runs where it is cheapest: what prices of capacity alone prove."""
    told = str(fo.explain(fo.solve(example("psdsf-figure-1.yaml"), "proportional"), "user-1"))
    assert "At the prices that prove this optimum it pays 100 % for memory on server-1." in told


def test_a_notion_of_your_own() -> None:
    """The default of `describe_measure` says what a task is worth."""

    class Cpu(fo.ShareNotion):
        name, title, source = "cpu-only", "Share of the first resource", "folklore"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            share: FloatArray = instance.demands[:, 0] / instance.total_capacity[0]
            return share

    told = fo.explain(fo.solve(example("drf.yaml"), Cpu), "A").sentences
    assert told[1] == "It is measured by the shares of its tasks: each counts 0.111."


def test_a_notion_that_overrides_yardstick_is_heard() -> None:
    """`describe_measure` was called `yardstick` once; a notion that overrides the former name says what it said."""

    class Cpu(fo.ShareNotion):
        name, title, source = "cpu-only", "Share of the first resource", "folklore"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            share: FloatArray = instance.demands[:, 0] / instance.total_capacity[0]
            return share

        def yardstick(self, instance: fo.Instance, user: int) -> str:
            return "CPU alone"

    assert fo.explain(fo.solve(example("drf.yaml"), Cpu), "A").sentences[1] == "It is measured by CPU alone."


def test_an_override_of_the_former_name_may_call_what_it_overrides() -> None:
    """``super().yardstick()`` is what the base class says under either name, through a chain of classes that use both."""

    class Old(DRF):
        def yardstick(self, instance: fo.Instance, user: int) -> str:
            return f"old({super().yardstick(instance, user)})"

    class New(Old):
        def describe_measure(self, instance: fo.Instance, user: int) -> str:
            return f"new({super().describe_measure(instance, user)})"

    class Older(New):
        def yardstick(self, instance: fo.Instance, user: int) -> str:
            return f"older({super().yardstick(instance, user)})"

    instance = example("drf.yaml")
    base = DRF().describe_measure(instance, 0)
    assert Older().describe_measure(instance, 0) == Older().yardstick(instance, 0) == f"older(new(old({base})))"
    assert New().yardstick(instance, 0) == f"new(old({base}))"


# Users with nothing, odd labels, allocations of all kinds ---------------------------------------------------------------------------

ODD = fo.Instance(
    [[4, 8], [4, 0]],
    [[1, 1], [1, 1], [0, 0], [1, 0], [1, 1]],
    eligibility=[[1, 1], [0, 1], [1, 1], [1, 1], [0, 0]],
    tasks=[np.inf, np.inf, 5, 0, np.inf],
    users=["alice", "gpu less", "[red]zero", "none left", "barré"],
    servers=["big [b]", "small"],
    resources=["cpu", "gpu"],
)


@pytest.mark.parametrize(
    ("user", "sentences"),
    [
        (
            "gpu less",
            (
                '"gpu less" gets nothing: there is no server where it may run.',
                "Its tasks need gpu, and small lacks it.",
                'Its tasks would fit on "big [b]", where its constraints do not let it run.',
                'If it may run on "big [b]", it would have 2 tasks.',
            ),
        ),
        ("[red]zero", ('A task of "[red]zero" demands nothing, so all its 5 tasks fit, whatever others have.',)),
        ("none left", ('"none left" gets nothing because it has no tasks to run.',)),
    ],
)
def test_users_with_nothing(user: str, sentences: tuple[str, ...]) -> None:
    """Which constraint, which missing resource; no tasks; no demand."""
    assert fo.explain(fo.solve(ODD, "drfh"), user).sentences == sentences


def test_all_its_tasks() -> None:
    """Nothing stops who has everything, and nothing would help."""
    explanation = fo.explain(fo.solve(example("gpu-lab"), "drfh"), "statistics")
    assert explanation.sentences[0].startswith("statistics runs all its 25 tasks")
    assert "It has all the tasks that it asks for, so nothing stops it." in explanation.sentences
    assert (explanation.blockers, explanation.gains) == ((), ())


def test_all_of_one_task() -> None:
    """One task is its only one, not all of them."""
    instance = fo.Instance([[4.0]], [[1.0], [1.0]], tasks=[1, 9], users=["one", "many"])
    assert fo.explain(fo.solve(instance, "drfh"), "one").sentences[0].startswith("one runs its only task in")


def test_given_tasks() -> None:
    """No price and no level; full is full; the exact allocation of the notion that is named, and what does not fit."""
    tasks = np.zeros((5, 2))
    tasks[0, 0] = 5
    explanation = fo.explain(rerun.given(ODD, tasks, "rdm", "tsf"), "alice")
    assert "The allocation does not fit: cpu @ big [b]: 5, allowed 4." in explanation.sentences
    assert "The exact allocation of tsf, of divisible tasks, would give it 4 instead of 5." in explanation.sentences
    assert explanation.gains == ()
    tasks[0, 0] = 2.5
    told = str(fo.explain(rerun.given(ODD, tasks, "rdm"), "alice"))
    assert 'On "big [b]" there is room for more of its tasks.' in told
    assert "The exact allocation of drfh" in told


@pytest.mark.parametrize("placement", ["joint", "random", "slots"])
def test_a_schedule_is_run_again(placement: str) -> None:
    """By solving: the same schedule of the changed cluster, from scratch."""
    instance = example("kesidis.yaml")
    first = fo.schedule(instance, "drfh", placement=placement, seed=4)
    solved = gain(fo.explain(first, "framework-1"), "weight 2 instead of 1")[1]
    again = fo.schedule(instance.replace(weights=[2, 1]), "drfh", placement=placement, seed=4)
    assert solved == again.tasks_per_user[0] - first.tasks_per_user[0]


def test_schedules_that_end_early_or_cannot_place() -> None:
    """The first block; a task larger than every server; a criterion without an optimum."""
    lab = example("gpu-lab")
    assert "the schedule ended when a task of language did not fit" in str(fo.explain(fo.schedule(lab, stop="first-block"), "students"))
    large = fo.Instance([[2]], [[3], [1]], counts=[4])
    told = str(fo.explain(fo.schedule(large), "user-1"))
    assert "No single server where it may run is large enough for one of its tasks." in told
    told = str(fo.explain(fo.schedule(lab, "rpsdsf", placement="joint"), "vision", resolves=0))
    assert "There is no exact allocation of rpsdsf to compare with" in told


def test_many_identical_servers_are_told_as_one() -> None:
    """60 servers in a row each are as good as one row that stands for 60."""
    single = fo.Instance([[4, 8]] * 60, [[1, 1], [1, 3]], users=["A", "B"], resources=["cpu", "gpu"])
    counted = fo.Instance([[4, 8]], [[1, 1], [1, 3]], counts=[60], users=["A", "B"], resources=["cpu", "gpu"], servers=["s"])
    told, expected = (fo.explain(fo.solve(instance, "drfh"), "A") for instance in (single, counted))
    assert [each.server for each in told.blockers] == ["server-1 and 59 like it"]
    assert [each.by_solving for each in told.gains] == pytest.approx([each.by_solving for each in expected.gains])
    assert [each.by_price for each in told.gains] == pytest.approx([each.by_price for each in expected.gains])
    assert told.sentences[1:3] == expected.sentences[1:3]


def test_what_is_spread_over_servers() -> None:
    """Two servers with half a task's room each."""
    told = str(fo.explain(fo.schedule(fo.Instance([[3]], [[2]], counts=[2], servers=["s"])), "user-1"))
    assert "On s enough is left in all, but not on any single server." in told


# Options and refusals -------------------------------------------------------------------------------------------------------------


def test_no_more_is_solved_than_asked_for() -> None:
    """And every change that is solved is announced."""
    allocation = fo.solve(example("gpu-lab"), "drfh")
    for number in (0, 1, 4):
        done: list[str] = []
        explanation = fo.explain(allocation, "students", resolves=number, done=done.append)
        assert len(done) == number == sum(each.by_solving is not None for each in explanation.gains)


def test_the_time_limit_is_said() -> None:
    """What is not solved has a price all the same, and says that it was not solved."""
    explanation = fo.explain(fo.solve(example("gpu-lab"), "drfh"), "students", time_limit=1e-9)
    assert all(each.by_solving is None for each in explanation.gains)
    assert "6 changes were not solved: the time limit has passed." in explanation.sentences


def test_it_is_plain_data() -> None:
    """JSON, and a frame of the gains."""
    explanation = fo.explain(fo.solve(ODD, "drfh"), "alice")
    data = json.loads(json.dumps(explanation.to_dict()))
    assert {"schema", "command", "question", "units", "name", "user", "against", "tasks", "sentences", "blockers", "gains"} <= set(data)
    assert data["blockers"][0]["server"] == "big [b]"
    frame = explanation.to_frame()
    assert list(frame.columns) == ["kind", "by_price", "by_solving", "note"]
    assert frame.index.name == "change"
    assert fo.explain(fo.solve(ODD, "drfh"), "none left").to_frame().empty


def test_refusals() -> None:
    """Unknown users with the closest name, oneself, and options out of range."""
    allocation = fo.solve(example("gpu-lab"), "drfh")
    with pytest.raises(fo.InvalidInstance, match=r'there is no user "visio" \(did you mean "vision"\?\)'):
        fo.explain(allocation, "visio")
    with pytest.raises(fo.InvalidInstance, match='there is no user "serving!"'):
        fo.explain(allocation, "vision", against="serving!")
    with pytest.raises(fo.InvalidInstance, match="cannot be compared with itself"):
        fo.explain(allocation, "vision", against="vision")
    with pytest.raises(fo.InvalidInstance, match="allocation is ndarray"):
        fo.explain(allocation.tasks, "vision")  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match="resolves is -1"):
        fo.explain(allocation, "vision", resolves=-1)
    with pytest.raises(fo.Unsupported, match="time_limit is 0"):
        fo.explain(allocation, "vision", time_limit=0)


# The command ----------------------------------------------------------------------------------------------------------------------


def run(*arguments: object, status: int = 0) -> str:
    """Run ``fairopt explain`` in this process."""
    result = CliRunner().invoke(app, ["explain", *map(str, arguments)])
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.replace("│", " ").split())


def test_the_command_prints_sentences_and_tables() -> None:
    """Of a notion with options, and of a schedule. At alpha = 2 x2 = x1 / sqrt(3), and the cpu x1 + 3 x2 = 9: x1 = 3.294."""
    told = run(EXAMPLES / "drf.yaml", "--user", "A", "--notion", "proportional:alpha=2")
    assert told.startswith("A runs 3.29 tasks in the exact allocation of proportional, on server.")
    assert "what leaves no room on in use its own" in told
    assert "by price" not in told
    assert "(alpha 2)" in told
    assert "by price" in run(EXAMPLES / "drf.yaml", "--user", "A", "--notion", "drf")
    assert "greedy schedule drfh:best-fit" in run(EXAMPLES / "drf.yaml", "--user", "B", "--schedule", "drfh:best-fit:metric=l2")


def test_the_command_writes_json(tmp_path: Path) -> None:
    """On stdout, and whole into a file."""
    assert json.loads(run(EXAMPLES / "drf.yaml", "--user", "A", "--json"))["user"] == "A"
    run(EXAMPLES / "drf.yaml", "--user", "A", "-o", tmp_path / "why.json")
    assert json.loads((tmp_path / "why.json").read_text())["gains"]
    run(EXAMPLES / "drf.yaml", "--user", "A", "-o", tmp_path / "why.txt")
    assert (tmp_path / "why.txt").read_text().startswith("A runs 3 tasks")


def test_the_command_explains_your_own_tasks(tmp_path: Path) -> None:
    """A file of tasks, and the notion that it is compared with; labels are no markup."""
    fo.save(ODD, tmp_path / "odd.json")
    (tmp_path / "mine.csv").write_text("user,server,tasks\nalice,big [b],2\n")
    told = run(tmp_path / "odd.json", "--user", "alice", "--allocation", tmp_path / "mine.csv", "--notion", "cdrf")
    assert 'on "big [b]"' in told
    assert "The exact allocation of cdrf" in told
    assert '"[red]zero" demands nothing' in run(tmp_path / "odd.json", "--user", "[red]zero")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "C"], 'there is no user "C"'),
        (["--user", "A", "--against", "Z"], 'there is no user "Z"'),
        (["--user", "A", "--notion", "drffh"], 'did you mean "drfh"?'),
        (["--user", "A", "--schedule", "drfh:best-fit", "--notion", "drf"], "--notion and --schedule: each names an allocation"),
        (
            ["--user", "A", "--schedule", "drfh:best-fit", "--integral"],
            "--integral: it is for an allocation that --notion computes; leave it out",
        ),
        (["--user", "A", "--allocation", "missing.csv"], "missing.csv"),
        (["--user", "A", "-o", "no-folder/why.txt"], "there is no folder no-folder"),
        (["--user", "A", "--resolves", "-2"], "resolves is -2"),
    ],
)
def test_the_command_refuses(arguments: list[str], message: str) -> None:
    """Exit status 2 and one message."""
    assert message in run(EXAMPLES / "drf.yaml", *arguments, status=2)


def test_a_price_knows_that_a_larger_cluster_makes_the_shares_of_others_smaller() -> None:
    """b, at a lower level, keeps its tasks, which are a smaller share of the larger cluster: what it leaves is the others'."""
    instance = fo.Instance(
        [[6, 6, 5], [10, 6, 4]], [[0.1, 2, 1.3], [1.8, 0.6, 1.5], [0.3, 1.9, 1.8]], counts=[3, 1], eligibility=[[1, 1], [0, 1], [1, 1]]
    )
    gain = fo.explain(fo.solve(instance, "asset"), "user-1").to_frame().loc["+1 resource-2 on one server of server-1"]
    assert gain["by_price"] == pytest.approx(gain["by_solving"], rel=1e-6)


def test_nobody_is_compared_by_time_with_weights_per_resource() -> None:
    """Nothing says how much of another's time a user is owed then."""
    allocation = fo.solve(fo.Instance([[10, 10]], [[1, 1], [1, 1]], weights=[[1, 4], [1, 1]]), "drfh", sharing="tdm")
    assert fo.explain(allocation, "user-1").sentences[-1] == "user-2 has 5 tasks."


def test_nothing_is_said_of_clusters_that_are_only_tried(caplog: pytest.LogCaptureFixture) -> None:
    """10 GPUs, of which 20 are guaranteed: the clusters with one GPU more, or without guarantees, are nobody's."""
    queues = [fo.Queue("a", guarantee={"gpu": 16}), fo.Queue("b", guarantee={"gpu": 4}), fo.Queue("idle")]
    lab = fo.Instance([[10]], [[1], [1]], resources=["gpu"], users=["x", "y"], queues=queues, queue_of=["a", "b"])
    with caplog.at_level("WARNING", "fairopt"):
        allocation = fo.solve(lab, "drfh")
        fo.explain(allocation, "x")
        fo.audit(allocation, effort=4)
        fo.compare(lab, notions=["drfh"])
    said = {record.getMessage() for record in caplog.records}
    assert len(said) == 2
    assert any(sentence.startswith("guarantees of gpu exceed the cluster by 10") for sentence in said)
    assert any(sentence.startswith("no user is in the queue idle") for sentence in said)

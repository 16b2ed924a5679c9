"""Regret: its definition word for word in fractions, brute force over whole tasks, numbers by hand, and what no schedule can do."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import exact
from strategies import instances

import fairopt as fo
from fairopt.analysis import rerun
from fairopt.analysis.regrets import shortfall

SAME = 1e-8  # smaller relative differences are none, by definition
SHARES = ("drfh", "tsf", "cdrf", "asset")
POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
KESIDIS = fo.Instance([[100, 30], [30, 100]], [[5, 1], [1, 5]])
PSDSF = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])  # figure 1 of the paper


def lacks(best: Fraction, own: Fraction) -> float:
    """Relative shortfall, from the definition."""
    larger = max(best, own)
    return 0.0 if not larger or abs(best - own) <= SAME * larger else float((best - own) / larger)


def expected(best: list[Fraction], own: list[Fraction]) -> tuple[float, float, int | None, float]:
    """level, leximin, position and largest of two lists of shares."""
    pairs = [lacks(a, b) for a, b in zip(sorted(best), sorted(own), strict=True)]
    position = next((k for k, value in enumerate(pairs) if value), None)
    if position is None:
        return 0.0, 0.0, None, max([0.0, *pairs])
    return pairs[0], pairs[position], position + 1, max([0.0, *pairs])


def able(instance: fo.Instance) -> list[int]:
    """Users who can run at least a part of a task."""
    return [n for n in range(instance.n_users) if instance.servable[n] and instance.tasks[n] > 0]


# The definition ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", SHARES)
@pytest.mark.parametrize("placement", ["first-fit", "best-fit"])
@settings(max_examples=25)
@given(instance=instances(whole=True, max_users=4, max_servers=3))
def test_against_divisible_tasks_as_in_fractions(notion: str, placement: str, instance: fo.Instance) -> None:
    """The exact shares from a rational simplex, those of the schedule from its tasks, compared position by position."""
    schedule = fo.schedule(instance, notion, placement=placement)
    share = exact.shares_per_task(instance, notion)
    best_tasks = exact.leximin(instance, notion)
    own_tasks = [Fraction(x) for x in schedule.tasks_per_user.tolist()]
    users = able(instance)
    level, leximin, position, largest = expected([share[n] * best_tasks[n] for n in users], [share[n] * own_tasks[n] for n in users])
    regret = fo.regret(schedule)
    assert (regret.position, regret.members, regret.whole) == (position, len(users), False)
    assert (regret.level, regret.leximin, regret.largest) == pytest.approx((level, leximin, largest), abs=2 * SAME)
    assert regret.total == pytest.approx(lacks(sum(best_tasks, Fraction(0)), sum(own_tasks, Fraction(0))), abs=2 * SAME)


@pytest.mark.parametrize("notion", ["drfh", "tsf"])
@settings(max_examples=25)
@given(instance=instances(whole=True, max_users=3, max_servers=2, max_resources=2))
def test_against_whole_tasks_as_by_enumeration(notion: str, instance: fo.Instance) -> None:
    """Every allocation of whole tasks is tried; no schedule is above the best."""
    share = exact.shares_per_task(instance, notion)
    best = exact.integral_outcomes(instance, notion)
    for placement in ("first-fit", "best-fit", "random"):
        schedule = fo.schedule(instance, notion, placement=placement)
        users = [n for n in range(instance.n_users) if instance.servable[n]]
        own = [share[n] * Fraction(schedule.tasks_per_user[n]) for n in users]
        level, leximin, position, _ = expected(best, own)
        regret = fo.regret(schedule, integral=True)
        assert regret.whole
        assert regret.gap == 0
        assert regret.level is not None
        assert regret.leximin is not None
        assert regret.leximin == pytest.approx(leximin, abs=2 * SAME)
        assert regret.leximin >= 0
        # Users who can have nothing are left out of both; then the lowest share may be of somebody else.
        if regret.members == len(users):
            assert regret.level == pytest.approx(level, abs=2 * SAME)
            assert regret.position == position


@pytest.mark.parametrize("notion", ["drfh", "tsf", "cdrf", "asset", "max-min"])
@settings(max_examples=40)
@given(instance=instances(), placement=st.sampled_from(["first-fit", "best-fit", "worst-fit", "random-round-robin", "random"]))
def test_no_schedule_beats_the_divisible_optimum(notion: str, instance: fo.Instance, placement: str) -> None:
    """In the leximin order of the notion, whatever the schedule's own criterion; it may place more tasks."""
    for criterion in {notion, "drfh"}:
        regret = fo.regret(fo.schedule(instance, criterion, placement=placement), notion)
        assert regret.level is not None
        assert regret.leximin is not None
        assert regret.largest is not None
        assert 0 <= regret.level <= regret.largest <= 1
        assert 0 <= regret.leximin <= regret.largest
        assert (regret.leximin > 0) == (regret.position is not None)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
@settings(max_examples=25)
@given(instance=instances())
def test_no_schedule_beats_the_best_sum(alpha: float, instance: fo.Instance) -> None:
    """The power mean of the optimum is at least that of any feasible allocation, which is recomputed here without logarithms."""
    schedule = fo.schedule(instance, "drfh")
    best = fo.solve(instance, "proportional", alpha=alpha)
    regret = fo.regret(schedule, "proportional", alpha=alpha)
    assert regret.goal is not None
    assert regret.goal >= 0
    users = able(instance)
    if not users:
        return
    phi = instance.weights[users] / instance.weights[users].sum()

    def mean(tasks: np.ndarray) -> float:
        if alpha == 1:
            return float(np.prod(tasks[users] ** phi))
        if alpha > 1 and (tasks[users] == 0).any():
            return 0.0
        return float((phi @ tasks[users] ** (1 - alpha)) ** (1 / (1 - alpha)))

    wanted = shortfall(mean(best.tasks_per_user), mean(schedule.tasks_per_user))
    assert regret.goal == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("notion", [name for name in fo.NOTIONS if name not in ("drf", "bbf")])
@settings(max_examples=15)
@given(instance=instances())
def test_the_exact_allocation_has_none(notion: str, instance: fo.Instance) -> None:
    """Every number is 0; the condition of an equilibrium up to rounding."""
    allocation = fo.solve(instance, notion)
    for regret in (fo.regret(allocation), fo.regret(allocation, exact=allocation)):
        assert regret.total == 0
        assert regret.position is None
        assert (regret.worst or 0) <= 1e-8


def test_the_best_whole_tasks_have_none_either() -> None:
    """Against themselves; against divisible tasks it is what whole tasks cost, and by hand 1 - 21 / 21.667 here."""
    whole = fo.solve(KESIDIS, "drfh", integral=True)
    assert fo.regret(whole, integral=True).worst == 0
    assert fo.regret(whole).level == pytest.approx(1 - 21 / (65 / 3))


# By hand -------------------------------------------------------------------------------------------------------------------------


def test_numbers_by_hand_of_a_sum() -> None:
    """DRF gives 3 and 2 tasks of (9, 18). Nash: x = (45/11, 18/11), as both resources are full; sqrt(6) against sqrt(810)/11."""
    regret = fo.regret(fo.solve(POOL, "drf"), "proportional")
    assert regret.goal == pytest.approx(1 - np.sqrt(6) / (np.sqrt(810) / 11))
    assert regret.total == pytest.approx(1 - 5 / (63 / 11))
    assert (regret.level, regret.leximin, regret.condition, regret.members) == (None, None, None, 2)
    # Weighted 2 : 1 and alpha = 2, the harmonic mean: 3 / (2/x + 1/y).
    weighted = POOL.replace(weights=[2, 1])
    best = fo.solve(weighted, "proportional", alpha=2).tasks_per_user
    own = fo.schedule(weighted, "drfh")
    x, y = own.tasks_per_user
    assert fo.regret(own, "proportional", alpha=2).goal == pytest.approx(1 - (3 / (2 / x + 1 / y)) / (3 / (2 / best[0] + 1 / best[1])))


def test_numbers_by_hand_of_an_equilibrium() -> None:
    """TSF gives 2, 2, 8 where PS-DSF gives 3, 3, 6; each of gamma 6, weights 1, 1, 2, memory is what both servers are full of.

    Users 1 and 2 have s = 2/6 at the first server, where user 3, with s/phi = 8/12, holds some of its memory: half of that is missing.
    """
    tsf = fo.solve(PSDSF, "tsf")
    np.testing.assert_allclose(tsf.tasks_per_user, [2, 2, 8], atol=1e-9)
    regret = fo.regret(tsf, "psdsf")
    assert tsf.tasks[2, 0] > 0.1
    assert regret.condition == pytest.approx(0.5)
    assert (regret.level, regret.goal) == (None, None)
    assert regret.total == 0  # 12 tasks each


def test_numbers_by_hand_of_each_server() -> None:
    """DRF on each server of figure 1 of the DRFH paper gives 1 and 5 tasks there; DRFH runs 10 of each user on one of them."""
    mirror = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    regret = fo.regret(fo.solve(mirror, "drfh"), "per-server-drf")
    assert (regret.level, regret.leximin, regret.position) == (1, 1, 1)  # the other user has nothing there
    assert regret.total == pytest.approx(12 / 20 - 1)


def test_prefer_compares_only_totals() -> None:
    """A union of polytopes has no order. (z, 1 - z, 1 - z) is fair for 0.5 <= z <= 0.7: 1.5 tasks at most, 1.3 at least."""
    pool = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2], tasks=[1, 1, 1])
    low = fo.solve(pool, "bbf", prefer=[1, 0, 0])
    regret = fo.regret(low, "bbf", prefer=[0, 1, 1])
    assert regret.total == pytest.approx(1 - 1.3 / 1.5)
    assert regret.worst is None


def test_a_later_difference_is_seen() -> None:
    """Shares 1, 2 against 1, 3: no shortfall of the lowest, a third of the second."""
    instance = fo.Instance([[1, 0], [0, 3]], [[1, 0], [0, 1]], tasks=[1, 3])
    two_of_three = fo.schedule(instance.replace(tasks=[1, 2]), "max-min")
    regret = fo.regret(dataclasses.replace(two_of_three, instance=instance), "max-min")
    assert (regret.level, regret.position) == (0, 2)
    assert regret.leximin == regret.largest == pytest.approx(1 / 3)


def test_whole_tasks_bound() -> None:
    """The level against divisible tasks is at least that against whole ones."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        instance = fo.Instance(rng.integers(4, 12, (2, 2)), rng.integers(1, 5, (3, 2)))
        schedule = fo.schedule(instance, "drfh")
        fluid, whole = fo.regret(schedule), fo.regret(schedule, integral=True)
        assert fluid.level is not None
        assert whole.level is not None
        assert fluid.level >= whole.level


@given(best=st.floats(0, 1e6), own=st.floats(0, 1e6))
def test_shortfall_is_antisymmetric(best: float, own: float) -> None:
    """Between -1 and 1, and 0 only for what is the same."""
    assert shortfall(best, own) == -shortfall(own, best)
    assert -1 <= shortfall(best, own) <= 1
    assert (shortfall(best, own) == 0) == (abs(best - own) <= SAME * max(best, own))


# Refusals ------------------------------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    """What is compared must be exact, of the same instance, notion and sharing, and have an optimum."""
    schedule = fo.schedule(KESIDIS, "drfh")
    with pytest.raises(fo.InvalidInstance, match='the reference "drfh" is greedy, not exact'):
        fo.regret(schedule, exact=schedule)
    with pytest.raises(fo.InvalidInstance, match='the reference is of "tsf", sharing rdm, but the allocation is compared with "drfh"'):
        fo.regret(schedule, exact=fo.solve(KESIDIS, "tsf"))
    with pytest.raises(fo.InvalidInstance, match='sharing tdm, but the allocation is compared with "drfh", sharing rdm'):
        fo.regret(schedule, exact=fo.solve(KESIDIS, "drfh", sharing="tdm"))
    with pytest.raises(fo.InvalidInstance, match="of another instance"):
        fo.regret(schedule, exact=fo.solve(KESIDIS.replace(weights=[1, 2]), "drfh"))
    with pytest.raises(fo.Unsupported, match='"rpsdsf" has no exact allocation to compare with; name the notion'):
        fo.regret(fo.schedule(KESIDIS, "rpsdsf"))
    with pytest.raises(fo.Unsupported, match="whole tasks"):
        fo.regret(fo.schedule(KESIDIS, "psdsf"), integral=True)
    with pytest.raises(fo.Unsupported, match='there is no notion "drff"'):
        fo.regret(schedule, "drff")


def test_nobody_to_compare() -> None:
    """Nothing runs anywhere: no shortfall."""
    nobody = fo.Instance([[1.0]], [[1.0]], eligibility=[[False]])
    for notion in ("drfh", "proportional", "psdsf", "per-server-drf"):
        regret = fo.regret(fo.schedule(nobody, "drfh"), notion)
        assert (regret.members, regret.total, regret.worst) == (0, 0, 0)


def test_repr_and_dict() -> None:
    """What there is, and nothing else."""
    regret = fo.regret(fo.schedule(KESIDIS, "drfh", placement="first-fit"))
    assert repr(regret).startswith("Regret(drfh, divisible tasks: level ")
    assert regret.to_dict()["goal"] is None
    assert "goal" not in repr(regret)


@pytest.mark.parametrize(("arguments", "message"), [((3,), "allocation is int; give an Allocation"), (([[1.0]],), "allocation is list")])
def test_what_is_no_allocation(arguments: tuple[object, ...], message: str) -> None:
    """Said in a sentence, and not by an attribute that is missing."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.regret(*arguments)  # type: ignore[arg-type]


# Trees of queues -----------------------------------------------------------------------------------------------------------------


def test_in_a_tree_each_user_and_each_queue_is_compared_with_itself() -> None:
    """9 GPUs, A's users a1 and a2 and B's b: 2.25, 2.25 and 4.5. Of 1, 3 and 5, a1 lacks 1.25 / 2.25, and A 0.5 / 4.5."""
    instance = fo.Instance(
        *([[9]], [[1], [1], [1]]),
        queues=[fo.Queue("A"), fo.Queue("B")],
        queue_of=["A", "A", "B"],
        users=["a1", "a2", "b"],
        resources=["gpu"],
    )
    for share in ("dominant", "sum"):
        found = fo.regret(rerun.given(instance, np.array([[1.0], [3], [5]]), "rdm"), "drfh", queue_share=share)
        assert found.level == pytest.approx(1.25 / 2.25)
        assert found.leximin is None
        assert (found.largest, found.queue, found.total) == pytest.approx((1.25 / 2.25, 0.5 / 4.5, 0.0))
        assert (found.worst, found.worst_queue) == (found.largest, "A")
        users, queues = found.to_frame(), found.to_frame(by="queue")
        assert users["shortfall"].tolist() == pytest.approx([1.25 / 2.25, -0.25, -0.1])
        assert users["queue"].tolist() == ["A", "A", "B"]
        assert users["exact tasks"].tolist() == pytest.approx([2.25, 2.25, 4.5])
        assert queues.index.tolist() == ["the cluster", "A", "B"]
        assert queues["tasks"].tolist() == [9, 4, 5]
        assert queues["share"].tolist() == pytest.approx([1, 4 / 9, 5 / 9])
        assert queues["shortfall"].tolist() == pytest.approx([0, 0.5 / 4.5, -0.1])
    assert "queue 0.111 (A)" in repr(found)
    assert found.to_dict()["worst_queue"] == "A"


def test_a_weight_of_0_is_no_division_by_0() -> None:
    """The user of weight 0 has its guarantee, and lacks nothing with it."""
    instance = fo.Instance([[8]], [[1], [1]], weights=[0, 1], guarantees=[2, 0])
    assert fo.regret(fo.solve(instance, "drfh")).largest == 0
    assert fo.regret(rerun.given(instance, np.array([[1.0], [7]]), "rdm"), "drfh").largest == pytest.approx(0.5)
    assert fo.regret(rerun.given(instance, np.array([[1.0], [7]]), "rdm"), "drfh").queue is None


def test_the_share_of_a_queue_is_that_of_the_notion() -> None:
    """A's users need one resource each: its dominant share is the larger part, its sum both parts."""
    instance = fo.Instance(
        [[100, 100]], [[1, 0], [0, 1], [1, 1]], queues=[fo.Queue("A"), fo.Queue("B")], queue_of=["A", "A", "B"], users=["a1", "a2", "b"]
    )
    held = rerun.given(instance, np.array([[40.0], [50], [50]]), "rdm")
    assert fo.regret(held, "drfh").to_frame(by="queue")["share"].tolist() == pytest.approx([1, 0.5, 0.5])
    assert fo.regret(held, "drfh", queue_share="sum").to_frame(by="queue")["share"].tolist() == pytest.approx([1.4, 0.9, 0.5])
    assert fo.regret(held, "efficiency").queue == pytest.approx(0.55)  # all 200 tasks would be of A


def test_a_table_has_rows_by_user_or_by_queue() -> None:
    """Without queues the cluster is the only one; anything else is refused."""
    found = fo.regret(fo.schedule(fo.Instance([[9, 18]], [[1, 4], [3, 1]], weights=[1, 2]), "drfh"))
    assert found.to_frame().columns.tolist() == ["tasks", "exact tasks", "share", "exact share", "shortfall"]
    assert found.to_frame()["exact share"].tolist() == pytest.approx(
        fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], weights=[1, 2]), "drfh").shares
    )
    assert found.to_frame(by="queue").index.tolist() == ["the cluster"]
    with pytest.raises(fo.Unsupported, match='no rows by "server"'):
        found.to_frame(by="server")  # type: ignore[arg-type]


@pytest.mark.parametrize("notion", ["drfh", "proportional"])
def test_users_with_less_than_one_task(notion: str) -> None:
    """Of 10 cores one user needs 9 for a task and has 0.5 of one: whole tasks leave it nothing, and regret 1 would hide the others."""
    pool = fo.Instance([[10]], [[9], [1], [1]], tasks=[1, 2, 9], users=["big", "a", "b"], servers=["pool"], resources=["cpu"])
    tasks = np.array([[0.0], [2.0], [3.0]])
    exact = fo.solve(pool, notion)
    assert 0 < exact.tasks_per_user[0] < 1
    own = fo.compare(pool, notions=[notion], allocations={"own": tasks}, reference=notion)["own"].regret
    assert own is not None
    assert own.worst == pytest.approx(1.0)
    assert own.tiny == ("big",)
    assert own.worst_user == "b"
    short = 1 - 3 / exact.tasks_per_user[2]
    assert own.others is not None
    assert own.others.members == 2
    if notion == "drfh":
        assert own.others.largest == pytest.approx(short)
        assert own.others.level == pytest.approx(0.0)
    assert 0 < (own.others.worst or 0.0) <= short + 1e-9
    assert own.to_dict()["others"]["members"] == 2
    assert fo.regret(fo.schedule(pool, "drfh"), integral=True).tiny == ()

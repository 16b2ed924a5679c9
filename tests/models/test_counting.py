"""What counts in a share: weights of resources, and who demands nothing that counts.

The oracle of trees (`queue_oracle.Oracle`) knows rows, demands and the numbers m, and nothing of fairopt's weights.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from open_model import campaign, question_by_server
from queue_oracle import Oracle, random_tree, tasks_alone

import fairopt as fo
from fairopt.solving import notion_of
from fairopt.specs import read_notion, written

LAB = fo.Instance(
    [[16, 8]], [[1, 1], [4, 1], [1, 0], [2, 0]], counts=[2], resources=["cpu", "gpu"], users=["a", "b", "c", "d"], servers=["node"]
)


def tasks(instance: fo.Instance, notion: str = "drfh", **options: Any) -> list[float]:
    """Return what each user runs, rounded."""
    found: list[float] = fo.solve(instance, notion, **options).tasks_per_user.round(6).tolist()
    return found


def per_task(instance: fo.Instance, m: list[float], notion: str) -> np.ndarray:
    """Return the share of a task by its definition: the largest m[r] d[n,r] / C[r], or the sum; or the plain dominant share."""
    total = [float(each) for each in instance.counts @ instance.capacities]
    shares = []
    for demand in instance.demands.tolist():
        parts = [(k * d / c if k else 0.0, d / c) for k, d, c in zip(m, demand, total, strict=True) if d > 0 and c > 0]
        counted = [k for k, _ in parts if k > 0]
        plain = max((part for _, part in parts), default=0.0)
        shares.append((sum(counted) if notion == "asset" else max(counted)) if counted else plain)
    return np.array(shares)


@pytest.mark.parametrize("notion", ["drfh", "asset"])
def test_flat_lists_and_trees_have_the_levels_of_the_oracle(notion: str) -> None:
    """Random trees with guarantees, limits, tiers and weights over six orders; and the same users without queues."""
    last = 0
    for seed in range(9) if notion == "drfh" else (36, 37, 38, 48):
        rng = np.random.default_rng(seed)
        tree = random_tree(seed)
        if tree.demands.shape[1] == 1:
            continue
        m = rng.choice([0.0, 0.0, 1.0, 4.0], tree.n_resources)
        m[rng.integers(m.size)] = 1.0
        weights = dict(zip(tree.resources, m.tolist(), strict=True))
        flat = tree.replace(queues=(), queue_of=None, guarantees=None, weights=np.where(tree.weights > 0, tree.weights, 1))
        for instance in (tree, flat):
            share = per_task(instance, m.tolist(), notion)
            found = fo.solve(instance, notion, resource_weights=weights)
            queue_share: Any = "sum" if notion == "asset" else "dominant"
            expected = np.array(Oracle(instance, share, queue_share=queue_share, counts=m.tolist()).solve()) / np.where(share > 0, share, 1)
            asked: Any = notion_of(notion, resource_weights=weights)
            last += int(asked.last(instance).any())
            alone = tasks_alone(instance)
            np.testing.assert_allclose(found.tasks_per_user / alone, expected / alone, rtol=1e-8, atol=1e-8, err_msg=str((seed, weights)))
    assert last > 1


def test_engines_and_fractions_agree() -> None:
    """Where somebody comes last, in a list and in a tree of queues."""
    tree = LAB.replace(queues=[fo.Queue("q", guarantee={"cpu": 4}), fo.Queue("r")], queue_of=["q", "r", "q", "r"], tasks=[3, 4, 9, 9])
    for instance in (LAB.replace(tasks=[3, 4, 9, 9]), tree):
        exact = fo.solve(instance, resource_weights={"gpu": 4, "cpu": 0}, exact=True)
        assert exact.exact is not None
        for solver in ("highs", "interior-point", "cvxpy", "pyomo"):
            try:
                found = fo.solve(instance, resource_weights={"gpu": 4, "cpu": 0}, solver=solver)
            except fo.SolverUnavailable:
                continue
            np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user, atol=1e-7, err_msg=solver)


def test_weights_of_1_change_nothing() -> None:
    """To the bit, in floats, fractions, whole tasks, schedules and queues."""
    once: dict[str, Any] = {"cpu": 1, "gpu": 1.0}
    neither: dict[str, Any] = {}
    both = (neither, {"resource_weights": once})
    tree = LAB.replace(queues=[fo.Queue("q", guarantee={"gpu": 3}), fo.Queue("r")], queue_of=["q", "q", "r", "r"], weights=[1, 2, 3, 0.1])
    for instance in (LAB, tree):
        for notion in ("drfh", "asset"):
            for exact in (False, True):
                plain, weighed = (fo.solve(instance, notion, exact=exact, **each) for each in both)
                assert np.array_equal(plain.tasks, weighed.tasks)
                assert np.array_equal(plain.shares, weighed.shares)
            plain, weighed = (fo.schedule(instance, notion, placement="best-fit", **each) for each in both)
            assert np.array_equal(plain.tasks, weighed.tasks)
    assert tasks(LAB, integral=True) == tasks(LAB, integral=True, resource_weights=once)


def test_a_larger_unit_of_all_weights_changes_nothing() -> None:
    """Twice as much of everything is the same leximin; shares are twice as large."""
    once, twice = (fo.solve(LAB, resource_weights={"gpu": 4 * k, "cpu": k}) for k in (1, 2))
    np.testing.assert_allclose(twice.tasks_per_user, once.tasks_per_user, rtol=1e-9)
    np.testing.assert_allclose(twice.shares, 2 * once.shares, rtol=1e-9)


def test_only_one_resource_is_the_plain_notion_where_the_others_are_no_part() -> None:
    """With so much cpu that it is nobody's dominant resource."""
    wide = fo.Instance([[1e4, 8], [2e4, 4]], [[1, 1], [3, 2], [2, 1]], resources=["cpu", "gpu"], weights=[1, 2, 1])
    assert np.array_equal(fo.solve(wide, only="gpu").tasks, fo.solve(wide).tasks)


def test_who_demands_nothing_that_counts_comes_after_all_others() -> None:
    """Only GPUs count: a and b rise until the 32 cpu are full (5 x = 32). With 3 tasks each they leave 17, which c and d halve."""
    assert tasks(LAB, only="gpu") == [6.4, 6.4, 0, 0]
    assert tasks(LAB.replace(tasks=[3, 3, np.inf, np.inf]), only="gpu") == [3, 3, 8.5, 4.25]
    assert tasks(LAB.replace(tasks=[3, 3, np.inf, np.inf]), "asset", only=["gpu"]) == [3, 3, 8.5, 4.25]
    found = fo.solve(LAB, only="gpu", integral=True)
    assert found.tasks_per_user.tolist()[2:] == [0, 0]
    assert [each.part for each in fo.solve(LAB, only="gpu").levels][-1] == "the surplus of users who demand nothing that counts"


def test_queues_are_compared_by_what_counts() -> None:
    """Two queues share 8 gpu by gpu alone; inside tsf, too, if its queues have dominant shares."""
    pool = fo.Instance(
        [[16, 8]],
        [[1, 1], [4, 1]],
        resources=["cpu", "gpu"],
        users=["a", "b"],
        queues=[fo.Queue("q"), fo.Queue("r")],
        queue_of=["q", "r"],
    )
    assert tasks(pool, only="gpu") == [3.2, 3.2]
    assert tasks(pool, "tsf", queue_share="dominant", only="gpu") == [3.2, 3.2]
    assert tasks(pool) == [16 / 3, 8 / 3] or np.allclose(tasks(pool), [16 / 3, 8 / 3], atol=1e-6)
    found = fo.solve(pool, resource_weights={"gpu": 4, "cpu": 0})
    assert found["q"].dominant_share == pytest.approx(4 * 3.2 / 8)
    assert (found["q"].dominant_resource, found.dominant_resources) == ("gpu", ("gpu", "gpu"))


def test_schedules_follow() -> None:
    """Task by task: a and b in turns until no task of theirs fits, then the others; in fractions the same."""
    small = LAB.replace(tasks=[5, np.inf, np.inf, np.inf])
    found = fo.schedule(small, only="gpu", record=True)
    assert found.tasks_per_user.tolist() == [5, 6, 1, 1]
    assert found.trace is not None
    assert set(found.trace.users[:11].tolist()) == {0, 1}
    assert fo.schedule(small, only="gpu", exact=True).tasks_per_user.tolist() == [5, 6, 1, 1]


def test_schedules_compare_queues_by_what_counts() -> None:
    """A queue that holds much cpu by its guarantee is not behind for it while GPUs are handed out; afterwards all it holds counts."""
    pool = fo.Instance(
        [[40, 8]],
        [[10, 0], [1, 1], [1, 1], [10, 0]],
        resources=["cpu", "gpu"],
        users=["a", "b", "c", "d"],
        queue_of=["q", "q", "r", "r"],
        tasks=[9, 2, 2, 9],
        queues=[fo.Queue("q", guarantee={"cpu": 10}), fo.Queue("r")],
    )
    for exact in (False, True):
        found = fo.schedule(pool, only="gpu", record=True, exact=exact)
        assert found.trace is not None
        order = [pool.users[n] for n in found.trace.users]
        assert order[0] == "a"
        assert sorted(order[1:5]) == ["b", "b", "c", "c"]
        assert order[5:] == ["d", "a"]
        assert found.tasks_per_user.tolist() == [2, 2, 2, 1]


def test_simulations_follow_and_regret_compares_with_what_was_asked() -> None:
    """b's 10 tasks need 4 cpu each: they come before those of c and d, also where users are a flat list."""
    jobs = {"a": 3, "b": 10, "c": 40, "d": 10}
    demands = [[1, 1], [4, 1], [1, 0], [2, 0]]
    trace = fo.Trace([*jobs], [0] * 4, [*jobs.values()], demands, [50] * 4, resources=["cpu", "gpu"])
    ends = {}
    for scheduler in ("drfh:best-fit", "drfh:best-fit:only=gpu", "drfh:only=gpu"):
        found = fo.simulate(trace, LAB, scheduler)
        ends[scheduler] = dict(zip(jobs, found.completion.tolist(), strict=True))
    assert ends["drfh:best-fit:only=gpu"]["b"] == 100 < ends["drfh:best-fit"]["b"]
    assert ends["drfh:only=gpu"]["b"] < 70
    regret = fo.regret(fo.schedule(LAB, only="gpu"))
    assert regret.to_frame()["exact share"].round(6).tolist() == [0.4, 0.4, 0, 0]
    with pytest.raises(fo.Unsupported, match="demands nothing that counts, and a memory"):
        fo.simulate(trace, LAB, "drfh:only=gpu:half_life=100")


def test_audits_judge_by_the_same_shares() -> None:
    """The answer is max-min fair in what counts; the plain one is not, and says so."""
    for found in (fo.solve(LAB, only="gpu"), fo.solve(LAB, only="gpu", exact=True), fo.solve(LAB, only="gpu", integral=True)):
        assert fo.audit(found, ["max-min"])["max-min"].holds is True
    audit = fo.audit(fo.solve(LAB, resource_weights={"gpu": 4}), ["max-min", "envy-freeness"])
    assert audit["max-min"].holds is True
    assert not audit["envy-freeness"].promised  # no proof knows of weights of resources


def test_explanations_say_what_counts() -> None:
    """Who comes last, and how often a resource counts."""
    text = " ".join(str(fo.explain(fo.solve(LAB, only="gpu"), "c")).split())
    assert "only gpu counts; it demands nothing that counts, so it comes after all others" in text
    text = " ".join(str(fo.explain(fo.solve(LAB, resource_weights={"gpu": 4}), "a")).split())
    assert "a task takes 6.25 % of the gpu, its dominant resource (3.12 % of the cpu); gpu counts 4 times, the others once" in text


def test_options_as_fields_and_text() -> None:
    """A mapping, text, the specification of a notion, and what an answer says of its question."""
    both = {"gpu": 4, "cpu": 0}
    assert notion_of("drfh", resource_weights=both) == notion_of("drfh", resource_weights="cpu=0+gpu=4") != notion_of("drfh")
    assert read_notion("drfh:only=gpu")[1] == notion_of("drfh", only="gpu") == notion_of("drfh", only=["gpu"])
    assert hash(notion_of("drfh", resource_weights=both)) == hash(notion_of("drfh", resource_weights=both))
    text = written(notion_of("drfh", resource_weights={"gpu": Fraction(1, 3), "cpu": 2.5}))
    assert text == "drfh:resource_weights=gpu=1/3+cpu=2.5"
    assert written(read_notion(text)[1]) == text
    assert fo.solve(LAB, resource_weights=both).to_dict()["question"]["options"]["resource_weights"] == both
    assert fo.solve(LAB, only="gpu").to_dict()["question"]["options"]["only"] == "gpu"
    assert "only" not in fo.solve(LAB).to_dict()["question"]["options"]


def test_the_name_of_a_notion_may_hold_its_options_everywhere() -> None:
    """A notion with options as text is the same as by keywords, for every function."""
    # the same text and the same options by keyword: the same answer of every function that takes a notion
    lab = fo.Instance([[64, 8]], [[12, 1], [4, 1]], counts=[2], users=["a", "b"], resources=["cpu", "nvidia.com/gpu"])
    text, options = "drfh:guarantees=surplus:only=nvidia.com/gpu", {"guarantees": "surplus", "only": "nvidia.com/gpu"}
    plain, wanted = fo.solve(lab, "drfh"), fo.solve(lab, "drfh", **options)  # type: ignore[arg-type]  # of several types
    assert abs(wanted.tasks_per_user - plain.tasks_per_user).max() > 0.5
    found = fo.solve(lab, text)
    assert found.tasks_per_user == pytest.approx(wanted.tasks_per_user)
    assert found.to_dict()["question"]["options"] == wanted.to_dict()["question"]["options"]
    assert str(fo.formulate(lab, text)) == str(fo.formulate(lab, "drfh", **options))  # type: ignore[arg-type]
    assert fo.regret(wanted, text).level == pytest.approx(0)

    schedules = [
        fo.schedule(lab, "drfh", only="nvidia.com/gpu", placement="best-fit"),
        *(fo.schedule(lab, spec) for spec in ("drfh:only=nvidia.com/gpu:best-fit", "drfh:best-fit:only=nvidia.com/gpu")),
        fo.schedule(lab, "drfh:only=nvidia.com/gpu", placement="best-fit"),
    ]
    assert (schedules[0].tasks_per_user != fo.schedule(lab, "drfh", placement="best-fit").tasks_per_user).any()
    for each in schedules[1:]:
        assert each.tasks.tolist() == schedules[0].tasks.tolist()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda lab: fo.solve(lab, "drfh:only=gpu", only="cpu"), '"drfh:only=gpu" has only already; give it once'),
        (lambda lab: fo.schedule(lab, "drfh:only=gpu", only="cpu"), '"drfh:only=gpu" has only already; give it once'),
        (lambda lab: fo.schedule(lab, "drfh:pack", placement="best-fit"), '"drfh:pack" has placement already; give it once'),
        (lambda lab: fo.solve(lab, "drfh:best-fit"), '"drfh:best-fit": "best-fit" is no option'),
        (lambda lab: fo.solve(lab, "drfh:only=gpus"), "there is no resource gpus whose weight could be set"),
    ],
)
def test_what_is_given_twice_is_refused(act: Callable[[fo.Instance], Any], message: str) -> None:
    """An option in the text and beside it, a placement in a notion, and an unknown resource are sentences."""
    with pytest.raises(fo.FairoptError, match=message):
        act(fo.Instance([[64, 8]], [[12, 1]], resources=["cpu", "gpu"]))


def test_weights_of_a_user_per_resource_stay_as_they_are() -> None:
    """max over r of m[r] d[n,r] / (C[r] phi[n,r])."""
    phi = np.array([[1.0, 2], [1, 1], [1, 1], [3, 1]])
    instance = LAB.replace(weights=phi)
    expected = np.array([max(1 / 32, 4 / 16 / 2), max(4 / 32, 4 / 16), 1 / 32, 2 / 32 / 3])
    notion: Any = notion_of("drfh", resource_weights={"gpu": 4})
    np.testing.assert_allclose(notion.share_per_task(instance), expected)


@pytest.mark.parametrize(
    ("notion", "options", "message"),
    [
        ("drfh", {"only": "gpi"}, 'no resource gpi whose weight could be set (did you mean "gpu"?)'),
        ("drfh", {"resource_weights": {"gpu": -1}}, "the weight of gpu in resource_weights is -1; give a number >= 0"),
        ("drfh", {"resource_weights": {"gpu": np.nan}}, "give a number >= 0"),
        ("drfh", {"resource_weights": "gpu"}, "which names no weights"),
        ("drfh", {"resource_weights": "gpu=1,gpu=2"}, "twice"),
        ("drfh", {"resource_weights": 4}, "give a mapping"),
        ("drfh", {"resource_weights": {"gpu": 0, "cpu": 0}}, "nothing counts"),
        ("drfh", {"only": "gpu", "resource_weights": {"gpu": 2}}, "give one of them"),
        ("drfh", {"only": []}, "names no resources"),
        ("drfh", {"only": "gpu", "formulation": "equalize"}, "equalises all shares"),
        ("drfh", {"only": "gpu", "tree": "nested", "queue_share": "sum"}, "nested"),
        ("tsf", {"only": "gpu"}, "do not add up resources"),
        ("fds", {"only": "gpu"}, "do not add up resources"),
        ("psdsf", {"only": "gpu"}, "do not add up resources"),
        ("bbf", {"only": "gpu"}, 'takes no option "only"'),
    ],
)
def test_what_cannot_count_is_refused_in_a_sentence(notion: str, options: dict[str, Any], message: str) -> None:
    """Unknown names, wrong numbers, notions that measure no resources."""
    with pytest.raises(fo.FairoptError, match=message.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        fo.solve(LAB, notion, **options)


def test_only_gpus_count_where_tasks_take_other_amounts_elsewhere() -> None:
    """A pool of 32 GPUs. A task of a takes 1 GPU of the first kind, or 2 of the second for half of the work: 8 there, and 12 that do 6.

    Alone it does 14, and b 32. Both have 7/11 of that: a does 8 on the first kind and 10/11 on the second, with 40/11 of its 24 GPUs, and
    b does 224/11 with the rest. Whoever takes no GPU comes after them.
    """
    lab = fo.Instance(
        [[4, 64], [8, 64]],
        [[[1, 8], [2, 8]], [[1, 4], [1, 4]], [[0, 4], [0, 8]]],
        counts=[2, 3],
        speeds=[[1.0, 0.5], [1.0, 1.0], [1.0, 1.0]],
        resources=["gpu", "cpu"],
        users=["a", "b", "cpus"],
        tasks=[np.inf, np.inf, 2],
    )
    for options in ({"only": "gpu"}, {"resource_weights": {"gpu": 3, "cpu": 0}}):
        found = fo.solve(lab, "drfh", **options)
        np.testing.assert_allclose(found.work, [98 / 11, 224 / 11, 2])
        assert found.counting is not None
        assert found.dominant_resources == ("gpu", "gpu", "cpu")
    exact = fo.solve(lab, "drfh", only="gpu", exact=True).exact
    assert exact is not None
    assert list(lab.exact.work(exact.tasks)) == [Fraction(98, 11), Fraction(224, 11), 2]
    assert fo.schedule(lab, "drfh:only=gpu").work.tolist() == fo.schedule(lab, "drfh:only=gpu", exact=True).work.astype(float).tolist()
    assert "only gpu counts" in str(fo.explain(fo.solve(lab, "drfh", only="gpu"), "a"))


@pytest.mark.parametrize("seed", [1, 3, 17, 44, 54])
def test_weights_of_resources_by_server_are_those_of_an_oracle_of_rows(seed: int) -> None:
    """With shared resources, limits, rules and trees, by engines and in fractions: seeds of ``open_model.py --by-server``."""
    asked = question_by_server(seed)
    assert asked.options
    assert not campaign([seed], question_by_server).failures

"""How far guarantees are met together in whole tasks: the instances of divisible tasks, by hand, and enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference.whole_tree import best_whole_tasks, guaranteed

import fairopt as fo
from fairopt.errors import NoSolution
from fairopt.program import TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs import whole_floors
from fairopt.solving import formulate

BOTH = [fo.Queue("A", guarantee={"gpu": 4}), fo.Queue("B", guarantee={"gpu": 4})]


def whole(capacities: Any, demands: Any, **options: Any) -> list[int]:
    """Return the whole tasks of each user."""
    found = fo.solve(fo.Instance(capacities, demands, resources=["gpu"], **options), "drfh", integral=True)
    assert found.certificate.whole_tasks
    return [int(tasks) for tasks in found.tasks_per_user]


@pytest.mark.parametrize("own", [0, 1, 2, 4])
def test_a_guarantee_inside_a_queue_takes_nothing_from_another(own: int) -> None:
    """Of 4 GPUs A and B are guaranteed 4 each, so both have half; with a guarantee of 1 in A, B had 3 and A 1."""
    assert whole([[4]], [[1], [1]], queues=BOTH, queue_of=["A", "B"], guarantees=[own, 0]) == [2, 2]


def test_two_guarantees_inside_a_queue() -> None:
    """Both users of A are guaranteed 4 of 4: A and B have 2 each; A had 3."""
    assert whole([[4]], [[1]] * 3, queues=BOTH, queue_of=["A", "A", "B"], guarantees=[4, 4, 0]) == [1, 1, 2]


def test_a_guarantee_that_can_be_met_is_met() -> None:
    """A's users run on one server each, B's on the first: A can hold its 4 on the second. By weights inside A alone it was 2, 4, 2."""
    places = [[1, 0], [0, 1], [1, 0]]
    assert whole([[4], [4]], [[1]] * 3, eligibility=places, queues=BOTH, queue_of=["A", "A", "B"]) == [0, 4, 4]
    tasks = whole([[4], [4]], [[1]] * 3, weights=[1, 0, 1], eligibility=places, queues=BOTH, queue_of=["A", "A", "B"])
    assert tasks == [2, 0, 2]  # nothing is due to A's user of the second server


def test_sorted_parts_are_unique_and_not_whose_they_are() -> None:
    """Of 3 GPUs one queue has 2, the other 1."""
    assert sorted(whole([[3]], [[1], [1]], queues=BOTH, queue_of=["A", "B"])) == [1, 2]


def test_several_resources_are_met_in_proportion_to_what_they_are_guaranteed() -> None:
    """8 gpu, 8 cpu. A is guaranteed 4 and 8, B 8 cpu, C 8 gpu. Divisible: 2.67 gpu and 4 cpu, 4, 5.33; in whole tasks 3 and 4, 4, 5."""
    queues = [fo.Queue("A", guarantee={"gpu": 4, "cpu": 8}), fo.Queue("B", guarantee={"cpu": 8}), fo.Queue("C", guarantee={"gpu": 8})]
    pool = fo.Instance([[8, 8]], [[1, 0], [0, 1], [0, 1], [1, 0]], resources=["gpu", "cpu"], queues=queues, queue_of=["A", "A", "B", "C"])
    assert fo.solve(pool, "drfh", integral=True, queue_share="sum").tasks_per_user.tolist() == [3, 4, 4, 5]


@pytest.mark.parametrize("seed", [33, 102, 200, 234, 240, 242, 243, 337, 384])
def test_where_stages_alone_give_something_else_it_is_as_by_enumeration(seed: int) -> None:
    """The draws of `reference.whole_tree` below 400 in which nobody would be given the same."""
    instance = guaranteed(seed)
    _, tasks = best_whole_tasks(instance)
    _, of_stages = best_whole_tasks(instance, parts_first=False)
    found = tuple(np.round(fo.solve(instance, "drfh", integral=True, queue_share="sum").tasks_per_user).astype(int).tolist())
    assert found in tasks
    assert found not in of_stages


def test_at_the_time_limit_the_tasks_of_the_stages_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reached while the most that guarantees could hold alone is looked for."""
    pool = fo.Instance([[5], [6]], [[1], [1]], resources=["gpu"], queues=BOTH, queue_of=["A", "B"]).replace(guarantees=[1, 0])
    program = formulate(pool.replace(capacities=[[3], [2]]), "drfh", integral=True)
    deadline = Deadline(60.0)

    def too_late(*_: Any) -> None:
        deadline._end = 0.0
        raise deadline.passed({})

    monkeypatch.setattr(whole_floors, "promised_alone", too_late)
    with pytest.raises(NoSolution, match="was reached by then") as error:
        whole_floors.solve_whole_guarantees(program, program.goal_as(TreeFilling), deadline)
    tasks = error.value.known["tasks"]
    assert tasks.sum() == 5
    assert (program.limits.matrix @ tasks <= program.limits.bounds * (1 + 1e-9)).all()

"""Programs of agents, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.guarantees import parts_program
from fairopt.program.promises import promises_of
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.agents import AgentPrograms


def two_agents() -> AgentPrograms:
    """x + y <= 6 and x <= 1; one agent has x, the other y."""
    limits = [(np.array([0, 1]), np.ones(2)), (np.array([0]), np.ones(1))]
    agents = [(np.array([0]), np.ones(1)), (np.array([1]), np.ones(1))]
    return AgentPrograms(AgentProgram(limits, np.array([6.0, 1.0]), agents, 2, False), Deadline(None))


def test_who_is_stopped_pays() -> None:
    """Both rise to 1, where the first stops. The second rises on to 5."""
    programs = two_agents()
    first = programs.solve([0, 0], [1, 1])
    assert first.t == pytest.approx(1)
    assert first.stopped.tolist() == [True, False]
    assert first.prices @ [6, 1] == pytest.approx(first.pays @ [1, 1])
    second = programs.solve([1, 0], [0, 1])
    assert second.t == pytest.approx(5)
    assert second.stopped.tolist() == [False, True]


def test_starts_are_kept() -> None:
    """Who has 4 of the 6 already leaves 2; t counts from the start of those who rise."""
    level = two_agents().solve([0.5, 4], [1, 0])
    assert level.t == pytest.approx(0.5)
    assert level.z == pytest.approx([1, 5]) or level.z[1] >= 4 - 1e-9


def test_the_parts_of_two_guarantees() -> None:
    """Guaranteed are 9 and 3 of 8: both are met to 2/3."""
    queues = [fo.Queue("a", guarantee={"gpu": 9}), fo.Queue("b", guarantee={"gpu": 3})]
    instance = fo.Instance([[8]], [[1], [1]], queues=queues, queue_of=["a", "b"], resources=["gpu"])
    program = fo.formulate(instance, "drfh")
    goal = program.goal_as(TreeFilling)
    promises = promises_of(goal)
    assert [promise.name for promise in promises] == ["guaranteed gpu of a", "guaranteed gpu of b"]
    agents, start = parts_program(program, goal, promises, [9.0, 3.0])
    level = AgentPrograms(agents, Deadline(None)).solve([*start, 0, 0], [0, 0, 1, 1])
    assert level.t == pytest.approx(2 / 3)
    assert level.stopped.tolist() == [False, False, True, True]

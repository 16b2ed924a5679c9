"""Filling trees of queues by the structured interior point: against HiGHS, by hand, what it refuses, and when it comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.generators.trees import in_queues
from fairopt.program import Program, Solution, TreeFilling
from fairopt.solvers import choose
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import tree
from fairopt.solvers.interior_point.path import solve_level
from fairopt.solvers.interior_point.tree import obstacle_of_tree, solve_filling
from fairopt.solvers.structure.arrays import NUMPY, Arrays

NEVER = Deadline(None)


def filled(program: Program, arrays: Arrays = NUMPY) -> Solution:
    """Fill by paths alone."""
    assert isinstance(program.goal, TreeFilling)
    with np.errstate(all="ignore"):
        found = solve_filling(program, program.goal, 1e-8, NEVER, arrays)
    assert found is not None
    return found


def random_tree(seed: int, users: int = 25, servers: int = 6, **options: Any) -> fo.Instance:
    """A random tree over random users, of whom some have finitely many tasks and some may not run everywhere."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((users, servers)) < 0.7
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    instance = fo.Instance(
        rng.uniform(1, 10, (servers, 2)),
        rng.uniform(0.1, 2, (users, 2)) * (rng.random((users, 2)) > [0.0, 0.3]),
        weights=10 ** rng.uniform(-1, 1, users),
        eligibility=eligibility,
        tasks=np.where(rng.random(users) < 0.3, rng.integers(0, 8, users), np.inf),
    )
    return in_queues(instance, **({"queues": 7, "depth": 3, "guarantees": 0.9, "limits": 0.5, "weights": 5, "seed": seed} | options))


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize(
    "options",
    [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}],
    ids=["surplus", "clamp", "sum"],
)
@pytest.mark.parametrize(
    "shape", [{}, {"guarantees": 1.4, "limits": 1.0}, {"tiers": 3, "limits": 1.0}], ids=["limits", "too much", "tiers"]
)
def test_shares_are_those_of_highs(seed: int, options: dict[str, Any], shape: dict[str, Any]) -> None:
    """Certified, and the same shares: they are unique."""
    instance = random_tree(seed, **shape)
    path = fo.solve(instance, "drfh", solver="interior-point", **options)
    assert path.certificate.worst <= 1e-8
    program = fo.formulate(instance, "drfh", **options)
    plain = fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)
    shares = program.per_user(plain.x * program.utilities)
    np.testing.assert_allclose(path.shares, shares, rtol=1e-8, atol=1e-8 * shares.max())


def two_tiers() -> fo.Instance:
    """The first tier can use the second server alone, and fills it; who comes later may use both."""
    queues = [fo.Queue("first", tier=1), fo.Queue("later")]
    return fo.Instance([[4], [6]], [[1], [1]], eligibility=[[0, 1], [1, 1]], queues=queues, queue_of=["first", "later"], resources=["gpu"])


def test_what_a_tier_fills_is_closed_to_the_next() -> None:
    """6 and 4. The price of the second part is that of the first server alone: it is known that the second one is full."""
    program = fo.formulate(two_tiers(), "drfh")
    found = filled(program)
    assert program.per_user(found.x) == pytest.approx([6, 4], rel=1e-12)
    prices = [np.flatnonzero(stage.prices > 1e-9).tolist() for stage in found.stages if stage.prices is not None]
    assert prices == [[1], [0]]
    assert certify(program, found).worst <= 1e-12


def test_who_rises_again_on_a_full_server_is_stopped_by_the_prices_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guaranteed are 10 of 8: both users get 4. In the surplus the server is full already, which takes no path.

    One path gives them 4, and one shows that they could not have more alone.
    """
    paths: list[int] = []

    def counted(*args: Any) -> Any:
        paths.append(len(args[3]["levels"]))
        return solve_level(*args)

    monkeypatch.setattr(tree, "solve_level", counted)
    queues = [fo.Queue("a", guarantee={"gpu": 10})]
    instance = fo.Instance([[8]], [[1], [1]], queues=queues, queue_of=["a", "a"], resources=["gpu"])
    program = fo.formulate(instance, "drfh")
    found = filled(program)
    assert program.per_user(found.x) == pytest.approx([4, 4], rel=1e-12)
    assert [stage.part for stage in found.stages] == [0, 1]
    assert paths == [0, 0]
    assert certify(program, found).worst <= 1e-12


def test_a_path_ends_beyond_the_next_change_of_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no points guessed, a path is asked for each change; it shows a point beyond it, and no prices."""
    beyond: list[bool] = []
    step = tree._Part.step

    def noted(self: tree._Part, *args: Any) -> Any:
        change = self.goal.event(args[0])[0]
        found = step(self, *args)
        assert (found.proof is None) == (found.t > change)
        beyond.append(found.t > change)
        return found

    monkeypatch.setattr(tree._Part, "step", noted)
    monkeypatch.setattr("fairopt.solvers.leximin.tree._Ahead._guess", lambda *_: None)
    instance = random_tree(1)
    program = fo.formulate(instance, "drfh")
    found = filled(program)
    assert any(beyond)
    assert certify(program, found).worst <= 1e-8


def test_other_arrays() -> None:
    """Tables of arrays that have nothing but the standard lead to the same shares."""
    strict = Arrays(pytest.importorskip("array_api_strict", reason="array-api-strict is not installed"))
    program = fo.formulate(random_tree(2), "drfh")
    found, plain = filled(program, strict), filled(program)
    np.testing.assert_allclose(program.per_user(found.x), program.per_user(plain.x), rtol=1e-8, atol=1e-10)


def test_guarantees_on_some_servers_are_refused() -> None:
    """They are no limits on shares; the message says so, and the default is HiGHS."""
    queue = fo.Queue("q", quotas=[fo.Quota(["server-1"], guarantee={"gpu": 2})])
    instance = fo.Instance([[4], [6]], [[1], [1]], queues=[queue], queue_of=["q", None], resources=["gpu"])
    with pytest.raises(fo.Unsupported, match="guarantees of queues that are not limits on shares, but on some servers alone; use highs"):
        fo.solve(instance, "drfh", solver="interior-point")
    assert fo.solve(instance, "drfh").solver == "highs"


def test_it_comes_first_for_large_trees_that_it_can_fill() -> None:
    """1,000 users on 10 servers; on 2, or with a guarantee on one server, HiGHS does."""
    large = fo.formulate(random_tree(0, users=1000, servers=10), "drfh")
    assert choose(large, None).name == "interior-point"
    assert choose(fo.formulate(random_tree(0, users=1000, servers=2), "drfh"), None).name == "highs"
    instance = random_tree(0, users=1000, servers=10)
    queues = [*instance.queues, fo.Queue("one more", quotas=[fo.Quota(["server-1"], guarantee={"resource-1": 1.0})])]
    program = fo.formulate(instance.replace(queues=queues, queue_of=["one more", *instance.queue_of[1:]]), "drfh")
    assert isinstance(program.goal, TreeFilling)
    assert obstacle_of_tree(program, program.goal)
    assert choose(program, None).name == "highs"


def test_levels_that_are_final_are_known_at_the_deadline() -> None:
    """No time: none is."""
    program = fo.formulate(random_tree(0, limits=1.0), "drfh")
    with pytest.raises(fo.NoSolution) as raised:
        fo.SOLVERS["interior-point"]().solve(program, tolerance=1e-8, deadline=Deadline(0.0))
    assert "levels" in raised.value.known


def test_a_limit_that_nobody_reaches_takes_no_step() -> None:
    """The path starts where that of the instance without the limit does, and has its levels and its steps."""
    rng = np.random.default_rng(0)
    instance = fo.Instance(rng.uniform(50, 100, (20, 2)), rng.uniform(0.1, 2, (600, 2)), resources=["cpu", "gpu"])
    limit = fo.Limit("loose", 0.99 * float(instance.total_capacity[0]), resource="cpu", users=list(instance.users[::2]))
    plain, limited = fo.solve(instance, "drfh"), fo.solve(instance.replace(limits=[limit]), "drfh")
    assert (plain.solver, limited.solver) == ("interior-point", "interior-point")
    assert limited.details["iterations"] == plain.details["iterations"]
    assert limited.tasks_per_user == pytest.approx(plain.tasks_per_user, rel=1e-10)


def test_a_path_starts_between_what_all_have_and_even_slices() -> None:
    """Half of the users stop at a limit long before the servers are full: one path for the others, and none for the limit."""
    rng = np.random.default_rng(1)
    instance = fo.Instance(rng.uniform(50, 100, (20, 2)), rng.uniform(0.1, 2, (600, 2)), resources=["cpu", "gpu"])
    few = list(instance.users[::2])
    limited = instance.replace(limits=[fo.Limit("tight", 0.02 * float(instance.total_capacity[0]), resource="cpu", users=few)])
    program = fo.formulate(limited, "drfh")
    mine, theirs = filled(program), fo.solve(limited, "drfh", solver="highs")
    assert certify(program, mine).worst <= 1e-9
    assert [stage.prices is None for stage in mine.stages][:1] == [True]
    assert mine.programs_solved == len(mine.stages) - 1
    assert program.per_user(mine.x) == pytest.approx(theirs.tasks_per_user, rel=1e-8)

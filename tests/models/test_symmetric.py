"""Notions of one's own that tell users or servers apart by their names: nothing is merged that they tell apart.

The oracle is a loop of SciPy's linear programs over the whole program (`reference.leximin`); it is given rows and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.leximin import levels_of
from reference.linear import largest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.models.drfh import DRFH
from fairopt.models.efficiency import Efficiency
from fairopt.models.max_min import MaxMin
from fairopt.models.proportional import Proportional


class Urgent(fo.ShareNotion):
    """Leximin of tasks over the urgency of a user, which is looked up by its name."""

    name = "urgent"
    title = "Tasks over urgency"
    source = "an example"
    urgency: ClassVar = {"alice": 1.0, "bob": 3.0}

    def share_per_task(self, instance: fo.Instance) -> FloatArray:
        """Return one over the urgency."""
        return np.array([1 / self.urgency[user] for user in instance.users])


class Speed(fo.ShareNotion):
    """Leximin of work; a task on a server whose name begins with "fast" counts twice."""

    name = "speed"
    title = "Work"
    source = "an example"

    def share_per_task(self, instance: fo.Instance) -> FloatArray:
        """Return the speed of each server."""
        return np.array([[2.0 if server.startswith("fast") else 1.0 for server in instance.servers]] * instance.n_users)


class UrgentDRFH(DRFH):
    """A subclass of a notion of fairopt."""

    name = "urgent-drfh"

    def share_per_task(self, instance: fo.Instance) -> Any:
        """Return the dominant share over the urgency, in fractions for an instance in fractions."""
        return super().share_per_task(instance) / np.array([1 if user == "a" else 3 for user in instance.users])


def test_a_share_by_name_is_not_merged_away() -> None:
    """2 and 6 tasks, of shares 2 and 2; with a subclass of DRFH 6 and 2."""
    allocation = fo.solve(fo.Instance([[8]], [[1], [1]], users=["alice", "bob"]), Urgent)
    assert allocation.tasks_per_user.round(9).tolist() == [2, 6]
    assert allocation.shares.round(9).tolist() == [2, 2]
    instance = fo.Instance([[8]], [[1], [1]], users=["b", "a"])
    assert fo.solve(instance, UrgentDRFH).tasks_per_user.round(9).tolist() == [6, 2]
    exact = fo.solve(instance, UrgentDRFH, exact=True).exact
    assert exact is not None
    assert exact.tasks_per_user.tolist() == [6, 2]


def test_a_server_by_name() -> None:
    """Equal servers that a notion tells apart: 4 of a's tasks on the fast one count as much as 2 of b's on both."""
    instance = fo.Instance([[4], [4]], [[1], [2]], users=["a", "b"], servers=["fast", "slow"])
    allocation = fo.solve(instance, Speed)
    same = fo.solve(instance, "max-min", utility=[[2, 1], [2, 1]])
    np.testing.assert_allclose(allocation.shares, same.shares, rtol=1e-9)
    np.testing.assert_allclose((allocation.tasks * [2, 1]).sum(axis=1), allocation.shares, rtol=1e-9)


def test_a_declaration_is_not_inherited_past_an_override() -> None:
    """Of any method that a program may be made by; of what has no part in it, it is."""

    class OtherGoal(DRFH):
        def goal(self, weights: FloatArray) -> Any:
            return super().goal(weights * np.arange(1, weights.size + 1))

    class Told(DRFH):
        def describe_measure(self, instance: fo.Instance, user: int) -> str:
            return "what it is"

        def helper(self) -> int:
            return 0

    class Declared(fo.ShareNotion):
        name, title, source = "declared", "", ""
        symmetric = True

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            return self.of_one(instance)

        def of_one(self, instance: fo.Instance) -> FloatArray:
            return np.ones(instance.n_users)

    class Helped(Declared):
        def of_one(self, instance: fo.Instance) -> FloatArray:
            return np.arange(1.0, instance.n_users + 1)

    class Mixin:
        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            return np.arange(1.0, instance.n_users + 1)

    class Mixed(Mixin, DRFH):
        pass

    class Again(Helped):
        symmetric = True

    @dataclass(frozen=True)
    class Counted(Declared):
        count: Any = len  # an option that is a function

    class Kept(Declared):
        def __init__(self) -> None:
            super().__init__()
            object.__setattr__(self, "of_one", lambda instance: np.arange(1.0, instance.n_users + 1))

    assert Counted().is_symmetric
    assert not Kept().is_symmetric
    found = {cls.__name__: cls().is_symmetric for cls in (Urgent, UrgentDRFH, OtherGoal, Told, Declared, Helped, Mixed, Again)}
    assert found == {
        **dict.fromkeys(("Urgent", "UrgentDRFH", "OtherGoal", "Helped", "Mixed"), False),
        **dict.fromkeys(("Told", "Declared", "Again"), True),
    }
    assert all(notion().is_symmetric for notion in fo.NOTIONS.values())


@dataclass(frozen=True, eq=False)
class ByName(DRFH):
    """DRFH whose share of a user and of a server depends on their names."""

    of_users: Any = None
    of_servers: Any = None
    name = "by-name"

    def share_per_task(self, instance: fo.Instance) -> FloatArray:
        """Return the dominant share times what belongs to the names."""
        users, servers = (
            [table[name] for name in names] for table, names in zip(self._tables, (instance.users, instance.servers), strict=True)
        )
        return super().share_per_task(instance)[:, None] * np.outer(users, servers)

    @property
    def _tables(self) -> tuple[dict[str, float], dict[str, float]]:
        return self.of_users, self.of_servers


@st.composite
def named_cases(draw: st.DrawFn) -> tuple[fo.Instance, ByName]:
    """Instances of few kinds of users and servers, some in queues, and factors by name, few of them different."""
    n, k, m = draw(st.integers(2, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    capacities, demands = rng.integers(2, 9, (2, m))[rng.integers(2, size=k)], rng.integers(1, 4, (2, m))[rng.integers(2, size=n)]
    eligibility = (rng.random((2, k)) < 0.7)[rng.integers(2, size=n)] if draw(st.booleans()) else None
    tasks = rng.choice([1.5, np.inf], n) if draw(st.booleans()) else None
    instance = fo.Instance(capacities, demands, weights=rng.choice([1.0, 2.0], n), eligibility=eligibility, tasks=tasks)
    factor_of_users = dict(zip(instance.users, rng.choice([1.0, 1.0, 3.0], n).tolist(), strict=True))
    factor_of_servers = dict(zip(instance.servers, rng.choice([1.0, 1.0, 2.0], k).tolist(), strict=True))
    return instance, ByName(of_users=factor_of_users, of_servers=factor_of_servers)


@given(named_cases())
@settings(max_examples=60)
def test_random_notions_by_name_against_the_oracle(case: tuple[fo.Instance, ByName]) -> None:
    """Shares of the answer, of the whole program without any classes, and of the loop of linear programs."""
    instance, notion = case
    allocation = fo.solve(instance, notion)
    program = fo.formulate(instance, notion)
    np.testing.assert_allclose(program.utility(allocation.tasks) / instance.weights, allocation.shares, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(allocation.shares, levels_of(program, instance.weights), rtol=1e-5, atol=1e-9)
    as_given = fo.solve(instance, "max-min", utility=notion.share_per_task(instance))
    np.testing.assert_allclose(allocation.shares, as_given.shares, rtol=1e-8, atol=1e-12)


@given(named_cases(), st.sampled_from(["sum", "nested"]))
@settings(max_examples=40)
def test_random_notions_by_name_in_trees(case: tuple[fo.Instance, ByName], how: str) -> None:
    """In queues the answer is that of the same shares given as utilities, whose rows are merged by their numbers."""
    instance, notion = case
    queues = [fo.Queue("p", weight=2), fo.Queue("q", parent="p", limit={instance.resources[0]: 3})]
    tree = instance.replace(queues=queues, queue_of=[("p", "q", None)[n % 3] for n in range(instance.n_users)])
    options: dict[str, Any] = {"queue_share": "sum"} if how == "sum" else {"tree": "nested"}
    try:
        as_given = fo.solve(tree, "max-min", utility=notion.share_per_task(tree), **options)
    except fo.CertificateError:
        return
    allocation = fo.solve(tree, notion.changed(**options))
    np.testing.assert_allclose(allocation.shares, as_given.shares, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("base", [Efficiency, Proportional])
def test_goals_that_are_sums(base: type[fo.ShareNotion]) -> None:
    """A total and an alpha-fair goal with utilities by name: the same as with these utilities given."""

    class Named(base):  # type: ignore[misc, valid-type]
        name = "named"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            return np.array([[3.0 if (user, server) == ("u1", "s2") else 1.0 for server in instance.servers] for user in instance.users])

    users, servers = [f"u{n}" for n in range(4)], [f"s{i}" for i in range(3)]
    instance = fo.Instance([[4, 4]] * 3, [[1, 2]] * 2 + [[2, 1]] * 2, users=users, servers=servers)
    allocation = fo.solve(instance, Named())
    if base is Proportional:
        worth = np.ones((4, 3))
        worth[1, 2] = 3
        same = fo.solve(instance, "proportional", utility=worth)
        np.testing.assert_allclose(allocation.shares, same.shares, rtol=1e-6)
    else:
        program = fo.formulate(instance, Named())
        best = largest(program.utilities, program.limits.matrix.toarray(), program.limits.bounds)
        assert allocation.shares.sum() == pytest.approx(best, rel=1e-9)
        assert best > fo.solve(instance, "efficiency").tasks.sum()  # the one pair that is worth more tells users and servers apart


@given(named_cases())
@settings(max_examples=30)
def test_random_notions_by_name_in_fractions(case: tuple[fo.Instance, ByName]) -> None:
    """Equal fractions whether rows are taken together by the numbers of the program or by those of the instance."""
    instance, notion = case
    whole = notion.changed(of_users=_whole(notion.of_users), of_servers=_whole(notion.of_servers))
    found = fo.solve(instance, whole, exact=True).exact
    utility = whole.share_per_task(instance.exact)
    same = fo.solve(instance, "max-min", utility=utility, exact=True).exact
    assert found is not None
    assert same is not None
    assert found.shares.tolist() == same.shares.tolist()
    assert found.levels.tolist() == same.levels.tolist()


def _whole(numbers: dict[str, float]) -> dict[str, int]:
    return {name: int(number) for name, number in numbers.items()}


def test_many_equal_servers_in_fractions() -> None:
    """200 equal servers and 40 users of four kinds are a small program, though a name might tell them apart."""
    users = [f"{kind}{n}" for n in range(10) for kind in "abcd"]
    demands = [[1 + "abcd".index(user[0]), 2] for user in users]
    instance = fo.Instance([[7, 5]] * 200, demands, users=users)
    exact = fo.solve(instance, UrgentDRFH, exact=True).exact
    assert exact is not None
    assert exact.shares.tolist() == fo.solve(instance.replace(weights=[3] * 40), "drfh", exact=True).exact.shares.tolist()  # type: ignore[union-attr]


def test_options_of_a_class_with_an_init_of_its_own() -> None:
    """What an answer was asked with is in its data: fields, and what an __init__ keeps."""

    class Own(Urgent):
        def __init__(self, gpu: int = 2) -> None:
            super().__init__()
            object.__setattr__(self, "gpu", gpu)

    instance = fo.Instance([[8]], [[1], [1]], users=["alice", "bob"])
    options = fo.solve(instance, Own(gpu=3)).to_dict()["question"]["options"]
    assert options == {"guarantees": "surplus", "queue_share": None, "tree": "filling", "gpu": 3}
    tree = instance.replace(queues=[fo.Queue("q")], queue_of=["q", None])
    assert fo.solve(tree, "drfh", tree="nested").to_dict()["question"]["options"]["tree"] == "nested"
    assert DRFH(tree="nested") != DRFH()


def test_who_leaves_may_be_looked_up_by_name() -> None:
    """Without the boss z counts less, so that the others lose: this is seen though all users have one level."""

    class Bossy(fo.ShareNotion):
        name, title, source = "bossy", "Whose boss is there", "an example"

        def share_per_task(self, instance: fo.Instance) -> FloatArray:
            slow = 1.0 if "boss" in instance.users else 0.2
            return np.array([slow if user == "z" else 1.0 for user in instance.users])

    allocation = fo.solve(fo.Instance([[12]], [[1]] * 3, users=["z", "b", "boss"]), Bossy)
    assert allocation.tasks_per_user.round(9).tolist() == [4, 4, 4]
    verdict = fo.audit(allocation, ["population-monotonicity"])["population-monotonicity"]
    assert verdict.holds is False
    assert verdict.violation == pytest.approx(2)


def test_servers_by_name_over_time() -> None:
    """A simulation merges no servers that a notion may tell apart: the same rates as with the speeds given."""
    cluster = fo.Instance([[4], [4]], [[1], [2]], users=["a", "b"], servers=["fast", "slow"], resources=["gpu"])
    trace = fo.Trace(["a", "b"], [0, 0], [8, 6], [[1], [2]], [2, 2], resources=["gpu"])
    found = fo.simulate(trace, cluster, Speed())
    same = fo.simulate(trace, cluster, MaxMin(utility=[[2, 1], [2, 1]]))
    np.testing.assert_allclose(found.completion, same.completion, rtol=1e-7)

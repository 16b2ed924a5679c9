"""Groups of users give the same exact answer as all pairs, are asked for where they can, and are left where they lead nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import AllPairs, Program, Solution, all_pairs
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.large import engine, groups
from fairopt.solvers.large.engine import suits_groups
from fairopt.solvers.large.groups import finer, split
from fairopt.solvers.large.settings import SETTINGS

MANY: dict[str, Any] = {"kind": "uniform", "users": 600, "servers": 12, "resources": 3, "weights": 5}
FEW = SETTINGS._replace(first_groups=16, server_groups=((4, 1e-3),))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups for small instances, too, and few of them."""
    monkeypatch.setattr(all_pairs, "_MANY", 0)
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(least_pairs=0, least_users=0, least_servers=1, users_for_a_server=(2,)))
    monkeypatch.setattr(groups, "SETTINGS", FEW)


def changed(instance: fo.Instance, **changes: Any) -> fo.Instance:
    """The instance with changes that `replace` takes."""
    return instance.replace(**changes)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("notion", "options"),
    [
        ("drfh", MANY),
        ("drfh", MANY | {"resources": 1}),
        ("drfh", MANY | {"resources": 2, "seed": 2}),
        ("tsf", MANY | {"seed": 3}),
        ("cdrf", MANY | {"seed": 4, "resources": 4, "weights": 1}),
        ("drfh", {"kind": "google", "users": 300, "weights": 3}),  # rows of servers with counts
        ("drfh", {"kind": "kesidis", "users": 400, "servers": 6}),
    ],
)
def test_groups_give_the_answer_of_all_pairs(notion: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The level and everybody's tasks are unique; the certificate is that of all users."""
    instance = fo.generate(**options)
    ours = fo.solve(instance, notion)
    assert ours.details["groups"] < instance.n_users / 2
    assert ours.certificate.worst < 1e-11
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(least_pairs=10**9))
    all_pairs = fo.solve(instance, notion)
    assert "groups" not in all_pairs.details
    np.testing.assert_allclose(ours.tasks_per_user, all_pairs.tasks_per_user, rtol=1e-9)
    np.testing.assert_allclose(ours.shares, all_pairs.shares, rtol=1e-9)
    assert [level.users for level in ours.levels] == [level.users for level in all_pairs.levels]
    assert ours.levels[0].value == pytest.approx(all_pairs.levels[0].value, rel=1e-9)
    assert ours.prices is not None
    assert float((ours.prices * instance.row_capacity).sum()) == pytest.approx(ours.levels[0].value)


@pytest.mark.usefixtures("small")
def test_identical_users_and_servers_are_merged_before() -> None:
    """Twins get their parts of what one would get."""
    one = fo.generate(**MANY)
    n, k = np.repeat(np.arange(one.n_users), 2), np.repeat(np.arange(one.n_servers), 2)
    part = np.tile([0.25, 0.75], one.n_users)
    twins = fo.Instance(one.capacities[k] / 2, one.demands[n], one.weights[n] * part)
    answer = fo.solve(twins)
    assert "groups" in answer.details
    assert answer.certificate.worst < 1e-11
    np.testing.assert_allclose(answer.tasks_per_user, fo.solve(one).tasks_per_user[n] * part, rtol=1e-9)
    assert answer.tasks.shape == (1200, 24)
    assert len(answer.levels[0].users) == 1200


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("changed", [{"most_rounds": 1}, {"most_groups": 17}, {"same_worth": 1.0}], ids=["rounds", "groups", "not exact"])
def test_all_pairs_are_solved_where_groups_lead_nowhere(changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rounds, too many groups, and an answer in groups that is not exact for all users: its certificate says so."""
    monkeypatch.setattr(groups, "SETTINGS", FEW._replace(**changed))
    answer = fo.solve(fo.generate(**MANY))
    assert "groups" not in answer.details
    assert answer.certificate.worst < 1e-9


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("times", [1, 10])
def test_a_program_on_which_the_engine_gets_lost_is_changed(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: more groups are tried. Always: all pairs are solved."""
    sizes: list[int] = []

    def lost_at_first(program: Program, *arguments: Any) -> Solution | None:
        sizes.append(program.members.size)
        return None if len(sizes) <= times else solve_levels(program, *arguments)

    monkeypatch.setattr(groups, "solve_levels", lost_at_first)
    answer = fo.solve(fo.generate(**MANY))
    assert ("groups" in answer.details) == (times == 1)
    assert answer.certificate.worst < 1e-9
    assert sizes[1] > sizes[0]


@pytest.mark.usefixtures("small")
def test_an_answer_that_is_not_proved_is_that_of_the_next_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy certifies an answer in groups as that of any engine, and goes on."""
    monkeypatch.setattr(groups, "polished", lambda y, *_: y * np.linspace(0.9, 1, len(y))[:, None])
    answer = fo.solve(fo.generate(**MANY))
    assert answer.solver == answer.details["finished_by"] == "interior-point"
    assert answer.details["engines"] == ("large", "interior-point")
    assert answer.certificate.worst < 1e-9


@pytest.mark.usefixtures("small")
def test_columns_are_made_for_other_engines() -> None:
    """The arrays are those of an ordinary program, and a changed copy is one."""
    instance = fo.generate(**MANY)
    program = fo.formulate(instance, "drfh")
    assert isinstance(program, AllPairs)
    copy = replace(program, title="a copy")
    assert type(copy) is Program
    users, servers = np.nonzero(instance.eligibility)
    for one in (program, copy):
        np.testing.assert_array_equal(one.pair_users, users)
        np.testing.assert_array_equal(one.pair_servers, servers)
        x = np.random.default_rng(0).random(one.n_pairs)
        used = (x.reshape(600, 12).T @ instance.demands).ravel()
        np.testing.assert_allclose(one.limits.matrix @ x, used)
        np.testing.assert_allclose(one.utility(one.table(x)), one.per_user(one.utilities * x))
        assert one.can_run.all()
    with pytest.raises(AttributeError, match="no colour"):
        getattr(program, "colour")  # noqa: B009
    with pytest.raises(AttributeError, match="no colour"):
        getattr(program.limits, "colour")  # noqa: B009


@pytest.mark.usefixtures("small")
def test_the_time_limit_holds() -> None:
    """No time is left for a second program."""
    with pytest.raises(fo.NoSolution):
        fo.solve(fo.generate(**MANY), time_limit=1e-9)


def test_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One level for sure, and a size at which groups are faster."""
    instance = fo.generate(**MANY)
    assert type(fo.formulate(instance, "drfh")) is Program  # too small
    monkeypatch.setattr(all_pairs, "_MANY", 0)
    assert not suits_groups(fo.formulate(instance, "drfh"))
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(least_pairs=0, least_users=0, least_servers=1))
    assert suits_groups(fo.formulate(instance, "drfh"))
    assert not suits_groups(fo.formulate(instance, "drfh", sharing="tdm"))
    assert not suits_groups(fo.formulate(fo.generate(**MANY | {"resources": 4}), "drfh"))  # groups would be too many
    for notion in ("psdsf", "efficiency", "uniform"):
        assert not suits_groups(fo.formulate(instance, notion)), notion
    own = np.random.default_rng(0).uniform(1, 2, (600, 12))
    assert not suits_groups(fo.formulate(instance, "max-min", utility=own))
    one = np.arange(600) == 5
    for change in (
        {"demands": np.where(one[:, None] & [True, False, False], 0.0, instance.demands)},
        {"eligibility": ~(one[:, None] & (np.arange(12) == 2))},
        {"tasks": np.where(one, 10.0, np.inf)},
        {"parallelism": np.where(one, 2.0, np.inf)},
        {"guarantees": np.where(one, 1e-3, 0.0)},
        {"weights": np.where(one, 0.0, 1.0)},
        {"weights": np.ones((600, 3))},
        {"queues": [fo.Queue("research")]},
        {"rates": np.ones((600, 12))},
    ):
        assert not suits_groups(fo.formulate(changed(instance, **change), "drfh")), change.keys()


def test_groups_are_split_until_there_are_enough() -> None:
    """Groups of before are never mixed, and members without a difference stay together."""
    vectors = np.random.default_rng(0).uniform(0.1, 1, (100, 3))
    before = np.arange(100) % 3
    after = finer(before, vectors, 20)
    assert np.unique(after).tolist() == list(range(20))
    assert all(np.unique(before[after == group]).size == 1 for group in range(20))
    assert np.unique(finer(np.zeros(10, int), np.ones((10, 2)), 4)).size == 1


def test_a_split_costs_nothing_in_the_dual() -> None:
    """Afterwards the least price of a group is the sum of those of its members, and their worth is that of everybody alone."""
    rng = np.random.default_rng(1)
    vectors, vertices = rng.uniform(0.1, 1, (200, 2)), np.array([[1.0, 0.2], [0.6, 0.5], [0.1, 1.1]])
    first = split(np.arange(200) % 7, vectors, vertices)
    least = (vectors @ vertices.T).min(axis=1)
    assert first.worth == pytest.approx(least.sum())
    assert first.gap > 0.01
    assert first.mixed == 7
    again = split(first.group, vectors, vertices)
    assert (again.gap, again.mixed) == (0.0, 0)
    assert again.group.tolist() == first.group.tolist()
    sums = np.stack([np.bincount(first.group, weights=column) for column in vectors.T], axis=1)
    np.testing.assert_allclose((sums @ vertices.T).min(axis=1), np.bincount(first.group, weights=least))


def test_members_nearest_to_a_boundary_stand_alone_near_the_end() -> None:
    """Two pieces that are the same at the shape (1, 1): those nearest to it become groups of their own, once next to nothing is lost."""
    shape = np.concatenate([np.linspace(0.2, 0.4, 50), [0.4999, 0.5001], np.linspace(0.6, 0.8, 50)])
    vectors, vertices = np.column_stack([shape, 1 - shape]), np.eye(2)
    group = np.concatenate([np.zeros(50, int), [1, 1], np.full(50, 2)])
    after = split(group, vectors, vertices, nearest=2).group
    assert np.bincount(after).tolist().count(1) == 2
    assert np.unique(after[50:52]).size == 2
    assert np.unique(after).size == 4


def test_prices_that_the_end_of_a_path_does_not_tell_from_0() -> None:
    """Weights over six orders of magnitude: the pooled cluster's memory stops everybody, and no server's other resources have a price.

    By hand: with the shares t w all memory is taken, so t = C / sum of w d / s, where C is all memory, d a task's and s its dominant share.
    """
    rng = np.random.default_rng(1)
    capacities, demands = rng.uniform(10, 100, (50, 3)), rng.uniform(0.1, 2, (2000, 3))
    weights = 10 ** np.random.default_rng(1001).uniform(0, 6, 2000)
    allocation = fo.solve(fo.Instance(capacities, demands, weights=weights), "drfh", solver="large")
    total = capacities.sum(axis=0)
    level = total[1] / (weights * demands[:, 1] / (demands / total).max(axis=1)).sum()
    np.testing.assert_allclose(allocation.shares, level, rtol=1e-12)
    assert allocation.certificate.worst <= 1e-12

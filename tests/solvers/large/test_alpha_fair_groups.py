"""Groups of users give the exact alpha-fair answer of all pairs, are asked for where they can, and are left where they lead nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import all_pairs
from fairopt.solvers.large import alpha_fair_groups, engine
from fairopt.solvers.large.engine import suits_groups
from fairopt.solvers.large.settings import SETTINGS

MANY: dict[str, Any] = {"kind": "uniform", "users": 400, "servers": 8, "resources": 3, "weights": 5}
FEW = SETTINGS._replace(first_groups=16)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups for small instances, too, and few of them."""
    monkeypatch.setattr(all_pairs, "_MANY", 0)
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(least_pairs=0, least_users=0, least_servers=1))
    monkeypatch.setattr(alpha_fair_groups, "SETTINGS", FEW)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("options", "alpha", "utility"),
    [(MANY, 1.0, None), (MANY | {"seed": 1}, 2.0, None), (MANY | {"seed": 2, "resources": 2}, 0.7, "own")],
)
def test_groups_give_the_answer_of_all_pairs(
    options: dict[str, Any], alpha: float, utility: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody's tasks are unique; the certificate is that of all users, and prices are multipliers."""
    instance = fo.generate(**options)
    own: dict[str, Any] = {} if utility is None else {"utility": np.random.default_rng(0).uniform(1, 2, instance.n_users)}
    ours = fo.solve(instance, "proportional", alpha=alpha, **own)
    assert ours.details["groups"] < instance.n_users / 2
    assert ours.certificate.worst < 1e-12
    monkeypatch.setattr(engine, "SETTINGS", SETTINGS._replace(least_pairs=10**9))
    all_pairs = fo.solve(instance, "proportional", alpha=alpha, **own)
    assert "groups" not in all_pairs.details
    np.testing.assert_allclose(ours.tasks_per_user, all_pairs.tasks_per_user, rtol=1e-7)
    np.testing.assert_allclose(ours.shares, all_pairs.shares, rtol=1e-7)
    assert ours.levels == all_pairs.levels == ()
    assert ours.prices is not None
    assert all_pairs.prices is not None
    np.testing.assert_allclose(ours.prices, all_pairs.prices, rtol=1e-6, atol=1e-6 * all_pairs.prices.max())


@pytest.mark.usefixtures("small")
def test_identical_users_are_merged_before() -> None:
    """Twins get their parts of what one would get."""
    one = fo.generate(**MANY)
    part = np.tile([0.25, 0.75], one.n_users)
    n = np.repeat(np.arange(one.n_users), 2)
    answer = fo.solve(fo.Instance(one.capacities, one.demands[n], one.weights[n] * part), "proportional")
    assert "groups" in answer.details
    np.testing.assert_allclose(answer.tasks_per_user, fo.solve(one, "proportional").tasks_per_user[n] * part, rtol=1e-9)
    np.testing.assert_allclose(answer.shares, answer.tasks_per_user)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "changed", [{"most_rounds_of_alpha_fair": 1}, {"most_groups_of_alpha_fair": 17}, {"near_end_of_alpha_fair": 0.0}], ids=str
)
def test_all_pairs_are_solved_where_groups_lead_nowhere(changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many rounds, too many groups, and no exact prices."""
    monkeypatch.setattr(alpha_fair_groups, "SETTINGS", FEW._replace(**changed))
    answer = fo.solve(fo.generate(**MANY), "proportional")
    assert "groups" not in answer.details
    assert answer.certificate.worst < 1e-9


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("times", [1, 10])
def test_a_program_on_which_the_path_gets_lost_is_changed(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, at both tolerances: more groups are tried. Always: all pairs are solved."""
    sizes: list[int] = []
    solved = alpha_fair_groups._solved

    def lost_at_first(groups: Any, *arguments: Any) -> Any:
        sizes.append(groups.weights.size)
        return None if len(sizes) <= times else solved(groups, *arguments)

    monkeypatch.setattr(alpha_fair_groups, "_solved", lost_at_first)
    answer = fo.solve(fo.generate(**MANY), "proportional")
    assert ("groups" in answer.details) == (times == 1)
    assert answer.certificate.worst < 1e-9
    assert sizes[1] > sizes[0]


@pytest.mark.usefixtures("small")
def test_a_rough_end_of_a_path_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """With prices of three digits, exact prices and more groups still lead to the answer."""
    monkeypatch.setattr(alpha_fair_groups, "SETTINGS", FEW._replace(rough=(1e-20, 1e-3)))
    answer = fo.solve(fo.generate(**MANY), "proportional")
    assert "groups" in answer.details
    assert answer.certificate.worst < 1e-12


@pytest.mark.usefixtures("small")
def test_the_time_limit_holds() -> None:
    """No time is left for a second program."""
    with pytest.raises(fo.NoSolution):
        fo.solve(fo.generate(**MANY), "proportional", time_limit=1e-9)


@pytest.mark.usefixtures("small")
def test_what_fits() -> None:
    """Proportional fairness, alpha not far from 1, tasks that are worth the same everywhere, and several resources."""
    instance = fo.generate(**MANY)

    def suits(of: fo.Instance = instance, **options: Any) -> bool:
        return suits_groups(fo.formulate(of, "proportional", **options))

    assert suits()
    assert suits(utility=np.linspace(1, 2, 400))
    assert not suits(utility=np.random.default_rng(0).uniform(1, 2, (400, 8)))
    assert not suits(alpha=10.0)
    assert not suits(sharing="tdm")
    assert not suits(instance.replace(tasks=np.full(400, 10.0)))
    assert not suits(fo.generate(**MANY | {"resources": 1}))

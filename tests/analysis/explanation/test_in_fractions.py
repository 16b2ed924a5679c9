"""Explanations in fractions against a rational simplex of the tests' own, with ties and with differences of 10^-40."""

# mypy: disable-error-code="arg-type,dict-item"
# (fractions where the types say floats)

from __future__ import annotations

import dataclasses
import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
from reference.exact import leximin, limits, maximise, shares_per_task
from typer.testing import CliRunner

import fairopt as fo
from fairopt.analysis.explanation.exact_prices import ExactLevelPrices
from fairopt.analysis.rerun import given, merged_servers
from fairopt.cli import app

TINY = Fraction(1, 10**40)
EXAMPLES = Path(__file__).parents[3] / "examples"


def draw(rng: random.Random) -> fo.Instance:
    """A tiny instance in small whole numbers and thirds; some numbers have 10^-40 more."""
    n, k, m = rng.randint(2, 3), rng.randint(1, 2), rng.randint(1, 2)
    off = [Fraction(0), Fraction(0), TINY]
    return fo.Instance(
        [[rng.randint(1, 9) + rng.choice(off) for _ in range(m)] for _ in range(k)],
        [[Fraction(rng.randint(1, 4), rng.choice([1, 3])) + rng.choice(off) for _ in range(m)] for _ in range(n)],
        weights=[rng.randint(1, 3) for _ in range(n)] if rng.random() < 0.5 else None,
        tasks=[rng.choice([2, 5, Fraction(1, 3)]) for _ in range(n)] if rng.random() < 0.3 else None,
        eligibility=[[i == 0 or rng.random() < 0.6 for i in range(k)] for _ in range(n)] if rng.random() < 0.6 else None,
    )


def changed(instance: fo.Instance, user: int, gain: fo.analysis.explanation.Gain) -> fo.Instance:
    """Make a change anew, from its words."""
    exact = instance.exact
    if gain.kind == "weight":
        weights = exact.weights.copy()
        weights[user] += 1
        return instance.replace(weights=weights)
    if gain.kind == "placement":
        allowed = instance.eligibility.copy()
        allowed[user, instance.servers.index(gain.change.removeprefix("may run on ").partition(" and ")[0])] = True
        return instance.replace(eligibility=allowed)
    _, resource, _, server = gain.change.split()
    capacities = exact.capacities.copy()
    i, r = instance.servers.index(server), instance.resources.index(resource)
    capacities[i, r] += 1
    return instance.replace(capacities=capacities)


def highest(instance: fo.Instance, notion: str, rising: list[int], held: dict[int, Fraction]) -> Fraction:
    """The largest t with shares >= t of the rising users, if the others keep the tasks that they hold; a simplex of its own."""
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility)]
    share = shares_per_task(instance, notion)
    rows, bounds = limits(instance, pairs)
    reward = Fraction(10) ** 90
    table = [[*row, Fraction(0), *[Fraction(0)] * len(held)] for row in rows]
    for n in rising:
        table.append([*(-share[n] * (user == n) for user, _ in pairs), Fraction(1), *[Fraction(0)] * len(held)])
        bounds.append(Fraction(0))
    for j, (n, tasks) in enumerate(held.items()):
        own = [Fraction(int(j == q)) for q in range(len(held))]
        table += [[*(-Fraction(int(user == n)) for user, _ in pairs), Fraction(0), *own], [Fraction(0)] * (len(pairs) + 1) + own]
        bounds += [Fraction(0), tasks]
    cost = [Fraction(0)] * len(pairs) + [Fraction(1)] + [reward] * len(held)
    return maximise(cost, table, bounds) - reward * sum(held.values(), Fraction(0))


def test_against_a_simplex_of_its_own() -> None:
    """Every gain by solving is the fraction that the reference gives; no gain by price is below what the level can rise, most are equal."""
    rng = random.Random(7)
    solved = tight = bounded = 0
    for _ in range(10):
        instance, notion = draw(rng), rng.choice(["drfh", "cdrf", "asset"])
        user = rng.randrange(instance.n_users)
        allocation = fo.solve(instance, notion, exact=True)
        before = leximin(instance.exact, notion)
        told = fo.explain(allocation, instance.users[user])
        assert told.tasks == before[user]
        assert told.user is not None
        share = shares_per_task(instance.exact, notion)
        levels = [x * s for x, s in zip(before, share, strict=True)]
        for gain in told.gains:
            after = changed(instance, user, gain).exact
            if gain.by_solving is not None:
                solved += 1
                assert gain.by_solving == leximin(after, notion)[user] - before[user], (notion, gain)
            if gain.by_price is not None:
                rising = [n for n in range(instance.n_users) if levels[n] >= levels[user]]
                held = {n: before[n] for n in range(instance.n_users) if levels[n] < levels[user]}
                rise = highest(after, notion, rising, held) / shares_per_task(after, notion)[user] - before[user]
                bounded += 1
                tight += gain.by_price == rise
                assert gain.by_price >= rise, (notion, gain)
    assert solved > 15
    assert bounded > 15
    assert tight > bounded // 2


def test_what_binds_is_what_is_full() -> None:
    """Blockers: full to the last bit, and a bottleneck exactly where nobody who holds some of it has more; 10^-40 free blocks nobody."""
    rng = random.Random(3)
    seen = 0
    for _ in range(20):
        instance = draw(rng)
        allocation = fo.solve(instance, "drfh", exact=True)
        assert allocation.exact is not None
        exact, x, shares = instance.exact, allocation.exact.tasks, allocation.exact.shares
        told = fo.explain(allocation, instance.users[0], resolves=0)
        expected = {}
        for i in np.flatnonzero(instance.eligibility[0]) if x[0].sum() < exact.tasks[0] else ():
            for r in range(instance.n_resources):
                if sum(x[n, i] * exact.demands[n, r] for n in range(instance.n_users)) == exact.capacities[i, r]:
                    holders = [n for n in range(instance.n_users) if x[n, i] > 0]
                    expected[instance.servers[i], instance.resources[r]] = all(shares[n] <= shares[0] for n in holders)
        assert {(each.server, each.resource): each.bottleneck for each in told.blockers} == expected
        seen += len(expected)
        for each in told.blockers:
            assert each.used == each.capacity
            assert all(isinstance(value, Fraction) for value in (each.capacity, each.used, each.own, *(held for _, held in each.holders)))
    assert seen > 15
    pool = fo.Instance([[1]], [[1], [1]], users=["a", "b"])
    short = given(pool, np.array([[Fraction(1, 2)], [Fraction(1, 2) - TINY]]), "rdm", exact=True)
    assert fo.explain(short, "a", resolves=0).blockers == ()
    assert "there is room for more of its tasks" in str(fo.explain(short, "a", resolves=0))


def test_drf_by_hand() -> None:
    """x = (3, 2), cpu is full: the level rises by 2/27 for a cpu; 10 cpu give 90/29 tasks; with weight 2 at most 9/2, and 54/13."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"], servers=["pool"], resources=["cpu", "memory"])
    told = fo.explain(fo.solve(instance, "drf", exact=True), "a")
    (blocker,) = told.blockers
    assert (blocker.price, blocker.own, blocker.holders) == (Fraction(2, 27), 3, (("b", Fraction(6)),))
    assert {gain.change: (gain.by_price, gain.by_solving) for gain in told.gains} == {
        "weight 2 instead of 1": (Fraction(3, 2), Fraction(15, 13)),
        "+1 cpu on pool": (Fraction(3, 29), Fraction(3, 29)),
    }
    assert "Who has that cpu: b 2/3, a itself 1/3." in told.sentences
    data = json.loads(json.dumps(told.to_dict()))
    assert data["exact"] == {"tasks": "3"}
    assert data["gains"][0]["exact"] == {"by_price": "3/2", "by_solving": "15/13"}
    assert data["blockers"][0]["exact"]["price"] == "2/27"


def test_ties_are_ties() -> None:
    """Users who differ by 10^-40: nobody is above the first, the third needs more for a task and stops with them; its level is the same."""
    twins = fo.Instance([[1]], [[1], [1], [1 + TINY]], users=["a", "b", "c"])
    told = fo.explain(fo.solve(twins, "drf", exact=True), "a", against="c")
    assert "b and c have the same share; nobody has less or more." in str(told)
    assert "c has ~0.333 of a task. With what c holds, a could run 1/3 of a task, as many as it has: nothing to envy." in str(told)
    uneven = given(twins, np.array([[Fraction(1, 3)], [Fraction(1, 3) + TINY], [Fraction(1, 4)]]), "rdm", exact=True)
    assert "it has reason to envy b" in str(fo.explain(uneven, "a", against="b", resolves=0))
    even = given(twins, np.array([[Fraction(1, 3)], [Fraction(1, 3)], [Fraction(1, 4)]]), "rdm", exact=True)
    assert "nothing to envy" in str(fo.explain(even, "a", against="b", resolves=0))


def test_prices_that_do_not_prove_the_level_are_not_used() -> None:
    """A forged price changes the bound, and is found out; so is one of an answer without prices."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    allocation = fo.solve(instance, "drf", exact=True)
    assert ExactLevelPrices.of(allocation, 0) is not None
    assert allocation.exact is not None
    (level,) = allocation.exact.steps
    for prices in (np.array([[Fraction(2, 27), TINY]]), None):
        forged = dataclasses.replace(allocation.exact, steps=(dataclasses.replace(level, prices=prices),))
        assert ExactLevelPrices.of(dataclasses.replace(allocation, exact=forged), 0) is None


def test_levels_that_are_proved_in_steps() -> None:
    """Two servers apart give their users the same level; each user has the prices of its own server, the level those of both."""
    apart = fo.Instance([[3], [3]], [[1], [1]], eligibility=[[1, 0], [0, 1]])
    allocation = fo.solve(apart, "drfh", exact=True)
    assert allocation.exact is not None
    assert [level.users for level in allocation.exact.proved_levels] == [("user-1", "user-2")]
    for user in (0, 1):
        prices = ExactLevelPrices.of(allocation, user)
        assert prices is not None
        assert prices.tasks(apart) == 3
        assert prices.tasks(apart.replace(capacities=[[4], [4]])) == 4
        assert [row[0] > 0 for row in prices.table] == [user == 0, user == 1]
    of_both = allocation.exact.proved_levels[0].prices
    assert of_both is not None
    assert all(row[0] > 0 for row in of_both)


def test_totals_equilibria_schedules_and_time() -> None:
    """What is no leximin: a price of a total, gains of an equilibrium and of a schedule, and of time."""
    instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [0.5, 1, 0], [1, 0.5, 0]])
    total = fo.explain(fo.solve(instance, "efficiency", exact=True), "user-3", resolves=1)
    assert all(isinstance(each.price, Fraction) for each in total.blockers)
    psdsf = fo.explain(fo.solve(instance, "psdsf", exact=True), "user-1", resolves=2)
    assert psdsf.tasks == Fraction(18, 5)
    more = instance.replace(weights=[2, 1, 1, 1])
    (by_weight,) = [gain.by_solving for gain in psdsf.gains if gain.kind == "weight"]
    assert by_weight == fo.solve(more, "psdsf", exact=True).exact.tasks_per_user[0] - Fraction(18, 5)  # type: ignore[union-attr]
    greedy = fo.explain(fo.schedule(instance, "drfh", exact=True), "user-1", resolves=1)
    assert greedy.tasks == 2
    assert "would give it 600/169 instead of 2" in str(greedy)
    time = fo.explain(fo.solve(instance, "drfh", exact=True, sharing="tdm"), "user-1", resolves=2)
    assert [(each.resource, each.capacity) for each in time.blockers] == [("time", Fraction(1))]
    assert all(isinstance(gain.by_solving, Fraction) for gain in time.gains if gain.by_solving is not None)
    absent = fo.solve(instance.replace(counts=[1, 0]), "drfh", exact=True, sharing="tdm")  # a row that stands for no server
    assert len(fo.explain(absent, "user-3", resolves=0).blockers) == 1


def test_queues() -> None:
    """A guarantee of 13/3 that lacks 10^-40, and what more weight gives the users of a queue together."""
    queues = [fo.Queue("p", limit={"gpu": Fraction(1, 2)}), fo.Queue("q", weight=2, guarantee={"gpu": Fraction(13, 3)})]
    tree = fo.Instance([[7]], [[1], [2], [1]], resources=["gpu"], queues=queues, queue_of=["p", "q", "q"])
    told = fo.explain(fo.solve(tree, "drfh", exact=True), queue="q")
    assert told.tasks == Fraction(39, 8)  # 13/2 gpu, 13/4 for each of its users
    assert "It is guaranteed 13/3 gpu, which it has; it borrows 13/6 beyond that." in told.sentences
    change = fo.explain(fo.solve(tree, "drfh", exact=True), "user-1", resolves=2)
    assert {gain.change: gain.by_solving for gain in change.gains}["a limit of 11/20 gpu instead of 1/2 for p"] == Fraction(1, 20)
    held = np.array([[Fraction(1, 2)], [Fraction(1)], [Fraction(7, 3) - TINY]])
    lacks = fo.explain(given(tree, held, "rdm", exact=True), queue="q", resolves=0)
    assert "and ~1e-40 are missing although its users ask for them." in str(lacks)


def test_many_identical_servers_are_told_as_one() -> None:
    """Sixty rows of two kinds are two rows in fractions as well, with the same tasks."""
    instance = fo.Instance([[Fraction(1, 3)]] * 40 + [[1]] * 20, [[1], [2]])
    allocation = fo.solve(instance, "drfh", exact=True)
    merged = merged_servers(allocation)
    assert merged.instance.n_servers == 2
    assert merged.exact is not None
    assert allocation.exact is not None
    assert (merged.exact.tasks_per_user == allocation.exact.tasks_per_user).all()
    told = fo.explain(allocation, "user-1", resolves=0)
    assert told.tasks == Fraction(50, 3)
    assert [each.used for each in told.blockers] == [each.capacity for each in told.blockers]


def test_an_irrational_optimum_is_explained_in_floats() -> None:
    """Its tasks are known to some digits, and the explanation is that of floats."""
    instance = fo.Instance([[9]], [[1], [3]])
    told = fo.explain(fo.solve(instance, "proportional", alpha=2, exact=True), "user-1", resolves=0)
    assert isinstance(told.tasks, float)


def test_the_command() -> None:
    """``--exact`` prints fractions; a scheduler of one's own has none."""
    file = str(EXAMPLES / "psdsf-figure-1.yaml")
    shown = CliRunner().invoke(app, ["explain", file, "--user", "user-1", "--notion", "drfh", "--exact", "--resolves", "1"])
    assert shown.exit_code == 0, shown.output
    for text in ("user-1 runs 60/23 tasks", "1/92", "+270/161", "+105/92"):
        assert text in shown.output
    found = CliRunner().invoke(app, ["explain", file, "--user", "user-1", "--exact", "--json", "--resolves", "0"])
    assert json.loads(found.output)["exact"] == {"tasks": "60/23"}

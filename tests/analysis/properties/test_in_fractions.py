"""Audits in fractions against the definitions in `fractions.Fraction`: by loops, and by a rational simplex of the tests' own."""

# mypy: disable-error-code="arg-type, no-any-return"
# (fractions where the types say floats)

from __future__ import annotations

import dataclasses
import itertools
import random
from fractions import Fraction

import numpy as np
from reference.exact import maximise

import fairopt as fo
from fairopt.analysis.in_fractions import largest
from fairopt.analysis.rerun import given
from fairopt.solvers.backend import Deadline

TINY = Fraction(1, 10**40)
Table = list[list[Fraction]]


def draw(rng: random.Random) -> fo.Instance:
    """A tiny instance in small whole numbers and thirds, so that ties abound."""
    n, k, m = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 3)
    demands = [[Fraction(rng.randint(0, 4), rng.choice([1, 3])) for _ in range(m)] for _ in range(n)]
    for row in demands:
        if not any(row):
            row[rng.randrange(m)] = Fraction(1)
    return fo.Instance(
        [[rng.randint(1, 12) for _ in range(m)] for _ in range(k)],
        demands,
        weights=[rng.randint(1, 3) for _ in range(n)] if rng.random() < 0.5 else None,
        tasks=[rng.randint(1, 5) for _ in range(n)] if rng.random() < 0.3 else None,
        eligibility=[[rng.random() < 0.8 for _ in range(k)] for _ in range(n)] if rng.random() < 0.4 else None,
    )


def filled(instance: fo.Instance, rng: random.Random) -> Table:
    """Tasks that fill servers in random order, some to a part, some to the last bit, some to all but 10^-40 of it."""
    exact = instance.exact
    tasks = [[Fraction(0)] * instance.n_servers for _ in range(instance.n_users)]
    pairs = [(n, i) for n in range(instance.n_users) for i in range(instance.n_servers) if instance.eligibility[n, i]]
    for n, i in rng.sample(pairs, len(pairs)):
        room = min(free(exact, tasks, i, r) / exact.demands[n, r] for r in range(instance.n_resources) if exact.demands[n, r] > 0)
        room = min(room, exact.tasks[n] - sum(tasks[n]))
        tasks[n][i] = room * rng.choice([Fraction(1), Fraction(1), 1 - TINY, Fraction(1, 3), Fraction(0)])
    return tasks


def free(exact: fo.Instance, tasks: Table, i: int, r: int) -> Fraction:
    """What is free of a resource."""
    return exact.counts[i] * exact.capacities[i, r] - sum((row[i] * exact.demands[m, r] for m, row in enumerate(tasks)), Fraction(0))


def within(exact: fo.Instance, n: int, i: int, bundle: list[Fraction]) -> Fraction:
    """The tasks that a user can run on a server with amounts of resources; 0 where it may not run."""
    if not exact.eligibility[n, i]:
        return Fraction(0)
    return min(bundle[r] / exact.demands[n, r] for r in range(exact.n_resources) if exact.demands[n, r] > 0)


def largest_envy(exact: fo.Instance, tasks: Table) -> Fraction:
    """The largest envy, pair by pair and server by server."""
    worst = Fraction(0)
    for n, m in itertools.permutations(np.flatnonzero(exact.servable).tolist(), 2):
        scale = exact.weights[n] / exact.weights[m]
        bundles = [[scale * tasks[m][i] * d for d in exact.demands[m]] for i in range(exact.n_servers)]
        could = min(sum((within(exact, n, i, bundles[i]) for i in range(exact.n_servers)), Fraction(0)), exact.tasks[n])
        worst = max(worst, could - sum(tasks[n]))
    return worst


def largest_lack(exact: fo.Instance, tasks: Table) -> Fraction:
    """By how much a weighted slice of each server would be better."""
    lacks = [Fraction(0)]
    for n in np.flatnonzero(exact.servable):
        part = exact.weights[n] / sum(exact.weights)
        slices = [[part * exact.counts[i] * c for c in exact.capacities[i]] for i in range(exact.n_servers)]
        could = sum((within(exact, n, i, slices[i]) for i in range(exact.n_servers)), Fraction(0))
        lacks.append(min(could, exact.tasks[n]) - sum(tasks[n]))
    return max(lacks)


def somebody_gains(exact: fo.Instance, tasks: Table) -> bool:
    """Could anybody run more while nobody runs less? By the simplex of the tests, in what is added to each pair and taken from it."""
    pairs = [(n, i) for n in range(exact.n_users) for i in range(exact.n_servers) if exact.eligibility[n, i]]
    columns = [(n, i, sign) for sign in (1, -1) for n, i in pairs]
    rows, bounds = [], []
    for i, r in itertools.product(range(exact.n_servers), range(exact.n_resources)):
        rows.append([sign * exact.demands[n, r] * (i == j) for n, j, sign in columns])
        bounds.append(free(exact, tasks, i, r))
    for n in range(exact.n_users):
        rows.append([Fraction(-sign * (n == m)) for m, _, sign in columns])
        bounds.append(Fraction(0))
        if exact.tasks[n] < float("inf"):
            rows.append([Fraction(sign * (n == m)) for m, _, sign in columns])
            bounds.append(exact.tasks[n] - sum(tasks[n]))
    for k, (n, i) in enumerate(pairs):
        rows.append([Fraction(int(j == len(pairs) + k)) for j in range(len(columns))])
        bounds.append(tasks[n][i])
    return maximise([Fraction(sign) for *_, sign in columns], rows, bounds) > 0


def psdsf_gain(exact: fo.Instance, tasks: Table) -> Fraction:
    """The largest z of all users and servers: the smallest root of what z takes less what there is for it, among all of its pieces."""
    own, rates, worst = [sum(row) for row in tasks], exact.rates, Fraction(0)
    for n, i in itertools.product(range(exact.n_users), range(exact.n_servers)):
        if rates[n, i] == 0:
            continue
        unit = exact.weights[n] * rates[n, i]
        others = [(m, exact.weights[m] * rates[m, i]) for m in range(exact.n_users) if tasks[m][i] > 0]

        def lack(z: Fraction, r: int, n: int = n, i: int = i, unit: Fraction = unit, others: list = others) -> Fraction:  # type: ignore[type-arg]
            share = (own[n] + z) / unit
            given_up = sum((exact.demands[m, r] * min(tasks[m][i], max(Fraction(0), own[m] - share * u)) for m, u in others), Fraction(0))
            return z * exact.demands[n, r] - free(exact, tasks, i, r) - given_up

        ends = [value * unit / u - own[n] for m, u in others for value in (own[m], own[m] - tasks[m][i])]
        gain = exact.tasks[n] - own[n]
        for r in np.flatnonzero(exact.demands[n] > 0):
            points = sorted({Fraction(0), *(z for z in ends if z > 0)})
            points.append(points[-1] + 1)
            below = max(p for p in points if lack(p, r) <= 0) if lack(points[0], r) <= 0 else None
            assert below is not None
            above = next((p for p in points if p > below), below + 1)
            slope = (lack(above, r) - lack(below, r)) / (above - below)
            gain = min(gain, below - lack(below, r) / slope)
        worst = max(worst, gain)
    return worst


def test_against_the_definitions() -> None:
    """Random tasks, some of which lack 10^-40: every violation is the fraction that the definition gives."""
    rng, seen = random.Random(20), {"envy-freeness": 0, "sharing-incentive": 0, "pareto": 0, "psdsf": 0}
    tiny = 0
    for _ in range(50):
        instance = draw(rng)
        exact, tasks = instance.exact, filled(instance, rng)
        allocation = given(instance, np.array(tasks), "rdm", exact=True)
        if allocation.certificate.whole_tasks:
            continue
        found = fo.audit(allocation, [*seen])
        assert found["envy-freeness"].exact == largest_envy(exact, tasks)
        assert found["sharing-incentive"].exact == largest_lack(exact, tasks)
        assert found["pareto"].holds == (not somebody_gains(exact, tasks))
        assert found["psdsf"].exact == psdsf_gain(exact, tasks)
        for name in seen:
            seen[name] += found[name].holds is False
            tiny += found[name].holds is False and found[name].violation < 1e-30
        witness = found["pareto"].witness
        if witness is not None:
            assert witness.exact is not None
            gains = witness.exact.sum(axis=1) - np.array(tasks).sum(axis=1)
            assert min(gains) >= 0
            assert max(gains) == found["pareto"].exact
            assert fo.audit(given(instance, witness.exact, "rdm", exact=True), "pareto").violations == ()
    assert min(seen.values()) > 5
    assert tiny > 5


def test_forged_answers_are_found_out() -> None:
    """An exact answer that is changed by 10^-40: too much exceeds a limit, too little can be gained, moved is envied."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"])
    allocation = fo.solve(instance, "drf", exact=True)
    assert allocation.exact is not None

    def forged(a: Fraction, b: Fraction) -> fo.Audit:
        answer = dataclasses.replace(allocation.exact, tasks=allocation.exact.tasks + np.array([[a], [b]]))  # type: ignore[union-attr,type-var]
        return fo.audit(dataclasses.replace(allocation, exact=answer), ["pareto", "max-min", "envy-freeness", "psdsf"])

    assert forged(Fraction(0), Fraction(0)).violated == []
    more = forged(TINY, Fraction(0))
    assert [each.limit for each in more.violations] == ["resource-1 @ server-1"]
    assert "9.0000000000000000000000000000000000000001" in str(more.violations[0])
    assert more["pareto"].holds is None
    less = forged(Fraction(0), -TINY)
    assert less["pareto"].exact == 3 * TINY  # cpu for as many tasks of the other user
    assert less["psdsf"].exact == 3 * TINY
    assert less.violated == ["pareto", "psdsf", "max-min"]


def test_ties_are_ties() -> None:
    """Identical users do not envy each other; of one who needs 10^-40 more of the same nobody is envious either, but it gets less."""
    twins = fo.Instance([[1]], [[1], [1], [1 + TINY]])
    found = fo.audit(fo.solve(twins, "drf", exact=True), ["envy-freeness", "sharing-incentive", "pareto", "population-monotonicity"])
    assert found.violated == []
    assert all(verdict.exact == 0 for verdict in found.values())
    third = Fraction(1, 3)
    uneven = given(twins, np.array([[third + TINY], [third - TINY], [third / (1 + TINY)]]), "rdm", exact=True)
    verdict = fo.audit(uneven, "envy-freeness")["envy-freeness"]
    assert verdict.exact == 2 * TINY
    assert verdict.witness is not None
    assert verdict.witness.users == ("user-2", "user-1")


def test_lies_are_solved_in_fractions() -> None:
    """The gain of a lie is a fraction that its own answer gives, and the words have it."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    verdict = fo.audit(fo.solve(pool, "efficiency", exact=True), "strategy-proofness", effort=20)["strategy-proofness"]
    assert verdict.holds is False
    assert isinstance(verdict.exact, Fraction)
    assert verdict.witness is not None
    assert verdict.witness.exact is not None
    assert verdict.witness.instance is not None
    again = fo.solve(verdict.witness.instance, "efficiency", exact=True).exact
    assert again is not None
    assert (again.tasks == verdict.witness.exact).all()
    data = verdict.to_dict()
    assert data["exact"] == str(verdict.exact)
    assert Fraction(data["witness"]["exact"][1][0]) == again.tasks[1, 0]


def test_trees_of_queues() -> None:
    """Siblings that are queues: the gain is the optimum of a linear program in fractions."""
    queues = [fo.Queue("p"), fo.Queue("q", weight=2)]
    tree = fo.Instance([[7, 5]], [[1, 2], [2, 1], [1, 1]], queues=queues, queue_of=["p", "q", "q"])
    found = fo.audit(fo.solve(tree, "drfh", exact=True), ["sharing-incentive", "envy-freeness", "pareto"])
    assert all(verdict.exact == 0 for verdict in found.values())
    tasks = np.array([[Fraction(1, 3)], [Fraction(1)], [Fraction(1)]])
    lack = fo.audit(given(tree, tasks, "rdm", exact=True), "sharing-incentive")["sharing-incentive"]
    assert lack.exact == Fraction(4, 3)  # two thirds of 5 are 10/3 tasks of 1, and "q" runs 2


def test_a_program_without_a_feasible_point() -> None:
    """x <= 1 and x >= 2."""
    assert largest([1], [(0, 0, 1), (1, 0, -1)], [1, -2], Deadline(None)) is None


def test_enclosures_are_judged_within_their_radius() -> None:
    """What holds of the irrational optimum is not lost to the digits that are left out."""
    instance = fo.Instance([[9, 7]], [[1, 2], [3, 1], [1, 1]])
    found = fo.audit(fo.solve(instance, "proportional", exact=True, digits=20), ["pareto", "envy-freeness"])
    assert found["pareto"].holds
    assert found["pareto"].exact is None

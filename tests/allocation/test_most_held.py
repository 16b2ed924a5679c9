"""What a queue lacks of its guarantee, in fractions, against a rational simplex of the tests' own."""

# mypy: disable-error-code="arg-type, dict-item"
# (fractions where the types say floats)

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from reference.exact import maximise

import fairopt as fo
from fairopt.allocation.most_held import most_held
from fairopt.analysis.rerun import given

TINY = Fraction(1, 10**40)


def draw(rng: random.Random) -> fo.Instance:
    """Two queues, the first with a guarantee; the first user is in the first, the second in the other."""
    n, k = rng.randint(2, 3), rng.randint(1, 2)
    return fo.Instance(
        [[rng.randint(2, 6), rng.randint(2, 6)] for _ in range(k)],
        [[rng.randint(1, 3), rng.randint(1, 3)] for _ in range(n)],
        queues=[fo.Queue("q", guarantee={"resource-1": Fraction(rng.randint(1, 8), rng.choice([1, 3]))}), fo.Queue("p")],
        queue_of=["q", "p", rng.choice(["q", "p"])][:n],
        eligibility=[[i == 0 or rng.random() < 0.6 for i in range(k)] for _ in range(n)],
        tasks=[rng.choice([1, 3, Fraction(1, 3)]) for _ in range(n)] if rng.random() < 0.4 else None,
    )


def filled(instance: fo.Instance, rng: random.Random) -> np.ndarray:
    """Tasks that fill servers to a part, to the last bit, or to all but 10^-40 of it."""
    exact = instance.exact
    tasks = np.full(exact.eligibility.shape, Fraction(0), dtype=object)
    for n in rng.sample(range(instance.n_users), instance.n_users):
        for i in np.flatnonzero(exact.eligibility[n]):
            free = exact.row_capacity[i] - tasks[:, i] @ exact.demands
            room = min(*(free / exact.demands[n]), exact.tasks[n] - tasks[n].sum())
            tasks[n, i] = room * rng.choice([Fraction(1), 1 - TINY, Fraction(1, 2), Fraction(0)])
    return tasks


def largest_use(exact: fo.Instance, tasks: np.ndarray, mine: list[int], most: Fraction) -> Fraction:
    """The most of the first resource that users ask for, up to ``most``, if nobody has fewer tasks; floors are met by a reward."""
    pairs = [(n, int(i)) for n in mine for i in np.flatnonzero(exact.eligibility[n])]
    none, reward = [Fraction(0)] * len(mine), Fraction(10) ** 90
    use = [exact.demands[n, 0] for n, _ in pairs]
    rows, bounds = [[*use, *none]], [most]
    for k, m in enumerate(mine):
        own = [Fraction(int(n == m)) for n, _ in pairs]
        held = [Fraction(int(j == k)) for j in range(len(mine))]
        rows += [[*(-each for each in own), *held], [*([Fraction(0)] * len(pairs)), *held]]
        bounds += [Fraction(0), tasks[m].sum()]
        if exact.tasks[m] < np.inf:
            rows.append([*own, *none])
            bounds.append(exact.tasks[m])
    return maximise([*use, *([reward] * len(mine))], rows, bounds) - reward * sum((tasks[m].sum() for m in mine), Fraction(0))


def test_against_a_simplex_of_its_own() -> None:
    """What is missing, to the last bit; in tasks of the most demanding user it is the violation that the audit names."""
    rng, seen, tiny = random.Random(4), {True: 0, False: 0}, 0
    for _ in range(30):
        instance = draw(rng)
        exact, tasks = instance.exact, filled(instance, rng)
        mine = [n for n in range(instance.n_users) if instance.queue_of[n] == "q"]
        guarantee = exact.queues[0].guarantee["resource-1"]
        held = sum((tasks[n].sum() * exact.demands[n, 0] for n in mine), Fraction(0))
        most = largest_use(exact, tasks, mine, max(guarantee, held))
        everywhere = np.ones(instance.n_servers, bool)
        claimants = np.isin(np.arange(instance.n_users), mine)
        assert most_held(exact, tasks, 1, claimants, everywhere, exact.demands[:, :1].repeat(exact.n_servers, axis=1)) == most
        allocation = given(instance, tasks, "rdm", exact=True)
        if allocation.certificate.whole_tasks:
            continue
        missing = max(most - held, Fraction(0)) if held < guarantee else Fraction(0)
        assert allocation.in_fractions.queue_holdings()[1].guarantees[0].missing == missing
        verdict = fo.audit(allocation, "guarantees")["guarantees"]
        assert verdict.exact == missing / max(exact.demands[n, 0] for n in mine)
        assert verdict.holds == (missing == 0)
        seen[missing == 0] += 1
        tiny += 0 < missing < Fraction(1, 10**30)
    assert min(seen.values()) > 5
    assert tiny > 1

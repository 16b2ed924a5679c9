"""Worst cases with a bound, on random boxes: does any sampled instance beat the upper bound?

``python tests/heuristic_bounds.py --samples 10000`` prints a table, a row for each kind of box. A fixed sample of it is run by
tests/analysis/bounds/test_heuristic_bounds.py.

A kind is a heuristic, a notion, a measure and what varies: every word of each comes up. The topology and the ranges are drawn from a seed,
some with rules on what varies. The bound is asked for with a time limit, so that it is often an early one, which must hold, too. Then
instances are drawn from the box: of each number half the time an end. Each is solved by fairopt, for the heuristic and for the notion, and
its regret is computed here, from tasks, by this file's own arithmetic. Where demands or tasks are few whole numbers, all instances are
enumerated instead.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import fairopt as fo
from fairopt.instance import FloatArray

ROUNDING = 1e-6
"""Of a regret: what answers of two solvers, each certified, may add up to."""

KINDS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("uniform", "drfh", "level", ("demands",)),
    ("uniform", "tsf", "user", ("demands", "weights")),
    ("uniform", "max-min", "total", ("demands", "tasks")),
    ("uniform", "cdrf", "user", ("capacities",)),
    ("per-server-drf", "drfh", "level", ("demands",)),
    ("per-server-drf", "asset", "user", ("demands", "capacities")),
    ("per-server-drf", "drfh", "total", ("weights", "tasks")),
    ("efficiency", "drfh", "level", ("demands", "rules")),
    ("efficiency", "max-min", "user", ("weights", "capacities")),
    ("efficiency", "efficiency", "total", ("demands",)),
    ("efficiency:pop:parts=2", "efficiency", "total", ("tasks", "capacities")),
    ("efficiency:pop:parts=2:seed=1", "efficiency", "total", ("tasks", "rules")),
    ("efficiency:pinning:threshold=2", "efficiency", "total", ("tasks",)),
    ("efficiency:pinning:threshold=2", "efficiency", "total", ("tasks", "capacities", "rules")),
    ("drfh:pop:parts=2", "drfh", "level", ("demands",)),
    ("drfh:pop:parts=2:seed=2", "drfh", "user", ("demands", "weights")),
    ("tsf:pop:parts=2", "drfh", "total", ("demands", "rules")),
    ("drfh:geometric-binning:first=0.02:ratio=3", "drfh", "level", ("demands",)),
    ("drfh:geometric-binning:first=0.02:ratio=3:part=0.3", "drfh", "user", ("demands", "weights")),
    ("drfh:first-fit", "drfh", "level", ("demands",)),
    ("drfh:best-fit", "drfh", "user", ("demands", "rules")),
    ("tsf", "drfh", "level", ("demands",)),
    ("max-min", "drfh", "user", ("demands", "zeros")),
    ("asset", "tsf", "user", ("demands", "zeros", "tasks")),
    ("drfh", "tsf", "total", ("demands", "weights", "tasks", "capacities")),
)
"""Heuristic, notion, measure, and what varies; "zeros": some demands are 0, "rules": rules on the numbers."""


@dataclass(frozen=True)
class Box:
    """A topology, and what varies between which numbers."""

    cluster: fo.Instance
    vary: dict[str, tuple[FloatArray, FloatArray]]
    where: tuple[str, ...]

    def keeps(self, data: Mapping[str, FloatArray]) -> bool:
        """Do data keep the rules? They say that the first user has no more than the second, of each number that varies."""
        return not self.where or all(bool((data[word][0] <= data[word][1] + 1e-12).all()) for word in data if word != "capacities")

    def instances(self, rng: np.random.Generator, number: int) -> Iterator[fo.Instance]:
        """Yield random instances of the box."""
        made = 0
        while made < number:
            data = {}
            for word, (low, high) in self.vary.items():
                part = np.where(rng.random(low.shape) < 0.5, rng.integers(0, 2, low.shape), rng.random(low.shape))
                data[word] = np.where(low == high, low, np.clip(low + part * (np.where(low == high, low, high) - low), low, high))
            if self.keeps(data):
                made += 1
                yield self.cluster.replace(**data)


def drawn(kind: int, seed: int) -> Box:
    """Return a random box of a kind."""
    heuristic, _, _, varied = KINDS[kind]
    rng = np.random.default_rng((kind, seed))
    greedy = heuristic.endswith("-fit")
    users, servers = (2, 2) if greedy else (3, int(rng.integers(2, 4)))
    demands = rng.uniform(1, 2, (users, 2))
    if "zeros" in varied:
        demands[0, int(rng.integers(0, 2))] = 0.0
    capacities = rng.uniform(3, 6, (servers, 2)) if greedy else rng.uniform(4, 12, (servers, 2))
    eligible = rng.random((users, servers)) < 0.8
    eligible[np.arange(users), rng.integers(0, servers, users)] = True
    weights, tasks = rng.uniform(1, 2, users), rng.uniform(1, 4, users)
    if heuristic.startswith("efficiency:"):
        weights = np.ones(users)
    width = 1.15 if greedy else float(rng.uniform(1.2, 1.8))
    given = {"demands": demands, "weights": weights, "tasks": tasks, "capacities": capacities}
    vary = {word: (values, values * width) for word, values in given.items() if word in varied}
    where: list[str] = []
    if "rules" in varied:
        where += [f"{word}['user-1'] <= {word}['user-2']" for word in ("tasks", "weights") if word in vary]
        where += [f"demands['user-1', {r!r}] <= demands['user-2', {r!r}]" for r in ("resource-1", "resource-2") if "demands" in vary]
        for word in ("demands", "tasks", "weights"):
            if word in vary:  # so that some instances keep the rules
                first = np.minimum(vary[word][0][0], vary[word][0][1])
                low = np.concatenate([first[None], vary[word][0][1:]])
                vary[word] = low, low * width
    more: Any = {"tasks": vary["tasks"][0]} if "tasks" in vary else {}
    cluster = fo.Instance(capacities, vary.get("demands", (demands,))[0], weights=weights, eligibility=eligible, **more)
    return Box(cluster, vary, tuple(where))


def answer(instance: fo.Instance, name: str) -> FloatArray:
    """Return the tasks of each user that a heuristic or a notion gives."""
    return (fo.schedule(instance, name) if ":" in name else fo.solve(instance, name)).tasks_per_user


def regret(instance: fo.Instance, heuristic: str, notion: str, measure: str) -> float:
    """Return the regret of a heuristic, from its tasks and the exact ones."""
    own, best = answer(instance, heuristic), answer(instance, notion)
    if measure == "user":
        some = best > 1e-9 * best.max()
        return float((1 - own[some] / best[some]).max())
    if measure == "total":
        mine, exact = float(own.sum()), float(best.sum())
    else:
        per_task = fo.NOTIONS[notion]().share_per_task(instance) / instance.weights  # type: ignore[attr-defined]
        mine, exact = float((own * per_task).min()), float((best * per_task).min())
    return 1 - mine / exact if mine <= exact else exact / mine - 1


@dataclass(frozen=True)
class Row:
    """A box: both ends, the largest regret of all samples, and how many of them are above the bound."""

    kind: int
    seed: int
    value: float
    bound: float
    sampled: float
    beaten: int
    samples: int

    def __str__(self) -> str:
        heuristic, notion, measure, varied = KINDS[self.kind]
        return (
            f"{heuristic:52} {notion:10} {measure:5} {'+'.join(varied):34} {self.value:8.4f} {self.bound:8.4f} {self.sampled:8.4f} "
            f"{self.samples:6} {self.beaten:3}"
        )


def tried(kind: int, seed: int, samples: int, time_limit: float, budget: float = float("inf")) -> Row:
    """Bound a random box, and try instances of it, for some seconds at most."""
    heuristic, notion, measure, _ = KINDS[kind]
    box = drawn(kind, seed)
    worst = fo.worst_case(
        heuristic, notion, cluster=box.cluster, vary=box.vary, where=box.where, measure=measure, bound=True, time_limit=time_limit
    )
    assert worst.bound is not None
    end, found = time.monotonic() + budget, []
    for instance in box.instances(np.random.default_rng(seed), samples):
        found.append(regret(instance, heuristic, notion, measure))
        if time.monotonic() > end:
            break
    beaten = sum(value > worst.bound + ROUNDING for value in found)
    return Row(kind, seed, worst.value, worst.bound, max(found), beaten, len(found))


@dataclass(frozen=True)
class Enumerated:
    """All instances of a box of whole numbers: the largest regret, and both ends."""

    value: float
    bound: float
    largest: float


def enumerated(heuristic: str, notion: str, measure: str, vary: str, seed: int, time_limit: float) -> Enumerated:
    """Bound a small box of whole numbers, and solve each instance of whole numbers in it."""
    rng = np.random.default_rng(seed)
    cluster = fo.Instance(rng.integers(3, 9, (2, 2)), rng.integers(1, 3, (2, 2)), tasks=[1, 1] if vary == "tasks" else None)
    values = (1, 2, 3) if vary == "tasks" else (1, 2)
    shape = getattr(cluster, vary).shape
    worst = fo.worst_case(
        heuristic, notion, cluster=cluster, vary={vary: (values[0], values[-1])}, measure=measure, bound=True, time_limit=time_limit
    )
    assert worst.bound is not None
    each = (cluster.replace(**{vary: np.reshape(data, shape)}) for data in itertools.product(values, repeat=int(np.prod(shape))))
    return Enumerated(worst.value, worst.bound, max(regret(instance, heuristic, notion, measure) for instance in each))


def main() -> None:
    """Print a row for each box."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--boxes", type=int, default=1, help="of each kind")
    parser.add_argument("--kinds", type=int, nargs="*", default=range(len(KINDS)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of a bound")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds of the samples of a box")
    asked: Any = parser.parse_args()
    logging.disable(logging.WARNING)
    rows = []
    print(f"{'heuristic':52} {'notion':10} {'of':5} {'varies':34} {'found':>8} {'bound':>8} {'sampled':>8} {'number':>6} above")
    for kind in asked.kinds:
        for seed in range(asked.seed, asked.seed + asked.boxes):
            rows.append(tried(kind, seed, asked.samples, asked.time_limit, asked.budget))
            print(rows[-1], flush=True)
    print(f"{sum(row.samples for row in rows)} instances of {len(rows)} boxes, {sum(row.beaten for row in rows)} above the bound")


if __name__ == "__main__":
    main()

"""Degenerate and badly scaled instances through the interior point and through the default engine: does any fail, does any differ?

``python tests/robustness.py --instances 2000`` prints a table; tests/conformance/test_robustness.py runs a fixed sample of it.

Every instance is of one of the `KINDS`. Each is asked for the leximin of global dominant shares, one equal level (where the notion has
one), the leximin of given utilities, the largest total and proportional fairness with an alpha of its own. Every program is solved
by the engine of its own accord (the default), by ``interior-point``, and by ``interior-point`` again without merging identical rows, which
is where users are alike. An answer counts when its certificate holds; how many of those of the interior point HiGHS had to finish is
counted apart. Levels and totals are compared with those of HiGHS; an alpha-fair x with the best feasible point in the direction of its
gradient, found by HiGHS as well: sum phi[n] (x'[n] - x[n]) / x[n]^alpha <= 0 is its condition of optimality.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from agreement import Tally, Worst, difference, print_totals, run
from rich.console import Console
from rich.table import Table

import fairopt as fo
from fairopt.program import AlphaFair, Leximin, Program, Solution, Total
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solving.policy import find

TOLERANCE = 1e-8
ALPHAS = (0.5, 1.0, 2.0, 5.0)
WAYS = ("default", "interior-point", "interior-point, unmerged")

Drawn = dict[str, Any]


# Instances -----------------------------------------------------------------------------------------------------------------------


def _plain(rng: np.random.Generator) -> Drawn:
    """Positive demands; everything else is left to the kinds."""
    n, k, m = int(rng.integers(1, 30)), int(rng.integers(1, 9)), int(rng.integers(1, 4))
    weights = 10 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.5 else np.ones(n)
    return {"capacities": rng.uniform(1, 10, (k, m)), "demands": rng.uniform(0.01, 1, (n, m)), "weights": weights}


def _some_pairs(rng: np.random.Generator, drawn: Drawn, part: float) -> Drawn:
    pairs = (len(drawn["demands"]), len(drawn["capacities"]))
    eligibility = rng.random(pairs) < part
    eligibility[np.arange(pairs[0]), rng.integers(pairs[1], size=pairs[0])] = True
    return drawn | {"eligibility": eligibility}


def _zero_demands(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Four in ten, with missing resources and placement constraints."""
    demands = drawn["demands"] * (rng.random(drawn["demands"].shape) > 0.4)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    capacities = drawn["capacities"] * (rng.random(drawn["capacities"].shape) > 0.1)
    return _some_pairs(rng, drawn | {"demands": demands, "capacities": capacities}, 0.6)


def _nine_orders(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Capacities from 1 to 1e9, server by server or entry by entry, and units of the resources as far apart."""
    shape = drawn["capacities"].shape
    scale = 10 ** rng.uniform(0, 9, shape if rng.random() < 0.5 else (shape[0], 1))
    units = 10 ** rng.uniform(-4, 5, shape[1])
    wide = drawn | {"capacities": drawn["capacities"] * scale * units, "demands": drawn["demands"] * units}
    return wide if rng.random() < 0.5 else _some_pairs(rng, wide, 0.5)


def _all_alike(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Users share all data, weights too; servers sometimes."""
    demands = np.tile(drawn["demands"][:1], (len(drawn["demands"]), 1))
    capacities = np.tile(drawn["capacities"][:1], (len(drawn["capacities"]), 1)) if rng.random() < 0.5 else drawn["capacities"]
    return {"capacities": capacities, "demands": demands}


def _nearly_alike(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """The same to nine or twelve digits, so that nothing merges."""
    alike = _all_alike(rng, drawn)
    noise = 10.0 ** -int(rng.choice([9, 12]))
    return {name: values * (1 + noise * rng.random(values.shape)) for name, values in alike.items()}


def _groups(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Few different users, many of each, and proportional servers."""
    n, k = len(drawn["demands"]), len(drawn["capacities"])
    some = drawn["demands"][rng.integers(0, min(3, n), n)]
    return drawn | {"demands": some, "capacities": drawn["capacities"][:1] * rng.integers(1, 5, (k, 1))}


def _one_pair_each(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    return _some_pairs(rng, drawn, 0.0)


def _one_huge_user(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Its demand or its weight is a million times that of the others, or both ten thousand times.

    (Were both a million, the others would spend a part of 1e-13 of all there is: a number of 16 digits can prove nothing about them, and
    every engine's answer is refused.)
    """
    demands, weights = drawn["demands"].copy(), drawn["weights"].copy()
    who = int(rng.integers(len(weights)))
    of_demand, of_weight = ((1e6, 1.0), (1.0, 1e6), (1e4, 1e4))[int(rng.integers(3))]
    demands[who] *= of_demand
    weights[who] *= of_weight
    return drawn | {"demands": demands, "weights": weights}


def _many_levels(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """One to three servers each, a third of the demands zero."""
    demands = drawn["demands"] * (rng.random(drawn["demands"].shape) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    n, k = len(demands), len(drawn["capacities"])
    eligibility = np.zeros((n, k), bool)
    for user in range(n):
        eligibility[user, rng.choice(k, min(k, int(rng.integers(1, 4))), replace=False)] = True
    return drawn | {"demands": demands, "eligibility": eligibility}


def _finite_tasks(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Of half of the users: none, next to none, a few, or more than all servers hold."""
    n = len(drawn["demands"])
    few = rng.choice([0.0, 1e-6, 0.3, 2.0, 2.0, 7.0, 1e6], n) * rng.uniform(0.5, 1, n)
    finite = drawn | {"tasks": np.where(rng.random(n) < 0.5, few, np.inf)}
    return finite if rng.random() < 0.5 else _some_pairs(rng, finite, 0.6)


KINDS: dict[str, Callable[[np.random.Generator, Drawn], Drawn]] = {
    "positive demands": lambda rng, drawn: drawn,
    "zero demands": _zero_demands,
    "nine orders": _nine_orders,
    "all alike": _all_alike,
    "nearly alike": _nearly_alike,
    "groups": _groups,
    "one pair each": _one_pair_each,
    "one huge user": _one_huge_user,
    "many levels": _many_levels,
    "finite tasks": _finite_tasks,
}


def degenerate_instance(seed: int) -> tuple[str, fo.Instance]:
    """The kind and the instance of a seed; the kinds take turns."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    return kind, fo.Instance(**KINDS[kind](rng, _plain(rng)))


def questions(instance: fo.Instance, seed: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Goal -> notion and its options."""
    rng = np.random.default_rng(seed + 10**6)
    utility = rng.uniform(0.1, 1, (instance.n_users, instance.n_servers))
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "leximin": ("drfh", {}),
        "equal level": ("drfh", {"formulation": "equalize"}),
        "total": ("efficiency", {}),
        "alpha-fair": ("proportional", {"alpha": float(rng.choice(ALPHAS))}),
    }
    if np.isinf(instance.tasks).all():  # a leximin of capped tasks needs tasks that are worth the same everywhere
        asked["leximin of utilities"] = ("max-min", {"utility": utility})
    return asked


# Answers -------------------------------------------------------------------------------------------------------------------------


def ask(seed: int, table: Tally) -> None:
    """Solve everything of one instance, and enter it in the table."""
    kind, instance = degenerate_instance(seed)
    for goal, (notion, options) in questions(instance, seed).items():
        program = fo.formulate(instance, notion, **options)
        if not program.n_pairs:
            continue
        try:
            reference = (
                None if isinstance(program.goal, AlphaFair) else _levels(program, fo.solve(instance, notion, solver="highs", **options))
            )
        except fo.FairoptError as error:
            table.setdefault((kind, goal, "highs"), Worst()).failures.append(f"seed {seed}: {type(error).__name__}: {error}")
            reference = None
        for way in WAYS:
            worst = table.setdefault((kind, goal, way), Worst())
            started = time.perf_counter()
            try:
                residual, by_another, x = _answer(way, program, instance, notion, options)
            except Exception as error:  # whatever it is, it is what is looked for
                worst.failures.append(f"seed {seed}: {type(error).__name__}: {error}")
                continue
            worst.seconds += time.perf_counter() - started
            if not residual <= TOLERANCE:
                worst.failures.append(f"seed {seed}: residual {residual:.1e}")
                continue
            worst.solved += 1
            worst.by_another += by_another
            worst.residual = max(worst.residual, residual)
            if isinstance(program.goal, AlphaFair):
                worst.difference = max(worst.difference, _better(program, program.goal, x))
            elif reference is not None:
                worst.difference = max(worst.difference, difference(_levels(program, x), reference))


def _answer(way: str, program: Program, instance: fo.Instance, notion: str, options: dict[str, Any]) -> tuple[float, bool, Any]:
    """Return the residual, whether another engine finished it, and x of all pairs."""
    if way == WAYS[2]:
        found = find(program, [InteriorPoint(), *candidates(program, None)], TOLERANCE, Deadline(None))
        return found.certificate.worst, found.finished_by is not None, found.solution.x
    allocation = fo.solve(instance, notion, solver=None if way == WAYS[0] else "interior-point", tolerance=TOLERANCE, **options)
    return allocation.certificate.worst, allocation.details.get("finished_by") is not None, allocation


def _levels(program: Program, answer: Any) -> np.ndarray:
    """The sorted levels, which are unique, of a leximin; the total of a total."""
    x = answer.tasks[program.pair_users, program.pair_servers] if isinstance(answer, fo.Allocation) else answer
    values = program.per_user(program.utilities * x)
    if isinstance(program.goal, Total):
        return np.array([program.goal.weights @ values])
    values = (values / program.goal.weights)[program.members]  # type: ignore[union-attr]
    return values if isinstance(program.goal, Leximin) else np.array([values.min()])


def _better(program: Program, goal: AlphaFair, answer: Any) -> float:
    """By what part the linear total of the gradient at x can be larger elsewhere, by HiGHS."""
    x = answer.tasks[program.pair_users, program.pair_servers] if isinstance(answer, fo.Allocation) else answer
    level = program.per_user(program.utilities * x)
    open_to = program.per_user(program.largest()) > 0
    log_worth = np.where(open_to, goal.log_worth(np.where(open_to, level, 1.0)), -np.inf)
    linear = replace(program, goal=Total(np.exp(log_worth - log_worth.max())))
    best: Solution = HiGHS().solve(linear, tolerance=TOLERANCE, deadline=Deadline(None))
    worth = linear.goal.weights[program.pair_users] * program.utilities  # type: ignore[union-attr]
    return float(worth @ best.x / (worth @ x) - 1)


def compare(seeds: Iterable[int]) -> Tally:
    """Solve everything; return the worst of each (kind, goal, way)."""
    table: Tally = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an overflow is a failure, too
        try:
            for seed in seeds:
                ask(seed, table)
        except KeyboardInterrupt:
            print(f"stopped at seed {seed}; the table is of those before it", file=sys.stderr)
    return table


def print_table(table: Tally, console: Console) -> None:
    """One line for each kind, goal and way, with its first failures below."""
    lines = Table(box=None, pad_edge=False)
    for column in ("instance", "goal", "engine"):
        lines.add_column(column, no_wrap=True)
    for column in ("solved", "finished by HiGHS", "failed", "residual", "difference", "seconds"):
        lines.add_column(column, justify="right", no_wrap=True)
    for key, worst in sorted(table.items()):
        counted = (worst.solved, worst.by_another, len(worst.failures))
        lines.add_row(*key, *map(str, counted), f"{worst.residual:.1e}", f"{worst.difference:.1e}", f"{worst.seconds:.2f}")
    console.print(lines)
    for key, worst in sorted(table.items()):
        for failure in worst.failures[:5]:
            console.print(f"{', '.join(key)}: {failure}", markup=False)
    print_totals(table.values(), console)


if __name__ == "__main__":
    raise SystemExit(run(__doc__, 2000, compare, print_table))

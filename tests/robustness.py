"""Degenerate and badly scaled instances through the interior point and through the default engine: does any fail, does any differ?

``python tests/robustness.py --instances 2000`` prints a table; tests/conformance/test_robustness.py runs a fixed sample of it.

Every instance is of one of the `instances.KINDS`. Each is asked for the leximin of global dominant shares, one equal level (where the
notion has one), the leximin of given utilities, the largest total and proportional fairness with an alpha of its own. Every program is
solved by the engine of its own accord (the default), by ``interior-point``, and by ``interior-point`` again without merging identical
rows, which is where users are alike. An answer counts when its certificate holds; ``interior-point`` on its own may refuse, and
the unmerged one may be finished by HiGHS: both are counted. Levels and totals are compared with those of HiGHS; an alpha-fair x with the
best feasible point in the direction of its gradient, found by HiGHS as well: sum phi[n] (x'[n] - x[n]) / x[n]^alpha <= 0 is its
condition of optimality.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from agreement import DEFAULT, Tally, Worst, difference, print_totals, run
from instances import degenerate_instance
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
WAYS = (DEFAULT, "interior-point", "interior-point, unmerged")


# Questions -----------------------------------------------------------------------------------------------------------------------


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
                worst.blame(way, seed, error)
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
    values = (values / program.goal.weights)[program.members]
    return values if isinstance(program.goal, Leximin) else np.array([values.min()])


def _better(program: Program, goal: AlphaFair, answer: Any) -> float:
    """By what part the linear total of the gradient at x can be larger elsewhere, by HiGHS."""
    x = answer.tasks[program.pair_users, program.pair_servers] if isinstance(answer, fo.Allocation) else answer
    level = program.per_user(program.utilities * x)
    open_to = program.per_user(program.largest()) > 0
    log_worth = np.where(open_to, goal.log_worth(np.where(open_to, level, 1.0)), -np.inf)
    linear = replace(program, goal=Total(np.exp(log_worth - log_worth.max())))
    best: Solution = HiGHS().solve(linear, tolerance=TOLERANCE, deadline=Deadline(None))
    worth = linear.goal.weights[program.pair_users] * program.utilities
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
    for column in ("solved", "finished by HiGHS", "refused", "failed", "residual", "difference", "seconds"):
        lines.add_column(column, justify="right", no_wrap=True)
    for key, worst in sorted(table.items()):
        counted = (worst.solved, worst.by_another, len(worst.refused), len(worst.failures))
        lines.add_row(*key, *map(str, counted), f"{worst.residual:.1e}", f"{worst.difference:.1e}", f"{worst.seconds:.2f}")
    console.print(lines)
    for key, worst in sorted(table.items()):
        for failure in (worst.failures + worst.refused)[:5]:
            console.print(f"{', '.join(key)}: {failure}", markup=False)
    print_totals(table.values(), console)


if __name__ == "__main__":
    raise SystemExit(run(__doc__, 2000, compare, print_table))

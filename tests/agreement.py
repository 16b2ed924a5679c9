"""Every notion, every engine that can, on random instances: do they agree, and what does the worst certificate say?

``python tests/agreement.py --instances 500`` prints a table; tests/conformance/test_agreement.py runs a fixed sample of it.

Each engine answers alone, and ``default`` is the engines in the order that fairopt tries them. An engine may refuse: it says that it
has no answer within the tolerance. The default may not.

Instances: zero demands, missing resources, placement constraints, limits on tasks, counts, weights over three orders of magnitude, and
under time division in every third instance rates of its own, and in every fourth users who are limited to some servers at once (but not
for PS-DSF, which knows no such limit). Proportional fairness is asked with five alphas, PS-DSF under time division
as an equilibrium and as a market. Compared are shares, relative to the larger, with those of the first engine that answers. Where
the answer is not unique (PS-DSF under resource division or with finitely many tasks, totals), only certificates count.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from instances import instance_of_everything
from rich.console import Console
from rich.progress import track
from rich.table import Table

import fairopt as fo

ALPHAS = (0.1, 0.5, 1.0, 2.0, 10.0)
DEFAULT = "default"  # no engine named


@dataclass(frozen=True)
class Question:
    """What is asked about an instance, and with whose answers this one is compared: ``peers`` is None where it is not unique."""

    label: str
    notion: str
    sharing: str
    instance: fo.Instance
    options: dict[str, Any]
    peers: str | None


@dataclass
class Worst:
    """The worst seen of one question and engine."""

    solved: int = 0
    by_another: int = 0  # of these, finished by another engine: no second opinion
    skipped: int = 0
    refused: list[str] = field(default_factory=list)  # by an engine on its own: it says that it has no answer within the tolerance
    residual: float = 0.0
    difference: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def blame(self, solver: str, seed: int, error: Exception) -> None:
        """Count an error as a refusal, or as a failure."""
        refused = solver in fo.SOLVERS and isinstance(error, fo.CertificateError | fo.NoSolution)
        (self.refused if refused else self.failures).append(f"seed {seed}: {type(error).__name__}: {error}")


Tally = dict[tuple[str, str, str], Worst]


def questions(instance: fo.Instance, seed: int) -> Iterator[Question]:
    """Every notion under both divisions, on the instance that suits it."""
    rng = np.random.default_rng(seed + 10**6)
    pairs = (instance.n_users, instance.n_servers)
    total = instance.total_capacity
    pool = fo.Instance([np.where(total > 0, total, 1.0)], instance.demands, instance.weights, tasks=instance.tasks)
    requests = pool.demands * pool.total_capacity * rng.uniform(0.3, 1, (pool.n_users, 1)) / pool.demands.max(axis=1, keepdims=True)
    requests = np.minimum(requests, pool.total_capacity)
    whole_requests = fo.Instance(pool.capacities, requests, pool.weights, tasks=np.ones(pool.n_users))
    utility = rng.uniform(0.1, 1, pairs)
    rates = rng.uniform(0.2, 9, pairs) * (rng.random(pairs) > 0.1) if seed % 3 == 0 else None
    timed = instance.replace(rates=rates)
    unlimited = bool(np.isinf(instance.tasks).all())
    at_once = rng.uniform(0.2, instance.counts.sum() + 0.2, instance.n_users) if seed % 4 == 1 else None
    for sharing, cluster in (("rdm", instance), ("tdm", timed)):
        limited = cluster.replace(parallelism=at_once)
        for notion in fo.NOTIONS:
            if notion == "max-min":
                yield Question(notion, notion, sharing, limited, {"utility": utility}, notion)
            elif notion == "drf":
                yield Question(notion, notion, sharing, pool, {}, notion)
            elif notion == "bbf":
                if sharing == "rdm":
                    yield Question(notion, notion, sharing, whole_requests, {}, notion)
            elif notion == "proportional":
                for alpha in ALPHAS:
                    yield Question(f"{notion} {alpha:g}", notion, sharing, limited, {"alpha": alpha}, f"{notion} {alpha:g}")
            elif notion == "efficiency":
                yield Question(notion, notion, sharing, limited, {}, None)
            elif notion == "psdsf":
                # With unlimited tasks the market's x[n] is the equilibrium's; with limits it is one of several, the same for every engine.
                same = "psdsf" if unlimited and sharing == "tdm" else None
                yield Question("psdsf", notion, sharing, cluster, {}, same)
                if sharing == "tdm":
                    yield Question("psdsf market", notion, sharing, cluster, {"formulation": "market"}, same or "psdsf market")
            else:
                yield Question(notion, notion, sharing, limited, {}, notion)


def compare(seeds: Iterable[int], tolerance: float = 1e-8) -> Tally:
    """Solve everything; return the worst of each (notion, sharing, engine)."""
    table: Tally = {}
    try:
        for seed in seeds:
            ask(seed, tolerance, table)
    except KeyboardInterrupt:
        print(f"stopped at seed {seed}; the table is of those before it", file=sys.stderr)
    return {key: worst for key, worst in table.items() if worst.solved or worst.refused or worst.failures}


def ask(seed: int, tolerance: float, table: Tally) -> None:
    """Solve everything of one instance, and enter it in the table."""
    references: dict[tuple[str, str], fo.Allocation] = {}
    for question in questions(instance_of_everything(seed), seed):
        solved: dict[str, tuple[fo.Allocation, float]] = {}  # what an engine gave by itself when none was named it would give again
        for solver in (DEFAULT, *fo.SOLVERS):
            worst = table.setdefault((question.label, question.sharing, solver), Worst())
            try:
                allocation, seconds = solved.get(solver) or _timed(question, solver, tolerance)
            except (fo.Unsupported, fo.SolverUnavailable):
                worst.skipped += 1
                continue
            except fo.FairoptError as error:
                worst.blame(solver, seed, error)
                continue
            if solver == DEFAULT and len(allocation.details["engines"]) == 1:
                solved[allocation.details["engines"][0]] = allocation, seconds
            worst.solved += 1
            worst.seconds += seconds
            worst.residual = max(worst.residual, allocation.certificate.worst)
            worst.by_another += allocation.details.get("finished_by") is not None
            if question.peers is not None:
                reference = references.setdefault((question.peers, question.sharing), allocation)
                worst.difference = max(worst.difference, difference(allocation.shares, reference.shares))


def _timed(question: Question, solver: str, tolerance: float) -> tuple[fo.Allocation, float]:
    """Return the answer of an engine, or of whichever is chosen by default, and its seconds."""
    started = time.perf_counter()
    allocation = fo.solve(
        question.instance,
        question.notion,
        sharing=question.sharing,  # type: ignore[arg-type]
        solver=None if solver == DEFAULT else solver,
        tolerance=tolerance,
        **question.options,
    )
    return allocation, time.perf_counter() - started


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference of shares, relative to the larger; absolute for those that are next to nothing."""
    scale = np.maximum(np.abs(mine), np.abs(theirs))
    return float((np.abs(mine - theirs) / np.where(scale > 1e-12, scale, 1.0)).max(initial=0.0))


def print_table(table: Tally, console: Console) -> None:
    """One line for each notion, sharing and engine, with its first failures below."""
    lines = Table(box=None, pad_edge=False)
    for column in ("notion", "sharing", "engine"):
        lines.add_column(column, no_wrap=True)
    for column in ("solved", "finished by another", "skipped", "refused", "failed", "residual", "difference", "seconds"):
        lines.add_column(column, justify="right", no_wrap=True)
    for (label, sharing, solver), worst in sorted(table.items()):
        counted = (worst.solved, worst.by_another, worst.skipped, len(worst.refused), len(worst.failures))
        measured = (f"{worst.residual:.1e}", f"{worst.difference:.1e}", f"{worst.seconds:.2f}")
        lines.add_row(label, sharing, solver, *map(str, counted), *measured)
    console.print(lines)
    for key, worst in sorted(table.items()):
        for failure in (worst.failures + worst.refused)[:3]:
            console.print(f"{' '.join(key)}: {failure}", markup=False)
    print_totals(table.values(), console)


def print_totals(found: Collection[Worst], console: Console) -> None:
    """One line for the whole table."""
    console.print(
        f"{sum(worst.solved for worst in found):,} answers certified, "
        f"{sum(worst.by_another for worst in found):,} of them finished by another engine, "
        f"{sum(len(worst.refused) for worst in found):,} refused by an engine on its own, "
        f"{sum(len(worst.failures) for worst in found):,} failures; "
        f"largest residual {max((worst.residual for worst in found), default=0.0):.1e}, "
        f"largest difference {max((worst.difference for worst in found), default=0.0):.1e}"
    )


def run(description: str | None, instances: int, compare: Callable[..., Tally], print_table: Callable[[Tally, Console], None]) -> int:
    """Compare as many instances as the command line asks for, print the table, and return status 1 where something failed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=instances)
    parser.add_argument("--seed", type=int, default=0, help="of the first instance")
    arguments = parser.parse_args()
    logging.getLogger("fairopt").setLevel(logging.ERROR)
    seeds = range(arguments.seed, arguments.seed + arguments.instances)
    table = compare(track(seeds, "instances", console=Console(stderr=True)))
    print_table(table, Console(highlight=False, width=None if sys.stdout.isatty() else 140))
    return int(any(worst.failures for worst in table.values()))


if __name__ == "__main__":
    raise SystemExit(run(__doc__, 500, compare, print_table))

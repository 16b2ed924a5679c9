"""Floats against fractions on random instances of every notion that has both: are the floats within 1e-9, or do they say that they are not?

``python tests/exactness.py --instances 1000`` prints a line for each notion; tests/conformance/test_exactness.py runs a few of them.

Compared are shares, relative to the largest. A float answer that is farther away must have a certificate above 1e-9, or be refused. Every
answer in fractions is proved when it is solved. Where shares are not unique (totals), the totals are compared.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from instances import instance_in_queues, instance_of_everything

import fairopt as fo

NEAR = 1e-9
FLAT = ("drf", "drfh", "cdrf", "tsf", "asset", "max-min", "per-server-drf", "uniform", "efficiency")
TREES = ("drfh", "tsf")
IRRATIONAL: dict[str, tuple[str, dict[str, object]]] = {  # answered by a ball of radius 1e-30
    "proportional": ("proportional", {}),
    "proportional, alpha 0.5": ("proportional", {"alpha": 0.5}),
    "proportional, alpha 4": ("proportional", {"alpha": 4.0}),
    "fds": ("fds", {}),
    "gfj": ("gfj", {"beta": 0.5}),
}


@dataclass
class Tally:
    """What was seen of a notion."""

    compared: int = 0
    refused: int = 0
    farthest: float = 0.0
    wrong: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)  # in fractions


def questions(seed: int) -> Iterable[tuple[str, str, fo.Instance, dict[str, object]]]:
    """Yield the label, the notion, the instance and the options of each question of a seed."""
    instance = instance_of_everything(seed)
    for notion in FLAT:
        if notion != "drf":
            yield notion, notion, instance, {}
        elif instance.rates_per_server is None:
            yield notion, notion, instance.pooled(), {}
    if instance.rates_per_server is None:
        yield "drfh equalize", "drfh", instance, {"formulation": "equalize"}
        yield "drfh by time", "drfh", instance, {"sharing": "tdm"}
    for label, (notion, options) in IRRATIONAL.items():
        yield label, notion, instance, options
    if instance.rates_per_server is None:
        yield "bbf", "bbf", instance.pooled(), {}
    yield "psdsf by time", "psdsf", instance.replace(tasks=None), {"sharing": "tdm"}
    tree = instance_in_queues(seed, guarantees=seed % 2 == 0)
    on_groups = any(quota.guarantee for queue in tree.queues for quota in queue.quotas)
    for notion in () if on_groups else TREES:  # guarantees on groups of servers that overlap are met in more than one way
        yield f"{notion} in queues", notion, tree, {}
        yield f"{notion} with a clamp", notion, tree, {"guarantees": "clamp"}
        if seed % 2:
            yield f"{notion} nested", notion, tree, {"tree": "nested"}


def compare(seed: int, tallies: dict[str, Tally]) -> None:
    """Ask every question of a seed in floats and in fractions."""
    for label, notion, instance, options in questions(seed):
        tally = tallies.setdefault(label, Tally())
        try:
            exact = fo.solve(instance, notion, exact=True, **options)  # type: ignore[arg-type]
        except fo.Unsupported:
            continue
        except fo.NoSolution as error:
            tally.unanswered.append(f"seed {seed}: {error}")
            continue
        try:
            floats = fo.solve(instance, notion, **options)  # type: ignore[arg-type]
        except (fo.CertificateError, fo.NoSolution):
            tally.refused += 1
            continue
        tally.compared += 1
        unique = notion != "efficiency"
        ours, theirs = (np.atleast_1d(each.shares if unique else total(each)) for each in (exact, floats))
        apart = float(np.abs(ours - theirs).max() / max(np.abs(ours).max(), 1e-300))
        tally.farthest = max(tally.farthest, apart)
        if apart > NEAR and not floats.certificate.worst > NEAR:
            tally.wrong.append(f"seed {seed}: {apart:.1e} apart, certificate {floats.certificate.worst:.1e}")


def total(allocation: fo.Allocation) -> float:
    """The weighted number of tasks."""
    weights = allocation.instance.weights
    return float(allocation.tasks_per_user @ (weights if allocation.notion == "efficiency" else np.ones(len(weights))))


def main() -> None:
    """Print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    tallies: dict[str, Tally] = {}
    for seed in range(arguments.first, arguments.first + arguments.instances):
        compare(seed, tallies)
    for label, tally in tallies.items():
        print(f"{label:24} {tally.compared:5} compared  {tally.refused:3} refused in floats  farthest {tally.farthest:.1e}")
        for line in tally.wrong + tally.unanswered:
            print(f"    {line}")


if __name__ == "__main__":
    main()

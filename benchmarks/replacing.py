"""Which properties a notion keeps when resources replace one another: counterexamples, by random search, shrunk.

    python benchmarks/replacing.py            search, and write results/replacing.json and results/replacing.md
    python benchmarks/replacing.py TRIES      so many random instances for each cell; default 100

Instances have 2 or 3 users, 2 servers that differ, 1 or 2 resources, whole numbers: capacities of 1 to 9, demands of 1 to 4 on each server,
speeds of 1 to 4. In one half of them nobody runs out of tasks, in the other users have 1 to 4 tasks. Each is solved, and audited for one
property at a time; lies are a search of their own, with 30 lies. Of the first instance with a violation above 1 % of the work of a user,
everything is removed that the violation does not need: users, servers, resources, differences, task limits; then numbers are lowered one by
one, as long as the property still fails. Notions with options have their defaults: under "finish-time" all users have just come, with equal
work. "drf" and "bbf" are defined on one server, and "asset" takes no such instances.

A dash in the tables says that the search found no counterexample: a proof is cited where there is one, in docs/explanation/replacing.md.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
NOTIONS = (
    "cdrf",
    "tsf",
    "drfh",
    "psdsf",
    "max-min",
    "finish-time",
    "per-server-drf",
    "uniform",
    "proportional",
    "efficiency",
    "fds",
    "gfj",
)
PROPERTIES = ("sharing-incentive", "envy-freeness", "pareto", "population-monotonicity", "strategy-proofness")
LEAST = 0.01  # of the work of a user who gains or loses


def drawn(rng: np.random.Generator, *, tasks: bool) -> fo.Instance:
    """Return a small random instance whose demands and speeds differ by server."""
    n, r = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    return fo.Instance(
        rng.integers(1, 10, (2, r)),
        rng.integers(1, 5, (n, 2, r)),
        speeds=rng.integers(1, 5, (n, 2)).astype(float),
        tasks=rng.integers(1, 5, n).astype(float) if tasks else None,
    )


def violation(instance: fo.Instance, notion: str, name: str) -> tuple[float, str]:
    """Return by how much a property fails, relative to the most that a user does, and its witness; 0 and "" if it does not.

    NaN if the notion refuses the instance.
    """
    try:
        allocation = fo.solve(instance, notion)
        verdict = fo.audit(allocation, [name], effort=30)[name]
    except fo.FairoptError:
        return float("nan"), ""
    if verdict.witness is None:
        return 0.0, ""
    return verdict.violation / float(allocation.work.max()), verdict.witness.text


def smaller(instance: fo.Instance) -> Iterator[dict[str, Any]]:
    """Yield the arguments of instances that are one step smaller, the largest steps first."""
    demands, speeds, capacities = np.array(instance.demands_by_kind[:, instance.kind_of]), np.array(instance.speeds), instance.capacities
    whole = {"capacities": capacities, "demands": demands, "speeds": speeds, "tasks": instance.tasks}
    for axis, number in enumerate(demands.shape):
        for j in range(number if number > (2 if axis == 0 else 1) else 0):
            keep = np.arange(number) != j
            yield {
                "capacities": capacities[keep] if axis == 1 else capacities[:, keep] if axis == 2 else capacities,
                "demands": np.compress(keep, demands, axis=axis),
                "speeds": speeds[keep] if axis == 0 else speeds[:, keep] if axis == 1 else speeds,
                "tasks": instance.tasks[keep] if axis == 0 else instance.tasks,
            }
    for n in range(len(demands)):
        yield whole | {"tasks": np.where(np.arange(len(demands)) == n, np.inf, instance.tasks)}
        mine = (np.arange(len(demands)) == n)[:, None]
        yield whole | {"speeds": np.where(mine, 1, speeds)}
        yield whole | {"demands": np.where(mine[:, :, None], demands[:, :1], demands)}
    for name, array in whole.items():
        for place in zip(*np.nonzero(np.isfinite(array) & (array > 1)), strict=True):
            for value in sorted({1.0, np.floor(array[place] / 2), array[place] - 1}):
                if value >= 1:
                    lower = array.copy()
                    lower[place] = value
                    yield whole | {name: lower}


def size(arguments: dict[str, Any]) -> tuple[float, ...]:
    """Return how large an instance is: what makes it simpler comes first."""
    demands, speeds, tasks = arguments["demands"], arguments["speeds"], arguments["tasks"]
    differ = int((demands != demands[:, :1]).any(axis=(1, 2)).sum()) + int((speeds != 1).any(axis=1).sum())
    return demands.size, float(np.isfinite(tasks).sum()), differ, float(arguments["capacities"].sum() + demands.sum() + speeds.sum())


def shrunk(instance: fo.Instance, fails: Callable[[fo.Instance], bool]) -> fo.Instance:
    """Return an instance of which no part can be left out, and no number lowered, so that it still fails."""
    while True:
        own = {
            "capacities": instance.capacities,
            "demands": instance.demands_by_kind[:, instance.kind_of],
            "speeds": instance.speeds,
            "tasks": instance.tasks,
        }
        for arguments in smaller(instance):
            if size(arguments) < size(own):
                candidate = fo.Instance(**arguments)
                if candidate.differs_by_server and fails(candidate):
                    instance = candidate
                    break
        else:
            return instance


def counterexample(notion: str, name: str, tries: int, *, tasks: bool) -> tuple[int, fo.Instance | None]:
    """Return how many instances were tried, and one on which the property fails, shrunk; None if there was none."""
    tried = 0
    for seed in range(tries):
        instance = drawn(np.random.default_rng([seed, tasks]), tasks=tasks)
        fails = violation(instance, notion, name)[0]
        tried += not np.isnan(fails)
        if fails > LEAST:
            return tried, shrunk(instance, lambda each: violation(each, notion, name)[0] > LEAST)
    return tried, None


def written(instance: fo.Instance) -> dict[str, Any]:
    """Return the arguments of an instance as plain numbers."""
    demands = instance.demands_by_kind[:, instance.kind_of]
    found: dict[str, Any] = {"capacities": instance.capacities.tolist(), "demands": demands.tolist(), "speeds": instance.speeds.tolist()}
    if np.isfinite(instance.tasks).any():
        found["tasks"] = [each if np.isfinite(each) else None for each in instance.tasks.tolist()]
    return found


def read(arguments: dict[str, Any]) -> fo.Instance:
    """Return the instance of these arguments."""
    tasks = arguments.get("tasks")
    return fo.Instance(**arguments | {"tasks": None if tasks is None else [np.inf if each is None else each for each in tasks]})


def table(found: list[dict[str, Any]], *, tasks: bool) -> list[str]:
    """Return a table in Markdown: a row for each notion, and a column for each property."""
    here = [each for each in found if each["tasks"] == tasks]
    cells = {(each["notion"], each["property"]): "no" if each["instance"] else "-" if each["tried"] else "refused" for each in here}
    lines = ["| notion | " + " | ".join(name.replace("-", " ") for name in PROPERTIES) + " |", "|---" * (len(PROPERTIES) + 1) + "|"]
    return lines + [f"| {notion} | " + " | ".join(cells[notion, name] for name in PROPERTIES) + " |" for notion in NOTIONS]


def main(tries: int) -> None:
    """Search every cell, and write the results."""
    found = []
    started = time.process_time()
    for tasks in (False, True):
        for notion in NOTIONS:
            for name in PROPERTIES:
                number, instance = counterexample(notion, name, tries, tasks=tasks)
                text = "" if instance is None else violation(instance, notion, name)[1]
                found.append(
                    {
                        "notion": notion,
                        "property": name,
                        "tasks": tasks,
                        "tried": number,
                        "instance": None if instance is None else written(instance),
                        "witness": text,
                    }
                )
                print(notion, name, "with tasks" if tasks else "endless", number, text, flush=True)
    (RESULTS / "replacing.json").write_text(json.dumps({"tries": tries, "cells": found}, indent=1) + "\n", encoding="utf-8")
    lines = [
        "# Properties when resources replace one another",
        "",
        f"`python benchmarks/replacing.py`: {tries} instances a cell at most.",
        "",
    ]
    for tasks in (False, True):
        lines += ["Users have 1 to 4 tasks:" if tasks else "Nobody runs out of tasks:", "", *table(found, tasks=tasks), ""]
    lines += ["no: a counterexample is in replacing.json; -: none was found; refused: the notion does not take such instances."]
    (RESULTS / "replacing.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{time.process_time() - started:.0f} s of CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)

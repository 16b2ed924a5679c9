"""The way back of every scheduler: the text of an export, read by the importer, gives on random trees what was exported.

Two checks for each tree, of every x[n]. Nobody has less than its whole tasks, or its divisible ones where these are fewer, by more than the
rounding of the export, unless the export says so itself and is refused. And the text gives what the numbers give from which it was
written, solved by the same meaning of guarantees.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.round_trips import WAYS_BACK, random_tree

import fairopt as fo
from fairopt.clusters import read_back
from fairopt.instance import FloatArray

EXAMPLES = max(settings().max_examples // 20, 3)
AS_NUMBERS = {  # how near the text is to the numbers, in tasks; not compared where the scheduler divides what is not promised otherwise
    "volcano": 2e-3,
    "kai": 1e-6,
    "slurm": 1e-6,
    "yarn": 2e-3,
    "yarn-fair": 1e-6,
}
"""Kueue divides limits among flavors, and in YuniKorn a queue that is promised nothing counts by its maximum."""


def by_user(instance: fo.Instance, imported: fo.Import) -> FloatArray:
    """Return what each user of an instance gets in the import: its own owner, or that of its queue, with the same demand."""
    names = list(imported.instance.resources)
    demands = np.array(
        [imported.instance.demands[:, names.index(r)] if r in names else 0 * imported.instance.tasks for r in instance.resources]
    ).T
    tasks = fo.solve(imported.instance, "drfh", **imported.options).tasks_per_user
    found = np.zeros(instance.n_users)
    for n, user in enumerate(instance.users):
        for owner in (user, instance.queue_of[n]):
            own = [m for m, name in enumerate(imported.owners) if name == owner and np.allclose(demands[m], instance.demands[n])]
            if own:
                found[n] = tasks[own].sum()
                break
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WAYS_BACK)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=EXAMPLES)
def test_the_text_of_an_export_gives_what_was_exported(kind: str, seed: int) -> None:
    """On random trees of queues with weights, guarantees, limits and users who ask for little."""
    export, back, gpus = WAYS_BACK[kind]
    instance = random_tree(seed, gpus)
    said: list[tuple[Any, Any, Any]] = []

    def heard(*values: Any) -> tuple[list[str], list[str]]:
        said.append(values)
        return read_back.less_than_exported(*values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairopt.clusters.exported.less_than_exported", heard)
        allocation = fo.solve(instance, "drfh")
        found = export(allocation)
    with TemporaryDirectory() as folder:
        imported = back(found, Path(folder))
    tasks = by_user(instance, imported)
    wanted = np.minimum(found.whole.tasks_per_user, allocation.tasks_per_user)
    less = read_back._less(said[0][0], wanted, tasks)
    assert not less.any() or found.less, (found.whole.tasks_per_user, tasks)
    if kind in AS_NUMBERS:
        meant = fo.solve(read_back._read_back(*said[0]), "drfh", **imported.options).tasks_per_user
        np.testing.assert_allclose(tasks, meant, atol=AS_NUMBERS[kind])

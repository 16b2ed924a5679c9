"""What must hold of every instance whose demands and speeds differ by server, whatever the answer is: work is compared, as it is unique."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.test_by_server import drawn

import fairopt as fo

NOTIONS = ("cdrf", "tsf", "drfh", "max-min", "finish-time", "per-server-drf", "uniform", "proportional", "fds", "gfj")
SEEDS = range(200, 206)


def parts(instance: fo.Instance) -> dict[str, Any]:
    """Return the arguments of an instance, with a demand for each server."""
    return {
        "capacities": instance.capacities,
        "demands": instance.demands_by_kind[:, instance.kind_of],
        "speeds": instance.speeds,
        "weights": instance.weights,
        "counts": instance.counts,
        "tasks": instance.tasks,
        "shared": dict(instance.shared) or None,
    }


def of_notion(notion: str, seed: int) -> fo.Instance:
    """Return a random instance that the notion takes; tasks have no end where the order of servers would matter to those who run out."""
    instance = drawn(seed, limited=False)
    if notion != "per-server-drf":
        return instance
    own = parts(instance) | {"shared": None, "tasks": None}
    return fo.Instance(**own | {"demands": own["demands"][:, :, : instance.capacities.shape[1]]})


def same_work(actual: fo.Instance, notion: str, expected: np.ndarray) -> None:
    """Solve it and compare, up to what the certificate allows."""
    found = fo.solve(actual, notion)
    assert found.certificate.worst <= 1e-8
    np.testing.assert_allclose(found.work, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("notion", NOTIONS)
def test_order_units_split_rows_and_clones(notion: str) -> None:
    """Users and servers in another order, a resource in another unit, each row of servers in two, and everything twice."""
    for seed in SEEDS:
        instance = of_notion(notion, seed)
        rng, own, work = np.random.default_rng(seed), parts(instance), fo.solve(instance, notion).work
        p, q = rng.permutation(instance.n_users), rng.permutation(instance.n_servers)
        moved: dict[str, Any] = {
            "capacities": own["capacities"][q],
            "demands": own["demands"][np.ix_(p, q)],
            "speeds": own["speeds"][np.ix_(p, q)],
        }
        moved |= {"weights": own["weights"][p], "counts": own["counts"][q], "tasks": own["tasks"][p]}
        same_work(fo.Instance(**own | moved), notion, work[p])

        unit = np.where(np.arange(own["demands"].shape[2]) == 0, 1024.0, 1.0)
        in_units = {"capacities": own["capacities"] * unit[: own["capacities"].shape[1]], "demands": own["demands"] * unit}
        same_work(fo.Instance(**own | in_units), notion, work)

        row = np.repeat(np.arange(instance.n_servers), 2)
        counts = np.where(np.arange(row.size) % 2, own["counts"][row] - 1, 1)
        split = {"capacities": own["capacities"][row], "demands": own["demands"][:, row], "speeds": own["speeds"][:, row], "counts": counts}
        same_work(fo.Instance(**own | split), notion, work)

        twice: dict[str, Any] = {"capacities": np.tile(own["capacities"], (2, 1)), "demands": np.tile(own["demands"], (2, 2, 1))}
        twice |= {name: np.tile(own[name], 2) for name in ("weights", "counts", "tasks")}
        twice |= {
            "speeds": np.tile(own["speeds"], (2, 2)),
            "shared": {name: 2 * amount for name, amount in instance.shared.items()} or None,
        }
        same_work(fo.Instance(**own | twice), notion, np.tile(work, 2))

"""Prices of the limits of queues: what one more unit of a limit gives the level that it stops, found again by a larger limit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from queue_oracle import random_tree
from support.command_line import EXAMPLES, run

import fairopt as fo
from fairopt.program.queue_limits import limit_rows

RAISED = 1e-4  # relative


def raised(instance: fo.Instance, name: str) -> tuple[fo.Instance, float]:
    """Return the instance with a larger limit, and by how much."""
    row = next(row for row in limit_rows(instance) if row.name == name)
    more, queues = row.bound * RAISED, list(instance.queues)
    queue = queues[row.of[0] - 1]
    limit = dict(queue.limit) | {instance.resources[row.resource]: row.bound + more}
    queues[row.of[0] - 1] = fo.Queue(
        queue.name, queue.parent, queue.weight, queue.guarantee, limit, queue.lending_limit, queue.tier, queue.quotas
    )
    return instance.replace(queues=queues), more


@pytest.mark.parametrize("options", [{}, {"guarantees": "clamp"}, {"queue_share": "sum"}])
def test_a_price_is_what_one_more_unit_gives(options: dict[str, str]) -> None:
    """No level rises by more than the price of its limit, and most by just that."""
    equal = priced = 0
    for seed in (2, 4, 8, 11, 14):
        instance = random_tree(seed, servers=1 + seed % 3)
        allocation = fo.solve(instance, "drfh", **options)  # type: ignore[arg-type]
        for level in allocation.levels:
            for name, price in level.queue_prices.items():
                if " beside what " in name or " on " in name:
                    continue
                larger, more = raised(instance, name)
                after = fo.solve(larger, "drfh", **options)  # type: ignore[arg-type]
                values = [each.value for each in after.levels if each.part == level.part and set(each.users) & set(level.users)]
                rise = (min(values) - level.value) / more
                assert rise <= price * (1 + 1e-3)
                equal, priced = equal + (rise == pytest.approx(price, rel=1e-3)), priced + 1
    assert priced > 0
    assert equal >= 0.5 * priced


def test_the_price_of_a_limit_of_a_leximin_and_of_a_sum() -> None:
    """Both are stopped by limits: a by 2 GPUs at 0.2, b by the rest. A total gains one task with one unit of the limit of the better."""
    queues = [fo.Queue("a", limit={"gpu": 2}), fo.Queue("b", limit={"gpu": 6})]
    instance = fo.Instance([[10]], [[1], [2]], resources=["gpu"], queues=queues, queue_of=["a", "b"])
    filled = fo.solve(instance, "drfh")
    assert filled.queue_prices == pytest.approx({"gpu of a": 0.1, "gpu of b": 0.1})
    assert [dict(level.queue_prices) for level in filled.levels] == [{"gpu of a": pytest.approx(0.1)}, {"gpu of b": pytest.approx(0.1)}]
    assert fo.solve(instance, "efficiency").queue_prices == pytest.approx({"gpu of a": 1, "gpu of b": 0.5})
    assert [limit.price for each in filled.queue_holdings() for limit in each.limits] == pytest.approx([0.1, 0.1])
    assert filled.to_dict()["queues"][0]["limits"][0]["price"] == pytest.approx(0.1)
    assert filled.to_dict()["levels"][0]["queue_prices"] == {"gpu of a": pytest.approx(0.1)}


def test_a_limit_on_some_servers_has_the_price_of_its_program() -> None:
    """Two on new, with room on old: one more unit is worth nothing. Where ann may run on new alone, it is worth one GPU of eight."""
    queues = [fo.Queue("a", quotas=[fo.Quota(["new"], limit={"gpu": 2}, name="model = A100")]), fo.Queue("b")]
    instance = fo.Instance([[4], [4]], np.ones((2, 1)), servers=["new", "old"], resources=["gpu"], queues=queues, queue_of=["a", "b"])
    assert not fo.solve(instance, "drfh").queue_prices
    bound = fo.solve(instance.replace(eligibility=[[1, 0], [1, 1]]), "drfh")
    assert bound.queue_prices == pytest.approx({"gpu of a on model = A100": 1 / 8})


def test_json_has_prices() -> None:
    """Of the limits that have one; null elsewhere."""
    queues = json.loads(run("solve", EXAMPLES / "research-queues.yaml", "--json").stdout)["queues"]
    prices = {queue["name"]: [limit["price"] for limit in queue["limits"]] for queue in queues if queue["limits"]}
    assert prices == {"vision": [None], "interns": [pytest.approx(0.141, abs=1e-3)], "teaching": [None]}

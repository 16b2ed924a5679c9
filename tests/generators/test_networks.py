"""Random flow networks: paths lead from one node to another, and equal seeds draw equal networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fairopt as fo
from fairopt.generators import grid, random_graph


@pytest.mark.parametrize(
    ("draw", "options", "number"),
    [
        (grid, {"flows": 20, "rows": 4, "columns": 5, "paths": 3}, 31),
        (random_graph, {"flows": 20, "nodes": 12, "degree": 4, "paths": 3}, 24),
    ],
)
def test_every_path_is_one(draw: Callable[..., Any], options: dict[str, Any], number: int) -> None:
    """Its links are there and follow each other from one end to the other, without a node twice."""
    links, flows = draw(**options, seed=3)
    assert (links, flows) == draw(**options, seed=3)
    assert len(links) == number
    assert len(flows) == 20
    for paths in flows.values():
        ends = []
        for path in paths:
            degree: dict[str, int] = {}
            for link in path:
                for node in link.split("-"):
                    degree[node] = degree.get(node, 0) + 1
            ends.append(sorted(node for node, times in degree.items() if times == 1))
            assert sorted(degree.values()) == [1, 1, *[2] * (len(path) - 1)]
        assert ends == [ends[0]] * len(ends)
        assert len({tuple(path) for path in paths}) == len(paths) <= 3
    network = fo.Instance.from_paths(links, flows)
    assert fo.solve(network, "max-min").tasks_per_user.min() > 0


def test_numbers_that_make_no_network_are_refused() -> None:
    """A grid needs two nodes, and a graph more nodes than its degree."""
    with pytest.raises(fo.Unsupported, match="columns is 1"):
        grid(rows=1, columns=1)
    with pytest.raises(fo.Unsupported, match="degree is 5"):
        random_graph(nodes=5, degree=5)

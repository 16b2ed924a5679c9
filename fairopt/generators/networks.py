"""Random flow networks: links and paths for `fairopt.Instance.from_paths`.

Capacities are U[1, 10], and every flow has a random source and another random target.

>>> import fairopt as fo
>>> links, flows = grid(flows=3, rows=2, columns=3, seed=1)
>>> len(links), fo.Instance.from_paths(links, flows).n_users
(7, 3)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from fairopt.generators.instances import Seed
from fairopt.validation import check_whole_number

__all__ = ["grid", "random_graph"]

Links = dict[str, float]
Flows = dict[str, list[list[str]]]


def grid(flows: int = 100, rows: int = 8, columns: int = 8, paths: int = 4, *, seed: Seed = 0) -> tuple[Links, Flows]:
    """Return a grid of nodes and flows on it: links between neighbours, and for each flow up to ``paths`` shortest paths.

    Parameters
    ----------
    flows, rows, columns, paths : int
        At least two nodes.
    seed : int, list of int or numpy Generator

    Returns
    -------
    links : dict
        Capacities by name, such as ``"0,0-0,1"``.
    flows : dict
        The paths of ``flow-1``, ``flow-2``, ...

    Raises
    ------
    Unsupported
        A number is not allowed.
    """
    for word, value in (("flows", flows), ("rows", rows), ("paths", paths)):
        check_whole_number(word, value, 1)
    check_whole_number("columns", columns, 2 if rows == 1 else 1)
    rng = np.random.default_rng(seed)
    between = [
        ((i, j), (i + di, j + dj))
        for i in range(rows)
        for j in range(columns)
        for di, dj in ((0, 1), (1, 0))
        if i + di < rows and j + dj < columns
    ]
    name = {ends: "{},{}-{},{}".format(*ends[0], *ends[1]) for ends in between}
    found: Flows = {}
    for n in range(1, flows + 1):
        source, target = (divmod(int(node), columns) for node in rng.choice(rows * columns, size=2, replace=False))
        steps = [(1 if target[0] > source[0] else -1, 0)] * abs(target[0] - source[0])
        steps += [(0, 1 if target[1] > source[1] else -1)] * abs(target[1] - source[1])
        own: dict[tuple[str, ...], None] = {}
        for _ in range(paths):
            at, taken = source, []
            for k in rng.permutation(len(steps)):
                after = (at[0] + steps[k][0], at[1] + steps[k][1])
                taken.append(name[min(at, after), max(at, after)])
                at = after
            own[tuple(taken)] = None
        found[f"flow-{n}"] = [list(path) for path in own]
    capacities = rng.uniform(1.0, 10.0, len(between))
    return {name[ends]: float(capacity) for ends, capacity in zip(between, capacities, strict=True)}, found


def random_graph(flows: int = 100, nodes: int = 50, degree: int = 4, paths: int = 4, *, seed: Seed = 0) -> tuple[Links, Flows]:
    """Return a random connected graph and flows on it.

    The graph is a random tree with further random links, nodes x degree / 2 links in all. The k-th path of a flow is the shortest one if
    each link has a random length, the same for all flows; equal paths count once.

    Parameters
    ----------
    flows, nodes, degree, paths : int
        At least two nodes, and a degree below their number.
    seed : int, list of int or numpy Generator

    Returns
    -------
    links, flows : dicts
        As of `grid`; names of links are such as ``"3-17"``.

    Raises
    ------
    Unsupported
        A number is not allowed.

    >>> links, flows = random_graph(flows=5, nodes=10, degree=3, paths=2, seed=1)
    >>> len(links), max(len(paths) for paths in flows.values())
    (15, 2)
    """
    for word, value in (("flows", flows), ("paths", paths)):
        check_whole_number(word, value, 1)
    check_whole_number("nodes", nodes, 2)
    check_whole_number("degree", degree, 1, below=nodes)
    rng = np.random.default_rng(seed)
    ends = {(int(rng.integers(node)), node) for node in range(1, nodes)}
    while len(ends) < nodes * degree // 2:
        one, other = sorted(int(node) for node in rng.choice(nodes, size=2, replace=False))
        ends.add((one, other))
    ordered = sorted(ends)
    name = {pair: f"{pair[0]}-{pair[1]}" for pair in ordered}
    heads, tails = np.array(ordered).T
    terminals = np.array([rng.choice(nodes, size=2, replace=False) for _ in range(flows)])
    own: list[dict[tuple[str, ...], None]] = [{} for _ in range(flows)]
    for _ in range(paths):
        lengths = sp.csr_array((rng.uniform(1.0, 2.0, heads.size), (heads, tails)), shape=(nodes, nodes))
        before = dijkstra(lengths, directed=False, return_predecessors=True)[1]
        for n, (source, target) in enumerate(terminals.tolist()):
            taken, at = [], target
            while at != source:
                above = int(before[source, at])
                taken.append(name[min(at, above), max(at, above)])
                at = above
            own[n][tuple(reversed(taken))] = None
    capacities = rng.uniform(1.0, 10.0, len(ordered))
    links = {name[pair]: float(capacity) for pair, capacity in zip(ordered, capacities, strict=True)}
    return links, {f"flow-{n}": [list(path) for path in each] for n, each in enumerate(own, 1)}

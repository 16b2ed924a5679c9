"""Max-min fair rates of flows over several paths, as the field approximates them, and as one would compute them with HiGHS.

Written from the papers, with SciPy's linear programs: geometric binning of SWAN (Hong et al., "Achieving high utilization with
software-driven WAN", SIGCOMM 2013); equi-depth binning and the approximate and adaptive water-filling of Soroush (Namyar et al., "Solving
max-min fair resource allocations quickly on large graphs", NSDI 2024); POP (Narayanan et al., "Solving large-scale granular resource
allocation problems efficiently with POP", SOSP 2021). All return the rate of each flow, (flows,). Flows have no weights and take all they
can get.

>>> network = Network.of({"a": 2.0, "b": 6.0}, {"f": [["a"], ["b"]], "g": [["a"]]})
>>> water_filling(network, rounds=1).round(6).tolist(), water_filling(network, rounds=20).round(3).tolist()
([6.666667, 1.333333], [6.0, 2.0])
>>> equi_depth_binning(network).round(3).tolist()
[6.0, 2.0]
"""

from __future__ import annotations

from dataclasses import dataclass

import contenders
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import fairopt as fo

Links = dict[str, float]
Flows = dict[str, list[list[str]]]


@dataclass(frozen=True, eq=False)
class Network:
    """Links and paths as arrays.

    Attributes
    ----------
    through : sparse array (links, paths)
        1 where a path takes a link.
    capacity : array (links,)
    flow : int array (paths,)
        The flow of each path.
    """

    links: Links
    flows: Flows
    through: sp.csr_array
    capacity: np.ndarray
    flow: np.ndarray

    @classmethod
    def of(cls, links: Links, flows: Flows) -> Network:
        place = {link: row for row, link in enumerate(links)}
        paths = [(n, path) for n, own in enumerate(flows.values()) for path in own]
        rows = np.array([place[link] for _, path in paths for link in path])
        columns = np.repeat(np.arange(len(paths)), [len(path) for _, path in paths])
        through = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(len(links), len(paths)))
        return cls(links, flows, through, np.array(list(links.values()), float), np.array([n for n, _ in paths]))

    @property
    def by_flow(self) -> sp.csr_array:
        """The paths of each flow, (flows, paths)."""
        return sp.csr_array((np.ones(self.flow.size), (self.flow, np.arange(self.flow.size))), shape=(len(self.flows), self.flow.size))


def exact(network: Network) -> fo.Allocation:
    """The leximin, certified."""
    return fo.solve(fo.Instance.from_paths(network.links, network.flows), "max-min")


def highs_loop(network: Network, primal: bool) -> np.ndarray:
    """The loop that one writes: maximise t, fix at t the flows whose rows have a positive dual, go on from the last basis."""
    by_flow = sp.csr_matrix(network.by_flow)
    highs = contenders._highs(sp.csr_matrix(network.through), network.capacity, by_flow)
    return np.asarray(by_flow @ contenders._level_by_level(highs, by_flow.shape[0], primal))


def geometric_binning(network: Network, factor: float = 2.0) -> np.ndarray:
    """SWAN: the largest total with all rates up to U, then up to 2 U, 4 U, ...; a flow that misses a bound keeps its rate from then on.

    Every rate is within the ``factor`` of the exact one. U is the least rate of water-filling.
    """
    A = sp.csr_array(sp.vstack([network.through, network.by_flow, -network.by_flow]))
    n = len(network.flows)
    unit = float(water_filling(network, rounds=1).min())
    rates, rising, bound = np.zeros(n), np.ones(n, bool), unit
    while rising.any():
        low = np.where(rising, rates * (1 - 1e-9), rates * (1 - 1e-7))  # the last digits of a linear program
        high = np.where(rising, bound, rates)
        done = linprog(-np.ones(network.flow.size), A_ub=A, b_ub=np.concatenate([network.capacity, high, -low]), method="highs")
        if done.x is None:
            raise RuntimeError(done.message)
        rates = network.by_flow @ done.x
        rising &= rates >= bound * (1 - 1e-7)
        bound *= factor
    return rates


def equi_depth_binning(network: Network, bins: int = 8, rounds: int = 10, part: float = 0.1) -> np.ndarray:
    """Soroush's EB: one linear program, in which a unit of rate in a bin is worth ``part`` of one in the bin below.

    The bins end at the least rate of adaptive water-filling and at its quantiles, so that as many flows belong to each.
    """
    guess = water_filling(network, rounds)
    ends = np.unique(np.quantile(guess, np.linspace(0, 1, bins)[:-1]))
    widths = np.append(np.diff(ends, prepend=0.0), np.inf)
    n, paths, number = len(network.flows), network.flow.size, widths.size
    in_bins = sp.hstack([-network.by_flow, *([sp.eye_array(n)] * number)])  # the rate of a flow is the sum over its bins
    limits = sp.hstack([network.through, sp.csr_array((network.capacity.size, n * number))])
    worth = np.concatenate([np.zeros(paths), np.repeat(part ** np.arange(number), n)])
    upper = np.concatenate([np.full(paths, np.inf), np.repeat(widths, n)])
    done = linprog(
        -worth,
        A_ub=sp.csr_array(limits),
        b_ub=network.capacity,
        A_eq=sp.csr_array(in_bins),
        b_eq=np.zeros(n),
        bounds=np.column_stack([np.zeros(upper.size), upper]),
        method="highs",
    )
    if done.x is None:
        raise RuntimeError(done.message)
    return np.asarray(network.by_flow @ done.x[:paths])


def water_filling(network: Network, rounds: int) -> np.ndarray:
    """Soroush's water-filling: every path is a flow of its own, with a weight; the weights of the paths of a flow have the sum 1.

    One round with equal weights is the approximate water-filling (aW). The adaptive one goes on with the part of its flow that each path
    got as its weight.
    """
    weight = 1.0 / np.bincount(network.flow)[network.flow]
    for _ in range(rounds):
        rate = _filled(network, weight)
        total = np.bincount(network.flow, weights=rate)
        weight = rate / total[network.flow]
    return total


def _filled(network: Network, weight: np.ndarray) -> np.ndarray:
    """Weighted max-min rates of single paths: the link that is full first stops its paths, then the next one."""
    by_link, by_path = network.through, sp.csc_array(network.through)
    left, load = network.capacity.copy(), by_link @ weight
    least = 1e-12 * load
    rising, rate = weight > 0, np.zeros(weight.size)
    while rising.any():
        level = np.divide(left, load, out=np.full(left.size, np.inf), where=load > least)
        link = int(level.argmin())
        if np.isinf(level[link]):
            break
        stopped = by_link.indices[by_link.indptr[link] : by_link.indptr[link + 1]]
        stopped = stopped[rising[stopped]]
        rate[stopped] = weight[stopped] * max(level[link], 0.0)
        rising[stopped] = False
        own = by_path[:, stopped]
        left -= own @ rate[stopped]
        load -= own @ weight[stopped]
        load[link] = 0.0
    return rate


def pop(network: Network, parts: int = 4, seed: int = 0) -> np.ndarray:
    """POP: flows are dealt at random into parts, each with its part of every capacity; each part is solved exactly."""
    names = list(network.flows)
    of = np.random.default_rng(seed).permutation(len(names)) % parts
    rates = np.zeros(len(names))
    links = {link: capacity / parts for link, capacity in network.links.items()}
    for part in range(parts):
        own = np.flatnonzero(of == part)
        if own.size == 0:
            continue
        rates[own] = exact(Network.of(links, {names[n]: network.flows[names[n]] for n in own})).tasks_per_user
    return rates

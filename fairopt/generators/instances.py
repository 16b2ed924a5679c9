"""Random instances of known distributions, drawn from a seed.

A generator is a function of sizes, of its own parameters and of ``seed``. The seed is an argument of `numpy.random.default_rng`; a numpy
Generator is used as it is and advanced. `GENERATORS` maps names to generators. `generate` draws one instance. `generator` returns a
function of the seed alone, which `fairopt.study` calls. In every instance, each user may run on at least one server. Weights are 1, or
U[1, ``weights``] if ``weights`` > 1. Every generator also takes ``queues`` and the other options of :mod:`fairopt.generators.trees`, and
then puts the users of the same draw into a random tree of queues.

>>> generate("uniform", users=3, servers=2, seed=1)
Instance(3 users, 2 servers, 2 resources: 7.90383 resource-1, 19.092 resource-2)
>>> draw = generator("constrained", of="google", users=20, servers=100, rate=0.2)
>>> draw(7) == draw(7), draw(7) == draw(8)
(True, False)
>>> print(draw)
constrained:of=google:users=20:servers=100:rate=0.2
>>> generate("uniform", users=8, queues=5, depth=3, guarantees=0.4, seed=1)
Instance(8 users, 5 servers, 2 resources: 26.106 resource-1, 29.8328 resource-2; 5 queues of 3 levels)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from fairopt.errors import Unsupported
from fairopt.generators import trees
from fairopt.generators.accelerators import gpus
from fairopt.generators.parameters import Seed, check_parameters, weights_of
from fairopt.generators.shared import with_shared
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import SAME
from fairopt.papers import read
from fairopt.validation import is_number
from fairopt.wording import did_you_mean, exactly, written

__all__ = ["GENERATORS", "Generator", "Seed", "constrained", "correlated", "generate", "generator", "google", "google_servers"]
__all__ += ["gpus", "kesidis", "uniform"]

_CAPACITY, _DEMAND = (1.0, 10.0), (0.01, 0.1)


# The distributions ---------------------------------------------------------------------------------------------------------------


def google(users: int = 50, servers: int | None = None, *, weights: float = 1.0, seed: Seed = 0) -> Instance:
    """Servers of a Google cluster, and random users.

    The servers are those of table I of Wang, Li and Liang (2014): all 12,583 servers in ten rows, or ``servers`` servers drawn from the
    table independently (with replacement), one row each. CPU and memory are fractions of the largest server. The users are our own and
    describe no trace. The larger demand of a task is U[0.02, 0.2]; it is CPU or memory with equal probability. The other demand is the
    larger one times U[0.1, 0.5], or with probability 1/3 times U[0.8, 1]. `fairopt.papers` holds these numbers.

    >>> google(users=5)
    Instance(5 users, 12,583 servers in 10 rows, 2 resources: 6,659 cpu, 5,921.8 memory)
    """
    check_parameters(users=users, weights=weights, **({} if servers is None else {"servers": servers}))
    rng, ranges = np.random.default_rng(seed), read("drfh").more["placements"]
    larger, alike, ratio = (rng.uniform(ranges[word][0], ranges[word][1], users) for word in ("larger", "alike", "ratio"))
    other = larger * np.where(rng.random(users) < 1 / 3, alike, ratio)
    demands = np.where(rng.random((users, 1)) < 0.5, np.column_stack([larger, other]), np.column_stack([other, larger]))
    number, capacities = _table_1()
    counts: FloatArray | None = number
    if servers is not None:
        capacities, counts = google_servers(servers, rng), None
    return Instance(capacities, demands, weights=weights_of(users, weights, rng), counts=counts, resources=["cpu", "memory"])


def google_servers(number: int, rng: np.random.Generator) -> FloatArray:
    """Draw servers from table I of Wang, Li and Liang (2014); return their capacities in the order of the draw, (servers, resources)."""
    counts, capacities = _table_1()
    return capacities[rng.choice(counts.size, number, p=counts / counts.sum())]


def _table_1() -> tuple[FloatArray, FloatArray]:
    counts, *columns = np.array(read("drfh").more["table-1"]["servers"], float).T
    return counts, np.column_stack(columns)


def uniform(users: int = 10, servers: int = 5, resources: int = 2, *, size: float = 1.0, weights: float = 1.0, seed: Seed = 0) -> Instance:
    """Independent numbers: capacities U[1, 10], demands ``size`` times U[0.01, 0.1].

    >>> uniform(users=2, servers=1, seed=3).demands.round(3)
    array([[0.082, 0.062],
           [0.018, 0.049]])
    """
    check_parameters(users=users, servers=servers, resources=resources, size=size, weights=weights)
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(*_CAPACITY, (servers, resources))
    demands = size * rng.uniform(*_DEMAND, (users, resources))
    return Instance(capacities, demands, weights=weights_of(users, weights, rng))


def correlated(
    users: int = 10,
    servers: int = 5,
    resources: int = 2,
    *,
    rho: float = 0.5,
    size: float = 1.0,
    weights: float = 1.0,
    seed: Seed = 0,
) -> Instance:
    """As `uniform`, but a user's demands for any two resources have the rank correlation ``rho``.

    Demands are still U[0.01, 0.1] times ``size``. A Gaussian copula joins them: normal variables with correlation r = 2 sin(pi rho / 6)
    have Spearman's rank correlation rho (Pearson 1907). With M resources, r is at least -1 / (M - 1), so rho is at least
    -(6 / pi) arcsin(1 / (2 M - 2)): -1 for two resources, -0.48 for three. Capacities are independent.

    >>> from scipy.stats import spearmanr
    >>> round(float(spearmanr(correlated(users=20_000, rho=0.7).demands).statistic), 2)
    0.7
    """
    check_parameters(users=users, servers=servers, resources=resources, size=size, weights=weights, rho=rho)
    if resources < 2:
        raise Unsupported(f"resources is {resources}; demands for one resource correlate with nothing, so give 2 or more, or use uniform")
    least = -6 / np.pi * np.arcsin(0.5 / (resources - 1))
    if rho < least - SAME:
        raise Unsupported(f"rho is {written(rho)}; of {resources} resources any two, the rank correlation is at least {exactly(least)}")
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(*_CAPACITY, (servers, resources))
    # The square root of the matrix with 1 on and r off the diagonal is a I + b J: its eigenvalues are 1 - r and, once, 1 + (M - 1) r.
    r = 2 * np.sin(np.pi * rho / 6)
    a, along = np.sqrt(1 - r), np.sqrt(max(1 + (resources - 1) * r, 0.0))
    normal = rng.standard_normal((users, resources))
    normal = a * normal + (along - a) / resources * normal.sum(axis=1, keepdims=True)
    demands = size * (_DEMAND[0] + (_DEMAND[1] - _DEMAND[0]) * scipy.special.ndtr(normal))
    return Instance(capacities, demands, weights=weights_of(users, weights, rng))


def kesidis(users: int = 2, servers: int = 2, *, spread: float = 0.2, weights: float = 1.0, seed: Seed = 0) -> Instance:
    """Complementary pairs of servers and of users, as in the example of Kesidis et al. (2018).

    Each pair of servers has capacities (100 f, 30 g) and (30 g, 100 f). Each pair of users has demands (5 f, g) and (g, 5 f). The factors f
    and g are independent U[1 - ``spread``, 1 + ``spread``] for every pair. With ``spread`` 0, all pairs are those of the paper.

    >>> kesidis(spread=0).capacities
    array([[100.,  30.],
           [ 30., 100.]])
    """
    check_parameters(users=users, servers=servers, weights=weights)
    for word, number in (("users", users), ("servers", servers)):
        if number % 2:
            raise Unsupported(f"{word} is {number}, and kesidis draws pairs; give an even number")
    if not (is_number(spread) and 0 <= spread < 1):
        raise Unsupported(f"spread is {written(spread)}; give a number >= 0 and < 1")
    rng, paper = np.random.default_rng(seed), read("kesidis").instances["kesidis"]
    capacities, demands = (
        _mirrored(first * rng.uniform(1 - spread, 1 + spread, (number // 2, 2)))
        for first, number in ((paper.capacities[0], servers), (paper.demands[0], users))
    )
    return Instance(capacities, demands, weights=weights_of(users, weights, rng))


def _mirrored(rows: FloatArray) -> FloatArray:
    """Insert the reverse of each row after it."""
    return np.stack([rows, rows[:, ::-1]], axis=1).reshape(-1, rows.shape[1])


def constrained(of: str = "uniform", rate: float = 0.3, *, seed: Seed = 0, **options: Any) -> Instance:
    """An instance of another generator with placement constraints: the same draw, but users may not run everywhere.

    Each user is barred from each row of servers, independently with probability ``rate``. A user barred from all its rows keeps one of
    them, each equally likely. So a user with K rows loses the expected fraction rate - rate^K / K of them.

    >>> bare, bound = generate("google", users=8, seed=4), constrained("google", users=8, seed=4)
    >>> (bare.demands == bound.demands).all().item(), bare.eligibility.mean().item(), bound.eligibility.mean().item()
    (True, 1.0, 0.725)
    """
    if of == "constrained":
        raise Unsupported('of is "constrained"; give the generator that draws the instance without constraints')
    if not (is_number(rate) and 0 <= rate <= 1):
        raise Unsupported(f"rate is {written(rate)}; give a number from 0 to 1")
    rng = np.random.default_rng(seed)
    instance = generator(of, **options)(rng)
    allowed = instance.eligibility & (rng.random(instance.eligibility.shape) >= rate)
    kept = np.where(instance.eligibility, rng.random(instance.eligibility.shape), -1.0).argmax(axis=1)
    nowhere = ~allowed.any(axis=1)
    allowed[nowhere, kept[nowhere]] = True
    return instance.replace(eligibility=allowed)


GENERATORS: dict[str, Callable[..., Instance]] = {
    "google": google,
    "uniform": uniform,
    "correlated": correlated,
    "kesidis": kesidis,
    "gpus": gpus,
    "constrained": constrained,
}
"""Generators by name. A custom generator takes its parameters and ``seed`` by keyword."""


# What is asked for ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator of `GENERATORS` with its parameters: a function of the seed."""

    kind: str
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, seed: Seed) -> Instance:
        """Draw the instance of a seed."""
        options = dict(self.options)
        number = options.pop("shared", 0)
        of_trees = _words_of_trees(self.kind) if options.keys() & trees.OPTIONS.keys() else []
        tree = {word: options.pop(word) for word in of_trees if word in options}
        try:
            if not tree and not number:
                return GENERATORS[self.kind](seed=seed, **options)
            trees.check_options(**tree)
            rng = np.random.default_rng(seed)
            instance = with_shared(GENERATORS[self.kind](seed=rng, **options), number, seed=rng)
            if not tree:
                return instance
            return trees.in_queues(instance, **tree, weights=options.get("weights", 1.0), seed=rng)
        except MemoryError:
            raise Unsupported(f'"{self}" does not fit into memory; ask for fewer users or servers') from None

    def __str__(self) -> str:
        return ":".join([self.kind, *(f"{word}={value}" for word, value in self.options)])


def generator(kind: str, **options: Any) -> Generator:
    """Return a function of the seed that draws instances.

    Raises
    ------
    Unsupported
        The generator or a parameter does not exist.

    >>> generator("gogle")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.Unsupported: there is no generator "gogle" (did you mean "google"?); there are google, uniform, correlated, ...
    """
    _check_words(kind, options)
    of_trees = _words_of_trees(kind)
    tree = [word for word in options if word in of_trees]
    if tree and "queues" not in tree:
        raise Unsupported(f'"{tree[0]}" is about queues; give their number too, such as queues=6')
    return Generator(kind, tuple(options.items()))


def generate(kind: str, *, seed: Seed = 0, **options: Any) -> Instance:
    """Draw a random instance.

    Parameters
    ----------
    kind : str
        An identifier of `GENERATORS`.
    seed : int, list of int or numpy Generator
        Equal seeds draw equal instances.
    **options
        Parameters of the generator: ``users``, ``servers``, ``weights``, and the parameters in its docstring. All of them also take
        ``shared``, the number of resources of the whole cluster (`fairopt.generators.shared`; default 0), and ``queues``, the number of
        queues of a random tree (default 0), and with it ``depth``, the number of levels (2), ``guarantees``,
        the part of the cluster that is guaranteed (0.5), ``limits``, the part of the rest that a queue may hold (1, all: no limits),
        and ``tiers``, the number of tiers (1).

    Raises
    ------
    Unsupported
        The generator or a parameter does not exist, or a value is not allowed.

    >>> generate("correlated", users=1000, servers=3, rho=-0.5, seed=1)
    Instance(1,000 users, 3 servers, 2 resources: 11.7103 resource-1, 23.902 resource-2)
    """
    return generator(kind, **options)(seed)


def _check_words(kind: str, options: dict[str, Any]) -> None:
    if kind not in GENERATORS:
        hint = did_you_mean(kind, GENERATORS) if isinstance(kind, str) else ""
        raise Unsupported(f'there is no generator "{kind}"{hint}; there are {", ".join(GENERATORS)}')
    parameters = inspect.signature(GENERATORS[kind]).parameters.values()
    known = [each.name for each in parameters if each.name != "seed" and each.kind is not each.VAR_KEYWORD]
    known += [word for word in ("shared", *trees.OPTIONS) if word not in known]
    rest = {word: value for word, value in options.items() if word not in known}
    if any(each.kind is each.VAR_KEYWORD for each in parameters) and "seed" not in rest:
        _check_words(options.get("of", "uniform"), rest)  # options of the inner generator
        return
    for word in rest:
        hint = "; the seed is given apart" if word == "seed" else did_you_mean(word, known)
        raise Unsupported(f'the generator "{kind}" takes no parameter "{word}"{hint}; it takes {", ".join(known)}')


def _words_of_trees(kind: str) -> list[str]:
    """Return the options that are about queues; a generator may have a parameter of the same name."""
    own = inspect.signature(GENERATORS[kind]).parameters
    return [word for word in trees.OPTIONS if word not in own]

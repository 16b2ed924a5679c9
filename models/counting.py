"""What counts in a share, and how much: weights m[r] >= 0 of resources.

    w[n] = max_r m[r] d[n,r] / C[r]        of `drf` and `drfh`; of `asset` the sum
    the share of a queue is max_r m[r] u[r] / C[r], u what its users hold together          queue_share="dominant", under every notion

``resource_weights`` is a mapping; a resource that it does not name counts once. ``only`` names the resources that count; all others count
0. Mesos leaves out resources by a list, which is the weight 0, and Armada multiplies them.

*Who demands nothing that counts comes after all others*, in a lower tier of the filling (`fairopt.program.tree_filling`): such users rise
when nobody else can, by their plain dominant shares, and there all resources count once. Within this tier the tiers of queues hold.
Guarantees come before both. Otherwise such users would be endless: their share would be 0 whatever they hold.

Where demands or speeds differ by server, the share of a unit of work is 1 / W[n], with m[r] d[n,i,r] in the place of d[n,i,r] in W[n]
(`fairopt.program.most_work.work_of_pool`).

Weights per resource of a user, phi[n,r], stay as they are: max_r m[r] d[n,r] / (C[r] phi[n,r]).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, safe_ratio
from fairopt.instance.by_server import work_in_words
from fairopt.instance.fractions import fractions_of, plain
from fairopt.program.most_work import work_of_pool
from fairopt.wording import did_you_mean, figure, joined, named, percent

__all__ = ["Counting", "dominant_part", "only_text", "weights_mapping", "weights_text"]

_NEXT = re.compile(r"[+,](?=[^+,=]+=)")  # "gpu=1e+3+cpu=0": a plus within a number begins no name
_HOW = 'give a mapping such as {"gpu": 4, "cpu": 0}, or "gpu=4+cpu=0" as text'


class Counting:
    """The weights of the resources of an instance, m, (resources,): floats, or fractions if the instance is in fractions.

    Attributes
    ----------
    m : array (resources,)
    last : bool array (users,)
        Who demands something, but nothing that counts.
    """

    __slots__ = ("instance", "last", "m")

    def __init__(self, instance: Instance, weights: Mapping[str, Any] | None, only: str | None) -> None:
        self.instance = instance
        values: list[Any] = [1] * instance.n_resources
        if weights is not None:
            for name, value in weights.items():
                values[_position(instance, name)] = value
        elif only is not None:
            counts = {_position(instance, name) for name in _names(only, instance)}
            values = [int(r in counts) for r in range(instance.n_resources)]
        by_kind = instance.demands_by_kind
        self.m = fractions_of(values) if by_kind.dtype == object else np.array(values, float)
        counted = ((by_kind > 0) & (self.m > 0)).any(axis=(1, 2))
        self.last: BoolArray = np.asarray((by_kind > 0).any(axis=(1, 2)) & ~counted)

    @property
    def parts(self) -> FloatArray:
        """m[r] d[n,r] / C[r], (users, resources)."""
        return self.weigh(safe_ratio(self.instance.demands, self.instance.total_capacity))

    @property
    def own_parts(self) -> FloatArray:
        """The same; of users who demand nothing that counts, d[n,r] / C[r]."""
        return self.weigh_own(safe_ratio(self.instance.demands, self.instance.total_capacity))

    def weigh_own(self, parts: FloatArray) -> FloatArray:
        """Return m[r] times parts of capacities of each user, (users, resources); of users who demand nothing that counts, the parts."""
        return np.asarray(np.where(self.last[:, None], parts, self.weigh(parts)))

    @property
    def work_of_pool(self) -> FloatArray:
        """The most work that each user could do if the cluster were one pool, as resources count, (users,): `share_of_work`."""
        counted = work_of_pool(self.instance, self.m)
        return np.where(self.last, work_of_pool(self.instance), counted) if self.last.any() else counted

    def weigh(self, parts: FloatArray) -> FloatArray:
        """Return m[r] times parts of capacities, (..., resources); 0 where m[r] is, even if the part is infinite."""
        return np.asarray(np.where(self.m > 0, parts, 0) * self.m)

    @property
    def changes_nothing(self) -> bool:
        """Do all resources count once?"""
        return bool((self.m == 1).all())

    def in_words(self) -> str:
        """Return which resources count not once, as a sentence's end; "" where all count once."""
        if self.changes_nothing:
            return ""
        names = [named(name) for name in self.instance.resources]
        counted = [name for name, m in zip(names, self.m, strict=True) if m > 0]
        if all(m in (0, 1) for m in self.m):
            return f"only {joined(counted)} {'counts' if len(counted) == 1 else 'count'}"
        each = [f"{name} {_times(m)}" for name, m in zip(names, self.m, strict=True) if m != 1]
        return f"{joined(each)}{', the others once' if (self.m == 1).any() else ''}"


def dominant_part(instance: Instance, user: int, pool: str, counting: Counting | None) -> str:
    """Return a sentence's end on the dominant resource of a user: which resource, and what part of it a task takes.

    ``pool`` is the name of what has the capacities: "the server", or "the whole cluster".
    """
    if instance.differs_by_server:
        most = (work_of_pool(instance) if counting is None else counting.work_of_pool)[user]
        part = percent(safe_ratio(1, most).item())
        tasks = work_in_words(instance, most, 3).removeprefix("the ")
        ends = "" if counting is None else counting.in_words()
        if counting is not None and counting.last[user]:
            ends = "it demands nothing that counts, so it comes after all others"
        return f"the {tasks} that it could run if {pool} were one pool, and its own: each counts {part}{f'; {ends}' if ends else ''}"
    parts = safe_ratio(instance.demands[user], instance.total_capacity)
    weighted = parts / instance.weights[user] if instance.weights.ndim == 2 else parts
    last = counting is not None and bool(counting.last[user])
    weighted = weighted if counting is None or last else counting.weigh(weighted)
    order = np.argsort(-weighted, kind="stable")
    first = named(instance.resources[order[0]])
    others = [f"{percent(parts[r])} of the {named(instance.resources[r])}" for r in order[1:] if parts[r] > 0]
    also = f" ({joined(others[:3])})" if others else ""
    for_weight = " for its weights" if instance.weights.ndim == 2 else ""
    counts = "" if counting is None else counting.in_words()
    behind = "; it demands nothing that counts, so it comes after all others" if last else ""
    return (
        f"its share of {pool}: a task takes {percent(parts[order[0]])} of the {first}, its dominant resource{for_weight}{also}"
        f"{f'; {counts}' if counts else ''}{behind}"
    )


def weights_mapping(given: Any) -> dict[str, Any] | None:
    """Return weights of resources by name, from a mapping or from text.

    Raises
    ------
    Unsupported
        A weight is no number >= 0, or all that are named are 0 and nothing else could count.

    >>> weights_mapping("gpu=4+cpu=0"), weights_mapping({"gpu": 2})
    ({'gpu': 4, 'cpu': 0}, {'gpu': 2})
    """
    if given is None:
        return None
    if isinstance(given, str):
        pairs = [part.partition("=") for part in _NEXT.split(given)]
        if not given or any(not (name.strip() and sign and text.strip()) for name, sign, text in pairs):
            raise Unsupported(f'resource_weights is "{given}", which names no weights; {_HOW}')
        names = [name.strip() for name, _, _ in pairs]
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise Unsupported(f'resource_weights is "{given}", which has {named(twice)} twice; give it once')
        return {name.strip(): _number(name.strip(), text.strip()) for name, _, text in pairs}
    if not isinstance(given, Mapping):
        raise Unsupported(f"resource_weights is {given!r}; {_HOW}")
    return {str(name): _number(str(name), value) for name, value in given.items()}


def only_text(given: Any) -> str | None:
    """Return the names of the resources that count, joined by "+", from text or from a list.

    >>> only_text("gpu"), only_text(["gpu", "memory"]), only_text("gpu,memory")
    ('gpu', 'gpu+memory', 'gpu+memory')
    """
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise Unsupported(f'only={given!r} names no resources; give "gpu", "gpu+memory" or a list of names')
    return "+".join(name.strip() for name in names)


def weights_text(weights: Mapping[str, Any]) -> str:
    """Return weights of resources as text, which `weights_mapping` reads.

    >>> weights_text({"gpu": 4.0, "cpu": Fraction(1, 3)})
    'gpu=4+cpu=1/3'
    """
    return "+".join(f"{name}={_plain(value)}" for name, value in weights.items())


def _plain(value: Any) -> Any:
    number = plain(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _number(name: str, value: Any) -> Any:
    number = value
    if isinstance(value, str):
        try:
            number = Fraction(value)
            number = int(number) if number.denominator == 1 else number if "/" in value else float(value)
        except (ValueError, ZeroDivisionError):
            number = None
    if isinstance(number, np.generic):
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, Real | Rational) or not math.isfinite(number) or number < 0:
        raise Unsupported(f"the weight of {named(name)} in resource_weights is {value!r}; give a number >= 0")
    return number


def _names(only: str, instance: Instance) -> list[str]:
    return [only] if only in instance.resources else only.split("+")


def _position(instance: Instance, name: str) -> int:
    if name not in instance.resources:
        hint = did_you_mean(name, instance.resources)
        raise Unsupported(f"there is no resource {named(name)} whose weight could be set{hint}; there are {joined(instance.resources, 8)}")
    return instance.resources.index(name)


def _times(m: Any) -> str:
    return {0: "does not count", 2: "counts twice"}.get(m, f"counts {figure(m)} times")

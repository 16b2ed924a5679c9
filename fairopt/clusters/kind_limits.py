"""Named limits of jobs that are of several kinds, for schedulers whose limits follow no tree of queues.

A limit of a scheduler is over jobs: all of a queue, those of a person, those that need a licence. Tasks of one owner and shape that count
in different limits are users of their own (`fairopt.clusters.shapes.Tasks.kind`), and a limit is over the users that count in it.

>>> limits = KindLimits()
>>> limits.kind("short", [Counts("queue/short jobs", 3, amount=0.5)])
'short'
>>> limits.kind("", [])
''
>>> from fairopt.instance import Instance
>>> limits.over(Instance([[8]], [[1], [2]], users=["a", "b"], resources=["cpu"]), ["short", ""])
[Limit('queue/short jobs', 3, amounts={'a': 0.5})]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairopt.clusters.shapes import APART
from fairopt.instance import Instance
from fairopt.instance.limits import Limit
from fairopt.instance.tolerances import FITS

__all__ = ["Counts", "KindLimits", "broken"]


class Counts(NamedTuple):
    """A task counts in the limit of this name, which holds together at most ``bound``.

    What counts is its demand for a resource of the instance, or, without one, the amount.
    """

    name: str
    bound: float
    resource: str = ""
    amount: float = 1.0


def broken(counts: Sequence[Counts], demand: Mapping[str, float], tasks: float) -> str:
    """Return the name of a limit that a job breaks by itself, so that it can never start; empty: none.

    A limit of 0 closes its jobs out, and is none of these: they stay in the instance, with nothing.

    Parameters
    ----------
    demand : mapping
        What the whole job demands, by resource.
    tasks : float
        How many tasks it is.

    Examples
    --------
    >>> broken([Counts("queue/short cpu", 10, "cpu"), Counts("queue/short jobs", 0, amount=0.5)], {"cpu": 16}, 2)
    'queue/short cpu'
    """
    for each in counts:
        if (demand.get(each.resource, 0.0) if each.resource else each.amount * tasks) > each.bound * (1 + FITS) > 0:
            return each.name
    return ""


class KindLimits:
    """The kinds of tasks, and the limits over the users that are of these kinds."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[Counts, ...]] = {}
        self._numbers: dict[tuple[Counts, ...], int] = {}

    def kind(self, word: str, counts: Sequence[Counts]) -> str:
        """Return the kind of tasks that count in these limits: the word, told apart (`APART`) where it has another meaning already."""
        found = tuple(counts)
        if not found:
            return ""
        name = word
        if self._kinds.setdefault(name, found) != found:
            name = f"{word}{APART}{self._numbers.setdefault(found, len(self._numbers))}"
            self._kinds[name] = found
        return name

    def over(self, instance: Instance, kinds: Sequence[str]) -> list[Limit]:
        """Return the limits over an instance; a limit that no demand counts in is left out.

        Parameters
        ----------
        kinds : sequence of str (users,)
        """
        members: dict[tuple[str, float], dict[str, tuple[str, float]]] = {}
        for user, kind in zip(instance.users, kinds, strict=True):
            for name, bound, resource, amount in self._kinds.get(kind, ()):
                members.setdefault((name.replace(".", "_"), bound), {})[user] = (resource, amount)  # no dots in the name of a limit
        limits = []
        column = {resource: instance.demands[:, r].tolist() for r, resource in enumerate(instance.resources)}
        number = {user: n for n, user in enumerate(instance.users)}
        for (name, bound), counted in members.items():
            resources = {resource for resource, _ in counted.values()}
            demand = {
                user: column[resource][number[user]] if resource in column else 0.0 if resource else amount
                for user, (resource, amount) in counted.items()
            }
            if not any(demand.values()):
                continue
            if len(resources) == 1 and "" not in resources:
                limits.append(Limit(name, bound, resource=resources.pop(), users=list(counted)))
            else:
                limits.append(Limit(name, bound, amounts=demand))
        return limits

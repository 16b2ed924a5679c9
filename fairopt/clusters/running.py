"""What runs, by name: the rows of a table from which `fairopt.plan` says what stops.

An importer that knows the names of what runs gives a `Name` for each entry of `Tasks.running`. A row of the table is the tasks of one user
on one node that stop alike: one by one, or as a gang; or that must go on.

>>> runs = [("web", "n1", 1, Name("shop/a")), ("web", "n1", 1, Name("shop/b")), ("ml", "n1", 4, Name("7", gang="7"))]
>>> print(*rows_of(runs), sep="\\n")
Running(user='web', server='n1', tasks=2, gang='', protected=False, names=('shop/a', 'shop/b'))
Running(user='ml', server='n1', tasks=4, gang='7', protected=False, names=('7',))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

__all__ = ["Name", "Running", "of_several", "rows_of"]


@dataclass(frozen=True, slots=True)
class Name:
    """What the scheduler calls tasks that run.

    Attributes
    ----------
    name : str
    gang : str
        Tasks with the same word stop together; empty: by themselves.
    protected : bool
        Whether they must go on.
    """

    name: str
    gang: str = ""
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """Tasks of a user that run on a node.

    Attributes
    ----------
    user, server : str
    tasks : float
    gang : str
    protected : bool
    names : tuple of str
        One for each task, or one for all.
    """

    user: str
    server: str
    tasks: float
    gang: str
    protected: bool
    names: tuple[str, ...]


def of_several(names: Sequence[Name]) -> list[Name]:
    """Return the names without gangs of one member.

    >>> [name.gang for name in of_several([Name("a", "x"), Name("b", "x"), Name("c", "y")])]
    ['x', 'x', '']
    """
    members = Counter(name.gang for name in names)
    return [replace(name, gang="") if name.gang and members[name.gang] == 1 else name for name in names]


def rows_of(runs: Iterable[tuple[str, str, float, Name]]) -> tuple[Running, ...]:
    """Return the rows of the table, from the user, the server, the number and the name of what runs."""
    rows: dict[tuple[str, str, str, bool], tuple[float, dict[str, None]]] = {}
    for user, server, number, name in runs:
        key = user, server, name.gang, name.protected
        tasks, own = rows.get(key, (0.0, {}))
        own[name.name] = None
        rows[key] = tasks + number, own
    return tuple(
        Running(user, server, int(tasks) if tasks == int(tasks) else tasks, gang, protected, tuple(own))
        for (user, server, gang, protected), (tasks, own) in rows.items()
    )

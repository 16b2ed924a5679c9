"""Demands and speeds by server: a task takes other amounts on another kind of server, and does another amount of work there.

Rows of servers on which no user's demand differs are one *kind*. With d[n,k,r] the demand of a task on a server of kind k, and speed[n,i]
the work that a task does on row i (1 where none is given), the work of a user is

    U[n] = sum over i of speed[n,i] x[n,i].

Notions that declare ``by_server`` compare work; the others refuse such an instance. With one kind and no speeds, work is the number of
tasks, and everything is as if nothing differed.

>>> import fairopt as fo
>>> lab = fo.Instance([[8], [8]], [[[1], [2]], [[1], [1]]], servers=["a100", "v100"], users=["train", "infer"], resources=["gpu"])
>>> lab.kind_of.tolist(), lab.demands_by_kind[0].tolist()  # train takes 1 gpu of the first kind, or 2 of the second
([0, 1], [[1.0], [2.0]])
>>> lab.demands
Traceback (most recent call last):
fairopt.errors.Unsupported: the demand of a task of "train" differs from server to server (gpu: 1 on a100, 2 on v100), and this needs ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.fractions import kept
from fairopt.validation import BoolArray, FloatArray, IntArray, check, numbers
from fairopt.wording import figure, named, plural

if TYPE_CHECKING:
    from fairopt.instance.instance import Instance

__all__ = [
    "Kinds",
    "as_given",
    "by_server_on",
    "counted_amounts",
    "differences",
    "is_by_server",
    "kinds_of",
    "kinds_of_arguments",
    "refuse_by_server",
    "speeds_of",
    "work_in_words",
]


class Kinds(NamedTuple):
    """Demands by kind of server, (users, kinds, resources), and the kind of each row, (servers,), in order of first appearance.

    >>> kinds = Kinds(np.array([[[1.0, 4.0], [2.0, 4.0]]]), np.array([0, 1]))
    >>> kinds.per_task(0), kinds.per_task(1)
    (array([[1., 2.]]), array([4.]))
    """

    demands: npt.NDArray[Any]
    kind_of: IntArray

    def per_task(self, r: int) -> npt.NDArray[Any]:
        """Return the demand of a resource of one task, (users,); (users, servers) where somebody's differs by server."""
        each = self.demands[:, :, r]
        return each[:, 0] if each.shape[1] == 1 or (each == each[:, :1]).all() else each[:, self.kind_of]

    def of_pairs(self, users: IntArray, servers: IntArray, r: int) -> npt.NDArray[Any]:
        """Return the demand of a resource of one task of each pair, (pairs,); beyond the rows of servers that of the first kind."""
        if self.demands.shape[1] == 1:
            return np.asarray(self.demands[users, 0, r])
        return np.asarray(self.demands[users, np.append(self.kind_of, 0)[np.minimum(servers, self.kind_of.size)], r])

    def demand(self, r: int) -> BoolArray:
        """Return who demands something of a resource on some server, (users,)."""
        return np.asarray((self.demands[:, :, r] > 0).any(axis=1))

    def held(self, tasks: npt.NDArray[Any], servers: BoolArray, r: int) -> npt.NDArray[Any]:
        """Return what tasks, (users, servers), take of a resource on some rows of servers, (users,)."""
        return self.of_sums(lambda rows: tasks[:, rows].sum(axis=1), servers, r)

    def of_sums(self, tasks_on: Callable[[BoolArray], npt.NDArray[Any]], servers: BoolArray, r: int) -> npt.NDArray[Any]:
        """Return the same where ``tasks_on`` gives the tasks of each user, (users,), on some rows."""
        if self.demands.shape[1] == 1:
            return np.asarray(tasks_on(servers) * self.demands[:, 0, r])
        kinds = np.unique(self.kind_of[servers])
        parts = [tasks_on(servers & (self.kind_of == k)) * self.demands[:, k, r] for k in kinds]
        return np.asarray(sum(parts[1:], parts[0]) if parts else tasks_on(servers))


def kinds_of(demands: npt.NDArray[Any]) -> Kinds:
    """Return the kinds of demands by server, (users, servers, resources); of floats or fractions.

    >>> kinds_of(np.array([[[1.0], [2.0], [1.0]]])).kind_of
    array([0, 1, 0])
    """
    number: dict[Any, int] = {}
    kind_of, first = np.zeros(demands.shape[1], np.int64), list[int]()
    for i in range(demands.shape[1]):
        column = demands[:, i].ravel()
        key = column.tobytes() if column.dtype != object else tuple(column.tolist())
        kind_of[i] = number.setdefault(key, len(number))
        if kind_of[i] == len(first):
            first.append(i)
    return Kinds(np.ascontiguousarray(demands[:, first]), kind_of)


def is_by_server(demands: Any) -> bool:
    """Is the argument ``demands`` given by server, (users, servers, resources)?

    >>> is_by_server([[[1, 2]]]), is_by_server([[1, 2], [1]])
    (True, False)
    """
    dimensions = getattr(demands, "ndim", None)
    if dimensions is None:
        try:
            dimensions = 1 + np.ndim(demands[0])
        except (TypeError, ValueError, LookupError):  # an instance refuses it
            return False
    return bool(dimensions == 3)


def kinds_of_arguments(demands: Any, floats: FloatArray, by_server: Any, n_servers: int) -> tuple[Kinds, npt.NDArray[Any] | None]:
    """Return the kinds of the argument ``demands``, and their demands in fractions where the floats do not say the same.

    Parameters
    ----------
    demands, floats : arrays (users, resources)
        As they were given, and in floats: demands that are the same everywhere.
    by_server : array (users, servers, resources) or None
        Demands by server, if they were given so.

    Raises
    ------
    InvalidInstance
        The second dimension of demands by server is not the rows of servers.
    """
    if by_server is None:
        exact = kept(demands, floats)
        return Kinds(floats[:, None, :], np.zeros(n_servers, np.int64)), None if exact is None else exact[:, None, :]
    numbers_of_all = numbers(by_server, "demands")
    if numbers_of_all.shape[1] != n_servers:
        raise InvalidInstance(
            f"the shape of demands is {numbers_of_all.shape}; demands by server have the shape (users, servers, resources), and there "
            f"{'is 1 row' if n_servers == 1 else f'are {n_servers} rows'} of servers"
        )
    exact = kept(by_server, numbers_of_all)
    if exact is None:
        return kinds_of(numbers_of_all), None
    of_exact, kind_of = kinds_of(exact)
    first = [int(np.flatnonzero(kind_of == k)[0]) for k in range(of_exact.shape[1])]
    return Kinds(np.ascontiguousarray(numbers_of_all[:, first]), kind_of), of_exact


def as_given(demands_by_kind: npt.NDArray[Any], kind_of: IntArray) -> npt.NDArray[Any]:
    """Return demands by kind of server as an instance takes them: (users, resources) of one kind, else (users, servers, resources)."""
    return demands_by_kind[:, 0] if demands_by_kind.shape[1] == 1 else demands_by_kind[:, kind_of]


def by_server_on(instance: Instance, servers: IntArray) -> dict[str, Any]:
    """Return the arguments that follow the rows of servers of an instance, for these rows: demands by server and speeds, if it has them."""
    found = {} if instance.demands_by_kind.shape[1] == 1 else {"demands": instance.demands_on(servers=servers)}
    return found if instance.speeds_given is None else {**found, "speeds": instance.speeds_on(servers=servers)}


def speeds_of(speeds: npt.ArrayLike | None, users: tuple[str, ...], servers: tuple[str, ...]) -> FloatArray | None:
    """Return the work that a task does on each row, (users, servers); None where it is 1 everywhere."""
    if speeds is None:
        return None
    given = numbers(speeds, "speeds", (len(users), len(servers)), "(users, servers)")
    check(given, np.isfinite(given) & (given >= 0), "speed", "finite and >= 0", users, servers)
    return None if (given == 1).all() and kept(speeds, given) is None else given


def counted_amounts(instance: Instance, users: BoolArray, servers: BoolArray, r: int) -> npt.NDArray[Any]:
    """Return what a task of some users on some rows of servers counts in a guarantee of a resource, (users, servers).

    It is what the task takes. Where demands or speeds differ by server it is the work of the task, times the least that a unit of the
    user's work takes there: nobody asks for more by running where a task takes more.

    >>> from fairopt.instance.instance import Instance
    >>> lab = Instance([[8], [8]], [[[1], [2]]], speeds=[[1, 0.5]])
    >>> counted_amounts(lab, np.array([True]), np.array([True, True]), 0)
    array([[1. , 0.5]])
    """
    each = np.broadcast_to(instance.demands_by_kind[:, :, r][:, instance.kind_of], instance.eligibility.shape)
    counted = users[:, None] & servers & np.asarray(each > 0, bool)
    if not instance.differs_by_server:
        return np.where(counted, each, each * 0)
    speeds = np.where(instance.speeds > 0, instance.speeds, instance.speeds * 0 + 1)
    counted &= instance.eligibility
    least = (each / speeds).min(axis=1, where=counted, initial=np.inf)
    return np.where(counted, np.where(counted.any(axis=1), least, 0)[:, None] * speeds, each * 0)


def differences(instance: Instance) -> str:
    """Return what differs by server as the beginning of a sentence, with one user as an example."""
    if instance.demands_by_kind.shape[1] > 1:
        by_kind = instance.demands_by_kind
        n, r = (int(each[0]) for each in np.nonzero((by_kind != by_kind[:, :1]).any(axis=1)))
        other = int(np.flatnonzero(by_kind[n, :, r] != by_kind[n, 0, r])[0])
        first = [int(np.flatnonzero(instance.kind_of == k)[0]) for k in (0, other)]
        here, there = (f"{figure(float(by_kind[n, instance.kind_of[i], r]))} on {named(instance.servers[i])}" for i in first)
        return f'the demand of a task of "{instance.users[n]}" differs from server to server ({instance.resources[r]}: {here}, {there})'
    speeds = instance.speeds
    n = int(np.flatnonzero((speeds != 1).any(axis=1))[0])
    i = int(np.flatnonzero(speeds[n] != 1)[0])
    return f'a task of "{instance.users[n]}" does the work of {figure(float(speeds[n, i]))} tasks on {named(instance.servers[i])}'


def refuse_by_server(instance: Instance, what: str, instead: str) -> None:
    """Refuse demands and speeds by server where they are not followed; ``what`` says where that is, ``instead`` what to do.

    Raises
    ------
    Unsupported
    """
    if instance.differs_by_server:
        raise Unsupported(f"{differences(instance)}, and {what}; {instead}")


def work_in_words(instance: Instance, work: Any, digits: int = 6) -> str:
    """Return the work of a user in words: "3 tasks", or, where tasks do other work on other servers, "the work of 3 tasks".

    >>> import fairopt as fo
    >>> lab = fo.Instance([[8]], [[1]])
    >>> work_in_words(lab, 3.0), work_in_words(lab.replace(speeds=[[0.5]]), 3.0)
    ('3 tasks', 'the work of 3 tasks')
    """
    return f"{'' if instance.speeds_given is None else 'the work of '}{plural(work, 'task', digits=digits)}"

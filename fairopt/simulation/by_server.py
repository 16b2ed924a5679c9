r"""Jobs where servers differ: what a task of a job takes on each row of servers, and how fast it runs there.

A trace says what a task takes and how long it runs at one place, the *base row* of its user: the first row on which the user may run at
speed 1, or the first on which it may run if there is none. With D[n,i,r] the demand of user n of the cluster on row i, b the base row of
n, and d[r] what the trace says, a task takes and runs on row i

    d[r] D[n,i,r] / D[n,b,r]                  (d[r] + D[n,i,r] where D[n,b,r] = 0),
    its duration / speed[n,i].

>>> import fairopt as fo
>>> lab = fo.Instance(
...     [[8], [8]], [[[1], [2]]], speeds=[[1, 0.5]], users=["ann"], servers=["a100", "v100"], resources=["gpu"])
>>> jobs = fo.Trace(["ann", "ann"], [0, 0], [8, 4], [[1], [1]], [60, 60], resources=["gpu"])
>>> fo.simulate(jobs, lab, "max-min:first-fit").finished.tolist()  # the second job runs on the V100s, 2 GPUs a task, at half the speed
[60.0, 120.0]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.by_server import as_given, differences

__all__ = ["OfStreams", "amounts_elsewhere", "base_rows", "of_streams"]


class OfStreams(NamedTuple):
    """Demands of streams as an instance takes them, (streams, resources) or (streams, rows, resources), and speeds, (streams, rows)."""

    demands: FloatArray
    speeds: FloatArray | None


def of_streams(cluster: Instance, users: tuple[str, ...], owner: IntArray, demands: FloatArray, placement: BoolArray | None) -> OfStreams:
    """Return what tasks of streams take and how fast they run on each row.

    Parameters
    ----------
    cluster : Instance
    users : tuple of str
        Those of the simulation.
    owner : int array (streams,)
        By position in ``users``.
    demands : array (streams, resources)
        As the trace says.
    placement : bool array (users, rows) or None
        Where users may run.

    Raises
    ------
    InvalidInstance
        The users of the trace are not those of the cluster, so that nothing says how their tasks differ.
    """
    if not cluster.differs_by_server:
        return OfStreams(demands, None)
    if users != cluster.users:
        raise InvalidInstance(
            f"{differences(cluster)}, but the cluster names no user of the trace; name its users as the trace does, "
            "or leave demands and speeds by server out"
        )
    speeds = cluster.speeds_given
    base = cluster.kind_of[base_rows(cluster, placement)]
    by_kind = amounts_elsewhere(demands, cluster.demands_by_kind[owner], base[owner])
    return OfStreams(as_given(by_kind, cluster.kind_of), None if speeds is None else speeds[owner])


def amounts_elsewhere(demands: FloatArray, own: FloatArray, kind: IntArray) -> FloatArray:
    """Return what tasks take on each kind of servers, (streams, kinds, resources).

    Parameters
    ----------
    demands : array (streams, resources)
        What they take on one kind, (streams,).
    own : array (streams, kinds, resources)
        The demands of their users of the cluster.

    >>> amounts_elsewhere(np.array([[4.0, 1.0]]), np.array([[[1.0, 0.0], [2.0, 3.0]]]), np.array([0])).tolist()
    [[[4.0, 1.0], [8.0, 4.0]]]
    """
    if own.shape[1] == 1:
        return demands[:, None, :]
    there = own[np.arange(len(own)), kind][:, None]
    ratio = np.divide(own, there, out=np.zeros_like(own), where=there > 0)
    return np.asarray(np.where(there > 0, demands[:, None] * ratio, demands[:, None] + own))


def base_rows(cluster: Instance, placement: BoolArray | None) -> IntArray:
    """Return the base row of each user, (users,)."""
    allowed = cluster.speeds > 0 if placement is None else placement & (cluster.speeds > 0)
    usual = allowed & (cluster.speeds == 1)
    return np.asarray(np.where(usual.any(axis=1), usual.argmax(axis=1), allowed.argmax(axis=1)))

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

__all__ = ["OfStreams", "of_streams"]


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
    by_kind = demands[:, None, :]
    if cluster.demands_by_kind.shape[1] > 1:
        base = cluster.kind_of[_base_rows(cluster, placement)]
        own = cluster.demands_by_kind[owner]
        there = own[np.arange(owner.size), base[owner]][:, None]
        by_kind = np.where(there > 0, by_kind * np.divide(own, there, out=np.zeros_like(own), where=there > 0), by_kind + own)
    return OfStreams(as_given(by_kind, cluster.kind_of), None if speeds is None else speeds[owner])


def _base_rows(cluster: Instance, placement: BoolArray | None) -> IntArray:
    """Return the base row of each user, (users,)."""
    allowed = cluster.speeds > 0 if placement is None else placement & (cluster.speeds > 0)
    usual = allowed & (cluster.speeds == 1)
    return np.asarray(np.where(usual.any(axis=1), usual.argmax(axis=1), allowed.argmax(axis=1)))

"""Objects as tables of pandas and xarray.

The tables of an instance have the columns of a folder of CSV tables (:mod:`fairopt.formats.tables`), without those that hold nothing but
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt.errors import SolverUnavailable, Unsupported

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from fairopt.instance import Instance

__all__ = ["dataset", "frame_of_instance"]


def frame_of_instance(instance: Instance, of: Literal["users", "servers", "queues"]) -> pd.DataFrame:
    """Return one row per user, row of servers, or queue.

    Raises
    ------
    Unsupported
        There is no such table.
    """
    tables = {"users": _users, "servers": _servers, "queues": _queues}
    if of not in tables:
        raise Unsupported(f'there is no table of "{of}"; use "users", "servers" or "queues"')
    return tables[of](instance)


def _users(instance: Instance) -> pd.DataFrame:
    columns: dict[str, Any] = {"queue": list(instance.queue_of)} if instance.queues else {}
    columns |= dict(zip(instance.resources, instance.demands.T, strict=True))
    if instance.weights.ndim == 2:
        columns |= {f"weight:{name}": weights for name, weights in zip(instance.resources, instance.weights.T, strict=True)}
    elif (instance.weights != 1).any():
        columns["weight"] = instance.weights
    if instance.guarantees.any():
        columns["guarantee"] = instance.guarantees
    for name, most in (("tasks", instance.tasks), ("parallelism", instance.parallelism)):
        if np.isfinite(most).any():
            columns[name] = most
    if instance.placement is not None:
        columns["servers"] = ["" if row.all() else "|".join(np.array(instance.servers, object)[row]) for row in instance.placement]
    return _frame(columns, instance.users, "user")


def _servers(instance: Instance) -> pd.DataFrame:
    columns: dict[str, Any] = dict(zip(instance.resources, instance.capacities.T, strict=True))
    if (instance.counts != 1).any():
        columns["count"] = instance.counts.astype(np.int64)
    return _frame(columns, instance.servers, "server")


def _queues(instance: Instance) -> pd.DataFrame:
    queues = instance.queues
    columns: dict[str, Any] = {"parent": [queue.parent for queue in queues], "weight": [queue.weight for queue in queues]}
    if any(queue.tier for queue in queues):
        columns["tier"] = [queue.tier for queue in queues]
    for word, amounts in (
        ("guarantee", [queue.guarantee for queue in queues]),
        ("limit", [queue.limit for queue in queues]),
        ("lending_limit", [queue.lending_limit for queue in queues]),
    ):
        for resource in instance.resources:
            if any(resource in each for each in amounts):
                columns[f"{word}:{resource}"] = [each.get(resource, np.nan) for each in amounts]
    if any(queue.quotas for queue in queues):
        columns["quotas"] = [len(queue.quotas) for queue in queues]
    return _frame(columns, [queue.name for queue in queues], "queue")


def _frame(columns: Mapping[str, Any], labels: Any, kind: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(columns), index=pd.Index(labels, name=kind))


def dataset(instance: Instance, arrays: Mapping[str, tuple[tuple[str, ...], Any]], facts: Mapping[str, Any]) -> xr.Dataset:
    """Return arrays with named dimensions: "user", "server" and "resource", whose labels are those of the instance.

    Raises
    ------
    SolverUnavailable
        xarray is not installed.
    """
    try:
        import xarray as xr
    except ImportError:
        raise SolverUnavailable("arrays with labels need xarray; install with pip install 'fairopt[xarray]'") from None
    labels = {"user": list(instance.users), "server": list(instance.servers), "resource": list(instance.resources)}
    used = {name for dimensions, _ in arrays.values() for name in dimensions}
    return xr.Dataset(dict(arrays), coords={name: values for name, values in labels.items() if name in used}, attrs=dict(facts))

"""What a task is billed each second: the unit in which a site counts the usage of its owners.

    billing of a task = sum over r of weight[r] d[r],    or, written ``max:...``, max over r of weight[r] d[r]

as Slurm's ``TRESBillingWeights`` has it, by default and under ``PriorityFlags=MAX_TRES`` (Slurm documentation, slurm.conf).

>>> import fairopt as fo
>>> lab = fo.Instance([[64, 256, 8]], [[4, 16, 1]], resources=["cpu", "memory", "gpu"], units={"memory": "GiB"})
>>> billing_of("cpu=1,gres/gpu=8", lab).tolist(), billing_of("CPU=1,Mem=0.25G", lab).tolist()
([1.0, 0.0, 8.0], [1.0, 0.25, 0.0])
>>> billed(billing_of("max:cpu=1,gpu=8", lab), lab.demands).tolist()
[8.0]
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files import read_text
from fairopt.instance import FloatArray, Instance
from fairopt.wording import did_you_mean, joined

__all__ = ["Billing", "BillingLike", "billed", "billing_of"]

BillingLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, float] | None"
"""Weights by resource, as text or as a mapping, or a file of partitions that states them."""
_WEIGHTS = re.compile(r"""(?:TRESBillingWeights=|"billing_weights"\s*:\s*")([^\s"]*)""")
_NOTHING = ("", "(null)", "NONE")
_SLURM = {"mem": "memory", "node": "node"}
_BYTES = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_MEBI = 2.0**20  # bytes: Slurm's unit of memory
_CORES = ("cpu", "cpus", "core", "cores")


@dataclass(frozen=True, slots=True, eq=False)
class Billing:
    """Weights of the resources of a cluster.

    Attributes
    ----------
    weights : array (resources,)
        What one unit of each resource is billed a second.
    largest : bool
        The largest of the products counts, not their sum.
    """

    weights: FloatArray
    largest: bool

    def tolist(self) -> list[float]:
        """Return the weights."""
        return [float(weight) for weight in self.weights]


def billed(billing: Billing, amounts: FloatArray) -> FloatArray:
    """Return what amounts, (..., resources), are billed a second, (...,)."""
    each = np.asarray(amounts, float) * billing.weights
    return np.asarray(each.max(axis=-1) if billing.largest else each.sum(axis=-1))


def billing_of(given: BillingLike, cluster: Instance) -> Billing:
    """Return the weights of the resources of a cluster.

    Parameters
    ----------
    given : str, path, mapping or None
        Weights by resource, ``{"cpu": 1, "gpu": 8}``, for one unit of the cluster's. Text as in ``TRESBillingWeights``, "CPU=1.0,Mem=0.25G,
        GRES/gpu=8": memory is counted in MiB where no unit follows, as Slurm does; "max:cpu=1,gpu=8" takes the largest. A file that
        ``scontrol show partitions`` wrote states them itself. None: cores count 1 and nothing else does, Slurm's default.

    Raises
    ------
    InvalidInstance
        A name that is no resource, a weight that is no number >= 0, a file whose partitions differ.
    Unsupported
        Nothing is given, and no resource is called cpu, cpus, core or cores.
    """
    if given is None:
        cores = [r for r, name in enumerate(cluster.resources) if name.lower() in _CORES]
        if len(cores) != 1:
            raise Unsupported(
                f"usage is counted in billing, and none of {joined(cluster.resources, 5)} is the cores, which Slurm bills by default; "
                f'give the weights, as in billing="{cluster.resources[0]}=1"'
            )
        return Billing(np.eye(cluster.n_resources)[cores[0]], largest=False)
    if isinstance(given, Mapping):
        return _of_pairs([(str(name), weight) for name, weight in given.items()], False, cluster, "billing")
    text, where = os.fspath(given), "billing"
    if "=" not in text or Path(text).is_file():
        where, text = text, _of_partitions(Path(text))
    largest = text.startswith("max:")
    pairs = []
    for part in text.removeprefix("max:").split(","):
        name, found, weight = part.partition("=")
        if not found:
            raise InvalidInstance(f'{where}: "{part}" is no weight of a resource; write NAME=WEIGHT, as in cpu=1,gres/gpu=8')
        pairs.append((name.strip(), weight.strip()))
    return _of_pairs(pairs, largest, cluster, where)


def _of_partitions(path: Path) -> str:
    """Return the weights that the partitions of a file state."""
    if not path.is_file():
        raise InvalidInstance(
            f'billing: "{path}" is neither weights, as in cpu=1,gres/gpu=8, nor a file, which scontrol show partitions > FILE writes'
        )
    found = [text for text in dict.fromkeys(_WEIGHTS.findall(read_text(path))) if text not in _NOTHING]
    if not found:
        raise InvalidInstance(
            f"{path}: no partition states TRESBillingWeights; give the weights, or leave them out: a job is billed its cores"
        )
    if len(found) > 1:
        raise InvalidInstance(
            f"{path}: partitions have different TRESBillingWeights, {joined(found, 3)}; give those that count, as in cpu=1,gres/gpu=8"
        )
    return str(found[0])


def _of_pairs(pairs: list[tuple[str, Any]], largest: bool, cluster: Instance, where: str) -> Billing:
    weights = np.zeros(cluster.n_resources)
    for name, text in pairs:
        r, factor, rest = _resource(name, str(text), cluster, where)
        try:
            weight = float(rest)
        except ValueError:
            weight = np.nan
        if not (np.isfinite(weight) and weight >= 0):
            raise InvalidInstance(f'{where}: the weight of "{name}" is "{text}"; give a number >= 0')
        weights[r] += weight * factor
    if not weights.any():
        raise InvalidInstance(f"{where}: all weights are 0, so that nothing is billed; give one > 0")
    return Billing(weights, largest)


def _resource(name: str, weight: str, cluster: Instance, where: str) -> tuple[int, float, str]:
    """Return a resource, how many units of Slurm one unit of the cluster's is, and the weight without its unit."""
    names = list(cluster.resources)
    if name in names:
        return names.index(name), 1.0, weight
    small = name.lower()
    own = _SLURM.get(small, small.removeprefix("gres/").removeprefix("license/"))
    known = {each.lower(): r for r, each in enumerate(names)}
    if own not in known:
        raise InvalidInstance(
            f'{where}: the cluster has no resource "{name}"{did_you_mean(own, names)}; it has {joined(names, 8)}: leave its weight out'
        )
    r = known[own]
    if small != "mem":
        return r, 1.0, weight
    unit = str(cluster.units.get(names[r], "")).rstrip("Bb").removesuffix("i").upper()
    if unit not in _BYTES:
        raise InvalidInstance(
            f'{where}: the weight of "{name}" is for bytes, and the cluster does not say in which unit "{names[r]}" is counted; '
            f'write {names[r]}=WEIGHT for one unit of it, or state "units"'
        )
    last = weight[-1:].upper()
    of = _BYTES.get(last, _MEBI)
    return r, _BYTES[unit] / of, weight[:-1] if last in _BYTES else weight

"""What exports to Kubernetes share: names of resources, quantities, and objects as YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.clusters.amounts import Measure, Measures, kind_of, measures
from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.wording import in_shell, named, printable

__all__ = ["QUALIFIED_NAME", "documents", "kubernetes_measures", "quantity"]

# Of resources and of labels: a domain and a slash, which may be left out, and up to 63 letters, digits, "-", "_" and ".".
QUALIFIED_NAME = re.compile(r"([a-z0-9][-.a-z0-9]{0,251}[a-z0-9]/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_NATIVE = ("pods", "ephemeral-storage", "storage")
_GPU = "nvidia.com/gpu"
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi")
_SMALLEST: dict[str, Fraction | int] = {"cpu": Fraction(1, 1000), "memory": 1, "gpu": 1, "": 1}


def kubernetes_measures(instance: Instance, keys: Mapping[str, str] | None, units: Mapping[str, str] | None, system: str) -> Measures:
    """Return how Kubernetes counts resources: thousandths of cores, bytes, pieces.

    Raises
    ------
    InvalidInstance
        Also where Kubernetes has no resource of such a name.
    """
    return measures(instance, _key, _SMALLEST, grammar=QUALIFIED_NAME, keys=keys, units=units, in_bytes=("storage",), system=system)


def _key(resource: str) -> str:
    kind = kind_of(resource)
    if "/" in resource or resource in _NATIVE or resource.startswith("hugepages-"):
        return resource
    if kind in ("cpu", "gpu"):
        return "cpu" if kind == "cpu" else _GPU
    if kind == "memory":
        return "memory"
    raise InvalidInstance(
        f"Kubernetes has no resource {named(resource)}; name that of its nodes, which has a slash: "
        f"--resource-name {in_shell(f'{resource}=example.com/NAME')}"
    )


def quantity(amount: int, measure: Measure) -> str:
    """Return an amount of the smallest units as a quantity.

    >>> cpu, memory = Measure("cpu", "cpu", 1000.0), Measure("memory", "memory", 2.0**30)
    >>> [quantity(1500, cpu), quantity(2000, cpu), quantity(3 << 30, memory), quantity(1000, memory), quantity(0, memory)]
    ['1500m', '2', '3Gi', '1000', '0']
    """
    if measure.kind == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if measure.kind != "memory":
        return str(amount)
    letter = ""
    for larger in _BINARY:
        if amount == 0 or amount % 1024:
            break
        amount, letter = amount // 1024, larger
    return f"{amount}{letter}"


def documents(objects: Sequence[Mapping[str, Any]], head: Sequence[str]) -> str:
    """Return objects as documents of YAML, with comments before the first."""
    from fairopt.formats.yaml_core import dump  # imports yaml, which is slow

    comments = "".join(f"# {printable(line)}\n" for line in head)
    return comments + "".join(f"---\n{dump(dict(each), blocks=True)}" for each in objects)

"""User priorities of HTCondor: ``condor_userprio -allusers``, as JSON, as its table, or in its long form.

A submitter has a real priority, the use of cores that has faded, and a factor; the effective priority is their product.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

from fairopt.clusters.htcondor.ads import Ad, read_ads
from fairopt.errors import InvalidInstance
from fairopt.files import read_text

__all__ = ["Priority", "read_priorities"]

FACTOR = 1000.0  # DEFAULT_PRIO_FACTOR
_ROW = re.compile(r"(?m)^\s*(\S+@\S+)\s+([0-9.]+)\s+([0-9.]+)(?:\s+([0-9.]+))?\s")
_REAL = re.compile(r"\bReal\b")  # in the header: a column between the effective priority and the factor, with -all
_LONG = re.compile(r'(?m)^(Name|Priority|PriorityFactor|Ceiling|Floor)(\d+)\s*=\s*"?([^"\n]+)"?\s*$')


@dataclass(frozen=True, slots=True)
class Priority:
    """The priority of a submitter, or of a group.

    Attributes
    ----------
    name : str
        With the domain, if the export has it.
    effective, factor : float
    ceiling, floor : float
        Of its cores; -1: no ceiling.
    is_group : bool
    quota : float
        Of a group, in cores; -1: not stated.
    surplus : bool
        Whether a group accepts surplus.
    """

    name: str
    effective: float = 0.0
    factor: float = FACTOR
    ceiling: float = -1.0
    floor: float = 0.0
    is_group: bool = False
    quota: float = -1.0
    surplus: bool = True

    @property
    def submitter(self) -> str:
        """The name without the domain, in small letters."""
        return self.name.partition("@")[0].lower()


def read_priorities(path: str | os.PathLike[str]) -> list[Priority]:
    """Return the priorities of a file; none if it has none of these forms.

    Raises
    ------
    InvalidInstance
        With the file: a priority is no number.
    """
    text = read_text(Path(path))
    if text.lstrip().startswith(("[", "{")):
        return [_of_ad(ad) for ad in read_ads(path, "priorities")]
    first = _ROW.search(text)
    column = 3 if first and _REAL.search(text, 0, first.start()) else 2
    rows: list[dict[str, str]] = [{"Name": row[0], "Priority": row[1], "PriorityFactor": row[column]} for row in _ROW.findall(text)]
    if not rows:
        fields: dict[str, dict[str, str]] = {}
        for key, number, value in _LONG.findall(text):
            fields.setdefault(number, {})[key] = value.strip()
        rows = [each for each in fields.values() if "@" in each.get("Name", "") and {"Priority", "PriorityFactor"} <= each.keys()]
    return [_of_row(row, path) for row in rows]


def _of_row(row: dict[str, str], path: str | os.PathLike[str]) -> Priority:
    numbers = {"Ceiling": -1.0, "Floor": 0.0}
    for key in ("Priority", "PriorityFactor", "Ceiling", "Floor"):
        if key in row:
            try:
                numbers[key] = float(row[key])
            except ValueError:
                numbers[key] = math.nan
    effective, factor = numbers["Priority"], numbers["PriorityFactor"]
    if not (math.isfinite(effective) and effective >= 0 and math.isfinite(factor) and factor > 0):
        raise InvalidInstance(
            f'{path}: the priority of "{row["Name"]}" is "{row["Priority"]}", its factor "{row["PriorityFactor"]}"; export it again'
        )
    ceiling = numbers["Ceiling"] if math.isfinite(numbers["Ceiling"]) else -1.0
    floor = numbers["Floor"] if math.isfinite(numbers["Floor"]) else 0.0
    return Priority(row["Name"], effective, factor, ceiling, floor)


def _of_ad(ad: Ad) -> Priority:
    is_group = ad.is_true("IsAccountingGroup")
    factor = ad.number("PriorityFactor", FACTOR) or FACTOR
    ceiling = ad.get("Ceiling").value
    quota = ad.number("SubtreeQuota", ad.number("EffectiveQuota", -1.0)) if is_group else -1.0
    return Priority(
        ad.text("Name"),
        ad.number("Priority", 0.0),
        factor,
        ad.number("Ceiling", -1.0) if isinstance(ceiling, int | float) and ceiling >= 0 else -1.0,
        ad.number("Floor", 0.0),
        is_group,
        quota,
        ad.text("SurplusPolicy", "no").lower() != "no",
    )

"""What a specification such as "fairtree:half_life=7d" asks for, as data.

>>> baseline_of("fairtree:half_life=7d")
Baseline(name='fairtree:half_life=7d', order='fairtree', half_life=604800.0, backfill=True, unit=None)
>>> seconds_of("90m"), seconds_of(30), seconds_of("inf")
(5400.0, 30.0, inf)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairopt.errors import Unsupported
from fairopt.registry import words
from fairopt.specs import options_of
from fairopt.wording import did_you_mean, joined

__all__ = ["BASELINES", "Baseline", "baseline_of", "half_life_of", "seconds_of", "unit_of"]

BASELINES = {
    "fifo": "jobs start in the order of submission; one that does not fit blocks all behind it",
    "backfill": "EASY backfill: as fifo, and later jobs fill gaps if by the users' estimates they do not delay the first one",
    "fairtree": "Slurm's fair tree: users in the order of shares over faded usage, level by level, with EASY backfill",
    "priority": "HTCondor's user priorities: each user's part of the free cores is inverse to its faded use of cores",
}
_TAKES = {"fifo": (), "backfill": (), "fairtree": ("half_life", "backfill"), "priority": ("half_life", "unit")}
_HALF_LIVES = {"fairtree": 7 * 86400.0, "priority": 86400.0}  # the defaults of Slurm and of HTCondor
_CORES = ("cpu", "cpus", "core", "cores")  # in any case
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class Baseline:
    """A scheduler of jobs.

    Attributes
    ----------
    name : str
        As the user wrote it.
    order : str
        One of ``BASELINES``: the rule by which the next job is chosen.
    half_life : float
        Seconds in which usage fades to its half; inf: it does not fade.
    backfill : bool
        Whether later jobs may start before the first one that does not fit.
    unit : str or None
        The resource in which usage and priorities count; None: the default of `unit_of`.
    """

    name: str
    order: str
    half_life: float
    backfill: bool
    unit: str | None = None


def baseline_of(spec: Any) -> Baseline | None:
    """Return the scheduler of jobs that a specification names; None for anything else.

    Raises
    ------
    Unsupported
        The scheduler does not take an option, or not this value.
    """
    name, word, options = options_of(spec)
    if word not in BASELINES:
        return None
    if isinstance(spec, str) and not all("=" in part for part in words(spec)[1:]):
        raise Unsupported(f'"{spec}": "{word}" takes no placement, tasks start on the first servers where they fit; {_form(word)}')
    for option in options:
        if option not in _TAKES[word]:
            raise Unsupported(f'"{word}" takes no option "{option}"{did_you_mean(option, _TAKES[word])}; {_form(word)}')
    half_life = seconds_of(options.get("half_life", _HALF_LIVES.get(word, math.inf)))
    if word == "priority" and math.isinf(half_life):
        raise Unsupported('the priorities of "priority" are averages that fade; give a finite half_life, as in "priority:half_life=1d"')
    wanted = options.get("backfill", "yes")
    if wanted not in ("yes", "no"):
        raise Unsupported(f'backfill is "{wanted}"; write "fairtree:backfill=no" for a queue that the first job blocks, or leave it out')
    unit = options.get("unit")
    backfill = word == "backfill" or (word == "fairtree" and wanted == "yes")
    return Baseline(name, word, half_life, backfill, None if unit is None else str(unit))


def unit_of(unit: str | None, resources: Sequence[str]) -> int:
    """Return the resource, by position, in which "priority" counts usage: HTCondor's cores.

    By default it is the one called cpu, cpus, core or cores, in any case, else the only resource there is.

    >>> unit_of(None, ["memory", "CPU"]), unit_of(None, ["memory"]), unit_of("gpu", ["cpu", "gpu"])
    (1, 0, 1)

    Raises
    ------
    Unsupported
        There is no such resource, or no default.
    """
    if unit is not None:
        if unit not in resources:
            raise Unsupported(
                f'"priority:unit={unit}": there is no resource "{unit}"{did_you_mean(unit, resources)}; there are {joined(resources, 5)}'
            )
        return resources.index(unit)
    cores = [name for name in resources if name.lower() in _CORES]
    found = cores or (resources if len(resources) == 1 else ())
    if len(found) == 1:
        return resources.index(found[0])
    why = f"several may be meant, {joined(cores)}" if cores else f"none of {joined(resources, 5)} is called cpu, cpus, core or cores"
    raise Unsupported(
        f'"priority" counts what users hold of one resource, as HTCondor counts cores, and {why}; name the resource, as in '
        f'"priority:unit={(cores or resources)[0]}"'
    )


def half_life_of(name: str) -> float:
    """Return the half-life of a scheduler with a memory, in seconds, also where it is the default; nan for one without a memory.

    >>> half_life_of("fairtree"), half_life_of("drfh:half_life=1h"), half_life_of("fifo")
    (604800.0, 3600.0, nan)
    """
    _, word, options = options_of(name)
    value = options.get("half_life", _HALF_LIVES.get(word))
    return math.nan if value is None else seconds_of(value)


def _form(word: str) -> str:
    options = "".join(f":{option}=..." for option in _TAKES[word])
    return f'write "{word}{options}"'


def seconds_of(value: Any, what: str = "a half-life") -> float:
    """Return a duration > 0 in seconds, from a number, or from a text with a unit: s, m, h, d or w.

    Raises
    ------
    Unsupported
    """
    text = str(value).strip()
    unit = _UNITS.get(text[-1:])
    try:
        seconds = float(text[:-1]) * unit if unit is not None and text != "inf" else float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise Unsupported(f'{what} is "{value}"; give seconds > 0, or a unit as in 90m, 12h, 7d; a half-life of inf does not fade')
    return seconds

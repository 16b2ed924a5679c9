"""What a specification such as "fairtree:half_life=7d" asks for, as data.

>>> fairtree = baseline_of("fairtree:half_life=7d")
>>> fairtree.order, fairtree.half_life, fairtree.backfill
('fairtree', 604800.0, True)
>>> baseline_of("maui:interval=1d:depth=4:decay=0.5").windows
Windows(interval=86400.0, depth=4, decay=0.5)
>>> seconds_of("90m"), seconds_of(30), seconds_of("inf")
(5400.0, 30.0, inf)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.registry import words
from fairopt.simulation.billing import Billing, billed, billing_of
from fairopt.simulation.past_usage import PastUsage
from fairopt.specs import options_of
from fairopt.wording import did_you_mean, joined

__all__ = ["BASELINES", "UNKNOWN", "Baseline", "Known", "Windows", "baseline_of", "half_life_of", "remembers", "seconds_of", "unit_of"]

BASELINES = {
    "fifo": "jobs start in the order of submission; one that does not fit blocks all behind it",
    "backfill": "EASY backfill: as fifo, and later jobs fill gaps if by the users' estimates they do not delay the first one",
    "fairtree": "Slurm's fair tree: users in the order of shares over faded usage, level by level, with EASY backfill",
    "priority": "HTCondor's user priorities: each user's part of the free cores is inverse to its faded use of cores",
    "maui": "Maui's and Moab's fairshare: users in the order of target minus use in windows that count less the older, with EASY backfill",
}
_TAKES = {
    "fifo": (),
    "backfill": (),
    "fairtree": ("half_life", "backfill"),
    "priority": ("half_life", "unit"),
    "maui": ("interval", "depth", "decay", "unit", "backfill"),
}
_HALF_LIVES = {"fairtree": 7 * 86400.0, "priority": 86400.0}  # the defaults of Slurm and of HTCondor
_OF = {"priority": "HTCondor", "maui": "Maui"}
_CORES = ("cpu", "cpus", "core", "cores")  # in any case
_MOST_WINDOWS = 1000
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of ``interval`` seconds, of which the present one and ``depth`` - 1 before count, each ``decay`` times the next one."""

    interval: float = 43200.0
    depth: int = 8
    decay: float = 1.0


class Known(NamedTuple):
    """What a scheduler knows of owners at the beginning, and what it counts."""

    past: PastUsage | None
    billing: Billing | None

    def billed(self, instance: Instance) -> float:
        """Return what the whole cluster is billed a second: so much usage is a share of 1 for a second.

        Raises
        ------
        Unsupported
            There is no billing, and no resource is the cores.
        """
        return float(billed(self.billing or billing_of(None, instance), instance.total_capacity))


UNKNOWN = Known(None, None)


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
    windows : Windows or None
        Those of "maui".
    known : Known
        The usage at the beginning, and the billing of a task, which counts as usage instead of the unit.
    """

    name: str
    order: str
    half_life: float
    backfill: bool
    unit: str | None = None
    windows: Windows | None = None
    known: Known = UNKNOWN


def remembers(baseline: Baseline) -> bool:
    """Return whether a scheduler counts what users have had."""
    return baseline.order not in ("fifo", "backfill")


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
        raise Unsupported(f'backfill is "{wanted}"; write "{word}:backfill=no" for a queue that the first job blocks, or leave it out')
    unit = options.get("unit")
    backfill = word == "backfill" or (word in ("fairtree", "maui") and wanted == "yes")
    windows = _windows_of(options) if word == "maui" else None
    return Baseline(name, word, half_life, backfill, None if unit is None else str(unit), windows)


def _windows_of(options: Mapping[str, Any]) -> Windows:
    default = Windows()
    interval = seconds_of(options.get("interval", default.interval), "the interval of windows")
    depth, decay = options.get("depth", default.depth), options.get("decay", default.decay)
    try:
        whole, part = float(depth), float(decay)
    except (TypeError, ValueError):
        whole = part = math.nan
    if math.isinf(interval) or not (1 <= whole <= _MOST_WINDOWS and whole.is_integer() and 0 <= part <= 1):
        raise Unsupported(
            f'"maui" has windows of {interval:g} s, {depth} of them, with the decay {decay}; give a finite interval, a depth from 1 to '
            f"{_MOST_WINDOWS}, and a decay from 0 to 1, as in maui:interval=1d:depth=7:decay=0.8"
        )
    return Windows(interval, int(whole), part)


def unit_of(unit: str | None, resources: Sequence[str], order: str = "priority") -> int:
    """Return the resource, by position, in which a scheduler counts usage: HTCondor's and Maui's cores.

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
                f'"{order}:unit={unit}": there is no resource "{unit}"{did_you_mean(unit, resources)}; there are {joined(resources, 5)}'
            )
        return resources.index(unit)
    cores = [name for name in resources if name.lower() in _CORES]
    found = cores or (resources if len(resources) == 1 else ())
    if len(found) == 1:
        return resources.index(found[0])
    why = f"several may be meant, {joined(cores)}" if cores else f"none of {joined(resources, 5)} is called cpu, cpus, core or cores"
    raise Unsupported(
        f'"{order}" counts what users hold of one resource, as {_OF[order]} counts cores, and {why}; name the resource, as in '
        f'"{order}:unit={(cores or resources)[0]}"'
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

"""One colour for each notion, each placement and each scheduler of clusters, in every picture and in the report.

The colours differ in hue and in lightness, so that they differ in grey too. Whole-task variants of a notion have its colour and a hatch;
a schedule has the colour of its placement. Two variants of a notion in one picture (other options) are tints of its colour.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["MARKS", "NOTIONS", "PLACEMENTS", "SCHEDULERS", "STYLES", "WHOLE", "Look", "looks", "notion_colour"]

STYLES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "D", "v", "<", ">", "p", "P", "X")
NOTIONS = {
    "drfh": "#0072B2",
    "psdsf": "#D55E00",
    "tsf": "#009E73",
    "efficiency": "#222222",
    "proportional": "#AA4499",
    "uniform": "#7F7F7F",
    "drf": "#12305E",
    "cdrf": "#332288",
    "per-server-drf": "#7C83D6",
    "asset": "#117733",
    "max-min": "#88B04B",
    "bbf": "#882255",
    "fds": "#E8636F",
    "gfj": "#805A3B",
}
PLACEMENTS = {
    "best-fit": "#56B4E9",
    "first-fit": "#E69F00",
    "slots": "#A6761D",
    "joint": "#CC79A7",
    "worst-fit": "#F0E442",
    "random-round-robin": "#3FD0BE",
    "random-server": "#C9B3E0",
    "random": "#CFCFCF",
}
SCHEDULERS = {"fifo": "#E69F00", "backfill": "#009E73", "fairtree": "#CC79A7", "priority": "#D55E00", "karma": "#7570B3"}
_OTHERS = ("#1B9E77", "#7570B3", "#E7298A", "#66A61E", "#A65628", "#5E3C99", "#00798C", "#D1495B")  # of notions and names of one's own
_PLACEMENT = re.compile(rf"(?<![\w-])({'|'.join(sorted(PLACEMENTS, key=len, reverse=True))})(?![\w-])")
WHOLE = ", whole tasks"


class Look(NamedTuple):
    """The colour and the line style of an allocation, a schedule or a simulation."""

    colour: str
    line: str


def notion_colour(name: str) -> str:
    """Return the colour of a notion or a scheduler: that of the tables, or, of one of one's own, the same each time.

    >>> notion_colour("drfh"), notion_colour("psdsf:order=asynchronous"), notion_colour("drfh, whole tasks")
    ('#0072B2', '#D55E00', '#0072B2')
    """
    base = _base(name)
    return NOTIONS.get(base) or SCHEDULERS.get(base) or _OTHERS[zlib.crc32(base.encode()) % len(_OTHERS)]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the colour and line style of each name: of its placement, else of its notion; a second one of the same is a tint.

    >>> looks(["14 slots", "drfh:best-fit"])["14 slots"].colour, looks(["drfh"])["drfh"].colour
    ('#A6761D', '#0072B2')
    >>> looks(["drfh", "drfh, whole tasks"])["drfh, whole tasks"].colour
    '#0072B2'
    """
    found: dict[str, Look] = {}
    taken: dict[str, list[str]] = {}  # colour: the variants that have it, the first one without a tint
    for place, name in enumerate(dict.fromkeys(names)):
        match = _PLACEMENT.search(name)
        colour = PLACEMENTS[match[1]] if match else notion_colour(name)
        variants = taken.setdefault(colour, [])
        variant = name.replace(WHOLE, "")
        if variant not in variants:
            variants.append(variant)
        shade = _tint(colour, variants.index(variant))
        lines = [*STYLES[place % 4 :], *STYLES[: place % 4]] if not match else [STYLES[list(PLACEMENTS).index(match[1]) % 4], *STYLES]
        used = {found[other].line for other in found if other.replace(WHOLE, "") in variants}
        line = next((line for line in lines if line not in used and Look(shade, line) not in found.values()), None)
        line = line or next((line for line in lines if Look(shade, line) not in found.values()), STYLES[place % 4])
        found[name] = Look(shade, line)
    return found


def _base(name: str) -> str:
    return re.split(r"[:, (]", name, maxsplit=1)[0]


def _tint(colour: str, step: int) -> str:
    """Return a lighter colour, or the colour itself at step 0."""
    part = 1 - 0.6**step if step < 4 else 0.8
    return "#" + "".join(f"{round(int(colour[k : k + 2], 16) * (1 - part) + 235 * part):02X}" for k in (1, 3, 5)) if step else colour

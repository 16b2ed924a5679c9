"""One colour for each notion, each placement and each scheduler of clusters, in every picture and in the report.

The colours differ in hue and in lightness, so that they differ in grey too. Each has a contrast of at least 3 to 1 to white (WCAG 2.2,
1.4.11), because lines and marks have no edge. Whole-task variants of a notion have its colour and a hatch;
a schedule has the colour of its placement. Two variants of a notion in one picture (other options) are tints of its colour.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["MARKS", "NOTIONS", "PLACEMENTS", "SCHEDULERS", "STYLES", "WHOLE", "Look", "contrast", "edge", "ink", "looks", "notion_colour"]

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
    "max-min": "#7B9F43",
    "finish-time": "#5D6A00",
    "bbf": "#882255",
    "fds": "#E8636F",
    "gfj": "#805A3B",
}
PLACEMENTS = {
    "best-fit": "#3A9BD6",
    "first-fit": "#CC8200",
    "slots": "#A6761D",
    "joint": "#CC79A7",
    "worst-fit": "#A39200",
    "fastest": "#661AE6",
    "random-round-robin": "#2BA396",
    "random-server": "#A583C9",
    "random": "#8A93A0",
}
SCHEDULERS = {"fifo": "#CC8200", "backfill": "#009E73", "fairtree": "#CC79A7", "priority": "#D55E00", "karma": "#7570B3"}
_OTHERS = ("#1B9E77", "#7570B3", "#E7298A", "#61A01C", "#A65628", "#5E3C99", "#00798C", "#D1495B")  # of notions and names of one's own
_PLACEMENT = re.compile(rf"(?<![\w-])({'|'.join(sorted(PLACEMENTS, key=len, reverse=True))})(?![\w-])")
WHOLE = ", whole tasks"
_SEEN = 3.0  # contrast to white of a line or an edge


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


def contrast(colour: str, other: str = "#FFFFFF") -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2: relative luminance).

    >>> round(contrast("#000000"), 1), round(contrast("#F0E442"), 2)
    (21.0, 1.32)
    """
    dark, light = sorted((_luminance(colour), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def ink(colour: str, ground: str = "#FFFFFF") -> str:
    """Return the colour itself, or, where it cannot be seen on its ground, as a line on white, a darker one of its hue.

    >>> ink("#0072B2"), ink("#F0E442")
    ('#0072B2', '#9E962C')
    """
    part = 1.0
    while contrast(darker := _mixed(colour, 0, part), ground) < _SEEN:
        part -= 0.01
    return darker


def edge(fill: str) -> str:
    """Return the colour of the edge and of the hatch of a bar: white, or, where the bar is too light for that, dark.

    >>> edge("#0072B2"), edge("#F0E442")
    ('white', '#898226')
    """
    return "white" if contrast(fill) >= _SEEN else ink(fill, fill)


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(colour: str, other: int, part: float) -> str:
    """Return this part of a colour and the rest of a grey."""
    return "#" + "".join(f"{round(int(colour[k : k + 2], 16) * part + other * (1 - part)):02X}" for k in (1, 3, 5))


def _tint(colour: str, step: int) -> str:
    """Return another shade of a colour, or the colour itself at step 0: lighter as far as it can be seen on white, else darker."""
    if not step:
        return colour
    lighter = _mixed(colour, 235, 0.6**step if step < 4 else 0.2)
    return lighter if contrast(lighter) >= _SEEN else _mixed(colour, 0, 0.75**step if step < 4 else 0.25)

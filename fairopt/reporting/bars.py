"""Bars of a table, as SVG in its cells: what is held, the part by weight, the guarantee, the limit, and what is missing of a guarantee.

All widths are percentages, so that bars fit any page. Colours are CSS variables of the page. Nothing is drawn by a script.

>>> axis = Axis.of([0.3, 0.12])
>>> axis.end, axis.ticks
(0.306, (0.0, 0.1, 0.2, 0.3))
>>> print(bar(Held(0.3), axis))
<svg class="bar" aria-hidden="true"><rect class="held" x="0" y="5" width="98.04%" height="13"/></svg>
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fairopt.reporting.tables.answers import Held
from fairopt.show.html import Html
from fairopt.wording import percent

__all__ = ["PATTERN", "Axis", "axis_html", "bar", "sign"]

_TICKS = 4  # at most, beyond 0
_ROOM = 1.02

PATTERN = Html(
    '<svg class="quiet" aria-hidden="true" width="0" height="0"><defs><pattern id="missing" width="6" height="6"'
    ' patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="paper" width="6" height="6"/>'
    '<rect class="stripe" width="2.5" height="6"/></pattern></defs></svg>'
)
"""The hatch of what is missing; it stands once in the page."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The scale that all bars of a table share: its end, and the parts at which it has marks."""

    end: float
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, largest: Iterable[float]) -> Axis:
        """Return the scale for these largest numbers of the bars."""
        most = max(largest, default=0.0) or 1.0
        size = 10.0 ** math.floor(math.log10(most / _TICKS))
        step = next(each * size for each in (1, 2, 2.5, 5, 10) if most <= _TICKS * each * size * (1 + 1e-9))
        return cls(float(f"{most * _ROOM:.9g}"), tuple(float(f"{k * step:.9g}") for k in range(int(most / step + 1e-9) + 1)))

    def at(self, part: float) -> str:
        """Return a place on the axis."""
        return f"{100 * part / self.end:.4g}%"


def bar(held: Held | None, axis: Axis) -> Html:
    """Return the bar of one row; nothing for None."""
    if held is None:
        return Html("")
    marks = [f'<rect class="held" x="0" y="5" width="{axis.at(held.part)}" height="13"/>'] if held.part > 0 else []
    if held.missing:
        marks.append(f'<rect class="missing" x="{axis.at(held.part)}" y="5" width="{axis.at(held.missing)}" height="13"/>')
    if held.before is not None and held.has_changed:
        marks.append(f'<rect class="before" x="0" y="2" width="{axis.at(held.before)}" height="19"/>')
    if held.by_weight is not None:
        marks.append(_line("weight", axis.at(held.by_weight), 2, 21))
    if held.limit is not None:
        marks.append(_line("limit", axis.at(held.limit), 2, 21))
    if held.guarantee is not None:
        marks.append(f'<svg x="{axis.at(held.guarantee)}" overflow="visible"><path class="guarantee" d="M-5 0H5L0 7Z"/></svg>')
    return Html(f'<svg class="bar" aria-hidden="true">{"".join(marks)}</svg>')


def _line(name: str, at: str, top: int, bottom: int) -> str:
    """Return an upright line with an edge in the colour of the paper, which is seen on the bar and beside it."""
    ends = f'x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"'
    return f'<line class="edge" {ends}/><line class="{name}" {ends}/>'


def axis_html(axis: Axis) -> Html:
    """Return the marks of the scale, for the heading of the bars."""
    texts = []
    for k, part in enumerate(axis.ticks):
        anchor = "start" if part == 0 else "end" if part > 0.94 * axis.end else "middle"
        odd = ' class="odd"' if k % 2 else ""  # left out on narrow screens
        texts.append(f'<text{odd} x="{axis.at(part)}" y="11" text-anchor="{anchor}">{percent(part) if part else "0"}</text>')
        texts.append(f'<line x1="{axis.at(part)}" x2="{axis.at(part)}" y1="14" y2="18"/>')
    return Html(f'<svg class="axis" aria-hidden="true"><line x1="0" x2="100%" y1="18" y2="18"/>{"".join(texts)}</svg>')


def sign(mark: str) -> Html:
    """Return the sign of a mark, for the legend."""
    drawn = {
        "part": '<rect class="held" x="1" y="5" width="24" height="13"/>',
        "missing": '<rect class="missing" x="1" y="5" width="24" height="13"/>',
        "by_weight": _line("weight", "13", 2, 21),
        "limit": _line("limit", "13", 2, 21),
        "before": '<rect class="before" x="1" y="2" width="24" height="19"/>',
        "guarantee": '<path class="guarantee" d="M8 5H18L13 12Z"/>',
    }
    return Html(f'<svg class="sign" width="26" height="23" aria-hidden="true">{drawn[mark]}</svg>')
